"""Bytes that a rank sends in an Ewald sum over ranks, by phase: counted from bricks, and by formula for equal ones.

With W points of a window, n = N/P points of a rank, bricks of ny × nz rows, w bytes of a far-field number, c_s and c_r
components that are spread and that come back, and K modes along x:

sort           8 n (1 − 1/P) times the components of densities (normals among them) and results
ghost_source   8 n [(1 + 2 rc/l_y)(1 + 2 rc/l_z) − 1] times the components of densities
ghost_grid     w n₀ [(ny + W)(nz + W) − ny nz] (c_s + c_r)
exchange       w (2K + 1) ny nz (1 − 1/P) (c_s + c_r), between slabs w D nz (1 − 1/P) (c_s + c_r)

Messages of 32 bits a number have w = 4; those of 40 bits, of modes alone, 5 bytes and 8 for each row of nz.

D is the number of modes along x and y in a disc, 0.54 of n₀ n₁ where 2K + 1 is 0.83 of n₀.  Along an axis that is not
cut W and rc count as 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from parki.distributed.bricks import division, wire
from parki.distributed.bricks.division import Division
from parki.ewald.choice.params import Parameters
from parki.ewald.stages import brick, multipliers, planes
from parki.ewald.stages.brick import Brick
from parki.ewald.stages.mesh import Mesh

HELD = 26  # numbers per point: the caller's, the brick's, those of cells, and those on the way between them
GHOST = 14  # numbers per ghost


class Volumes(NamedTuple):
    """Bytes that a rank sends in a call, by phase."""

    sort: float
    ghost_source: float
    ghost_grid: float
    exchange: float


def by_formula(
    p: Parameters, shape: tuple[int, int], points: int, rhs: int = 1, bits: int = 64, disc: bool = True
) -> Volumes:
    """Return the mean bytes of a rank for `points` targets and sources, spread evenly, and equal bricks.

    Parameters
    ----------
    p : Parameters
    shape : tuple of int
        Bricks along y and z.
    points : int
        Targets or sources of all ranks.
    rhs : int
        Right-hand sides.
    bits : int
        Bits of a number of modes in messages.
    disc : bool
        Whether slabs exchange single lines, as they do, or planes.
    """
    ranks = math.prod(shape)
    n, remote_share = points / ranks, 1 - 1 / ranks
    bits = wire.at_most(bits, p.far)
    real, w = p.itemsizes[0], _margin_bytes(p, bits)
    n_strengths = rhs * p.kernel.dens + 3 * p.kernel.normals
    n0, n1, n2 = brick.rows(p)
    ny, nz = n1 / shape[0], n2 / shape[1]
    cut = [count > 1 for count in shape]
    growth = math.prod(
        1 + 2 * reach * count / side * flag
        for reach, count, side, flag in zip(brick.reach(p)[1:], shape, p.box[1:], cut, strict=True)
    )
    margins = (ny + p.P * cut[0]) * (nz + p.P * cut[1]) - ny * nz
    lines, n_columns = division.lines_across(p, shape, disc)
    n_fields = rhs * (p.kernel.spread + p.kernel.fields)
    return Volumes(
        real * n * remote_share * (n_strengths + rhs * p.kernel.result),
        real * n * (growth - 1) * n_strengths,
        w * n0 * margins * n_fields,
        (nz * bits / 8 + p.itemsizes[1] * (bits == 40)) * lines * n_columns * remote_share * n_fields,
    )


def memory(
    p: Parameters, shape: tuple[int, int], points: int, rhs: int = 1, bits: int = 64, batch: int = planes.CACHE
) -> float:
    """Return the bytes that a rank of a plan holds, for `points` evenly spread targets that are the sources.

    In numbers of 8 bytes, or 4: of each point `HELD`, strengths and results twice, and a row of the near and of the
    far field; of each ghost the same without far field and results; the brick's part of the grid with its margins;
    lines of modes, and both ends of the largest messages; multipliers; the lines that are transformed at once.

    Parameters
    ----------
    p, shape, points, rhs, bits
        As in `by_formula`.
    batch : int
        Bytes that are transformed at once: `planes.CACHE` for each thread of a host, or `planes.BATCH`.
    """
    ranks = math.prod(shape)
    n, real, kernel = points / ranks, p.itemsizes[0], p.kernel
    traffic = by_formula(p, shape, points, rhs, bits)
    n_strengths = rhs * kernel.dens + 3 * kernel.normals
    row, wide = 3 + rhs * kernel.strengths, rhs * kernel.components
    ghosts = traffic.ghost_source / (real * n_strengths)
    w = p.itemsizes[1]
    point_numbers = n * (HELD + 2 * row + 3 * (n_strengths + rhs * kernel.result)) + ghosts * (
        GHOST + row + 2 * n_strengths
    )
    n0, n1, n2 = brick.rows(p)
    rows = (n1 / shape[0], n2 / shape[1])
    grid = n0 * math.prod(m + p.P for m in rows)
    lines, n_columns = division.lines_across(p, shape)
    modes = lines * (n1 if n_columns > 1 else 1) * n2 / ranks
    largest = max(kernel.spread, kernel.fields) / (kernel.spread + kernel.fields)
    messages = 2 * largest * (traffic.exchange + traffic.ghost_grid)
    buffer = min(batch, w * wide * modes)
    return real * point_numbers + w * (wide * (grid + modes * (ranks > 1)) + modes / 8) + messages + buffer


def of_grid(cut: Division, rank: int, rhs: int = 1, bits: int = 64) -> tuple[int, int]:
    """Return the bytes of margins and of lines that a rank sends in a call: exact, from indices alone."""
    p, own_brick = cut.p, cut.bricks[rank]
    w, kernel, lines, itemsize = _margin_bytes(p, bits), p.kernel, cut.lines, p.itemsizes[1]
    meshes = [Mesh(p, multipliers.period(p), block) for block in cut.bricks]
    n0 = brick.rows(p)[0]
    overlap_out = sum(_overlap(p, own_brick, meshes[rank], block) for q, block in enumerate(cut.bricks) if q != rank)
    overlap_in = sum(_overlap(p, block, meshes[q], own_brick) for q, block in enumerate(cut.bricks) if q != rank)
    margins = w * n0 * rhs * (overlap_out * kernel.spread + overlap_in * kernel.fields)
    columns = [(1 if cut.single else mesh.box[1], mesh.box[2]) for mesh in meshes]
    peers, message_bits = [q for q in range(cut.size) if q != rank], wire.at_most(bits, p.far)
    shapes = [(rhs * kernel.spread, lines[q], *columns[rank]) for q in peers]
    shapes += [(rhs * kernel.fields, lines[rank], *columns[q]) for q in peers]
    return margins, sum(wire.nbytes(shape, message_bits, itemsize) for shape in shapes)


def _margin_bytes(p: Parameters, bits: int) -> int:
    """Return the bytes of a number in margins, which do not travel as integers."""
    return 4 if bits == 32 else p.itemsizes[1]


def _overlap(p: Parameters, block: Brick, mesh: Mesh, target: Brick) -> int:
    """Return the number of columns along x of a brick's grid that belong to another brick, images counted."""
    counts = []
    for axis in (1, 2):
        if not block.cut[axis]:
            counts.append(block.end[axis])
            continue
        n, begin = p.grid[axis], block.first[axis] - mesh.at[axis]
        images = range(-p.P, p.P + 1) if axis < p.periodicity else (0,)
        spans = (
            min(begin + mesh.extent[axis], target.end[axis] + i * n) - max(begin, target.first[axis] + i * n)
            for i in images
        )
        counts.append(sum(max(0, span) for span in spans))
    return math.prod(counts)
