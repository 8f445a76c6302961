"""Translations between boxes of one level by matrices: compress the values of sources, expand their sums at targets.

A block is LANES boxes, one per lane, whose translations have the same matrices; its values have the layout
[row][lane].  A child box of octet q has the place 8 q + octant.  In translation j a target meets the box of octet
near[q][way[octant][j][0]] with octant way[octant][j][1], and takes its columns column[j] … column[j + 1] - 1.
An item is (first block, blocks, first line of its matrix): a matrix is read once for up to BLOCKS blocks.
"""

from typing import List

import pykokkos as pk

real = pk.double
SIGNED = True  # frames differ by signs too
ROWS = 8  # rows of a tile: their entries of a column are contiguous
BLOCKS = 2
LANES = 8
ADD = False  # `expand` adds to `made` instead of replacing it


@pk.workunit
def enter(
    team: pk.TeamMember, box: pk.View2D[pk.int32], frame: pk.View2D[pk.int32], place: pk.View2D[pk.int32],
    sign: pk.View2D[real], scale: pk.View1D[real], charge: pk.View2D[real], given: pk.View3D[real], rows: int,
):  # fmt: skip
    """Set `given` to the values of sources in their frames, in the unit box; 0 in lanes without a box."""
    b: int = team.league_rank()

    def line(k: int):
        def lane(i: int):
            v: real = 0.0
            if box[b][i] >= 0:
                o: int = frame[b][i]
                at: int = place[o][k]
                v = charge[box[b][i]][at] * scale[at]
                if SIGNED:
                    v = v * sign[o][k]
            given[b][k][i] = v

        pk.parallel_for(pk.ThreadVectorRange(team, LANES), lane)

    pk.parallel_for(pk.TeamThreadRange(team, rows), line)


@pk.workunit
def compress(
    team: pk.TeamMember, item: pk.View2D[pk.int32], table: pk.View2D[real], given: pk.View3D[real],
    made: pk.View2D[real], rows: int, tile: int, columns: int,
):  # fmt: skip
    """Compress the `rows` given values of each box: made[LANES block + lane][c] = compressed value ROWS tile + c."""
    b: int = team.league_rank()
    first: int = item[b][0]
    blocks: int = item[b][1]
    lines: int = item[b][2] + tile * rows

    def some(t: int):
        def lane(i: int):
            acc: List[real] = [0.0] * (BLOCKS * ROWS)
            x: List[real] = [0.0] * BLOCKS
            at: List[int] = [0] * BLOCKS
            for a in range(BLOCKS):
                at[a] = first
                if a < blocks:
                    at[a] = first + a
            for j in range(rows):
                for a in range(BLOCKS):
                    x[a] = given[at[a]][j][i]
                for r in range(ROWS):
                    m: real = table[lines + t * rows + j][r]
                    for a in range(BLOCKS):
                        acc[a * ROWS + r] += m * x[a]
            for a in range(BLOCKS):
                if a < blocks:
                    for r in range(ROWS):
                        if t * ROWS + r < columns:
                            made[LANES * (first + a) + i][t * ROWS + r] = acc[a * ROWS + r]

        pk.parallel_for(pk.ThreadVectorRange(team, LANES), lane)

    pk.parallel_for(pk.TeamThreadRange(team, (columns + ROWS - 1) // ROWS), some)


@pk.workunit(scratch=[(real, lambda p: BLOCKS * LANES * p.columns)])
def expand(
    team: pk.TeamMember, item: pk.View2D[pk.int32], target: pk.View2D[pk.int32], near: pk.View2D[pk.int32],
    way: pk.View3D[pk.int32], row: pk.View1D[pk.int32], column: pk.View1D[pk.int32], table: pk.View2D[real],
    given: pk.View2D[real], made: pk.View3D[real], first_column: int, columns: int, first: int, count: int, rows: int,
    lines: int,
):  # fmt: skip
    """Expand compressed columns first_column … first_column + columns - 1 to `rows` values at each target.

    The columns belong to translations first … first + count - 1.  target[block][lane] is the place of a box or -1.
    row[place] is the row of a source in `given`, or -1 without a source; a tile has `lines` lines of the matrix.
    """
    b: int = team.league_rank()
    block: int = item[b][0]
    blocks: int = item[b][1]
    begin_line: int = item[b][2] + first_column
    taken: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), BLOCKS * LANES * columns)

    def take(j: int):
        begin: int = column[first + j] - first_column
        end: int = column[first + j + 1] - first_column
        if begin < 0:
            begin = 0
        if end > columns:
            end = columns
        for a in range(BLOCKS):

            def lane(i: int):
                s: int = -1
                if a < blocks:
                    place: int = target[block + a][i]
                    if place >= 0:
                        q: int = near[place // 8][way[place % 8][first + j][0]]
                        if q >= 0:
                            s = row[8 * q + way[place % 8][first + j][1]]
                if s >= 0:
                    for c in range(begin, end):
                        taken[(c * BLOCKS + a) * LANES + i] = given[s][c]
                else:
                    for c in range(begin, end):
                        taken[(c * BLOCKS + a) * LANES + i] = 0.0

            pk.parallel_for(pk.ThreadVectorRange(team, LANES), lane)

    pk.parallel_for(pk.TeamThreadRange(team, count), take)
    team.team_barrier()

    def tile(t: int):
        def lane(i: int):
            acc: List[real] = [0.0] * (BLOCKS * ROWS)
            x: List[real] = [0.0] * BLOCKS
            for j in range(columns):
                for a in range(BLOCKS):
                    x[a] = taken[(j * BLOCKS + a) * LANES + i]
                for r in range(ROWS):
                    m: real = table[begin_line + t * lines + j][r]
                    for a in range(BLOCKS):
                        acc[a * ROWS + r] += m * x[a]
            for a in range(BLOCKS):
                if a < blocks:
                    for r in range(ROWS):
                        if t * ROWS + r < rows:
                            if ADD:
                                made[block + a][t * ROWS + r][i] += acc[a * ROWS + r]
                            else:
                                made[block + a][t * ROWS + r][i] = acc[a * ROWS + r]

        pk.parallel_for(pk.ThreadVectorRange(team, LANES), lane)

    pk.parallel_for(pk.TeamThreadRange(team, (rows + ROWS - 1) // ROWS), tile)


@pk.workunit
def leave(
    team: pk.TeamMember, box: pk.View2D[pk.int32], frame: pk.View2D[pk.int32], place: pk.View2D[pk.int32],
    sign: pk.View2D[real], scale: pk.View1D[real], made: pk.View3D[real], phi: pk.View2D[real], rows: int, points: int,
):  # fmt: skip
    """Add the values of targets, turned back from their frames, to phi[component][box points + point]."""
    b: int = team.league_rank()

    def line(k: int):
        def lane(i: int):
            if box[b][i] >= 0:
                o: int = frame[b][i]
                v: real = made[b][place[o][k]][i] * scale[k]
                if SIGNED:
                    v = v * sign[o][k]
                phi[k // points][box[b][i] * points + k % points] += v

        pk.parallel_for(pk.ThreadVectorRange(team, LANES), lane)

    pk.parallel_for(pk.TeamThreadRange(team, rows), line)
