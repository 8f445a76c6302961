"""Grid-to-particle by tiles: values, slopes or both, as by g2p.py, for machines with much scratch.

A team owns the targets whose first taps lie in a tile of BX x BY x BZ grid points.  It lists them, at most CAP at a
time, and evaluates their windows; then it copies the tile and its margin, one component at a time, and a row of lanes
takes a target: YL x ZL lanes share the rows along y and z of its window, and each goes along x.  So every value of the
grid comes from memory for all targets of a tile at once, and all addresses are offsets from one place.
"""

from typing import List

import pykokkos as pk

from parki.kernels.g2p import FIRST, NC, PARTS, SLOPE, SLOPES, VALUE, along_axes
from parki.kernels.window import P, cells_of, first_tap, offset, taps

real = pk.double
coord = real
BX = 11  # grid points of a tile along each axis
BY = 11
BZ = 9
YL = 4  # lanes along y and z
ZL = 4
ROW = 20  # elements of scratch from one row along z to the next
CAP = 48  # targets whose windows fit in scratch
PIECE = 128  # targets that are tested at once
LOADS = 4  # numbers of the grid that a thread asks for before it stores them
LANES = YL * ZL
INVERSE = 65536 // ZL + 1  # lane * INVERSE >> 16 is lane // ZL, in fewer instructions
LINE = LANES // 2 * 2 + 1  # results of lanes from one target to the next: odd, so that lanes read in different banks
CY = (P + YL - 1) // YL  # taps of a lane
CZ = (P + ZL - 1) // ZL
PY = CY * YL  # taps of all lanes; those past the window are zero
PZ = CZ * ZL
EX = BX + P - 1  # grid points of a tile with its margin
EY = BY + PY - 1
EZ = BZ + PZ - 1
PLANE = EY * ROW
AT_Y = P  # places of a target's windows along y and z
AT_Z = P + PY
SLOPED = P + PY + PZ  # place of its windows' slopes
WIDTH = SLOPED * (1 + SLOPES)
MOST = max(PY, PZ)


@pk.function
def store_taps(
    win: pk.ScratchView1D[real], at: int, table: pk.View2D[real], k: int, tx: real, ty: real, tz: real, r0: real,
    r1: real, r2: real,
) -> None:  # fmt: skip
    """Store tap k of a target at three offsets, times r; taps past the window are zero."""
    wx: real = 0.0
    wy: real = 0.0
    wz: real = 0.0
    in_window: bool = k < P
    if in_window:
        vx, vy, vz = taps(table, k, tx, ty, tz)
        wx = r0 * vx
        wy = r1 * vy
        wz = r2 * vz
        win[at + k] = wx
    along_y: bool = k < PY
    if along_y:
        win[at + AT_Y + k] = wy
    along_z: bool = k < PZ
    if along_z:
        win[at + AT_Z + k] = wz


@pk.function
def own_rows(
    tile: pk.ScratchView1D[real], win: pk.ScratchView1D[real], corner: int, at: int, lane: int, s01: real, s02: real,
    s12: real, parts: List[real],
) -> None:  # fmt: skip
    """Set parts to the results of the taps of a lane: every YL-th row along y and every ZL-th along z."""
    j: int = lane * INVERSE >> 16
    k: int = lane - j * ZL
    place: int = corner + j * ROW + k
    wy: List[real] = [0.0] * CY
    gy: List[real] = [0.0] * CY
    for q in range(CY):
        wy[q] = win[at + AT_Y + j + YL * q]
        if SLOPES:
            gy[q] = win[at + SLOPED + AT_Y + j + YL * q]
    s: List[real] = [0.0] * CZ
    sx: List[real] = [0.0] * CZ
    sy: List[real] = [0.0] * CZ
    for d in range(P):
        wx: real = win[at + d]
        gx: real = 0.0
        if SLOPES:
            gx = win[at + SLOPED + d]
        for p in range(CZ):
            plane: real = 0.0
            tilt: real = 0.0
            for q in range(CY):
                v: real = tile[place + d * PLANE + q * (YL * ROW) + p * ZL]
                plane += wy[q] * v
                if SLOPES:
                    tilt += gy[q] * v
            s[p] += wx * plane
            if SLOPES:
                sx[p] += gx * plane
                sy[p] += wx * tilt
    value: real = 0.0
    along_x: real = 0.0
    along_y: real = 0.0
    along_z: real = 0.0
    for p in range(CZ):
        wz: real = win[at + AT_Z + k + ZL * p]
        value += wz * s[p]
        if SLOPES:
            along_x += wz * sx[p]
            along_y += wz * sy[p]
            along_z += win[at + SLOPED + AT_Z + k + ZL * p] * s[p]
    if VALUE:
        parts[0] = value
    if SLOPES:
        along_axes(along_x, along_y, along_z, s01, s02, s12, parts)


@pk.workunit(
    scratch=[
        (real, lambda p: CAP * WIDTH),
        (real, lambda p: EX * PLANE),
        (real, lambda p: CAP * PARTS * LINE),
        (pk.int32, lambda p: CAP + PIECE),
        (pk.int32, lambda p: CAP + PIECE),
    ]
)
def g2p_tile(
    team: pk.TeamMember, xt: pk.View2D[coord], grid: pk.View4D[real], u: pk.View2D[real], window: pk.View2D[real],
    slope: pk.View2D[real], cell_begin: pk.View1D[pk.int32], n0: int, n1: int, n2: int, h0: coord, h1: coord,
    h2: coord, s0: coord, s1: coord, s2: coord, s01: real, s02: real, s12: real, e0: int, e1: int, e2: int, tiles: int,
    tiles1: int, tiles2: int,
):  # fmt: skip
    """Interpolate grid[c], of e0 x e1 x e2 points, at targets i, sorted by n cells of width h, to u[c][i].

    The rest is as in `g2p_target`.  There are tiles in all, tiles1 along y, tiles2 along z.
    """
    r: int = team.league_rank() // tiles
    tile_number: int = team.league_rank() % tiles
    column: int = tile_number // tiles2
    x0: int = column // tiles1 * BX
    y0: int = column % tiles1 * BY
    z0: int = tile_number % tiles2 * BZ
    r0: real = real(s0)
    r1: real = real(s1)
    r2: real = real(s2)
    win: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), CAP * WIDTH)
    tile: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), EX * PLANE)
    part: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), CAP * PARTS * LINE)
    found: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), CAP + PIECE)
    corner: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), CAP + PIECE)
    a_begin, a_end = cells_of(x0, BX, s0, h0, n0)
    b_begin, b_end = cells_of(y0, BY, s1, h1, n1)
    d_begin, d_end = cells_of(z0, BZ, s2, h2, n2)
    n: int = 0  # targets in the list
    for a in range(a_begin, a_end):
        for b in range(b_begin, b_end):
            cell: int = (a * n1 + b) * n2
            e_begin: int = cell_begin[cell + d_begin]
            e_end: int = cell_begin[cell + d_end]
            last_column: bool = a == a_end - 1 and b == b_end - 1
            stop: int = e_end
            if stop == e_begin:  # the last column empties the list
                stop = e_begin + 1
            for e in range(e_begin, stop, PIECE):
                some: int = e_end - e
                if some > PIECE:
                    some = PIECE

                def keep(j: int, acc: pk.Acc[int], final: bool):
                    ix: int = first_tap(xt[0][e + j], s0) - x0
                    iy: int = first_tap(xt[1][e + j], s1) - y0
                    iz: int = first_tap(xt[2][e + j], s2) - z0
                    in_tile: bool = ix >= 0 and ix < BX and iy >= 0 and iy < BY and iz >= 0 and iz < BZ
                    if in_tile:
                        if final:
                            found[n + acc] = e + j
                            corner[n + acc] = ix * PLANE + iy * ROW + iz
                        acc += 1

                kept: int = pk.parallel_scan(pk.TeamThreadRange(team, some), keep)
                n += kept
                team.team_barrier()
                batches: int = n // CAP
                is_last: bool = last_column and e + PIECE >= stop
                if is_last:
                    batches = (n + CAP - 1) // CAP
                for batch in range(batches):
                    last: int = n - batch * CAP
                    first: int = last - CAP
                    if first < 0:
                        first = 0
                    m: int = last - first

                    def windows(t: int):
                        i: int = found[first + t]
                        tx: real = offset(xt[0][i], s0)
                        ty: real = offset(xt[1][i], s1)
                        tz: real = offset(xt[2][i], s2)

                        def values(k: int):
                            store_taps(win, t * WIDTH, window, k, tx, ty, tz, 1.0, 1.0, 1.0)
                            if SLOPES:
                                store_taps(win, t * WIDTH + SLOPED, slope, k, tx, ty, tz, r0, r1, r2)

                        pk.parallel_for(pk.ThreadVectorRange(team, MOST), values)

                    pk.parallel_for(pk.TeamThreadRange(team, m), windows)
                    for c in range(NC):

                        def copy(line: int):
                            y: int = line // EZ
                            z: int = line % EZ
                            from_y: int = y0 + y
                            from_z: int = z0 + z
                            if from_y >= e1:
                                from_y = e1 - 1
                            if from_z >= e2:
                                from_z = e2 - 1
                            for x in range(0, EX, LOADS):
                                v: List[real] = [0.0] * LOADS
                                for q in range(LOADS):
                                    from_x: int = x0 + x + q
                                    if from_x >= e0:
                                        from_x = e0 - 1
                                    v[q] = grid[r * NC + c][from_x][from_y][from_z]
                                for q in range(LOADS):
                                    in_copy: bool = x + q < EX
                                    if in_copy:
                                        tile[(x + q) * PLANE + y * ROW + z] = v[q]

                        pk.parallel_for(pk.TeamThreadRange(team, EY * EZ), copy)
                        team.team_barrier()

                        def target(t: int):
                            def gather(lane: int):
                                parts: List[real] = [0.0] * PARTS
                                own_rows(tile, win, corner[first + t], t * WIDTH, lane, s01, s02, s12, parts)
                                for q in range(PARTS):
                                    part[(t * PARTS + q) * LINE + lane] = parts[q]

                            pk.parallel_for(pk.ThreadVectorRange(team, LANES), gather)

                        pk.parallel_for(pk.TeamThreadRange(team, m), target)
                        team.team_barrier()

                        def total(result: int):
                            t: int = result // PARTS
                            q: int = result % PARTS
                            v: real = 0.0
                            for other in range(LANES):
                                v += part[result * LINE + other]
                            to: int = r * (NC * PARTS) + c
                            is_slope: bool = q >= SLOPE
                            if is_slope:
                                to = r * (NC * PARTS) + FIRST + 3 * c + q - SLOPE
                            u[to][found[first + t]] = v

                        pk.parallel_for(pk.TeamThreadRange(team, m * PARTS), total)
                    team.team_barrier()
                n -= batches * CAP
