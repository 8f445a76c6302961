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
    for to, one in enumerate(division.bricks):
        if not any(one.cut):
            continue  # the brick is its own neighbour everywhere
        found = list(_images(division, one, lattice, rank == to))
        if found:
            index[to] = xp.concatenate([at for at, _ in found])
            shifted = xp.concatenate([lattice[:, at] + shift for at, shift in found], axis=1)
            places[to] = xp.ascontiguousarray(brick.unwrapped(p, shifted).T)
    return index, places


def _images(division: Division, one: Brick, lattice: Array, own: bool) -> Iterator[tuple[Array, Array]]:
    """Yield sources near a brick, and the shift to their images in lattice coordinates."""
    p, xp = division.p, module_of(lattice)
    ranges = []
    for axis, (margin, cut) in enumerate(zip(brick.reach(p), one.cut, strict=True)):
        if not (cut or p.skew is not None):
            ranges.append([(0, None)])  # the brick is its own neighbour
            continue
        low = one.first[axis] * p.h[axis] if cut else 0.0
        high, most = low + one.sides(p)[axis] + margin * SLACK, 0
        low -= margin * SLACK
        if axis < p.periodicity:
            most = math.ceil(margin * SLACK / p.box[axis])
        ranges.append([(i, (low - i * p.box[axis], high - i * p.box[axis])) for i in range(-most, most + 1)])
    for images in itertools.product(*ranges):
        if own and not any(i for i, _ in images):
            continue
        at = None
        for axis, (_, bounds) in enumerate(images):
            if bounds is None:
                continue
            x = lattice[axis] if at is None else lattice[axis][at]
            inside = xp.flatnonzero((x >= bounds[0]) & (x < bounds[1]))
            at = inside if at is None else at[inside]
        if at is not None and len(at):
            shift = np.array([[i * side] for (i, _), side in zip(images, p.box, strict=True)], lattice.dtype)
            yield at, xp.asarray(shift)
