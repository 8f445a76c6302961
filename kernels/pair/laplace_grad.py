"""Gradient of Laplace: u = -q r / r^3.

Screened, far[0] is H, the derivative of F by r2: u = -(1/r^3 + 2 H) q r.
"""

from typing import List

import pykokkos as pk

real = pk.double
NS = 1  # q
NU = 3
NF = 1
SCREENED = False


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add the gradient of a charge's potential to u."""
    a: real = w * w * w
    if SCREENED:
        a += 2.0 * far[0]
    g: real = a * s[0]
    u[0] -= g * dx
    u[1] -= g * dy
    u[2] -= g * dz
