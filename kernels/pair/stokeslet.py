"""Stokes single layer: u = f/r + r (r.f)/r^3.

Screened, far = (D, E) of the split: u = (1/r - D - r2 E) f + (1/r^3 + E) (r.f) r.
"""

from typing import List

import pykokkos as pk

real = pk.double
NS = 3  # f
NU = 3
NF = 2
SCREENED = False


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add the flow of a force to u."""
    a: real = w
    b: real = w * w * w
    if SCREENED:
        a -= far[0] + r2 * far[1]
        b += far[1]
    g: real = b * (dx * s[0] + dy * s[1] + dz * s[2])
    u[0] += a * s[0] + g * dx
    u[1] += a * s[1] + g * dy
    u[2] += a * s[2] + g * dz
