"""Sources around bricks that near fields reach, and the bricks where they are ghosts, by the images of a lattice."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from parki.arrays import Array, module_of
from parki.distributed.bricks.division import Division
from parki.ewald import geometry
from parki.ewald.stages import brick
from parki.ewald.stages.brick import Brick

SLACK = 1 + 1e-9  # factor of the reach: allows for rounding of coordinates


def ghosts(division: Division, rank: int, x: Array) -> tuple[dict[int, Array], dict[int, Array]]:
    """Return a rank's sources (3, N) that are ghosts of other bricks, or images in its own brick.

    Returns
    -------
    index : dict of arrays (n,) of int
        Indices of the sources, by rank.
    places : dict of arrays (n, 3)
        Places around the brick of that rank, in the coordinates of the stages.
    """
    p, xp = division.p, module_of(x)
    lattice = geometry.lattice(p, x)
    index: dict[int, Array] = {}
    places: dict[int, Array] = {}
    for target, block in enumerate(division.bricks):
        if not any(block.cut):
            continue  # the brick is its own neighbour everywhere
        images = list(_images(division, block, lattice, rank == target))
        if images:
            index[target] = xp.concatenate([entry for entry, _ in images])
            positions = xp.concatenate([lattice[:, entry] + shift for entry, shift in images], axis=1)
            places[target] = xp.ascontiguousarray(brick.unwrapped(p, positions).T)
    return index, places


def _images(division: Division, block: Brick, lattice: Array, is_own: bool) -> Iterator[tuple[Array, Array]]:
    """Yield sources near a brick, and the shift to their images in lattice coordinates."""
    p, xp = division.p, module_of(lattice)
    ranges = []
    for axis, (margin, cut) in enumerate(zip(brick.reach(p), block.cut, strict=True)):
        if not (cut or p.skew is not None):
            ranges.append([(0, None)])  # the brick is its own neighbour
            continue
        low = block.first[axis] * p.h[axis] if cut else 0.0
        high, reach = low + block.sides(p)[axis] + margin * SLACK, 0
        low -= margin * SLACK
        if axis < p.periodicity:
            reach = math.ceil(margin * SLACK / p.box[axis])
        ranges.append([(i, (low - i * p.box[axis], high - i * p.box[axis])) for i in range(-reach, reach + 1)])
    for images in itertools.product(*ranges):
        if is_own and not any(i for i, _ in images):
            continue
        index = None
        for axis, (_, bounds) in enumerate(images):
            if bounds is None:
                continue
            x = lattice[axis] if index is None else lattice[axis][index]
            inside = xp.flatnonzero((x >= bounds[0]) & (x < bounds[1]))
            index = inside if index is None else index[inside]
        if index is not None and len(index):
            shift = np.array([[i * side] for (i, _), side in zip(images, p.box, strict=True)], lattice.dtype)
            yield index, xp.asarray(shift)
