"""Stokes single and double layer: u = f/r + r (r.f)/r^3 - 6 r (r.q)(r.n)/r^5.

Screened, far = (D, E, G) of the split, as in stokeslet.py and stresslet.py.
"""

from typing import List

import pykokkos as pk

real = pk.double
NS = 9  # f, q, n
NU = 3
NF = 3
SCREENED = False


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add the flow of a force and of a pair q, n to u."""
    w2: real = w * w
    w3: real = w2 * w
    rf: real = dx * s[0] + dy * s[1] + dz * s[2]
    rq: real = dx * s[3] + dy * s[4] + dz * s[5]
    rn: real = dx * s[6] + dy * s[7] + dz * s[8]
    a: real = w
    b: real = w3
    d: real = -6.0 * (w2 * w3)
    if SCREENED:
        a -= far[0] + r2 * far[1]
        b += far[1]
        d += 4.0 * far[2]
    g: real = b * rf + d * (rq * rn)
    if SCREENED:
        c: real = -(3.0 * far[1] + 2.0 * (r2 * far[2]))
        g += c * (s[3] * s[6] + s[4] * s[7] + s[5] * s[8])
        cq: real = c * rn
        cn: real = c * rq
        u[0] += cq * s[3] + cn * s[6]
        u[1] += cq * s[4] + cn * s[7]
        u[2] += cq * s[5] + cn * s[8]
    u[0] += a * s[0] + g * dx
    u[1] += a * s[1] + g * dy
    u[2] += a * s[2] + g * dz
