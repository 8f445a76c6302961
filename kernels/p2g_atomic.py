"""Particle-to-grid: one source per thread, every tap an atomic addition.

The order of the sources is free: the caller's (BASE), or sorted by cell (SOURCE), which touches fewer rows at a time.
"""

from typing import List

import pykokkos as pk

from parki.kernels.strengths import COMB, NC, NM, RHS, along_z, moments
from parki.kernels.window import P, anchor, slope_tap, tap

real = pk.double
coord = real


@pk.workunit
def p2g_atomic(
    e: int, src: pk.View2D[coord], grid: pk.View4D[real], window: pk.View2D[real], slope: pk.View2D[real], s0: coord,
    s1: coord, s2: coord,
):  # fmt: skip
    """Add source e to grid; window, slope and s as in window.py."""
    ix, tx = anchor(src[e][0], s0)
    iy, ty = anchor(src[e][1], s1)
    iz, tz = anchor(src[e][2], s2)
    wz: List[real] = [0.0] * P
    gz: List[real] = [0.0] * P
    for k in range(P):
        wz[k] = tap(window, k, tz)
        if COMB:
            gz[k] = slope_tap(slope, k, tz, s2)
    m: List[real] = [0.0] * (RHS * NM)
    for n in range(RHS):
        moments(src, e, n, n * NM, m)
    gx: real = 0.0
    gy: real = 0.0
    value: List[real] = [0.0] * NC
    tilt: List[real] = [0.0] * NC
    for r in range(P * P):
        # one loop over rows, because a compiler would unroll two short ones
        i: int = r // P
        j: int = r % P
        wx: real = tap(window, i, tx)
        wy: real = tap(window, j, ty)
        if COMB:
            gx = slope_tap(slope, i, tx, s0)
            gy = slope_tap(slope, j, ty, s1)
        for n in range(RHS):
            along_z(m, n * NM, wx, gx, wy, gy, value, tilt)
            for c in range(NC):
                for k in range(P):
                    if COMB and c < 3:
                        pk.atomic_add(grid, [n * NC + c, ix + i, iy + j, iz + k], value[c] * wz[k] + tilt[c] * gz[k])
                    else:
                        pk.atomic_add(grid, [n * NC + c, ix + i, iy + j, iz + k], value[c] * wz[k])
