"""Kernels that tests sum, with their numbers."""

#: Numbers of a source, of a target, and of far parts of pair files: NS, NU and NF.
PAIRS = {"laplace": (1, 1, 1), "stokeslet": (3, 3, 2), "stresslet": (6, 3, 3), "stokes_comb": (9, 3, 3)}
#: Kernels of the published code, with the components of a density.
COMPONENTS = {"laplace": 1, "stokes_sl": 3, "stokes_comb": 6}
