"""Margins of a periodic grid: `low` points below the box and `high` above it, in each direction.

Folding adds the margins to the points they are images of (after P2G); wrapping fills them (before G2P).  A margin may
be as wide as the box, never wider.
"""

import pykokkos as pk

real = pk.double


@pk.workunit
def halo_fold(team: pk.TeamMember, grid: pk.View4D[real], low: int, high: int, m0: int, m1: int, m2: int):
    """Fold all margins into the points of the box: one team a row (c, x, y) of the box."""
    r: int = team.league_rank()
    c: int = r // (m0 * m1)
    x: int = low + r // m1 % m0
    y: int = low + r % m1
    # the rows that are images of this one lie m0 below or above it, where the margins reach that far
    x_image: int = -1
    if x >= m0:
        x_image = x - m0
    if x < low + high:
        x_image = x + m0
    y_image: int = -1
    if y >= m1:
        y_image = y - m1
    if y < low + high:
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

    pk.parallel_for(pk.TeamThreadRange(team, low + m2 + high), whole)
    team.team_barrier()

    def below(k: int):
        grid[c][x][y][m2 + k] += grid[c][x][y][k]

    pk.parallel_for(pk.TeamThreadRange(team, low), below)
    team.team_barrier()

    def above(k: int):
        grid[c][x][y][low + k] += grid[c][x][y][low + m2 + k]

    pk.parallel_for(pk.TeamThreadRange(team, high), above)


@pk.workunit
def halo_wrap(team: pk.TeamMember, box: pk.View3D[real], grid: pk.View4D[real], c: int, low: int, m0: int, m1: int,
              e1: int, e2: int, m2: int):  # fmt: skip
    """grid[c] = the periodic field `box` with margins: one team a row (x, y) of the grid."""
    r: int = team.league_rank()
    x: int = r // e1
    y: int = r % e1
    bx: int = (x + m0 - low) % m0
    by: int = (y + m1 - low) % m1

    def below(k: int):
        grid[c][x][y][k] = box[bx][by][m2 - low + k]

    def inside(k: int):
        grid[c][x][y][low + k] = box[bx][by][k]

    def above(k: int):
        grid[c][x][y][low + m2 + k] = box[bx][by][k]

    pk.parallel_for(pk.TeamThreadRange(team, low), below)
    team.team_barrier()
    pk.parallel_for(pk.TeamThreadRange(team, m2), inside)
    team.team_barrier()
    pk.parallel_for(pk.TeamThreadRange(team, e2 - low - m2), above)
