"""Rotne-Prager-Yamakawa mobility of spheres of radius a: u = A f + B (r.f) r.

r > 2 a: A = 1/r + 2 a^2/(3 r^3), B = 1/r^3 - 2 a^2/r^5; overlapping: A = 4/(3 a) - 3 r/(8 a^2), B = 1/(8 a^2 r).
At r = 0 this is the mobility of a sphere, u = 4 f/(3 a).  Screened, far = (D, E) of the split: A and B less D + r^2 E
and -E.
"""

from typing import List, Tuple

import pykokkos as pk

real = pk.double
NS = 4  # f, a
NU = 3
NF = 2
SCREENED = False


@pk.function
def tensor(r2: real, w: real, radius: real) -> Tuple[real, real]:
    """Return A and B."""
    half: real = 0.5 / radius
    v: real = pk.fmin(w, half)  # keeps the formula of separate spheres finite where its result is not used
    av2: real = 2.0 * (radius * v) * (radius * v)
    a: real = v * (1.0 + av2 * (1.0 / 3.0))
    b: real = v * v * v * (1.0 - av2)
    overlap: bool = r2 < 4.0 * radius * radius
    if overlap:
        a = half * (8.0 / 3.0 - 1.5 * (half * (r2 * w)))
        b = 0.5 * (half * half) * w
    return a, b


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add the velocity due to the force on a sphere to u."""
    a, b = tensor(r2, w, s[3])
    if SCREENED:
        b += far[1]
        a -= far[0] + r2 * far[1]
    g: real = b * (dx * s[0] + dy * s[1] + dz * s[2])
    u[0] += a * s[0] + g * dx
    u[1] += a * s[1] + g * dy
    u[2] += a * s[2] + g * dz
