"""Yukawa: u = q exp(-kappa r) / r.

Screened, far[0] is Y of the split: u = (exp(-kappa r)/r - Y) q.
"""

from typing import List

import pykokkos as pk

real = pk.double
NS = 2  # q, kappa
NU = 1
NF = 1
SCREENED = False


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add the screened potential of a charge to u."""
    a: real = pk.exp(-s[1] * (r2 * w)) * w
    if SCREENED:
        a -= far[0]
    u[0] += s[0] * a
