"""Grid-to-particle.  The grid has margins, so no tap wraps.

TARGET: neighbouring targets in batches, window taps in the lanes.  A batch goes through one component after another:
P x P rows of one component stay in the first-level cache, those of all components do not.  All batches are gone through
again for the next right-hand side, as the components of all do not stay in the second-level cache either.  BASE: one
target a thread, in any order.
"""

from typing import List

import pykokkos as pk

from parki.kernels.window import P, anchor, first_tap, offset, tap, taps

real = pk.double
coord = real
NC = 1  # components of a right-hand side
RHS = 1  # right-hand sides
BATCH = 16  # targets per team


@pk.workunit(scratch=[(real, lambda p: BATCH * 3 * P), (real, lambda p: BATCH * P)])
def g2p_target(
    team: pk.TeamMember, xt: pk.View2D[coord], grid: pk.View4D[real], u: pk.View2D[real], window: pk.View2D[real],
    batch: pk.View2D[pk.int32], batches: int, s0: coord, s1: coord, s2: coord,
):  # fmt: skip
    """u[c][i] = grid[c] interpolated at targets i = batch[b][0] … batch[b][1] - 1; window and s as in window.py.

    A batch has at most BATCH targets, or none.
    """
    r: int = team.league_rank() // batches
    b: int = team.league_rank() % batches
    first: int = batch[b][0]
    m: int = batch[b][1] - first
    win: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), BATCH * 3 * P)
    part: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), BATCH * P)

    def windows(t: int):
        tx: real = offset(xt[0][first + t], s0)
        ty: real = offset(xt[1][first + t], s1)
        tz: real = offset(xt[2][first + t], s2)
        at: int = t * (3 * P)

        def values(k: int):
            wx, wy, wz = taps(window, k, tx, ty, tz)
            win[at + k] = wx
            win[at + P + k] = wy
            win[at + 2 * P + k] = wz

        pk.parallel_for(pk.ThreadVectorRange(team, P), values)

    pk.parallel_for(pk.TeamThreadRange(team, m), windows)
    team.team_barrier()
    for c in range(r * NC, (r + 1) * NC):

        def target(t: int):
            i: int = first + t
            at: int = t * (3 * P)
            ix: int = first_tap(xt[0][i], s0)
            iy: int = first_tap(xt[1][i], s1)
            iz: int = first_tap(xt[2][i], s2)

            def gather(k: int):
                wy: List[real] = [0.0] * P
                for j in range(P):
                    wy[j] = win[at + P + j]
                s: real = 0.0
                for a in range(P):
                    plane: real = 0.0
                    for j in range(P):
                        plane += wy[j] * grid[c][ix + a][iy + j][iz + k]
                    s += win[at + a] * plane
                part[t * P + k] = s * win[at + 2 * P + k]

            pk.parallel_for(pk.ThreadVectorRange(team, P), gather)

            def total(k: int, acc: pk.Acc[real]):
                acc += part[t * P + k]

            v: real = pk.parallel_reduce(pk.ThreadVectorRange(team, P), total)

            def store():
                u[c][i] = v

            pk.single(pk.PerThread(team), store)

        pk.parallel_for(pk.TeamThreadRange(team, m), target)
        team.team_barrier()


@pk.workunit
def g2p_base(
    i: int, xt: pk.View2D[coord], grid: pk.View4D[real], u: pk.View2D[real], window: pk.View2D[real], s0: coord,
    s1: coord, s2: coord,
):  # fmt: skip
    """u[c][i] = grid[c] interpolated at target i; window and s as in window.py."""
    ix, tx = anchor(xt[0][i], s0)
    iy, ty = anchor(xt[1][i], s1)
    iz, tz = anchor(xt[2][i], s2)
    wz: List[real] = [0.0] * P
    for k in range(P):
        wz[k] = tap(window, k, tz)
    acc: List[real] = [0.0] * (RHS * NC)
    for a in range(P):
        wx: real = tap(window, a, tx)
        for j in range(P):
            wy: real = tap(window, j, ty)
            w: real = wx * wy
            for c in range(RHS * NC):
                row: real = 0.0
                for k in range(P):
                    row += wz[k] * grid[c][ix + a][iy + j][iz + k]
                acc[c] += w * row
    for c in range(RHS * NC):
        u[c][i] = acc[c]
