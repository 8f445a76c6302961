"""Flow of spheres of several radii, and its Laplacian: u = A f + B (r.f) r + C g + Q (r.g) r, C f + Q (r.f) r.

Forces are f, and doublets g, which are b^2 f/6 for a sphere of radius b.

By Faxen's laws a sphere of radius a moves with u plus a^2/6 times the Laplacian.  With v = 1/r: A = v, B = v^3,
C = 2 v^3, Q = -6 v^5; pairs closer than 2 a, a the largest radius, have v = 1/(2 a), and what they lack is summed from
a list (close_pairs.py).  SIZED: doublets and Laplacians are over and times a^2/6, so that all are of the same size.
Screened, far = (D, E, H, K) of the split: A - D - r^2 E, B + E, C - 8 (H + r^2 K), Q + 8 K.
"""

from typing import List

import pykokkos as pk

real = pk.double
NS = 7  # f, g, a
NU = 6
NF = 4
SIZED = False
SCREENED = False


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add the flow and its Laplacian to u."""
    v: real = w
    close: bool = r2 < 4.0 * s[6] * s[6]
    if close:
        v = 0.5 / s[6]
    a: real = v
    b: real = v * v * v
    c: real = 2.0 * b
    if SIZED:
        c *= s[6] * s[6] * (1.0 / 6.0)
    q: real = -3.0 * (c * (v * v))
    if SCREENED:
        b += far[1]
        a -= far[0] + r2 * far[1]
        c -= 8.0 * (far[2] + r2 * far[3])
        q += 8.0 * far[3]
    rf: real = dx * s[0] + dy * s[1] + dz * s[2]
    rg: real = dx * s[3] + dy * s[4] + dz * s[5]
    along: real = b * rf + q * rg
    laplacian: real = q * rf
    u[0] += a * s[0] + c * s[3] + along * dx
    u[1] += a * s[1] + c * s[4] + along * dy
    u[2] += a * s[2] + c * s[5] + along * dz
    u[3] += c * s[0] + laplacian * dx
    u[4] += c * s[1] + laplacian * dy
    u[5] += c * s[2] + laplacian * dz
