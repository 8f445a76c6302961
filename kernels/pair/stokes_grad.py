"""Gradient of the Stokes single layer: u[3 i + j] = derivative of f/r + r (r.f)/r^3, component i, along axis j.

Screened, far = (E, G) of the split: with a = -(1/r^3 + 4 E + 2 r2 G), b = 1/r^3 + E and c = 2 G - 3/r^5,
u[3 i + j] = a f_i r_j + b [r_i f_j + (r.f) delta_ij] + c (r.f) r_i r_j.
"""

from typing import List, Tuple

import pykokkos as pk

real = pk.double
NS = 3  # f
NU = 9
NF = 2
SCREENED = False


@pk.function
def factors(r2: real, w: real, far: List[real]) -> Tuple[real, real, real]:
    """Return a, b and c."""
    w2: real = w * w
    b: real = w2 * w
    a: real = -b
    c: real = -3.0 * (w2 * b)
    if SCREENED:
        a -= 4.0 * far[0] + 2.0 * (r2 * far[1])
        b += far[0]
        c += 2.0 * far[1]
    return a, b, c


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add the velocity gradient of a force to u."""
    a, b, c = factors(r2, w, far)
    rf: real = dx * s[0] + dy * s[1] + dz * s[2]
    r: List[real] = [dx, dy, dz]
    crf: real = c * rf
    brf: real = b * rf
    for i in range(3):
        along: real = a * s[i] + crf * r[i]
        side: real = b * r[i]
        for j in range(3):
            u[3 * i + j] += along * r[j] + side * s[j]
        u[4 * i] += brf
