"""Copies between a real grid, transformed along x in place, and planes of modes kx = const.

Neighbours along z are one complex number of that transform: X = E + iO, with E and O the transforms of the even and the
odd z, and E(kx) = (X(kx) + X*(−kx))/2, O(kx) = (X(kx) − X*(−kx))/2i.  So the grid holds its own half spectrum and needs
no other memory.  Complex numbers are pairs of reals; spec[s][m][b][2 j], [2 j + 1] is mode first + m of a class whose
indices are mode[...], s = r * stride + c for component c of right-hand side r.
"""

from typing import Tuple

import pykokkos as pk

real = pk.double
BOTH = True  # a plane also writes its mirror image, −kx


@pk.function
def component(s: int, components: int, stride: int) -> int:
    """Return the index in the planes of component s of the grid, which has `components` per right-hand side."""
    return s // components * stride + s % components


@pk.function
def with_image(mode: pk.View1D[pk.int32], i: int, n0: int) -> Tuple[int, int]:
    """Return the indices in the grid of the i-th mode and of its mirror image, −kx."""
    at: int = mode[i]
    image: int = 0
    if at > 0:
        image = n0 - at
    return at, image


@pk.workunit
def planes_gather(
    team: pk.TeamMember, grid: pk.View4D[real], spec: pk.View4D[real], mode: pk.View1D[pk.int32], first: int,
    count: int, components: int, stride: int, n0: int, n1: int, n2: int, planes: int, rows: int, length: int,
):  # fmt: skip
    """Fill row (m, b) of all components of the planes, with zeros where the grid, n0 × n1 × n2, has no points."""
    t: int = team.league_rank()
    s: int = t // (planes * rows)
    m: int = t // rows % planes
    b: int = t % rows
    c: int = component(s, components, stride)
    if first + m < count and b < n1:
        at, image = with_image(mode, first + m, n0)

        def pair(j: int):
            x_re: real = grid[s][at][b][2 * j]
            x_im: real = grid[s][at][b][2 * j + 1]
            y_re: real = grid[s][image][b][2 * j]
            y_im: real = grid[s][image][b][2 * j + 1]
            spec[c][m][b][4 * j] = 0.5 * (x_re + y_re)
            spec[c][m][b][4 * j + 1] = 0.5 * (x_im - y_im)
            spec[c][m][b][4 * j + 2] = 0.5 * (x_im + y_im)
            spec[c][m][b][4 * j + 3] = 0.5 * (y_re - x_re)

        def pad(j: int):
            spec[c][m][b][2 * n2 + j] = 0.0

        pk.parallel_for(pk.TeamThreadRange(team, n2 // 2), pair)
        team.team_barrier()
        pk.parallel_for(pk.TeamThreadRange(team, 2 * (length - n2)), pad)
    else:

        def clear(j: int):
            spec[c][m][b][j] = 0.0

        pk.parallel_for(pk.TeamThreadRange(team, 2 * length), clear)


@pk.workunit
def planes_scatter(
    team: pk.TeamMember, grid: pk.View4D[real], spec: pk.View4D[real], mode: pk.View1D[pk.int32], first: int,
    count: int, components: int, stride: int, n0: int, n1: int, n2: int, planes: int,
):  # fmt: skip
    """Write the planes back to the grid, for its rows b < n1 and z < n2."""
    t: int = team.league_rank()
    s: int = t // (planes * n1)
    m: int = t // n1 % planes
    b: int = t % n1
    c: int = component(s, components, stride)
    if first + m < count:
        at, image = with_image(mode, first + m, n0)

        def pair(j: int):
            e_re: real = spec[c][m][b][4 * j]
            e_im: real = spec[c][m][b][4 * j + 1]
            o_re: real = spec[c][m][b][4 * j + 2]
            o_im: real = spec[c][m][b][4 * j + 3]
            if at == image:
                grid[s][at][b][2 * j] = e_re
                grid[s][at][b][2 * j + 1] = o_re
            else:
                grid[s][at][b][2 * j] = e_re - o_im
                grid[s][at][b][2 * j + 1] = e_im + o_re
                if BOTH:
                    grid[s][image][b][2 * j] = e_re + o_im
                    grid[s][image][b][2 * j + 1] = o_re - e_im

        pk.parallel_for(pk.TeamThreadRange(team, n2 // 2), pair)
