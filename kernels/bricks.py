"""Copies between the grid of a brick, or the lines of its modes, and the messages of bricks to each other.

A line's number is its index along the second axis of its array, times the rows of that array, plus its first row.
"""

from typing import Tuple

import pykokkos as pk

real = pk.double
wire = real  # type of the lines that are written
ADD = False  # add to the lines of the target array, instead of replacing them
UNIT = 1073741824.0  # integer that stands for the norm of a row; 7 more bits, in units of 1/STEPS, follow
STEPS = 127.0


@pk.function
def line_of(t: int, which: pk.View1D[pk.int32], lines: int, rows: int) -> Tuple[int, int, int]:
    """Locate the t-th of the listed lines of all components in an array: component, line and first row."""
    at: int = which[t % lines]
    return t // lines, at // rows, at % rows


@pk.workunit
def lines_to_lines(
    team: pk.TeamMember, a: pk.View4D[real], out: pk.View4D[wire], source: pk.View1D[pk.int32],
    target: pk.View1D[pk.int32], lines: int, n1: int, n2: int, source_rows: int, target_rows: int,
):  # fmt: skip
    """Copy or add lines of n1 rows of n2 points: one team per line of a component, one thread per row."""
    t: int = team.league_rank()
    c, x0, y0 = line_of(t, source, lines, source_rows)
    c1, x1, y1 = line_of(t, target, lines, target_rows)

    def row(y: int):
        def take(k: int):
            if ADD:
                out[c1][x1][y1 + y][k] += wire(a[c][x0][y0 + y][k])
            else:
                out[c1][x1][y1 + y][k] = wire(a[c][x0][y0 + y][k])

        pk.parallel_for(pk.ThreadVectorRange(team, n2), take)

    pk.parallel_for(pk.TeamThreadRange(team, n1), row)


@pk.workunit
def lines_to_integers(
    team: pk.TeamMember, a: pk.View4D[real], norm: pk.View1D[real], high: pk.View2D[pk.int32],
    low: pk.View2D[pk.uint8], source: pk.View1D[pk.int32], lines: int, n1: int, n2: int, source_rows: int,
):  # fmt: skip
    """Round each row to multiples of a fraction of its norm: 4 + 1 bytes per number."""
    r: int = team.league_rank()
    c, x0, first = line_of(r // n1, source, lines, source_rows)
    y0: int = first + r % n1

    def square(k: int, acc: pk.Acc[real]):
        acc += a[c][x0][y0][k] * a[c][x0][y0][k]

    total: real = pk.parallel_reduce(pk.TeamThreadRange(team, n2), square)
    length: real = pk.sqrt(total)
    scale: real = 0.0
    if length > 0.0:
        scale = UNIT / length

    def keep():
        norm[r] = length

    pk.single(pk.PerTeam(team), keep)

    def split(k: int):
        v: real = a[c][x0][y0][k] * scale
        whole: int = int(v)
        high[r][k] = whole
        low[r][k] = int((v - real(whole)) * STEPS + 128.5)

    pk.parallel_for(pk.TeamThreadRange(team, n2), split)


@pk.workunit
def integers_to_lines(
    team: pk.TeamMember, norm: pk.View1D[real], high: pk.View2D[pk.int32], low: pk.View2D[pk.uint8],
    out: pk.View4D[real], target: pk.View1D[pk.int32], lines: int, n1: int, n2: int, target_rows: int,
):  # fmt: skip
    """Restore the lines that `lines_to_integers` rounded, to a few 1e-12 of each row's norm."""
    r: int = team.league_rank()
    c, x1, first = line_of(r // n1, target, lines, target_rows)
    y1: int = first + r % n1
    scale: real = norm[r] / UNIT

    def join(k: int):
        out[c][x1][y1][k] = (real(high[r][k]) + real(low[r][k] - 128) / STEPS) * scale

    pk.parallel_for(pk.TeamThreadRange(team, n2), join)
