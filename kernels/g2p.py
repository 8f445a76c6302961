"""Grid-to-particle: one target a thread, window taps in the lanes.  The grid has margins, so no tap wraps."""

from typing import List

import pykokkos as pk

real = pk.double
P = 8  # taps per direction
DEGREE = 6  # of the window's polynomials in the offset
NC = 1  # components
BATCH = 4  # targets per team


@pk.workunit(
    scratch=[
        (real, lambda p: BATCH * 3 * P),
        (real, lambda p: BATCH * P * P),
        (real, lambda p: BATCH * NC * P),
    ]
)
def g2p_target(
    team: pk.TeamMember, xt: pk.View2D[real], grid: pk.View4D[real], u: pk.View2D[real], window: pk.View2D[real],
    nt: int, s0: real, s1: real, s2: real,
):  # fmt: skip
    """u[c][i] = grid[c] interpolated at target i; s = grid points per length; window as in p2g.py."""
    first: int = team.league_rank() * BATCH
    m: int = nt - first
    if m > BATCH:
        m = BATCH
    win: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), BATCH * 3 * P)
    plane: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), BATCH * P * P)
    part: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), BATCH * NC * P)

    def target(t: int):
        i: int = first + t
        half: real = 0.5 * real(P)
        gx: real = xt[0][i] * s0 - half
        gy: real = xt[1][i] * s1 - half
        gz: real = xt[2][i] * s2 - half
        ax: real = pk.ceil(gx)
        ay: real = pk.ceil(gy)
        az: real = pk.ceil(gz)
        tx: real = ax - gx - 0.5
        ty: real = ay - gy - 0.5
        tz: real = az - gz - 0.5
        ix: int = int(ax) + P // 2
        iy: int = int(ay) + P // 2
        iz: int = int(az) + P // 2
        at_win: int = t * (3 * P)
        at_plane: int = t * (P * P)
        at_part: int = t * (NC * P)

        def taps(k: int):
            wx: real = window[0][k]
            wy: real = wx
            wz: real = wx
            for d in range(1, DEGREE + 1):
                v: real = window[d][k]
                wx = wx * tx + v
                wy = wy * ty + v
                wz = wz * tz + v
            win[at_win + k] = wx
            win[at_win + P + k] = wy
            win[at_win + 2 * P + k] = wz

        pk.parallel_for(pk.ThreadVectorRange(team, P), taps)

        def factors(j: int):
            wy: real = win[at_win + P + j]
            for a in range(P):
                plane[at_plane + a * P + j] = win[at_win + a] * wy

        pk.parallel_for(pk.ThreadVectorRange(team, P), factors)

        def gather(k: int):
            s: List[real] = [0.0] * NC
            for a in range(P):
                for j in range(P):
                    wxy: real = plane[at_plane + a * P + j]
                    for c in range(NC):
                        s[c] += wxy * grid[c][ix + a][iy + j][iz + k]
            wz: real = win[at_win + 2 * P + k]
            for c in range(NC):
                part[at_part + c * P + k] = s[c] * wz

        pk.parallel_for(pk.ThreadVectorRange(team, P), gather)
        for c in range(NC):

            def total(k: int, acc: pk.Acc[real]):
                acc += part[at_part + c * P + k]

            v: real = pk.parallel_reduce(pk.ThreadVectorRange(team, P), total)

            def store():
                u[c][i] = v

            pk.single(pk.PerThread(team), store)

    pk.parallel_for(pk.TeamThreadRange(team, m), target)
