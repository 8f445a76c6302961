"""Dense steps of expansions on octets: values (octet, row, 8 siblings), a lane for each sibling.

Values at surface points, rows component x points + point, are folded into reflection classes and back: even and odd
combinations under the G = 8 reflections, or under none, G = 1.  Operators are a small matrix for each class.
Reflection g takes child o to child o ^ g, so that the 8 children of a box taken together fall into the same classes.
"""

from typing import List

import pykokkos as pk

real = pk.double
G = 8  # reflections, 1 without symmetry
ADD = False  # `products` adds to what is there
ROWS = 8  # of a tile: their entries of a column lie next to each other
OCTETS = 2  # a matrix is read once for so many


@pk.function
def combine(v: List[real]) -> None:
    """Sums over g of (-1)^(bits that g and c share) v[g] in the place of v[c]."""
    a: real = 0.0
    for i in range(4):
        a = v[2 * i]
        v[2 * i] = a + v[2 * i + 1]
        v[2 * i + 1] = a - v[2 * i + 1]
    for i in range(4):
        a = v[i + 2 * (i // 2)]
        v[i + 2 * (i // 2)] = a + v[i + 2 * (i // 2) + 2]
        v[i + 2 * (i // 2) + 2] = a - v[i + 2 * (i // 2) + 2]
    for i in range(4):
        a = v[i]
        v[i] = a + v[i + 4]
        v[i + 4] = a - v[i + 4]


@pk.workunit
def fold(
    team: pk.TeamMember, value: pk.View3D[real], orbit: pk.View2D[pk.int32], row: pk.View2D[pk.int32],
    weight: pk.View2D[real], made: pk.View3D[real], points: int, orbits: int, work: int,
):  # fmt: skip
    """Class values of surface values; work = components x orbits.

    orbit[o] are the points of an orbit by reflection, row[k orbits + o] the rows of its class values or -1.
    """
    q: int = team.league_rank()

    def one(e: int):
        o: int = e % orbits
        first: int = e // orbits * points

        def sibling(lane: int):
            v: List[real] = [0.0] * G
            for g in range(G):
                v[g] = value[q][first + orbit[o][g]][lane]
            if G == 8:
                combine(v)
            for g in range(G):
                if row[e][g] >= 0:
                    made[q][row[e][g]][lane] = weight[0][o] * v[g]

        pk.parallel_for(pk.ThreadVectorRange(team, 8), sibling)

    pk.parallel_for(pk.TeamThreadRange(team, work), one)


@pk.workunit
def unfold(
    team: pk.TeamMember, given: pk.View3D[real], own: pk.View2D[pk.int32], row: pk.View2D[pk.int32],
    weight: pk.View2D[real], value: pk.View3D[real], points: int, orbits: int, work: int,
):  # fmt: skip
    """Surface values of class values; own[o] are the points of an orbit, and -1 for those that come again."""
    q: int = team.league_rank()

    def one(e: int):
        o: int = e % orbits
        first: int = e // orbits * points

        def sibling(lane: int):
            v: List[real] = [0.0] * G
            for g in range(G):
                if row[e][g] >= 0:
                    v[g] = weight[1][o] * given[q][row[e][g]][lane]
            if G == 8:
                combine(v)
            for g in range(G):
                if own[o][g] >= 0:
                    value[q][first + own[o][g]][lane] = v[g]

        pk.parallel_for(pk.ThreadVectorRange(team, 8), sibling)

    pk.parallel_for(pk.TeamThreadRange(team, work), one)


@pk.workunit
def fold_children(
    team: pk.TeamMember, value: pk.View3D[real], below: pk.View2D[pk.int32], image: pk.View2D[pk.int32],
    row: pk.View2D[pk.int32], made: pk.View3D[real], points: int, work: int,
):  # fmt: skip
    """Class values of the 8 children of each sibling; below[q][lane] is their octet or -1, work = components x points.

    image[g] says where reflection g takes each point; row[k] are the first rows of component k by class.
    """
    q: int = team.league_rank()

    def one(e: int):
        k: int = e // points
        j: int = e % points

        def sibling(lane: int):
            b: int = below[q][lane]
            v: List[real] = [0.0] * 8
            if b >= 0:
                for g in range(8):
                    v[g] = value[b][k * points + image[g][j]][g]
            if G == 8:
                combine(v)
            for g in range(8):
                made[q][row[k][g] + j][lane] = v[g]

        pk.parallel_for(pk.ThreadVectorRange(team, 8), sibling)

    pk.parallel_for(pk.TeamThreadRange(team, work), one)


@pk.workunit
def unfold_children(
    team: pk.TeamMember, given: pk.View3D[real], below: pk.View2D[pk.int32], image: pk.View2D[pk.int32],
    row: pk.View2D[pk.int32], value: pk.View3D[real], points: int, work: int,
):  # fmt: skip
    """Add to the surface values of the 8 children of each sibling; arguments as in `fold_children`."""
    q: int = team.league_rank()

    def one(e: int):
        k: int = e // points
        j: int = e % points

        def sibling(lane: int):
            b: int = below[q][lane]
            v: List[real] = [0.0] * 8
            for g in range(8):
                v[g] = given[q][row[k][g] + j][lane]
            if G == 8:
                combine(v)
            if b >= 0:
                for g in range(8):
                    value[b][k * points + image[g][j]][g] += v[g]

        pk.parallel_for(pk.ThreadVectorRange(team, 8), sibling)

    pk.parallel_for(pk.TeamThreadRange(team, work), one)


@pk.function
def multiply(
    table: pk.View2D[real], line: int, columns: int, given: pk.View3D[real], first: int, octets: int, read: int,
    lane: int, acc: List[real],
) -> None:  # fmt: skip
    """Add a tile of ROWS rows times the class values of OCTETS octets from `first` on to acc[octet ROWS + row].

    The last octet stands for those that are not there.
    """
    q: List[int] = [0] * OCTETS
    for a in range(OCTETS):
        q[a] = first + a
        if first + a >= octets:
            q[a] = octets - 1
    x: List[real] = [0.0] * OCTETS
    for j in range(columns):
        for a in range(OCTETS):
            x[a] = given[q[a]][read + j][lane]
        for r in range(ROWS):
            m: real = table[line + j][r]
            for a in range(OCTETS):
                acc[a * ROWS + r] += m * x[a]


@pk.workunit
def products(
    team: pk.TeamMember, part: pk.View2D[pk.int32], table: pk.View2D[real], given: pk.View3D[real],
    made: pk.View3D[real], octets: int, groups: int,
):  # fmt: skip
    """The matrix of a class times class values, of OCTETS octets; a league of classes x groups, class by class.

    part[c] = first row read, columns, first row written, rows, first line of the table; table[line] are the entries of
    ROWS rows in one column, tile after tile.
    """
    c: int = team.league_rank() // groups
    first: int = team.league_rank() % groups * OCTETS
    read: int = part[c][0]
    columns: int = part[c][1]
    written: int = part[c][2]
    rows: int = part[c][3]
    lines: int = part[c][4]
    tiles: int = (rows + ROWS - 1) // ROWS

    def tile(t: int):
        line: int = lines + t * columns
        top: int = written + t * ROWS
        left: int = rows - t * ROWS

        def sibling(lane: int):
            acc: List[real] = [0.0] * (OCTETS * ROWS)
            multiply(table, line, columns, given, first, octets, read, lane, acc)
            for a in range(OCTETS):
                if first + a < octets:
                    for r in range(ROWS):
                        if r < left:
                            if ADD:
                                made[first + a][top + r][lane] += acc[a * ROWS + r]
                            else:
                                made[first + a][top + r][lane] = acc[a * ROWS + r]

        pk.parallel_for(pk.ThreadVectorRange(team, 8), sibling)

    pk.parallel_for(pk.TeamThreadRange(team, tiles), tile)


@pk.workunit(scratch=[(real, lambda p: OCTETS * 8 * p.most)])
def solve(
    team: pk.TeamMember, part: pk.View3D[pk.int32], left: pk.View2D[real], right: pk.View2D[real],
    given: pk.View3D[real], made: pk.View3D[real], octets: int, groups: int, most: int,
):  # fmt: skip
    """Two operators one after the other: as `products` by part[0] and the table `left`, then by part[1] and `right`.

    What is between stays in scratch; it has no more than `most` rows in a class, a multiple of ROWS.
    """
    c: int = team.league_rank() // groups
    first: int = team.league_rank() % groups * OCTETS
    read: int = part[0][c][0]
    columns: int = part[0][c][1]
    ranks: int = part[0][c][3]
    lines: int = part[0][c][4]
    written: int = part[1][c][2]
    rows: int = part[1][c][3]
    lines_right: int = part[1][c][4]
    between: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), OCTETS * 8 * most)

    def tile(t: int):
        line: int = lines + t * columns

        def sibling(lane: int):
            acc: List[real] = [0.0] * (OCTETS * ROWS)
            multiply(left, line, columns, given, first, octets, read, lane, acc)
            for a in range(OCTETS):
                for r in range(ROWS):
                    between[((t * ROWS + r) * OCTETS + a) * 8 + lane] = acc[a * ROWS + r]

        pk.parallel_for(pk.ThreadVectorRange(team, 8), sibling)

    def tile_right(t: int):
        line: int = lines_right + t * ranks
        top: int = written + t * ROWS
        inside: int = rows - t * ROWS

        def sibling(lane: int):
            acc: List[real] = [0.0] * (OCTETS * ROWS)
            x: List[real] = [0.0] * OCTETS
            for j in range(ranks):
                for a in range(OCTETS):
                    x[a] = between[(j * OCTETS + a) * 8 + lane]
                for r in range(ROWS):
                    m: real = right[line + j][r]
                    for a in range(OCTETS):
                        acc[a * ROWS + r] += m * x[a]
            for a in range(OCTETS):
                if first + a < octets:
                    for r in range(ROWS):
                        if r < inside:
                            made[first + a][top + r][lane] = acc[a * ROWS + r]

        pk.parallel_for(pk.ThreadVectorRange(team, 8), sibling)

    pk.parallel_for(pk.TeamThreadRange(team, (ranks + ROWS - 1) // ROWS), tile)
    team.team_barrier()
    pk.parallel_for(pk.TeamThreadRange(team, (rows + ROWS - 1) // ROWS), tile_right)
