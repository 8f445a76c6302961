"""Bricks of equal work: the weight of points by what the models say of near and far field, and of rows of the grid."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parki.arrays import Array, to_host
from parki.distributed.bricks import division
from parki.distributed.bricks.division import Division
from parki.distributed.comm import Comm
from parki.ewald import geometry
from parki.ewald.choice.params import Parameters
from parki.ewald.stages import brick

MOST_CELLS = 64  # along each axis, in which sources are counted


class Seconds(NamedTuple):
    """Seconds of a sum over evenly spread points on one rank: near field, spreading, interpolation, lines along x."""

    near: float
    spread: float
    gather: float
    lines: float

    @classmethod
    def of(cls, phases: dict[str, float]) -> Seconds:
        """Return those of a prediction by phases: one of three axes of the transforms is along x."""
        return cls(phases["near"], phases["spread"], phases["gather"], phases["transform"] / 3)


def divided(
    comm: Comm, p: Parameters, pair: tuple[int, int], seconds: Seconds, points: tuple[Array, Array],
    totals: tuple[int, int],
) -> Division:  # fmt: skip
    """Return bricks of as equal work as whole rows allow; collective.

    Parameters
    ----------
    comm : Comm
    p : Parameters
    pair : tuple of int
        Bricks along y and z.
    seconds : Seconds
    points : tuple of arrays (3, …)
        This rank's targets and sources, in the box of the stages.
    totals : tuple of int
        Targets and sources of all ranks.
    """
    _, n1, n2 = brick.rows(p)
    targets, sources = points
    crowd = _crowding(comm, p, targets, sources, totals[1])
    weights = [
        (seconds.near * crowd + seconds.gather) / max(totals[0], 1),
        np.full(sources.shape[1], seconds.spread / max(totals[1], 1)),
    ]
    rows = [tuple(to_host(a) for a in division.grid_rows(p, x)[1:]) for x in points]
    of_y = sum(np.bincount(y, w, minlength=n1) for (y, _), w in zip(rows, weights, strict=True))
    y_cuts = division.balanced(comm.allreduce(of_y) + seconds.lines / n1, pair[0])
    strips = np.zeros((pair[0], n2))
    for (y, z), w in zip(rows, weights, strict=True):
        np.add.at(strips, (np.searchsorted(np.array(y_cuts[1:-1]), y, side="right"), z), w)
    strips = comm.allreduce(strips)
    shares = np.diff(y_cuts) / n1
    grown = strips + seconds.lines * shares[:, None] / n2
    z_cuts = [division.balanced(row, pair[1], 2) for row in grown]
    return Division(p, y_cuts, tuple(z_cuts))


def _crowding(comm: Comm, p: Parameters, targets: Array, sources: Array, n: int) -> NDArray[np.float64]:
    """Return how many more sources are near each target than if they filled the box evenly."""
    shape = [int(min(MOST_CELLS, max(1, math.floor(side / p.rc)))) for side in p.box]
    counts = np.zeros(shape)
    np.add.at(counts, tuple(_cells(p, sources, shape)), 1.0)
    counts = comm.allreduce(counts)
    for axis, m in enumerate(shape):
        if m > 2:
            counts = counts + np.roll(counts, 1, axis) + np.roll(counts, -1, axis)
        else:
            counts = np.broadcast_to(counts.sum(axis=axis, keepdims=True), shape)
    volume = math.prod(min(m, 3) / m for m in shape)
    return counts[tuple(_cells(p, targets, shape))] / max(n * volume, 1e-300)


def _cells(p: Parameters, x: Array, shape: list[int]) -> NDArray[np.int64]:
    lattice = to_host(geometry.lattice(p, x))
    scaled = [row * (m / side) for row, m, side in zip(lattice, shape, p.box, strict=True)]
    return np.stack([np.clip(row.astype(np.int64), 0, m - 1) for row, m in zip(scaled, shape, strict=True)])
