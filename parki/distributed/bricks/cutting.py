"""Cuts of a grid into bricks that take equal times: of points, rows, margins and ghosts around."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parki import ranks
from parki.arrays import Array, to_host
from parki.distributed.bricks import balance, division
from parki.distributed.bricks.balance import Seconds
from parki.distributed.bricks.division import Division
from parki.distributed.bricks.loads import Rows
from parki.distributed.comm import Comm
from parki.ewald.choice.params import Parameters
from parki.ewald.stages import brick

TURNS = 6  # rounds of cutting and evaluating bricks
FINALISTS = 2  # shapes that are cut in `TURNS` rounds
UNITS = 2.0**40  # units of time in which weights are counted: whole numbers, whose sums do not depend on the order
KEPT = 1.05  # time of old bricks over that of new ones up to which the old ones stay

Numbers = NDArray[np.float64]


def divided(
    comm: Comm, p: Parameters, seconds: Seconds, points: tuple[Array, Array], totals: tuple[int, int],
    old: Division | None = None,
) -> Division:  # fmt: skip
    """Return the bricks whose slowest one, with its messages, takes the least time; collective.

    Parameters
    ----------
    comm : Comm
    p : Parameters
    seconds : Seconds
    points : tuple of arrays (3, …)
        This rank's targets and sources, in the box of the stages.
    totals : tuple of int
        Targets and sources of all ranks.
    old : Division, optional
        Bricks that stay as long as they are about as good as new ones.
    """
    weights = balance.weights(comm, p, seconds, points, totals[1])
    places = [[to_host(a) for a in division.grid_rows(p, x)[1:]] for x in points]
    shape = brick.rows(p)[1:]
    work = sum(Rows.counts(shape, *place, w) for place, w in zip(places, weights, strict=True))
    unit = max(float(comm.allreduce(work.sum())), 1e-300) / UNITS
    # Whole numbers, as their sums do not depend on the order, so that no rank needs the parts of all.
    sums = np.stack([np.rint(work / unit), Rows.counts(shape, *places[1])]).astype(np.int64)
    work, sources = comm.allreduce(sums)
    judge = _Judge(p, seconds, Rows.of(p, work * unit), Rows.of(p, sources), max(totals))
    best = ranks.of_first(comm, "cutting bricks", lambda: judge.best(comm.size, old))
    return old if best is None else best


@dataclass(frozen=True, eq=False)
class _Judge:
    """Times of bricks by the seconds of points and the numbers of sources in rows, and cuts by these times."""

    p: Parameters
    seconds: Seconds
    work: Rows
    sources: Rows
    points: int

    @property
    def even(self) -> float:
        """Return the seconds of a row of a grid."""
        return (self.seconds.rows + self.seconds.touched) / math.prod(self.work.shape)

    def time(self, candidate: Division) -> float:
        """Return the time of the slowest brick and of messages."""
        return self._time(candidate, self._loads(candidate)[1])

    def _time(self, candidate: Division, times: Numbers) -> float:
        extra = self.seconds.single / candidate.size * candidate.single
        return float(times.max()) + extra + self.seconds.byte * division.travels(self.p, candidate.shape, self.points)

    def best(self, count: int, old: Division | None) -> Division | None:
        """Return the best bricks for `count` ranks, None for old ones that are about as good."""
        if old is not None and self.time(old) <= KEPT * self.cut(old.shape, 1)[1]:
            return None
        tries = {pair: self.cut(pair, 1)[1] for pair in division.pairs(self.p, count, self.points)}
        best = sorted(tries, key=lambda pair: (tries[pair], pair[1]))[:FINALISTS]
        return min((self.cut(pair, TURNS) for pair in best), key=lambda item: item[1])[0]

    def cut(self, pair: tuple[int, int], turns: int) -> tuple[Division, float]:
        """Return bricks whose slowest one is as fast as whole rows allow, and its time.

        Margins and ghosts are known for whole bricks only: where a brick takes longer than its points and rows, these
        count more when the rows are cut again.
        """
        n1, n2 = self.work.shape
        candidate = Division(self.p, (0, n1), ((0, n2),))
        factors, candidates = np.ones((1, 1)), []
        for _ in range(turns):
            candidate = self._recut(candidate, factors, pair)
            plain, times = self._loads(candidate)
            candidates.append((candidate, self._time(candidate, times)))
            factors = times / np.maximum(plain, 1e-300)
        return min(candidates, key=lambda item: item[1])

    def _recut(self, candidate: Division, factors: Numbers, pair: tuple[int, int]) -> Division:
        """Return bricks of equal work, weighted by the factors of the current bricks."""
        n1, n2 = self.work.shape
        y_work = np.empty(n1)
        for first, end, z, strip_factors in zip(candidate.y, candidate.y[1:], candidate.z, factors, strict=False):
            strip_work = self.work.sums_between(np.arange(first, end + 1), np.array(z)) + self.even * np.diff(z)
            y_work[first:end] = strip_work @ strip_factors
        y = division.balanced(y_work, pair[0])
        z_work = self.work.sums_between(np.array(y), np.arange(n2 + 1)) + self.even * np.diff(y)[:, None]
        if candidate.shape == pair:
            z_work *= [
                np.repeat(strip_factors, np.diff(z)) for strip_factors, z in zip(factors, candidate.z, strict=True)
            ]
        return Division(self.p, y, tuple(division.balanced(row, pair[1], 2) for row in z_work))

    def _loads(self, candidate: Division) -> tuple[Numbers, Numbers]:
        """Return the times of bricks: for their points and rows, and with margins and ghosts."""
        p, seconds, n_rows = self.p, self.seconds, math.prod(self.work.shape)
        edges = np.array(
            [(block.first[1], block.end[1], block.first[2], block.end[2]) for block in candidate.bricks], float
        ).T
        y0, y1, z0, z1 = edges
        cut = candidate.bricks[0].cut
        _, reach_y, reach_z = (reach / h * flag for reach, h, flag in zip(brick.reach(p), p.h, cut, strict=True))
        inside, area = self.work.sums(*edges), (y1 - y0) * (z1 - z0) / n_rows
        grid_area = (y1 - y0 + p.P * cut[1]) * (z1 - z0 + p.P * cut[2]) / n_rows
        n_sources = self.sources.sums(y0 - reach_y, y1 + reach_y, z0 - reach_z, z1 + reach_z)
        ghosts = n_sources - self.sources.sums(*edges)
        plain = inside + (seconds.rows + seconds.touched) * area
        times = inside + seconds.rows * area + seconds.touched * grid_area + seconds.ghost * ghosts
        return plain.reshape(candidate.shape), times.reshape(candidate.shape)
