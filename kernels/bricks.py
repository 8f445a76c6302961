"""Between the grid of a brick, or the lines of its modes, and what bricks send to each other."""

import pykokkos as pk

real = pk.double
wire = real  # type of the lines that are written
ADD = False  # to the lines that are there, instead of over them


@pk.workunit
def lines_to_lines(
    team: pk.TeamMember, a: pk.View4D[real], out: pk.View4D[wire], source: pk.View1D[pk.int32],
    target: pk.View1D[pk.int32], lines: int, n1: int, n2: int, source_rows: int, target_rows: int,
):  # fmt: skip
    """Copy lines of n1 rows of n2 points, or add them: one team a row of a line of a component.

    A line is named by its index along the second axis times the rows of its array, plus its first row.
    """
    r: int = team.league_rank()
    c: int = r // (lines * n1)
    to: int = target[r // n1 % lines]
    at: int = source[r // n1 % lines]
    y: int = r % n1
    x0: int = at // source_rows
    y0: int = at % source_rows + y
    x1: int = to // target_rows
    y1: int = to % target_rows + y

    def take(k: int):
        if ADD:
            out[c][x1][y1][k] += wire(a[c][x0][y0][k])
        else:
            out[c][x1][y1][k] = wire(a[c][x0][y0][k])

    pk.parallel_for(pk.TeamThreadRange(team, n2), take)
