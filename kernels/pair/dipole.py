"""Laplace dipole: u = d.r / r^3.

Screened, far[0] is H of the split: u = (1/r^3 + 2 H) d.r.
"""

from typing import List

import pykokkos as pk

real = pk.double
NS = 3  # d
NU = 1
NF = 1
SCREENED = False


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add the potential of a dipole to u."""
    a: real = w * w * w
    if SCREENED:
        a += 2.0 * far[0]
    u[0] += a * (dx * s[0] + dy * s[1] + dz * s[2])
