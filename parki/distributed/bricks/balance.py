"""Bricks that take equal times: of points, by what the models say of near and far field; of rows; of ghosts around."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parki import prediction
from parki.arrays import Array, to_host
from parki.distributed.bricks import division
from parki.distributed.bricks.division import Cuts, Division
from parki.distributed.bricks.loads import Rows
from parki.distributed.comm import Comm
from parki.engine import spaces
from parki.engine.spaces import Space
from parki.ewald import geometry
from parki.ewald.choice import predict
from parki.ewald.choice.params import Parameters
from parki.ewald.stages import brick
from parki.perfmodels import select

TURNS = 6  # of cutting and looking at what the bricks take
MOST_CELLS = 64  # along each axis, in which sources are counted
CROWDS = 2.0 ** np.arange(-10, 31)  # sources in a cube of side rc, for which near fields are predicted
#: The share of transforms that is along x, whose lines are where bricks are: see `select.Domain.work`.
ALONG_X = 1 / (1 + 1 / select.SIGMA + select.CIRCLE / select.SIGMA**2)
WIDE = 1.5  # cutoffs that a cell is long from which it stands for itself
PASSES = 8  # of each number of a brick through memory beside transforms: cleared, packed, sent, unpacked
#: On a host slabs transform along y by themselves, out of the cache: so much more of all transforms they take.
APART = 0.15
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
        Of a source and of a target, at points of the grid that are in the cache, and on their ways through sorts.
    ghost : float
        Of a source around a brick.
    rows, touched : float
        Of all rows of the grid: of their transforms along x, and of the ways to and from memory of all that windows
        touch, margins among them.
    byte : float
        Of a message.
    single : float
        Of transforms, what slabs take more.
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
        costs = prediction.costs(space)
        some, none = (select.phases(question, p.rc, points * on, p.P, costs) for on in (1, 0))
        speed = {name: predict.speedup(name, space) for name in some}
        transforms = some["transform"] / speed["transform"]
        rows, single = ALONG_X * transforms, space.pick(APART, 0.0) * transforms
        touched = sum((some[name] - none[name]) / speed[name] for name in ("spread", "gather"))
        near = np.array([float(select.near(question, crowd, costs)) for crowd in CROWDS]) / speed["near"]
        level = prediction.machine_of(space).bandwidth
        moved = PASSES * p.itemsizes[1] * (p.kernel.spread + p.kernel.result) * math.prod(p.grid)
        touched += moved / min(level["dram"] * spaces.workers(space), level["dram_all"])
        handled = costs.target / speed["near"]  # to look for a place takes as long as to look for neighbours
        gather, spread = (
            float(none[name]) / speed[name] / max(n, 1) + handled / 2
            for name, n in zip(("gather", "spread"), totals, strict=True)
        )
        crowd = float(question.domain.crowd(totals[1], p.rc))
        rest = (float(rows), float(touched), 1.0 / (beta or BETA), float(single))
        return cls(near, crowd, spread, gather, handled, *rest)


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
    places = [[to_host(a) for a in division.grid_rows(p, x)[1:]] for x in points]
    shape, n = brick.rows(p)[1:], max(totals)
    work = sum(Rows.counts(shape, *at, w) for at, w in zip(places, weights, strict=True))
    work, sources = comm.allreduce(np.stack([work, Rows.counts(shape, *places[1])]))
    rows = Rows.of(p, work), Rows.of(p, sources)
    found = {pair: _cut(p, seconds, pair, *rows) for pair in division.pairs(p, comm.size, n)}

    def time(pair: tuple[int, int]) -> tuple[float, int]:
        more = seconds.single / math.prod(pair) * division.slabs(p, pair)
        return found[pair][1] + more + seconds.byte * division.travels(p, pair, n), pair[1]

    return found[min(found, key=time)][0]


def _cut(p: Parameters, seconds: Seconds, pair: tuple[int, int], work: Rows, sources: Rows) -> tuple[Division, float]:
    """Return bricks of which the slowest is as fast as whole rows allow, and its time.

    Margins and ghosts are known of bricks only: where one takes longer than its points and rows do, these count more
    when the rows are cut again.
    """
    even = (seconds.rows + seconds.touched) / (work.shape[0] * work.shape[1])
    factors = np.ones(pair)
    best: tuple[Division, float] | None = None
    cuts: tuple[Cuts, tuple[Cuts, ...]] | None = None
    for _ in range(TURNS):
        cuts = _recut(work, even, factors, cuts)
        made = Division(p, *cuts)
        plain, taken = _loads(p, seconds, made, work, sources)
        if best is None or taken.max() < best[1]:
            best = made, float(taken.max())
        factors = taken / np.maximum(plain, 1e-300)
    return best


def _recut(
    work: Rows, even: float, factors: NDArray[np.float64], cuts: tuple[Cuts, tuple[Cuts, ...]] | None
) -> tuple[Cuts, tuple[Cuts, ...]]:
    """Return rows of strips and of their bricks, of equal work times the factors of the bricks that are."""
    n1, n2 = work.shape
    if cuts is None:
        of_y = work.along_y(0, n2) + even * n2
    else:
        of_y = np.zeros(n1)
        for i, row in enumerate(cuts[1]):
            strip = slice(cuts[0][i], cuts[0][i + 1])
            for j, factor in enumerate(factors[i]):
                of_y[strip] += factor * (work.along_y(row[j], row[j + 1])[strip] + even * (row[j + 1] - row[j]))
    y = division.balanced(of_y, len(factors))
    z = []
    for i in range(len(factors)):
        of_z = work.along_z(y[i], y[i + 1]) + even * (y[i + 1] - y[i])
        if cuts is not None:
            of_z = of_z * np.repeat(factors[i], np.diff(cuts[1][i]))
        z.append(division.balanced(of_z, factors.shape[1], 2))
    return y, tuple(z)


def _loads(
    p: Parameters, seconds: Seconds, made: Division, work: Rows, sources: Rows
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the times of bricks: of their points and rows, and with margins and ghosts."""
    edges = np.array([(one.first[1], one.end[1], one.first[2], one.end[2]) for one in made.bricks], float).T
    y0, y1, z0, z1 = edges
    cut = made.bricks[0].cut
    all_rows = work.shape[0] * work.shape[1]
    _, reach_y, reach_z = (reach / h * on for reach, h, on in zip(brick.reach(p), p.h, cut, strict=True))
    inside, area = work.sums(*edges), (y1 - y0) * (z1 - z0) / all_rows
    touched = (y1 - y0 + p.P * cut[1]) * (z1 - z0 + p.P * cut[2]) / all_rows
    ghosts = sources.sums(y0 - reach_y, y1 + reach_y, z0 - reach_z, z1 + reach_z) - sources.sums(*edges)
    plain = inside + (seconds.rows + seconds.touched) * area
    taken = inside + seconds.rows * area + seconds.touched * touched + seconds.ghost * ghosts
    return plain.reshape(made.shape), taken.reshape(made.shape)


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
    for axis, (m, side) in enumerate(zip(shape, p.box, strict=True)):
        if side < WIDE * m * p.rc:  # about as wide as what the cutoff reaches
            counts = 0.5 * counts + 0.25 * (np.roll(counts, 1, axis) + np.roll(counts, -1, axis))
    return counts[tuple(_cells(p, targets, shape))] * (counts.size / max(n, 1))


def _cells(p: Parameters, x: Array, shape: list[int]) -> NDArray[np.int64]:
    lattice = to_host(geometry.lattice(p, x))
    scaled = [row * (m / side) for row, m, side in zip(lattice, shape, p.box, strict=True)]
    return np.stack([np.clip(row.astype(np.int64), 0, m - 1) for row, m in zip(scaled, shape, strict=True)])
