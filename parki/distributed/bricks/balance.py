"""Predicted time of a sum, by points and rows of the grid, from the models of near and far field."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parki import prediction
from parki.arrays import Array, to_host
from parki.distributed.comm import Comm
from parki.engine import Space, spaces
from parki.ewald import geometry, predict
from parki.ewald.choice.params import Parameters
from parki.perfmodels import select

MOST_CELLS = 64  # cells along each axis in which sources are counted, at most
CROWDS = 2.0 ** np.arange(-10, 31)  # sources in a cube of side rc for which near fields are predicted
#: Share of transforms that run along x, whose lines are where bricks are: see `select.Domain.work`.
ALONG_X = 1 / (1 + 1 / select.SIGMA + select.CIRCLE / select.SIGMA**2)
WIDE = 1.5  # length in cutoffs from which a cell stands for itself
PASSES = 8  # times that each number of a brick passes through memory beside transforms: cleared, packed, sent, unpacked
#: Share by which all transforms grow on a host with slabs, which transform along y separately, out of the cache.
APART = 0.15
BETA = 1e10  # bytes a second between ranks whose network is not known


class Seconds(NamedTuple):
    """Predicted times of the parts of a sum, in seconds.

    Attributes
    ----------
    near : array
        Near field of a target, by the numbers of sources `CROWDS` in a cube of side rc.
    crowd : float
        Sources in such a cube if they filled the box evenly.
    spread, gather : float
        Per source and per target: points of the grid in the cache, and the ways through sorts.
    ghost : float
        Per source around a brick.
    rows, touched : float
        All rows of the grid: transforms along x, and the ways to and from memory of everything that windows
        touch, margins among them.
    byte : float
        Per byte of a message.
    single : float
        Additional time of transforms with slabs.
    """

    near: NDArray[np.float64]
    crowd: float
    spread: float
    gather: float
    ghost: float
    rows: float
    touched: float
    byte: float
    single: float

    @classmethod
    def of(cls, p: Parameters, totals: tuple[int, int], space: Space, beta: float | None) -> Seconds:
        """Predict sums of some targets and sources on one rank, whose messages take `beta` bytes a second."""
        question, points = predict.modelled(p, *totals)
        costs, machine = prediction.costs(space), prediction.machine_of(space)
        phases, base = (select.phases(question, p.rc, points * on, p.P, costs) for on in (1, 0))
        speed = {name: predict.speedup(name, machine, spaces.workers(space)) for name in phases}
        transforms = phases["transform"] / speed["transform"]
        rows, single = ALONG_X * transforms, space.pick(APART, 0.0) * transforms
        window_time = sum((phases[name] - base[name]) / speed[name] for name in ("spread", "gather"))
        near = np.array([float(select.near(question, crowd, costs)) for crowd in CROWDS]) / speed["near"]
        level = machine.bandwidth
        traffic = PASSES * p.itemsizes[1] * (p.kernel.spread + p.kernel.fields) * math.prod(p.grid)
        window_time += traffic / min(level["dram"] * spaces.workers(space), level["dram_all"])
        handled = costs.target / speed["near"]  # looking up a place takes as long as looking up neighbours
        gather, spread = (
            float(base[name]) / speed[name] / max(n, 1) + handled / 2
            for name, n in zip(("gather", "spread"), totals, strict=True)
        )
        crowd = float(question.domain.crowd(totals[1], p.rc))
        rest = (float(rows), float(window_time), 1.0 / (beta or BETA), float(single))
        return cls(near, crowd, spread, gather, handled, *rest)


def weights(
    comm: Comm, p: Parameters, seconds: Seconds, points: tuple[Array, Array], n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the seconds of each target and of each source; collective."""
    targets, sources = points
    crowd = seconds.crowd * _crowding(comm, p, targets, sources, n)
    near = np.exp(np.interp(np.log(np.maximum(crowd, CROWDS[0])), np.log(CROWDS), np.log(seconds.near)))
    return near + seconds.gather, np.full(sources.shape[1], seconds.spread)


def _crowding(comm: Comm, p: Parameters, targets: Array, sources: Array, n: int) -> NDArray[np.float64]:
    """Return the number of sources near each target, relative to sources that fill the box evenly."""
    shape = [int(min(MOST_CELLS, max(1, math.floor(side / p.rc)))) for side in p.box]
    local_counts = np.bincount(
        np.ravel_multi_index(tuple(_cells(p, sources, shape)), shape), minlength=math.prod(shape)
    )
    counts = comm.allreduce(local_counts).reshape(shape).astype(np.float64)
    for axis, (m, side) in enumerate(zip(shape, p.box, strict=True)):
        if side < WIDE * m * p.rc:  # the cell is about as wide as the reach of the cutoff
            counts = 0.5 * counts + 0.25 * (np.roll(counts, 1, axis) + np.roll(counts, -1, axis))
    return counts[tuple(_cells(p, targets, shape))] * (counts.size / max(n, 1))


def _cells(p: Parameters, x: Array, shape: list[int]) -> NDArray[np.int64]:
    lattice = to_host(geometry.lattice(p, x))
    scaled = [row * (m / side) for row, m, side in zip(lattice, shape, p.box, strict=True)]
    return np.stack([np.clip(row.astype(np.int64), 0, m - 1) for row, m in zip(scaled, shape, strict=True)])
