"""Loop over sources, shared by direct sums and sums over lists of clusters."""

from typing import List

import pykokkos as pk

from parki.kernels.pair.laplace import NF, NS, pair
from parki.kernels.scalar import rinv_or_zero

real = pk.double
NP = 0  # parameters of a source that are the same for all sources: taken from the first source
CENTRED = False  # coordinates of targets are relative to an origin


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
    if begin < end:
        for k in range(NS - NP, NS):
            s[k] = src[begin][3 + k]
    for e in range(begin, end):
        dx: real = x - near(src[e][0], ox)
        dy: real = y - near(src[e][1], oy)
        dz: real = z - near(src[e][2], oz)
        r2: real = dx * dx + dy * dy + dz * dz
        w: real = rinv_or_zero(r2, tiny)
        for k in range(NS - NP):
            s[k] = src[e][3 + k]
        pair(dx, dy, dz, r2, w, far, s, acc)
