# ruff: noqa: UP006, UP035
"""Pair interaction for `own_kernel.py`: the stokeslet of a smooth blob of force, finite at r = 0.

u = a f + b r (r.f),   a = erf(x)/r + g,   b = (erf(x)/r - g)/r^2,   g = 2/(sqrt(pi) eps) exp(-x^2),   x = r/eps.
Screened, far = (D, E) of the split are subtracted as for the stokeslet: u = (a - D - r2 E) f + (b + E) (r.f) r.
"""

from typing import List

import pykokkos as pk

real = pk.double
NS = 4  # f, eps
NU = 3
NF = 2
SCREENED = False
TWO_OVER_ROOT_PI = 1.1283791670955126


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add one source to u; (dx, dy, dz) = target - source, w = 1/r or 0 for a coincident pair."""
    x: real = r2 * w / s[3]
    peak: real = TWO_OVER_ROOT_PI / s[3]
    g: real = peak * pk.exp(-(x * x))
    e: real = pk.erf(x) * w
    b: real = (e - g) * (w * w)
    if w == 0.0:
        e = peak  # limit of erf(r/eps)/r, because a blob moves itself
    a: real = e + g
    if SCREENED:
        a -= far[0] + r2 * far[1]
        b += far[1]
    c: real = b * (dx * s[0] + dy * s[1] + dz * s[2])
    u[0] += a * s[0] + c * dx
    u[1] += a * s[1] + c * dy
    u[2] += a * s[2] + c * dz
