"""Numbers that each kernel of an Ewald sum has per source, per grid point and per target."""

PAIRS = {"laplace": "pair/laplace", "stokes_sl": "pair/stokeslet", "stokes_comb": "pair/stokes_comb"}
STRENGTHS = {"laplace": 1, "stokes_sl": 3, "stokes_comb": 9}  # numbers per source: q; f; f, q, n
SPREAD = {"laplace": 1, "stokes_sl": 3, "stokes_comb": 4}  # components of the grid
RESULT = {"laplace": 1, "stokes_sl": 3, "stokes_comb": 3}
