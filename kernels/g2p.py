"""Grid-to-particle: values, slopes along x, y and z, or both.  The grid has margins, so no tap wraps.

TARGET: neighbouring targets in batches, window taps in the lanes.  A batch takes one component after another: P x P
rows of one component fit in the first-level cache, rows of all components do not.  The next right-hand side starts
over with the first batch, because the components of all right-hand sides do not fit in the second-level cache either.
BASE: one target per thread, in any order.
"""

from typing import List

import pykokkos as pk

from parki.kernels.window import P, anchor, first_tap, offset, slope_tap, tap, taps

real = pk.double
coord = real
NC = 1  # components of the grid of a right-hand side
RHS = 1  # right-hand sides
BATCH = 16  # targets per team
VALUE = True
SLOPES = False
SKEW = False  # the grid's axes are those of a triclinic cell, see `along_axes`
WIDTH = (3 + 3 * SLOPES) * P  # window values per target
PARTS = 1 * VALUE + 3 * SLOPES  # results per component of the grid: its value, its slopes
SLOPE = 1 * VALUE  # index of the first slope among the parts
FIRST = NC * VALUE  # rows of a right-hand side's result before the slopes


@pk.function
def along_axes(gx: real, gy: real, gz: real, s01: real, s02: real, s12: real, out: List[real]) -> None:
    """Set out[SLOPE:] to the slopes along x, y, z from those along the grid's axes; s as in convolve.py."""
    if SKEW:
        out[SLOPE] = gx + s01 * gy + s02 * gz
        out[SLOPE + 1] = gy + s12 * gz
    else:
        out[SLOPE] = gx
        out[SLOPE + 1] = gy
    out[SLOPE + 2] = gz


@pk.workunit(scratch=[(real, lambda p: BATCH * WIDTH), (real, lambda p: BATCH * PARTS * P)])
def g2p_target(
    team: pk.TeamMember, xt: pk.View2D[coord], grid: pk.View4D[real], u: pk.View2D[real], window: pk.View2D[real],
    slope: pk.View2D[real], batch: pk.View2D[pk.int32], batches: int, s0: coord, s1: coord, s2: coord, s01: real,
    s02: real, s12: real,
):  # fmt: skip
    """Interpolate grid[c] at targets i = batch[b][0] … batch[b][1] - 1 to u[c][i]; window, slope, s as in window.py.

    The values of a right-hand side's NC components precede their slopes, 3 c + axis.  A batch has at most BATCH
    targets, and may be empty.
    """
    r: int = team.league_rank() // batches
    b: int = team.league_rank() % batches
    first: int = batch[b][0]
    m: int = batch[b][1] - first
    r0: real = real(s0)
    r1: real = real(s1)
    r2: real = real(s2)
    win: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), BATCH * WIDTH)
    part: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), BATCH * PARTS * P)

    def windows(t: int):
        tx: real = offset(xt[0][first + t], s0)
        ty: real = offset(xt[1][first + t], s1)
        tz: real = offset(xt[2][first + t], s2)
        at: int = t * WIDTH

        def values(k: int):
            wx, wy, wz = taps(window, k, tx, ty, tz)
            win[at + 2 * P + k] = wz
            win[at + P + k] = wy
            win[at + k] = wx
            if SLOPES:
                sx, sy, sz = taps(slope, k, tx, ty, tz)
                win[at + 3 * P + k] = r0 * sx
                win[at + 4 * P + k] = r1 * sy
                win[at + 5 * P + k] = r2 * sz

        pk.parallel_for(pk.ThreadVectorRange(team, P), values)

    pk.parallel_for(pk.TeamThreadRange(team, m), windows)
    team.team_barrier()
    for c in range(NC):
        component: int = r * NC + c
        row: int = r * (NC * PARTS)

        def target(t: int):
            i: int = first + t
            at: int = t * WIDTH
            ix: int = first_tap(xt[0][i], s0)
            iy: int = first_tap(xt[1][i], s1)
            iz: int = first_tap(xt[2][i], s2)

            def gather(k: int):
                wy: List[real] = [0.0] * P
                gy: List[real] = [0.0] * P
                for j in range(P):
                    wy[j] = win[at + P + j]
                    if SLOPES:
                        gy[j] = win[at + 4 * P + j]
                s: real = 0.0
                along_x: real = 0.0
                along_y: real = 0.0
                for a in range(P):
                    plane: real = 0.0
                    tilt: real = 0.0
                    for j in range(P):
                        v: real = grid[component][ix + a][iy + j][iz + k]
                        plane += wy[j] * v
                        if SLOPES:
                            tilt += gy[j] * v
                    s += win[at + a] * plane
                    if SLOPES:
                        along_x += win[at + 3 * P + a] * plane
                        along_y += win[at + a] * tilt
                wz: real = win[at + 2 * P + k]
                parts: List[real] = [0.0] * PARTS
                if VALUE:
                    parts[0] = s * wz
                if SLOPES:
                    along_axes(along_x * wz, along_y * wz, s * win[at + 5 * P + k], s01, s02, s12, parts)
                for q in range(PARTS):
                    part[(t * PARTS + q) * P + k] = parts[q]

            pk.parallel_for(pk.ThreadVectorRange(team, P), gather)
            for q in range(PARTS):

                def total(k: int, acc: pk.Acc[real]):
                    acc += part[(t * PARTS + q) * P + k]

                v: real = pk.parallel_reduce(pk.ThreadVectorRange(team, P), total)
                to: int = row + c
                is_slope: bool = q >= SLOPE
                if is_slope:
                    to = row + FIRST + 3 * c + q - SLOPE

                def store():
                    u[to][i] = v

                pk.single(pk.PerThread(team), store)

        pk.parallel_for(pk.TeamThreadRange(team, m), target)
        team.team_barrier()


@pk.workunit
def g2p_base(
    i: int, xt: pk.View2D[coord], grid: pk.View4D[real], u: pk.View2D[real], window: pk.View2D[real],
    slope: pk.View2D[real], s0: coord, s1: coord, s2: coord, s01: real, s02: real, s12: real,
):  # fmt: skip
    """Interpolate grid[c] at target i to u[c][i], with the arguments of g2p_target."""
    ix, tx = anchor(xt[0][i], s0)
    iy, ty = anchor(xt[1][i], s1)
    iz, tz = anchor(xt[2][i], s2)
    wz: List[real] = [0.0] * P
    gz: List[real] = [0.0] * P
    for k in range(P):
        wz[k] = tap(window, k, tz)
        if SLOPES:
            gz[k] = slope_tap(slope, k, tz, s2)
    acc: List[real] = [0.0] * (RHS * NC)
    gx: List[real] = [0.0] * (RHS * NC)
    gy: List[real] = [0.0] * (RHS * NC)
    gzs: List[real] = [0.0] * (RHS * NC)
    for a in range(P):
        wx: real = tap(window, a, tx)
        wx_slope: real = 0.0
        if SLOPES:
            wx_slope = slope_tap(slope, a, tx, s0)
        for j in range(P):
            wy: real = tap(window, j, ty)
            w: real = wx * wy
            wy_slope: real = 0.0
            if SLOPES:
                wy_slope = slope_tap(slope, j, ty, s1)
            for c in range(RHS * NC):
                row: real = 0.0
                tilt: real = 0.0
                for k in range(P):
                    v: real = grid[c][ix + a][iy + j][iz + k]
                    row += wz[k] * v
                    if SLOPES:
                        tilt += gz[k] * v
                acc[c] += w * row
                if SLOPES:
                    gx[c] += wx_slope * wy * row
                    gy[c] += wx * wy_slope * row
                    gzs[c] += w * tilt
    for r in range(RHS):
        for c in range(NC):
            n: int = r * NC + c
            parts: List[real] = [0.0] * PARTS
            if VALUE:
                parts[0] = acc[n]
                u[r * (NC * PARTS) + c][i] = parts[0]
            if SLOPES:
                along_axes(gx[n], gy[n], gzs[n], s01, s02, s12, parts)
                for d in range(3):
                    u[r * (NC * PARTS) + FIRST + 3 * c + d][i] = parts[SLOPE + d]
