"""Margins of a grid along its periodic directions: `low` points below the box of m points, and `high` above it.

Folding adds the margins to the points they are images of (after P2G); wrapping fills them (before G2P).  A margin may
be as wide as the box, never wider.  A free direction has no margins: low = high = 0, and m is its whole extent.

All threads clear a grid together: a page of memory is placed near the processor that touches it first.
"""

import pykokkos as pk

real = pk.double


@pk.workunit
def halo_clear(team: pk.TeamMember, grid: pk.View4D[real], e0: int, e1: int, e2: int):
    """Set a grid and its margins to zero: one team per row (c, x, y)."""
    r: int = team.league_rank()

    def zero(k: int):
        grid[r // (e0 * e1)][r // e1 % e0][r % e1][k] = 0.0

    pk.parallel_for(pk.TeamThreadRange(team, e2), zero)


@pk.workunit
def halo_fold(
    team: pk.TeamMember, grid: pk.View4D[real], low0: int, low1: int, low2: int, high0: int, high1: int, high2: int,
    m0: int, m1: int, m2: int,
):  # fmt: skip
    """Fold all margins into the points of the box: one team per row (c, x, y) of the box."""
    r: int = team.league_rank()
    c: int = r // (m0 * m1)
    x: int = low0 + r // m1 % m0
    y: int = low1 + r % m1
    # images of this row lie m0 below or above it, where the margins reach that far
    x_image: int = -1
    if x >= m0:
        x_image = x - m0
    if x < low0 + high0:
        x_image = x + m0
    y_image: int = -1
    if y >= m1:
        y_image = y - m1
    if y < low1 + high1:
        y_image = y + m1

    def whole(k: int):
        v: real = grid[c][x][y][k]
        if x_image >= 0:
            v += grid[c][x_image][y][k]
        if y_image >= 0:
            v += grid[c][x][y_image][k]
        if x_image >= 0 and y_image >= 0:
            v += grid[c][x_image][y_image][k]
        grid[c][x][y][k] = v

    pk.parallel_for(pk.TeamThreadRange(team, low2 + m2 + high2), whole)
    team.team_barrier()

    def below(k: int):
        grid[c][x][y][m2 + k] += grid[c][x][y][k]

    pk.parallel_for(pk.TeamThreadRange(team, low2), below)
    team.team_barrier()

    def above(k: int):
        grid[c][x][y][low2 + k] += grid[c][x][y][low2 + m2 + k]

    pk.parallel_for(pk.TeamThreadRange(team, high2), above)


@pk.workunit
def halo_ends(
    team: pk.TeamMember, grid: pk.View4D[real], low0: int, low1: int, low2: int, high2: int, m0: int, m1: int, m2: int,
):  # fmt: skip
    """Fill both ends of the rows of the box: one team per row (c, x, y) of the box."""
    r: int = team.league_rank()
    c: int = r // (m0 * m1)
    x: int = low0 + r // m1 % m0
    y: int = low1 + r % m1

    def below(k: int):
        grid[c][x][y][k] = grid[c][x][y][m2 + k]

    def above(k: int):
        grid[c][x][y][low2 + m2 + k] = grid[c][x][y][low2 + k]

    pk.parallel_for(pk.TeamThreadRange(team, low2), below)
    team.team_barrier()
    pk.parallel_for(pk.TeamThreadRange(team, high2), above)


@pk.workunit
def halo_rows(
    team: pk.TeamMember, grid: pk.View4D[real], low0: int, low1: int, e0: int, e1: int, e2: int, m0: int, m1: int,
):  # fmt: skip
    """Fill the rows outside the box with whole rows of the box: one team per row (c, x, y) of the grid."""
    r: int = team.league_rank()
    c: int = r // (e0 * e1)
    x: int = r // e1 % e0
    y: int = r % e1
    bx: int = low0 + (x + m0 - low0) % m0
    by: int = low1 + (y + m1 - low1) % m1

    def copy(k: int):
        grid[c][x][y][k] = grid[c][bx][by][k]

    if bx != x or by != y:
        pk.parallel_for(pk.TeamThreadRange(team, e2), copy)
