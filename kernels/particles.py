"""Loop over sources, shared by direct sums and sums over lists of clusters."""

from typing import List

import pykokkos as pk

from parki.kernels.pair.laplace import NF, NS, pair
from parki.kernels.scalar import rinv_or_zero

real = pk.double
NP = 0  # parameters of a source that are the same for all sources: taken from the first source
CENTRED = False  # coordinates of targets are relative to an origin
AHEAD = 6  # sources whose distances are computed at once, which hides the latency of roots


@pk.function
def near(y: real, origin: real) -> real:
    """Return a source's coordinate, relative to the origin of targets if these are `CENTRED`."""
    v: real = y
    if CENTRED:
        v = y - origin
    return v


@pk.function
def add_sources(
    x: real, y: real, z: real, src: pk.View2D[real], begin: int, end: int, ox: real, oy: real, oz: real, tiny: real,
    acc: List[real],
) -> None:  # fmt: skip
    """Add the fields of sources begin … end - 1 at a target to acc; a source is (x, y, z, strengths).

    The target (x, y, z) is relative to the origin (ox, oy, oz) if targets are `CENTRED`.
    """
    far: List[real] = [0.0] * NF
    s: List[real] = [0.0] * NS
    dx: List[real] = [0.0] * AHEAD
    dy: List[real] = [0.0] * AHEAD
    dz: List[real] = [0.0] * AHEAD
    r2: List[real] = [0.0] * AHEAD
    w: List[real] = [0.0] * AHEAD
    if begin < end:
        for k in range(NS - NP, NS):
            s[k] = src[begin][3 + k]
    whole: int = end - (end - begin) % AHEAD
    for block in range(begin, whole, AHEAD):
        for a in range(AHEAD):
            dx[a] = x - near(src[block + a][0], ox)
            dy[a] = y - near(src[block + a][1], oy)
            dz[a] = z - near(src[block + a][2], oz)
            r2[a] = dx[a] * dx[a] + dy[a] * dy[a] + dz[a] * dz[a]
            w[a] = rinv_or_zero(r2[a], tiny)
        for a in range(AHEAD):
            for k in range(NS - NP):
                s[k] = src[block + a][3 + k]
            pair(dx[a], dy[a], dz[a], r2[a], w[a], far, s, acc)
    for e in range(whole, end):
        dx[0] = x - near(src[e][0], ox)
        dy[0] = y - near(src[e][1], oy)
        dz[0] = z - near(src[e][2], oz)
        r2[0] = dx[0] * dx[0] + dy[0] * dy[0] + dz[0] * dz[0]
        w[0] = rinv_or_zero(r2[0], tiny)
        for k in range(NS - NP):
            s[k] = src[e][3 + k]
        pair(dx[0], dy[0], dz[0], r2[0], w[0], far, s, acc)
