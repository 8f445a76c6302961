"""Bricks of equal work: the weight of points by what the models say of near and far field, and of rows of the grid."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parki import prediction
from parki.arrays import Array, to_host
from parki.distributed.bricks import division
from parki.distributed.bricks.division import Division
from parki.distributed.comm import Comm
from parki.engine.spaces import Space
from parki.ewald import geometry
from parki.ewald.choice import predict
from parki.ewald.choice.params import Parameters
from parki.ewald.stages import brick
from parki.perfmodels import select

MOST_CELLS = 64  # along each axis, in which sources are counted
CROWDS = 2.0 ** np.arange(-10, 31)  # sources in a cube of side rc, for which near fields are predicted
#: The share of transforms that is along x, whose lines are where bricks are: see `select.Domain.work`.
ALONG_X = 1 / (1 + 1 / select.SIGMA + select.CIRCLE / select.SIGMA**2)
BETA = 1e10  # bytes a second between ranks whose network is not known


class Seconds(NamedTuple):
    """Predicted times of the parts of a sum, in seconds.

    Attributes
    ----------
    near : array
        Of a target's near field, where as many sources as `CROWDS` says lie in a cube of side rc.
    crowd : float
        Sources there if they filled the box evenly.
    spread, gather : float
        Of a source and of a target, at points of the grid that are in the cache.
    rows : float
        Of all rows of the grid: their transforms along x, and the ways of the grid to and from memory.
    byte : float
        Of a message.
    """

    near: NDArray[np.float64]
    crowd: float
    spread: float
    gather: float
    rows: float
    byte: float

    @classmethod
    def of(cls, p: Parameters, totals: tuple[int, int], space: Space, beta: float | None) -> Seconds:
        """Predict sums of some targets and sources on one rank, whose messages take `beta` bytes a second."""
        question, points = predict.modelled(p, *totals)
        costs = prediction.costs(space)
        some, none = (select.phases(question, p.rc, points * on, p.P, costs) for on in (1, 0))
        speed = {name: predict.speedup(name, space) for name in some}
        rows = ALONG_X * some["transform"] / speed["transform"]
        rows += sum((some[name] - none[name]) / speed[name] for name in ("spread", "gather"))
        near = np.array([float(select.near(question, crowd, costs)) for crowd in CROWDS]) / speed["near"]
        gather, spread = (
            float(none[name]) / speed[name] / max(n, 1) for name, n in zip(("gather", "spread"), totals, strict=True)
        )
        crowd = float(question.domain.crowd(totals[1], p.rc))
        return cls(near, crowd, spread, gather, float(rows), 1.0 / (beta or BETA))


def divided(
    comm: Comm, p: Parameters, seconds: Seconds, points: tuple[Array, Array], totals: tuple[int, int]
) -> Division:
    """Return the bricks of which the one with the most work and messages takes the least time; collective.

    Parameters
    ----------
    comm : Comm
    p : Parameters
    seconds : Seconds
    points : tuple of arrays (3, …)
        This rank's targets and sources, in the box of the stages.
    totals : tuple of int
        Targets and sources of all ranks.
    """
    weights = _weights(comm, p, seconds, points, totals[1])
    rows = [tuple(to_host(a) for a in division.grid_rows(p, x)[1:]) for x in points]
    places = list(zip(rows, weights, strict=True))
    n1 = brick.rows(p)[1]
    of_y = comm.allreduce(sum(np.bincount(y, w, minlength=n1) for (y, _), w in places)) + seconds.rows / n1
    n = max(totals)
    found = [(_cut(comm, p, seconds.rows, pair, of_y, places), pair) for pair in division.pairs(p, comm.size, n)]
    return min(found, key=lambda one: one[0][1] + seconds.byte * division.travels(p, one[1], n))[0][0]


def _cut(
    comm: Comm, p: Parameters, rows: float, pair: tuple[int, int], of_y: NDArray[np.float64], places: list[Any]
) -> tuple[Division, float]:
    """Return bricks of work as equal as whole rows allow, and the most of any."""
    _, n1, n2 = brick.rows(p)
    y_cuts = division.balanced(of_y, pair[0])
    strips = np.zeros((pair[0], n2))
    for (y, z), w in places:
        np.add.at(strips, (np.searchsorted(np.array(y_cuts[1:-1]), y, side="right"), z), w)
    strips = comm.allreduce(strips) + rows * np.diff(y_cuts)[:, None] / (n1 * n2)
    z_cuts = [division.balanced(row, pair[1], 2) for row in strips]
    most = max(np.add.reduceat(row, cuts[:-1]).max() for row, cuts in zip(strips, z_cuts, strict=True))
    return Division(p, y_cuts, tuple(z_cuts)), float(most)


def _weights(
    comm: Comm, p: Parameters, seconds: Seconds, points: tuple[Array, Array], n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the seconds of each target and of each source; collective."""
    targets, sources = points
    crowd = seconds.crowd * _crowding(comm, p, targets, sources, n)
    near = np.exp(np.interp(np.log(np.maximum(crowd, CROWDS[0])), np.log(CROWDS), np.log(seconds.near)))
    return near + seconds.gather, np.full(sources.shape[1], seconds.spread)


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
