"""Regularised stokeslet: u = ((r^2 + 2 epsilon^2) f + (r.f) r)/(r^2 + epsilon^2)^(3/2), 2 f/epsilon at r = 0.

Screened, far = (D, E) of the split at (r^2 + epsilon^2)^(1/2): the factors of f and of (r.f) r less D + r^2 E and -E.
"""

from typing import List

import pykokkos as pk

real = pk.double
NS = 4  # f, epsilon
NU = 3
NF = 2
SCREENED = False


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add the flow of a regularised force to u."""
    e2: real = s[3] * s[3]
    s2: real = r2 + e2
    v: real = pk.rsqrt(s2)
    b: real = v * v * v
    c: real = (s2 + e2) * b
    if SCREENED:
        c -= far[0] + r2 * far[1]
        b += far[1]
    g: real = b * (dx * s[0] + dy * s[1] + dz * s[2])
    u[0] += c * s[0] + g * dx
    u[1] += c * s[1] + g * dy
    u[2] += c * s[2] + g * dz
