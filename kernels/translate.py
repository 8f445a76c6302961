"""Dense steps of expansions on octets: values (octet, row, 8 siblings), one lane per sibling.

Values at surface points, rows component x points + point, are folded into reflection classes and back: even and odd
combinations under the G = 8 reflections, or without symmetry, G = 1.  An operator is a small matrix for each class.
Reflection g takes child o to child o ^ g, so that the 8 children of a box, taken together, have the same classes.
"""

from typing import List

import pykokkos as pk

real = pk.double
G = 8  # reflections, 1 without symmetry
ADD = False  # `products` adds to `made` instead of replacing it
ROWS = 8  # rows of a tile: their entries of a column are contiguous
OCTETS = 2  # octets for which a matrix is read once


@pk.function
def combine(v: List[real]) -> None:
    """Replace v[c] by the sum over g of (-1)^(bits that g and c share) v[g]."""
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
    """Fold surface values into class values; work = components x orbits.

    orbit[o] has the points of an orbit by reflection, row[k orbits + o] the rows of its class values or -1.
    """
    q: int = team.league_rank()

    def orbit_values(e: int):
        o: int = e % orbits
        first: int = e // orbits * points

        def sibling(lane: int):
            v: List[real] = [0.0] * G
            for g in range(G):
                v[g] = value[q][first + orbit[o][g]][lane]
            if G == 8:
                combine(v)
            for g in range(G):
                has_row: bool = row[e][g] >= 0
                if has_row:
                    made[q][row[e][g]][lane] = weight[0][o] * v[g]

        pk.parallel_for(pk.ThreadVectorRange(team, 8), sibling)

    pk.parallel_for(pk.TeamThreadRange(team, work), orbit_values)


@pk.workunit
def unfold(
    team: pk.TeamMember, given: pk.View3D[real], own: pk.View2D[pk.int32], row: pk.View2D[pk.int32],
    weight: pk.View2D[real], value: pk.View3D[real], points: int, orbits: int, work: int,
):  # fmt: skip
    """Unfold class values to surface values; own[o] has the points of an orbit, and -1 for repeated points."""
    q: int = team.league_rank()

    def point_values(e: int):
        o: int = e % orbits
        first: int = e // orbits * points

        def sibling(lane: int):
            v: List[real] = [0.0] * G
            for g in range(G):
                has_row: bool = row[e][g] >= 0
                if has_row:
                    v[g] = weight[1][o] * given[q][row[e][g]][lane]
            if G == 8:
                combine(v)
            for g in range(G):
                is_first: bool = own[o][g] >= 0
                if is_first:
                    value[q][first + own[o][g]][lane] = v[g]

        pk.parallel_for(pk.ThreadVectorRange(team, 8), sibling)

    pk.parallel_for(pk.TeamThreadRange(team, work), point_values)


@pk.workunit
def fold_children(
    team: pk.TeamMember, value: pk.View3D[real], below: pk.View2D[pk.int32], image: pk.View2D[pk.int32],
    row: pk.View2D[pk.int32], made: pk.View3D[real], points: int, work: int,
):  # fmt: skip
    """Fold the values of the 8 children of each sibling; below[q][lane] is their octet or -1.

    work = components x points; image[g] maps each point to its image by reflection g; row[k] has the first row of
    component k in each class.
    """
    q: int = team.league_rank()

    def family(e: int):
        k: int = e // points
        j: int = e % points

        def sibling(lane: int):
            b: int = below[q][lane]
            v: List[real] = [0.0] * 8
            has_children: bool = b >= 0
            if has_children:
                for g in range(8):
                    v[g] = value[b][k * points + image[g][j]][g]
            if G == 8:
                combine(v)
            for g in range(8):
                made[q][row[k][g] + j][lane] = v[g]

        pk.parallel_for(pk.ThreadVectorRange(team, 8), sibling)

    pk.parallel_for(pk.TeamThreadRange(team, work), family)


@pk.workunit
def unfold_children(
    team: pk.TeamMember, given: pk.View3D[real], below: pk.View2D[pk.int32], image: pk.View2D[pk.int32],
    row: pk.View2D[pk.int32], value: pk.View3D[real], points: int, work: int,
):  # fmt: skip
    """Add unfolded values to the surface values of the 8 children of each sibling; arguments as in `fold_children`."""
    q: int = team.league_rank()

    def children(e: int):
        k: int = e // points
        j: int = e % points

        def sibling(lane: int):
            b: int = below[q][lane]
            v: List[real] = [0.0] * 8
            for g in range(8):
                v[g] = given[q][row[k][g] + j][lane]
            if G == 8:
                combine(v)
            has_children: bool = b >= 0
            if has_children:
                for g in range(8):
                    value[b][k * points + image[g][j]][g] += v[g]

        pk.parallel_for(pk.ThreadVectorRange(team, 8), sibling)

    pk.parallel_for(pk.TeamThreadRange(team, work), children)


@pk.function
def multiply(
    table: pk.View2D[real], line: int, columns: int, given: pk.View3D[real], first: int, octets: int, read: int,
    lane: int, acc: List[real],
) -> None:  # fmt: skip
    """Add a tile of ROWS rows times the class values of OCTETS octets from `first` on to acc[octet ROWS + row].

    Octets beyond the last read the last one.
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
    """Multiply the class values of OCTETS octets by the matrix of their class; the league is classes x groups.

    part[c] = first row read, columns, first row written, rows, first line of the table; table[line] has the entries of
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
                has_octet: bool = first + a < octets
                if has_octet:
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
    """Apply two operators like `products`: first part[0] with the table `left`, then part[1] with `right`.

    The values between them stay in scratch; they have at most `most` rows in a class, a multiple of ROWS.
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
                has_octet: bool = first + a < octets
                if has_octet:
                    for r in range(ROWS):
                        if r < inside:
                            made[first + a][top + r][lane] = acc[a * ROWS + r]

        pk.parallel_for(pk.ThreadVectorRange(team, 8), sibling)

    pk.parallel_for(pk.TeamThreadRange(team, (ranks + ROWS - 1) // ROWS), tile)
    team.team_barrier()
    pk.parallel_for(pk.TeamThreadRange(team, (rows + ROWS - 1) // ROWS), tile_right)
