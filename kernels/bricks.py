"""Between the grid of a brick, or the lines of its planes, and what bricks send to each other."""

import pykokkos as pk

real = pk.double
ADD = False  # to the lines that are there, instead of over them


@pk.workunit
def lines_to_lines(
    team: pk.TeamMember, a: pk.View4D[real], out: pk.View4D[real], source: pk.View1D[pk.int32],
    target: pk.View1D[pk.int32], lines: int, n1: int, n2: int,
):  # fmt: skip
    """out[c][target[m]][y][k] = a[c][source[m]][y][k], or += : one team a row (c, m, y) of n2 points."""
    r: int = team.league_rank()
    c: int = r // (lines * n1)
    to: int = target[r // n1 % lines]
    at: int = source[r // n1 % lines]
    y: int = r % n1

    def take(k: int):
        if ADD:
            out[c][to][y][k] += a[c][at][y][k]
        else:
            out[c][to][y][k] = a[c][at][y][k]

    pk.parallel_for(pk.TeamThreadRange(team, n2), take)
