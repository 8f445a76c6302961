"""Particle-to-grid: the sources of a block one after another, window taps in the lanes.

A team takes a block and one component: the P x P rows of a run of sources along z fit in the second-level cache for one
component, not for all, and computing windows again costs little.

The grid has P more points than the box in each direction, so no tap wraps (`halo.py` adds the margins to where they
belong).  A block is a box of cells at least P + 1 grid points wide: blocks that are not neighbours never touch the same
grid point, so blocks of one colour run at once, and nothing is atomic.
"""

import pykokkos as pk

from parki.kernels.strengths import ALONG_Q, COMB, NC, NS, RHS, SINGLE, Q
from parki.kernels.window import P, first_tap, offset, taps

real = pk.double
coord = real
BATCH = 16  # sources whose windows are in scratch


@pk.workunit(scratch=[(real, lambda p: BATCH * 6 * P)])
def p2g_block(
    team: pk.TeamMember, src: pk.View2D[coord], grid: pk.View4D[real], block: pk.View2D[pk.int32],
    cell_begin: pk.View1D[pk.int32], window: pk.View2D[real], slope: pk.View2D[real], first: int, n1: int, n2: int,
    s0: coord, s1: coord, s2: coord,
):  # fmt: skip
    """Add strengths times windows to grid[c], for the cells of block[b]; rank = (b - first) components + c.

    block[b] = (x begin, x end, y begin, y end, z begin, z end), in cells; src[e] as in strengths.py, sorted by cell;
    window, slope and s as in window.py.
    """
    b: int = first + team.league_rank() // (RHS * NC)
    c: int = team.league_rank() % (RHS * NC)
    x_begin: int = block[b][0]
    x_end: int = block[b][1]
    y_begin: int = block[b][2]
    y_end: int = block[b][3]
    z_begin: int = block[b][4]
    z_end: int = block[b][5]
    r0: real = real(s0)
    r1: real = real(s1)
    r2: real = real(s2)
    win: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), BATCH * 6 * P)
    own: int = c % NC
    f: int = 3 + c // NC * NS
    q: int = f + Q
    n: int = q + 3
    along_q: int = f + ALONG_Q
    along_n: int = along_q + 3
    for cx in range(x_begin, x_end):
        for cy in range(y_begin, y_end):
            row: int = (cx * n1 + cy) * n2
            e_begin: int = cell_begin[row + z_begin]
            e_end: int = cell_begin[row + z_end]
            for batch in range(e_begin, e_end, BATCH):
                m: int = e_end - batch
                if m > BATCH:
                    m = BATCH

                def windows(t: int):
                    tx: real = offset(src[batch + t][0], s0)
                    ty: real = offset(src[batch + t][1], s1)
                    tz: real = offset(src[batch + t][2], s2)
                    at: int = t * (6 * P)

                    def values(k: int):
                        wx, wy, wz = taps(window, k, tx, ty, tz)
                        win[at + k] = wx
                        win[at + P + k] = wy
                        win[at + 2 * P + k] = wz
                        if COMB:
                            gwx, gwy, gwz = taps(slope, k, tx, ty, tz)
                            win[at + 3 * P + k] = gwx * r0
                            win[at + 4 * P + k] = gwy * r1
                            win[at + 5 * P + k] = gwz * r2

                    pk.parallel_for(pk.ThreadVectorRange(team, P), values)

                pk.parallel_for(pk.TeamThreadRange(team, m), windows)
                team.team_barrier()
                for t in range(m):
                    e: int = batch + t
                    at: int = t * (6 * P)
                    ix: int = first_tap(src[e][0], s0)
                    iy: int = first_tap(src[e][1], s1)
                    iz: int = first_tap(src[e][2], s2)
                    size: real = 0.0
                    along_x: real = 0.0
                    along_y: real = 0.0
                    along_z: real = 0.0
                    if COMB:
                        is_vector: bool = own < 3
                        if is_vector:
                            if SINGLE:
                                size = real(src[e][f + own])
                            along_x = real(src[e][q + own] * src[e][along_n] + src[e][n + own] * src[e][along_q])
                            along_y = real(
                                src[e][q + own] * src[e][along_n + 1] + src[e][n + own] * src[e][along_q + 1]
                            )
                            along_z = real(
                                src[e][q + own] * src[e][along_n + 2] + src[e][n + own] * src[e][along_q + 2]
                            )
                        else:
                            size = real(
                                src[e][q] * src[e][n] + src[e][q + 1] * src[e][n + 1] + src[e][q + 2] * src[e][n + 2]
                            )
                    else:
                        size = real(src[e][f + own])

                    def plane(i: int):
                        x0: real = win[at + i]
                        size_x: real = size * x0
                        x_slope: real = 0.0
                        y_slope: real = along_y * x0
                        z_slope: real = along_z * x0
                        if COMB:
                            x_slope = along_x * win[at + 3 * P + i]

                        def column(z: int):
                            wz: real = win[at + 2 * P + z]
                            if COMB:
                                value: real = (size_x + x_slope) * wz + z_slope * win[at + 5 * P + z]
                                tilt: real = y_slope * wz
                                for j in range(P):
                                    grid[c][ix + i][iy + j][iz + z] += (
                                        value * win[at + P + j] + tilt * win[at + 4 * P + j]
                                    )
                            else:
                                value: real = size_x * wz
                                for j in range(P):
                                    grid[c][ix + i][iy + j][iz + z] += value * win[at + P + j]

                        pk.parallel_for(pk.ThreadVectorRange(team, P), column)

                    pk.parallel_for(pk.TeamThreadRange(team, P), plane)
                    team.team_barrier()
