"""Stokes single and double layer, linear in the strengths: u = f/r + r (r.f)/r^3 - 6 r (r.S r)/r^5.

S = (q n + n q)/2 is symmetric.
"""

from typing import List

import pykokkos as pk

real = pk.double
NS = 9  # f, S: xx xy xz yy yz zz
NU = 3
NF = 1


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add the flow of a force and of a tensor S to u."""
    w2: real = w * w
    w3: real = w2 * w
    tx: real = dx * s[3] + dy * s[4] + dz * s[5]
    ty: real = dx * s[4] + dy * s[6] + dz * s[7]
    tz: real = dx * s[5] + dy * s[7] + dz * s[8]
    g: real = w3 * (dx * s[0] + dy * s[1] + dz * s[2]) - 6.0 * (w2 * w3) * (dx * tx + dy * ty + dz * tz)
    u[0] += w * s[0] + g * dx
    u[1] += w * s[1] + g * dy
    u[2] += w * s[2] + g * dz
