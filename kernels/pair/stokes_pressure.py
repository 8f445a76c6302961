"""Pressure of the Stokes single layer: u = 2 f.r / r^3.

Screened, far[0] is H of the split: u = 2 (1/r^3 + 2 H) f.r.
"""

from typing import List

import pykokkos as pk

real = pk.double
NS = 3  # f
NU = 1
NF = 1
SCREENED = False


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add the pressure of a force to u."""
    a: real = 2.0 * (w * w * w)
    if SCREENED:
        a += 4.0 * far[0]
    u[0] += a * (dx * s[0] + dy * s[1] + dz * s[2])
