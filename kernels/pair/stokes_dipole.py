"""Flow of force dipoles D, minus derivatives of the Stokes single layer: u_i = -d_j (I/r + r r/r^3)_ik D_kj.

D is f d for forces f and -f at the ends of a short d, and comes by rows.  Screened, far = (E, G) of the split: with
a, b and c of stokes_grad.py, u = -[a D r + b D^T r + (c (r.D r) + b tr D) r].
"""

from typing import List

import pykokkos as pk

from parki.kernels.pair.stokes_grad import factors

real = pk.double
NS = 9  # D
NU = 3
NF = 2


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add the flow of a force dipole to u."""
    a, b, c = factors(r2, w, far)
    x: real = s[0] * dx + s[1] * dy + s[2] * dz
    y: real = s[3] * dx + s[4] * dy + s[5] * dz
    z: real = s[6] * dx + s[7] * dy + s[8] * dz
    along: real = c * (dx * x + dy * y + dz * z) + b * (s[0] + s[4] + s[8])
    u[0] -= a * x + b * (s[0] * dx + s[3] * dy + s[6] * dz) + along * dx
    u[1] -= a * y + b * (s[1] * dx + s[4] * dy + s[7] * dz) + along * dy
    u[2] -= a * z + b * (s[2] * dx + s[5] * dy + s[8] * dz) + along * dz
