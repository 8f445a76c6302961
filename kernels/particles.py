"""Sources one after another: the loop that direct sums and sums over lists of clusters share."""

from typing import List

import pykokkos as pk

from parki.kernels.pair.laplace import NF, NS, pair
from parki.kernels.scalar import rinv_or_zero

real = pk.double
AHEAD = 6  # sources whose distances are on their way together: roots take long


@pk.function
def add_sources(
    x: real, y: real, z: real, src: pk.View2D[real], begin: int, end: int, tiny: real, acc: List[real]
) -> None:
    """Add sources begin … end - 1 at a target to acc; a source is (x, y, z, strengths)."""
    far: List[real] = [0.0] * NF
    s: List[real] = [0.0] * NS
    dx: List[real] = [0.0] * AHEAD
    dy: List[real] = [0.0] * AHEAD
    dz: List[real] = [0.0] * AHEAD
    r2: List[real] = [0.0] * AHEAD
    w: List[real] = [0.0] * AHEAD
    whole: int = end - (end - begin) % AHEAD
    for block in range(begin, whole, AHEAD):
        for a in range(AHEAD):
            dx[a] = x - src[block + a][0]
            dy[a] = y - src[block + a][1]
            dz[a] = z - src[block + a][2]
            r2[a] = dx[a] * dx[a] + dy[a] * dy[a] + dz[a] * dz[a]
            w[a] = rinv_or_zero(r2[a], tiny)
        for a in range(AHEAD):
            for k in range(NS):
                s[k] = src[block + a][3 + k]
            pair(dx[a], dy[a], dz[a], r2[a], w[a], far, s, acc)
    for e in range(whole, end):
        dx[0] = x - src[e][0]
        dy[0] = y - src[e][1]
        dz[0] = z - src[e][2]
        r2[0] = dx[0] * dx[0] + dy[0] * dy[0] + dz[0] * dz[0]
        w[0] = rinv_or_zero(r2[0], tiny)
        for k in range(NS):
            s[k] = src[e][3 + k]
        pair(dx[0], dy[0], dz[0], r2[0], w[0], far, s, acc)
