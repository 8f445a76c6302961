"""Regularised source dipole: u = ((2 epsilon^2 - r^2) d + 3 (r.d) r)/(r^2 + epsilon^2)^(5/2), 2 d/epsilon^3 at r = 0.

Screened, far = (H, K) of the split at (r^2 + epsilon^2)^(1/2): the factors of d and of (r.d) r plus 4 (H + r^2 K) and
-4 K.
"""

from typing import List

import pykokkos as pk

real = pk.double
NS = 4  # d, epsilon
NU = 3
NF = 2
SCREENED = False


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add the flow of a regularised source dipole to u."""
    e2: real = s[3] * s[3]
    v: real = pk.rsqrt(r2 + e2)
    v2: real = v * v
    b: real = v * v2 * v2
    c: real = (2.0 * e2 - r2) * b
    b *= 3.0
    if SCREENED:
        c += 4.0 * (far[0] + r2 * far[1])
        b -= 4.0 * far[1]
    g: real = b * (dx * s[0] + dy * s[1] + dz * s[2])
    u[0] += c * s[0] + g * dx
    u[1] += c * s[1] + g * dy
    u[2] += c * s[2] + g * dz
