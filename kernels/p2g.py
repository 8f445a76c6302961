"""Particle-to-grid: the sources of a block one after another, window taps in the lanes.

The grid has P more points than the box in each direction, so no tap wraps (`halo.py` adds the margins to where they
belong).  A block is a box of cells at least P + 1 grid points wide: blocks that are not neighbours never touch the same
grid point, so blocks of one colour run at once, and nothing is atomic.
"""

import pykokkos as pk

real = pk.double
P = 8  # taps per direction
DEGREE = 6  # of the window's polynomials in the offset
NC = 1  # components: q, or f; 4 for the combined kernel
COMB = False  # spread f, q, n as four components, with the window's slope (Stokes single and double layer)
NA = 1  # factors per (x, y) tap: NC, and 7 for the combined kernel


@pk.workunit(scratch=[(real, lambda p: 6 * P), (real, lambda p: NA * P * P)])
def p2g_block(
    team: pk.TeamMember, src: pk.View2D[real], grid: pk.View4D[real], block: pk.View2D[pk.int32],
    cell_begin: pk.View1D[pk.int32], window: pk.View2D[real], slope: pk.View2D[real], first: int, n1: int, n2: int,
    s0: real, s1: real, s2: real,
):  # fmt: skip
    """grid[c] += strengths times windows, for the cells block[first + rank] = (x begin, end, y begin, end, z begin, end).

    src[e] = (x, y, z, strengths), sorted by cell; s = grid points per length; window[d][k] and slope[d][k] = polynomial
    of tap k and of its derivative by the grid point's position, highest degree first, in the offset from mid-cell.
    """
    b: int = first + team.league_rank()
    x_begin: int = block[b][0]
    x_end: int = block[b][1]
    y_begin: int = block[b][2]
    y_end: int = block[b][3]
    z_begin: int = block[b][4]
    z_end: int = block[b][5]
    win: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), 6 * P)
    plane: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), NA * P * P)
    half: real = 0.5 * real(P)
    for cx in range(x_begin, x_end):
        for cy in range(y_begin, y_end):
            row: int = (cx * n1 + cy) * n2
            e_begin: int = cell_begin[row + z_begin]
            e_end: int = cell_begin[row + z_end]
            for e in range(e_begin, e_end):
                gx: real = src[e][0] * s0 - half
                gy: real = src[e][1] * s1 - half
                gz: real = src[e][2] * s2 - half
                ax: real = pk.ceil(gx)
                ay: real = pk.ceil(gy)
                az: real = pk.ceil(gz)
                tx: real = ax - gx - 0.5
                ty: real = ay - gy - 0.5
                tz: real = az - gz - 0.5
                ix: int = int(ax) + P // 2
                iy: int = int(ay) + P // 2
                iz: int = int(az) + P // 2

                def taps(k: int):
                    wx: real = window[0][k]
                    wy: real = wx
                    wz: real = wx
                    for d in range(1, DEGREE + 1):
                        v: real = window[d][k]
                        wx = wx * tx + v
                        wy = wy * ty + v
                        wz = wz * tz + v
                    win[k] = wx
                    win[P + k] = wy
                    win[2 * P + k] = wz
                    if COMB:
                        gwx: real = slope[0][k]
                        gwy: real = gwx
                        gwz: real = gwx
                        for d in range(1, DEGREE + 1):
                            g: real = slope[d][k]
                            gwx = gwx * tx + g
                            gwy = gwy * ty + g
                            gwz = gwz * tz + g
                        win[3 * P + k] = gwx * s0
                        win[4 * P + k] = gwy * s1
                        win[5 * P + k] = gwz * s2

                pk.parallel_for(pk.TeamThreadRange(team, P), taps)
                team.team_barrier()

                def factors(i: int):
                    x0: real = win[i]
                    x1: real = win[3 * P + i]

                    def column(j: int):
                        xy: real = x0 * win[P + j]
                        at: int = i * P + j
                        if COMB:
                            # F = f W + q (n.grad) W + n (q.grad) W and (q.n) W, split by tap and slope in z
                            qx: real = src[e][6]
                            qy: real = src[e][7]
                            qz: real = src[e][8]
                            nx: real = src[e][9]
                            ny: real = src[e][10]
                            nz: real = src[e][11]
                            dx: real = x1 * win[P + j]
                            dy: real = x0 * win[4 * P + j]
                            plane[at] = src[e][3] * xy + 2.0 * qx * nx * dx + (qx * ny + nx * qy) * dy
                            plane[P * P + at] = src[e][4] * xy + (qy * nx + ny * qx) * dx + 2.0 * qy * ny * dy
                            plane[2 * P * P + at] = src[e][5] * xy + (qz * nx + nz * qx) * dx + (qz * ny + nz * qy) * dy
                            plane[3 * P * P + at] = (qx * nz + nx * qz) * xy
                            plane[4 * P * P + at] = (qy * nz + ny * qz) * xy
                            plane[5 * P * P + at] = 2.0 * qz * nz * xy
                            plane[6 * P * P + at] = (qx * nx + qy * ny + qz * nz) * xy
                        else:
                            for c in range(NC):
                                plane[c * P * P + at] = src[e][3 + c] * xy

                    pk.parallel_for(pk.ThreadVectorRange(team, P), column)

                pk.parallel_for(pk.TeamThreadRange(team, P), factors)
                team.team_barrier()

                def spread(i: int):
                    for j in range(P):
                        at: int = i * P + j

                        def row_taps(k: int):
                            w: real = win[2 * P + k]
                            if COMB:
                                g: real = win[5 * P + k]
                                for c in range(3):
                                    grid[c][ix + i][iy + j][iz + k] += (
                                        plane[c * P * P + at] * w + plane[(3 + c) * P * P + at] * g
                                    )
                                grid[3][ix + i][iy + j][iz + k] += plane[6 * P * P + at] * w
                            else:
                                for c in range(NC):
                                    grid[c][ix + i][iy + j][iz + k] += plane[c * P * P + at] * w

                        pk.parallel_for(pk.ThreadVectorRange(team, P), row_taps)

                pk.parallel_for(pk.TeamThreadRange(team, P), spread)
                team.team_barrier()
