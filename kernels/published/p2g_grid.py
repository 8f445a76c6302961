"""Particle-to-grid: one thread per grid point searches for the sources that reach the point; nothing is atomic."""

from typing import List

import pykokkos as pk

from parki.kernels.strengths import COMB, NC, NM, RHS, along_z, moments
from parki.kernels.window import P, anchor, cells_of, slope_tap, tap

real = pk.double
coord = real


@pk.workunit
def p2g_grid(
    team: pk.TeamMember, src: pk.View2D[coord], grid: pk.View4D[real], cell_begin: pk.View1D[pk.int32],
    window: pk.View2D[real], slope: pk.View2D[real], n0: int, n1: int, n2: int, h0: coord, h1: coord, h2: coord,
    s0: coord, s1: coord, s2: coord, e1: int, e2: int,
):  # fmt: skip
    """Set grid to the sum of all sources, sorted by n cells of width h; one team per row (x, y) of e0 times e1.

    A row has e2 grid points; window, slope and s as in window.py.
    """
    r: int = team.league_rank()
    x: int = r // e1
    y: int = r % e1
    a_begin, a_end = cells_of(x - P + 1, P, s0, h0, n0)
    b_begin, b_end = cells_of(y - P + 1, P, s1, h1, n1)

    def point(z: int):
        d_begin, d_end = cells_of(z - P + 1, P, s2, h2, n2)
        acc: List[real] = [0.0] * (RHS * NC)
        for a in range(a_begin, a_end):
            for b in range(b_begin, b_end):
                row: int = (a * n1 + b) * n2
                e_begin: int = cell_begin[row + d_begin]
                e_end: int = cell_begin[row + d_end]
                for e in range(e_begin, e_end):
                    ix, tx = anchor(src[e][0], s0)
                    iy, ty = anchor(src[e][1], s1)
                    iz, tz = anchor(src[e][2], s2)
                    i: int = x - ix
                    j: int = y - iy
                    k: int = z - iz
                    in_window: bool = i >= 0 and i < P and j >= 0 and j < P and k >= 0 and k < P
                    if in_window:
                        wx: real = tap(window, i, tx)
                        wy: real = tap(window, j, ty)
                        wz: real = tap(window, k, tz)
                        gx: real = 0.0
                        gy: real = 0.0
                        gz: real = 0.0
                        if COMB:
                            gx = slope_tap(slope, i, tx, s0)
                            gy = slope_tap(slope, j, ty, s1)
                            gz = slope_tap(slope, k, tz, s2)
                        m: List[real] = [0.0] * NM
                        value: List[real] = [0.0] * NC
                        tilt: List[real] = [0.0] * NC
                        for n in range(RHS):
                            moments(src, e, n, 0, m)
                            along_z(m, 0, wx, gx, wy, gy, value, tilt)
                            for c in range(NC):
                                acc[n * NC + c] += value[c] * wz
                                if COMB and c < 3:
                                    acc[n * NC + c] += tilt[c] * gz
        for c in range(RHS * NC):
            grid[c][x][y][z] = acc[c]

    pk.parallel_for(pk.TeamThreadRange(team, e2), point)
