"""Rotlet, the flow of a point torque t: u = t x r / r^3.

Screened, far = (H) of the split: u = (1/r^3 + 2 H) t x r.
"""

from typing import List

import pykokkos as pk

real = pk.double
NS = 3  # t
NU = 3
NF = 1
SCREENED = False


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add the flow of a torque to u."""
    a: real = w * w * w
    if SCREENED:
        a += 2.0 * far[0]
    u[0] += a * (s[1] * dz - s[2] * dy)
    u[1] += a * (s[2] * dx - s[0] * dz)
    u[2] += a * (s[0] * dy - s[1] * dx)
