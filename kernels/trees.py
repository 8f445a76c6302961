"""Trees of points: passes over the points of one level, in pieces of clusters.

piece[k] = (first place, number of points, row of its cluster in `middle`); pieces are no longer than 2^14 points.
record[i] = (x, y, z); sorting moves records and order[i], the point's number.
Child codes are 4 x + 2 y + z, each bit telling whether a coordinate is not below the middle.
"""

import pykokkos as pk

real = pk.double
AT_ONCE = False  # places of a piece's points by prefix sums of four 16-bit counts, else one point after another
BOUNDS = True  # `piece_place` finds the bounds of children
SLOTS = 48  # numbers compared at once: 16 records


@pk.workunit(scratch=[(real, lambda p: 6 * SLOTS)])
def piece_bounds(team: pk.TeamMember, x: pk.View2D[real], piece: pk.View2D[pk.int32], bound: pk.View2D[real]):
    """Set bound[k] to the lowest x, y, z of a piece, and the negatives of the highest, from x[d][i]."""
    k: int = team.league_rank()
    first: int = piece[k][0]
    n: int = piece[k][1]
    full: int = n // SLOTS
    part: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), 6 * SLOTS)

    def slots(j: int):
        for d in range(3):
            low: real = x[d][first]
            high: real = low
            for t in range(full):
                v: real = x[d][first + t * SLOTS + j]
                low = pk.fmin(low, v)
                high = pk.fmax(high, v)
            if full * SLOTS + j < n:
                w: real = x[d][first + full * SLOTS + j]
                low = pk.fmin(low, w)
                high = pk.fmax(high, w)
            part[d * SLOTS + j] = low
            part[(3 + d) * SLOTS + j] = -high

    pk.parallel_for(pk.TeamThreadRange(team, SLOTS), slots)
    team.team_barrier()

    def join(d: int):
        least: real = part[d * SLOTS]
        for j in range(1, SLOTS):
            least = pk.fmin(least, part[d * SLOTS + j])
        bound[k][d] = least

    pk.parallel_for(pk.TeamThreadRange(team, 6), join)


@pk.workunit
def piece_count(team: pk.TeamMember, record: pk.View2D[real], piece: pk.View2D[pk.int32], middle: pk.View2D[real],
                code: pk.View1D[pk.uint8], count: pk.View2D[pk.int64]):  # fmt: skip
    """Set code[i] to the child of each point, count[k] to the points of children 0 to 3, and 4 to 7, 16 bits each."""
    k: int = team.league_rank()
    first: int = piece[k][0]
    end: int = first + piece[k][1]
    row: int = piece[k][2]
    mx: real = middle[row][0]
    my: real = middle[row][1]
    mz: real = middle[row][2]

    def low(i: int, acc: pk.Acc[pk.int64]):
        c: int = 0
        v: pk.int64 = 1
        if record[i][2] >= mz:
            c = c + 1
            v = v << 16
        if record[i][1] >= my:
            c = c + 2
            v = v << 32
        if record[i][0] >= mx:
            c = c + 4
            v = 0
        code[i] = c
        acc += v

    below: pk.int64 = pk.parallel_reduce(pk.TeamThreadRange(team, first, end), low)
    team.team_barrier()

    def high(i: int, acc: pk.Acc[pk.int64]):
        c: int = code[i]
        v: pk.int64 = 0
        if c > 3:
            v = 1
            v = v << (16 * (c - 4))
        acc += v

    above: pk.int64 = pk.parallel_reduce(pk.TeamThreadRange(team, first, end), high)

    def store():
        count[k][0] = below
        count[k][1] = above

    pk.single(pk.PerTeam(team), store)


@pk.function
def put(record: pk.View2D[real], i: int, out: pk.View1D[real], q: pk.int64) -> None:
    """Store record i from out[q] on."""
    out[q] = record[i][0]
    out[q + 1] = record[i][1]
    out[q + 2] = record[i][2]


@pk.workunit(scratch=[(real, lambda p: 2 * SLOTS), (pk.int32, lambda p: 8)])
def piece_place(team: pk.TeamMember, record: pk.View2D[real], order: pk.View1D[pk.int32], piece: pk.View2D[pk.int32],
                code: pk.View1D[pk.uint8], at: pk.View2D[pk.int32], count: pk.View2D[pk.int32], out: pk.View1D[real],
                order_out: pk.View1D[pk.int32], bound: pk.View3D[real]):  # fmt: skip
    """Move the records of a piece to their children; with BOUNDS, also find each child's bounds as in `piece_bounds`.

    at[k][c], count[k][c] = first place and number of the records of child c; bounds of an empty child are not changed.
    out has the numbers of all records, one after another.
    """
    k: int = team.league_rank()
    first: int = piece[k][0]
    end: int = first + piece[k][1]
    part: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), 2 * SLOTS)
    next_at: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), 8)
    if AT_ONCE:

        def low(i: int, acc: pk.Acc[pk.int64], last: bool):
            c: int = code[i]
            v: pk.int64 = 0
            if c < 4:
                v = 1
                v = v << (16 * c)
            if last:
                if c < 4:
                    p: pk.int64 = at[k][c] + ((acc >> (16 * c)) & 65535)
                    q: pk.int64 = 3 * p
                    put(record, i, out, q)
                    order_out[p] = order[i]
            acc += v

        below: pk.int64 = pk.parallel_scan(pk.TeamThreadRange(team, first, end), low)  # noqa: F841
        team.team_barrier()

        def high(i: int, acc: pk.Acc[pk.int64], last: bool):
            c: int = code[i]
            v: pk.int64 = 0
            if c > 3:
                v = 1
                v = v << (16 * (c - 4))
            if last:
                if c > 3:
                    p: pk.int64 = at[k][c] + ((acc >> (16 * (c - 4))) & 65535)
                    q: pk.int64 = 3 * p
                    put(record, i, out, q)
                    order_out[p] = order[i]
            acc += v

        above: pk.int64 = pk.parallel_scan(pk.TeamThreadRange(team, first, end), high)  # noqa: F841
    else:

        def place():
            for c in range(8):
                next_at[c] = at[k][c]
            for i in range(first, end):
                c: int = code[i]
                p: int = next_at[c]
                next_at[c] = p + 1
                q: pk.int64 = p
                q = 3 * q
                put(record, i, out, q)
                order_out[p] = order[i]

        pk.single(pk.PerTeam(team), place)
    team.team_barrier()
    if BOUNDS:
        for c in range(8):
            n: int = 3 * count[k][c]
            full: int = n // SLOTS
            base: pk.int64 = at[k][c]
            base = 3 * base
            if n > 0:

                def slots(j: int):
                    least: real = out[base + j % 3]
                    most: real = least
                    for t in range(full):
                        v: real = out[base + t * SLOTS + j]
                        least = pk.fmin(least, v)
                        most = pk.fmax(most, v)
                    if full * SLOTS + j < n:
                        w: real = out[base + full * SLOTS + j]
                        least = pk.fmin(least, w)
                        most = pk.fmax(most, w)
                    part[j] = least
                    part[SLOTS + j] = -most

                pk.parallel_for(pk.TeamThreadRange(team, SLOTS), slots)
                team.team_barrier()

                def join(d: int):
                    a: int = d // 3 * SLOTS + d % 3
                    joined: real = part[a]
                    for j in range(3, SLOTS, 3):
                        joined = pk.fmin(joined, part[a + j])
                    bound[k][c][d] = joined

                pk.parallel_for(pk.TeamThreadRange(team, 6), join)
                team.team_barrier()


@pk.workunit
def piece_copy(team: pk.TeamMember, record: pk.View2D[real], order: pk.View1D[pk.int32], piece: pk.View2D[pk.int32],
               out: pk.View2D[real], order_out: pk.View1D[pk.int32]):  # fmt: skip
    """Copy the records of a piece to the same places of other arrays."""
    k: int = team.league_rank()
    first: int = piece[k][0]
    end: int = first + piece[k][1]

    def copy(i: int):
        out[i][0] = record[i][0]
        out[i][1] = record[i][1]
        out[i][2] = record[i][2]
        order_out[i] = order[i]

    pk.parallel_for(pk.TeamThreadRange(team, first, end), copy)


@pk.workunit
def unpack(i: int, record: pk.View2D[real], x: pk.View2D[real]):
    """Set x[:, i] = record[i]."""
    x[0][i] = record[i][0]
    x[1][i] = record[i][1]
    x[2][i] = record[i][2]
