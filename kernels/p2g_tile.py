"""Particle-to-grid: a team owns a tile of grid points, so nothing is atomic and each grid point is written once.

A team goes over the sources of the columns of cells whose windows may touch its tile, and lists sources that do.  It
then takes some of them at a time: their moments and windows, multiplied along x, are put in scratch.  A row of lanes
lists the sources that reach its grid points; each lane adds them to the YT rows of TZ grid points along z that it owns,
whose sums are in scratch between turns, and passes over ZS of them where a window does not reach along z.  Sources come
in the same order on every machine.

Sources that are taken together are far apart in memory, so of many cells: rows of lanes then have like work.
Neighbouring lanes are neighbours along y first, then along x, so that lanes of a row are close together and read few
different values.  Windows along y and z are kept for all grid points of the tile, with zeros outside.
"""

from typing import List, Tuple

import pykokkos as pk

from parki.kernels.strengths import COMB, NC, NM, NR, along_x, along_y, moments
from parki.kernels.window import DEGREE, P, cells_of, first_tap, offset

real = pk.double
coord = real
TX = 16  # grid points of a tile along x
TY = 16  # along y
TZ = 8  # along z: grid points that a thread owns in a row
YT = 1  # rows of a thread, which are neighbours along y
LINE = 8  # threads that are neighbours along y
LANES = 32  # threads of a row, which go over the same sources
ROW_X = LANES // LINE  # grid points of a row along x
ROW_Y = LINE * YT  # along y
PLANES = (TX + YT * TZ - 1) // (YT * TZ)  # of grid points across x that all threads together store at a time
ZS = 4  # grid points along z that are passed over together where a window does not reach them
THREADS = TX * (TY // YT)  # with grid points of a tile
SUMS = NC * (YT * TZ)  # of a thread
COLUMNS = 128  # columns of cells in scratch
CANDIDATES = 256  # sources that are tested for the list at a time
CAP = 32  # sources in scratch
WIDTH = (TY + TZ) * (1 + COMB)  # window values of a source along y and z, and their slopes
SLOPES = TY + TZ  # index of the first slope
TABLE = (DEGREE + 1) * P  # coefficients of a window
TABLES = TABLE * (1 + COMB)  # of the window and its slope


@pk.function
def taps_in(table: pk.ScratchView1D[real], k: int, tx: real, ty: real, tz: real) -> Tuple[real, real, real]:
    """Return the values of tap k at three offsets, from a copy of the window in scratch."""
    wx: real = table[k]
    wy: real = wx
    wz: real = wx
    for d in range(1, DEGREE + 1):
        v: real = table[d * P + k]
        wx = wx * tx + v
        wy = wy * ty + v
        wz = wz * tz + v
    return wx, wy, wz


@pk.workunit(
    scratch=[
        (real, lambda p: SUMS * THREADS),
        (real, lambda p: CAP * WIDTH),
        (real, lambda p: CAP * (P * NR)),
        (real, lambda p: CAP * NM),
        (real, lambda p: CAP * 3),
        (real, lambda p: TABLES),
        (pk.int32, lambda p: 9),
        (pk.int32, lambda p: COLUMNS),
        (pk.int32, lambda p: COLUMNS),
        (pk.int32, lambda p: CANDIDATES),
        (pk.int32, lambda p: CAP * 4),
        (pk.int32, lambda p: THREADS // LANES * CAP),
    ]
)
def p2g_tile(
    team: pk.TeamMember, src: pk.View2D[coord], grid: pk.View4D[real], cell_begin: pk.View1D[pk.int32],
    window: pk.View2D[real], slope: pk.View2D[real], n0: int, n1: int, n2: int, h0: coord, h1: coord, h2: coord,
    s0: coord, s1: coord, s2: coord, e0: int, e1: int, e2: int,
):  # fmt: skip
    """Set grid to the sum of all sources, sorted by n cells of width h; one team per tile of e0 × e1 × e2 grid points.

    Tiles of the next right-hand side follow those of the first; window, slope and s as in window.py.
    """
    tiles: int = (e0 + TX - 1) // TX * ((e1 + TY - 1) // TY) * ((e2 + TZ - 1) // TZ)
    r: int = team.league_rank() // tiles
    total: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), SUMS * THREADS)
    win: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), CAP * WIDTH)
    planes: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), CAP * (P * NR))
    moment: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), CAP * NM)
    middle: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), CAP * 3)
    table: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), TABLES)
    tile: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), 9)
    begin: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), COLUMNS)
    place: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), COLUMNS)
    found: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), CANDIDATES)
    first: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), CAP * 4)
    near: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), THREADS // LANES * CAP)

    def begin_tile():
        tiles_y: int = (e1 + TY - 1) // TY
        tiles_z: int = (e2 + TZ - 1) // TZ
        number: int = team.league_rank() % tiles
        x0: int = number // (tiles_y * tiles_z) * TX
        y0: int = number // tiles_z % tiles_y * TY
        z0: int = number % tiles_z * TZ
        a_begin, a_end = cells_of(x0 - P + 1, TX + P - 1, s0, h0, n0)
        b_begin, b_end = cells_of(y0 - P + 1, TY + P - 1, s1, h1, n1)
        d_begin, d_end = cells_of(z0 - P + 1, TZ + P - 1, s2, h2, n2)
        tile[0] = x0
        tile[1] = y0
        tile[2] = z0
        tile[3] = a_begin
        tile[4] = b_begin
        tile[5] = b_end - b_begin
        tile[6] = d_begin
        tile[7] = d_end
        tile[8] = a_end - a_begin

    pk.single(pk.PerTeam(team), begin_tile)

    def clear(number: int):
        total[number] = 0.0

    pk.parallel_for(pk.TeamThreadRange(team, SUMS * THREADS), clear)

    def copy(term: int):
        table[term] = window[term // P][term % P]
        if COMB:
            table[TABLE + term] = slope[term // P][term % P]

    pk.parallel_for(pk.TeamThreadRange(team, TABLE), copy)
    team.team_barrier()
    columns: int = tile[8] * tile[5]
    for first_column in range(0, columns, COLUMNS):
        some: int = columns - first_column
        if some > COLUMNS:
            some = COLUMNS

        def meet(g: int, acc: pk.Acc[int], final: bool):
            column: int = first_column + g
            across: int = tile[5]
            row: int = ((tile[3] + column // across) * n1 + tile[4] + column % across) * n2
            e_begin: int = cell_begin[row + tile[6]]
            if final:
                begin[g] = e_begin
                place[g] = acc
            acc += cell_begin[row + tile[7]] - e_begin

        candidates: int = pk.parallel_scan(pk.TeamThreadRange(team, some), meet)
        team.team_barrier()
        lists: int = (candidates + CANDIDATES - 1) // CANDIDATES
        for list_number in range(lists):
            n: int = (candidates - list_number + lists - 1) // lists

            def keep(candidate: int, acc: pk.Acc[int], final: bool):
                at: int = candidate * lists + list_number
                low: int = 0
                high: int = some
                while high - low > 1:
                    between: int = (low + high) >> 1
                    if place[between] <= at:
                        low = between
                    else:
                        high = between
                e: int = begin[low] + at - place[low]
                x: int = first_tap(src[e][0], s0) - tile[0]
                y: int = first_tap(src[e][1], s1) - tile[1]
                z: int = first_tap(src[e][2], s2) - tile[2]
                touches: bool = x > -P and x < TX and y > -P and y < TY and z > -P and z < TZ
                if touches:
                    if final:
                        found[acc] = e
                    acc += 1

            listed: int = pk.parallel_scan(pk.TeamThreadRange(team, n), keep)
            team.team_barrier()
            batches: int = (listed + CAP - 1) // CAP
            for batch in range(batches):
                m: int = (listed - batch + batches - 1) // batches

                def prepare(part: int):
                    source: int = part // 4
                    axis: int = part % 4
                    e: int = found[source * batches + batch]
                    along_an_axis: bool = axis < 3
                    if along_an_axis:
                        s: coord = s0
                        along_y_axis: bool = axis == 1
                        along_z_axis: bool = axis == 2
                        if along_y_axis:
                            s = s1
                        if along_z_axis:
                            s = s2
                        tap: int = first_tap(src[e][axis], s) - tile[axis]
                        first[4 * source + axis] = tap
                        middle[3 * source + axis] = offset(src[e][axis], s)
                        if along_z_axis:
                            touched: int = 0
                            for z_part in range(TZ // ZS):
                                z_in_window: bool = tap < (z_part + 1) * ZS and tap > z_part * ZS - P
                                if z_in_window:
                                    touched += 1 << z_part
                            first[4 * source + 3] = touched
                    else:
                        v: List[real] = [0.0] * NM
                        moments(src, e, r, 0, v)
                        for c in range(NM):
                            moment[source * NM + c] = v[c]

                pk.parallel_for(pk.TeamThreadRange(team, 4 * m), prepare)

                def zero(value: int):
                    win[value] = 0.0

                pk.parallel_for(pk.TeamThreadRange(team, m * WIDTH), zero)
                team.team_barrier()

                def taps(item: int):
                    t: int = item // P
                    k: int = item % P
                    y: int = first[4 * t + 1] + k
                    z: int = first[4 * t + 2] + k
                    tx: real = middle[3 * t]
                    ty: real = middle[3 * t + 1]
                    tz: real = middle[3 * t + 2]
                    wx, wy, wz = taps_in(table, k, tx, ty, tz)
                    gx: real = 0.0
                    gy: real = 0.0
                    gz: real = 0.0
                    if COMB:
                        gx, gy, gz = taps_in(table, TABLE + k, tx, ty, tz)
                    y_in_tile: bool = y >= 0 and y < TY
                    z_in_tile: bool = z >= 0 and z < TZ
                    if y_in_tile:
                        win[t * WIDTH + y] = wy
                        if COMB:
                            win[t * WIDTH + SLOPES + y] = real(s1) * gy
                    if z_in_tile:
                        win[t * WIDTH + TY + z] = wz
                        if COMB:
                            win[t * WIDTH + SLOPES + TY + z] = real(s2) * gz
                    v: List[real] = [0.0] * NM
                    plane: List[real] = [0.0] * NR
                    for c in range(NM):
                        v[c] = moment[t * NM + c]
                    along_x(v, wx, real(s0) * gx, plane)
                    for c in range(NR):
                        planes[item * NR + c] = plane[c]

                pk.parallel_for(pk.TeamThreadRange(team, m * P), taps)
                team.team_barrier()

                def rows(row: int):
                    x_first: int = row * LANES // LINE % TX
                    y_first: int = row * LANES // (LINE * TX) * (LINE * YT)
                    near_begin: int = row * CAP

                    def reach(t: int, acc: pk.Acc[int], final: bool):
                        i: int = x_first - first[4 * t]
                        j: int = y_first - first[4 * t + 1]
                        in_reach: bool = i > -ROW_X and i < P and j > -ROW_Y and j < P
                        if in_reach:
                            if final:
                                near[near_begin + acc] = t
                            acc += 1

                    n_near: int = pk.parallel_scan(pk.ThreadVectorRange(team, m), reach)

                    def add(lane: int):
                        thread: int = row * LANES + lane
                        x: int = x_first + lane // LINE
                        y: int = y_first + lane % LINE * YT
                        acc: List[real] = [0.0] * SUMS
                        for c in range(SUMS):
                            acc[c] = total[c * THREADS + thread]
                        for q in range(near_begin, near_begin + n_near):
                            t: int = near[q]
                            i: int = x - first[4 * t]
                            j: int = y - first[4 * t + 1]
                            touched: int = first[4 * t + 3]
                            in_window: bool = i >= 0 and i < P and j > -YT and j < P
                            if in_window:
                                at: int = t * WIDTH
                                plane: List[real] = [0.0] * NR
                                for c in range(NR):
                                    plane[c] = planes[(t * P + i) * NR + c]
                                values: List[real] = [0.0] * (NC * YT)
                                tilts: List[real] = [0.0] * (NC * YT)
                                for a in range(YT):
                                    gy: real = 0.0
                                    if COMB:
                                        gy = win[at + SLOPES + y + a]
                                    value: List[real] = [0.0] * NC
                                    tilt: List[real] = [0.0] * NC
                                    along_y(plane, win[at + y + a], gy, value, tilt)
                                    for c in range(NC):
                                        values[c * YT + a] = value[c]
                                        if COMB:
                                            tilts[c * YT + a] = tilt[c]
                                for part in range(TZ // ZS):
                                    z_in_window: bool = touched & (1 << part) != 0
                                    if z_in_window:
                                        for zk in range(ZS):
                                            k: int = part * ZS + zk
                                            wz: real = win[at + TY + k]
                                            for c in range(NC * YT):
                                                acc[c * TZ + k] += values[c] * wz
                                            if COMB:
                                                gz: real = win[at + SLOPES + TY + k]
                                                for c in range(3 * YT):
                                                    acc[c * TZ + k] += tilts[c] * gz
                        for c in range(SUMS):
                            total[c * THREADS + thread] = acc[c]

                    pk.parallel_for(pk.ThreadVectorRange(team, LANES), add)

                pk.parallel_for(pk.TeamThreadRange(team, THREADS // LANES), rows)
                team.team_barrier()

    def store(corner: int):
        z: int = corner % TZ
        y: int = corner // TZ % TY
        x_first: int = corner // (TZ * TY)
        owner: int = (y // (YT * LINE) * TX + x_first) * LINE + y // YT % LINE
        to_y: int = tile[1] + y
        to_z: int = tile[2] + z
        in_grid: bool = to_y < e1 and to_z < e2
        if in_grid:
            for step in range(TX // PLANES):
                to_x: int = tile[0] + x_first + step * PLANES
                is_inside: bool = to_x < e0
                if is_inside:
                    for c in range(NC):
                        sum_at: int = ((c * YT + y % YT) * TZ + z) * THREADS + owner + step * PLANES * LINE
                        grid[r * NC + c][to_x][to_y][to_z] = total[sum_at]

    pk.parallel_for(pk.TeamThreadRange(team, PLANES * (TY * TZ)), store)
