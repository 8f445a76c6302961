"""Stokes double layer: u = -6 r (r.q)(r.n)/r^5.

Screened, far = (D, E, G) of the split: u = C [q (r.n) + n (r.q) + r (q.n)] + (4 G - 6/r^5) (r.q)(r.n) r with
C = -(3 E + 2 r2 G); D belongs to the single layer.
"""

from typing import List

import pykokkos as pk

real = pk.double
NS = 6  # q, n
NU = 3
NF = 3
SCREENED = False


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add the flow of a pair q, n to u."""
    w2: real = w * w
    rq: real = dx * s[0] + dy * s[1] + dz * s[2]
    rn: real = dx * s[3] + dy * s[4] + dz * s[5]
    g: real = -6.0 * (w2 * w2 * w) * (rq * rn)
    if SCREENED:
        c: real = -(3.0 * far[1] + 2.0 * (r2 * far[2]))
        g += 4.0 * far[2] * (rq * rn) + c * (s[0] * s[3] + s[1] * s[4] + s[2] * s[5])
        cq: real = c * rn
        cn: real = c * rq
        u[0] += cq * s[0] + cn * s[3]
        u[1] += cq * s[1] + cn * s[4]
        u[2] += cq * s[2] + cn * s[5]
    u[0] += g * dx
    u[1] += g * dy
    u[2] += g * dz
