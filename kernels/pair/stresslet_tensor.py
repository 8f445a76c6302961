"""Stokes double layer, linear in the strengths: u = -6 r (r.S r)/r^5 with S = (q n + n q)/2, symmetric."""

from typing import List

import pykokkos as pk

real = pk.double
NS = 6  # S: xx xy xz yy yz zz
NU = 3
NF = 1


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add the flow of a tensor S to u."""
    w2: real = w * w
    tx: real = dx * s[0] + dy * s[1] + dz * s[2]
    ty: real = dx * s[1] + dy * s[3] + dz * s[4]
    tz: real = dx * s[2] + dy * s[4] + dz * s[5]
    g: real = -6.0 * (w2 * w2 * w) * (dx * tx + dy * ty + dz * tz)
    u[0] += g * dx
    u[1] += g * dy
    u[2] += g * dz
