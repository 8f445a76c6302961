"""Bytes that a rank sends in an Ewald sum over ranks, by phase: counted from bricks, and by formula for equal ones.

With W points of a window, n = N/P points of a rank, bricks of ny × nz rows, w bytes of a far-field number, c_s and c_r
components that are spread and that come back, and K modes along x:

sort           8 n (1 − 1/P) times the components of densities (normals among them) and results
ghost_source   8 n [(1 + 2 rc/l_y)(1 + 2 rc/l_z) − 1] times the components of densities
ghost_grid     w n₀ [(ny + W)(nz + W) − ny nz] (c_s + c_r)
exchange       w (2K + 1) ny nz (1 − 1/P) (c_s + c_r), between slabs w D nz (1 − 1/P) (c_s + c_r)

D is the number of modes along x and y in a disc, 0.54 of n₀ n₁ where 2K + 1 is 0.83 of n₀.  Along an axis that is not
cut W and rc count as 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from parki.distributed.bricks import division
from parki.distributed.bricks.division import Division
from parki.ewald.choice.params import Parameters
from parki.ewald.stages import brick, multipliers
from parki.ewald.stages.brick import Brick
from parki.ewald.stages.mesh import Mesh


class Volumes(NamedTuple):
    """Bytes that a rank sends in a call, by phase."""

    sort: float
    ghost_source: float
    ghost_grid: float
    exchange: float


def by_formula(p: Parameters, shape: tuple[int, int], points: int, rhs: int = 1, wire: str | None = None) -> Volumes:
    """Return the mean bytes of a rank for `points` targets and sources, spread evenly, and equal bricks.

    Parameters
    ----------
    p : Parameters
    shape : tuple of int
        Bricks along y and z.
    points : int
        Of all ranks.
    rhs : int
        Right-hand sides.
    wire : dtype, optional
        Of margins and modes in messages, by default that of the far field.
    """
    ranks = math.prod(shape)
    n, apart = points / ranks, 1 - 1 / ranks
    real, w = p.itemsizes[0], np.dtype(wire or p.far).itemsize
    given = rhs * p.kernel.dens + 3 * p.kernel.normals
    n0, n1, n2 = brick.rows(p)
    ny, nz = n1 / shape[0], n2 / shape[1]
    cut = [count > 1 for count in shape]
    around = math.prod(
        1 + 2 * reach * count / side * on
        for reach, count, side, on in zip(brick.reach(p)[1:], shape, p.box[1:], cut, strict=True)
    )
    margins = (ny + p.P * cut[0]) * (nz + p.P * cut[1]) - ny * nz
    lines, across = division.lines_across(p, shape)
    both = rhs * (p.kernel.spread + p.kernel.result)
    return Volumes(
        real * n * apart * (given + rhs * p.kernel.result),
        real * n * (around - 1) * given,
        w * n0 * margins * both,
        w * lines * across * nz * apart * both,
    )


def of_grid(cut: Division, rank: int, rhs: int = 1, wire: str | None = None) -> tuple[int, int]:
    """Return the bytes of margins and of lines that a rank sends in a call: exact, from indices alone."""
    p, own = cut.p, cut.bricks[rank]
    w, kernel, lines = np.dtype(wire or p.far).itemsize, p.kernel, cut.lines
    meshes = [Mesh(p, multipliers.period(p), one) for one in cut.bricks]
    n0 = brick.rows(p)[0]
    there = sum(_overlap(p, own, meshes[rank], one) for q, one in enumerate(cut.bricks) if q != rank)
    back = sum(_overlap(p, one, meshes[q], own) for q, one in enumerate(cut.bricks) if q != rank)
    margins = w * n0 * rhs * (there * kernel.spread + back * kernel.result)
    area = [(1 if cut.single else mesh.box[1]) * mesh.box[2] for mesh in meshes]
    sent = area[rank] * (sum(lines) - lines[rank]) * kernel.spread
    sent += (sum(area) - area[rank]) * lines[rank] * kernel.result
    return margins, w * rhs * sent


def _overlap(p: Parameters, one: Brick, mesh: Mesh, other: Brick) -> int:
    """Return how many columns along x of a brick's grid belong to another brick, images counted."""
    counts = []
    for axis in (1, 2):
        if not one.cut[axis]:
            counts.append(one.end[axis])
            continue
        n, begin = p.grid[axis], one.first[axis] - mesh.at[axis]
        images = range(-p.P, p.P + 1) if axis < p.periodicity else (0,)
        spans = (
            min(begin + mesh.extent[axis], other.end[axis] + i * n) - max(begin, other.first[axis] + i * n)
            for i in images
        )
        counts.append(sum(max(0, span) for span in spans))
    return math.prod(counts)
