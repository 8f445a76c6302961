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
    work = sum(Rows.counts(shape, *at, w) for at, w in zip(places, weights, strict=True))
    unit = max(float(comm.allreduce(work.sum())), 1e-300) / UNITS
    # Whole numbers, as their sums do not depend on the order, so that no rank needs the parts of all.
    whole = np.stack([np.rint(work / unit), Rows.counts(shape, *places[1])]).astype(np.int64)
    work, sources = comm.allreduce(whole)
    judge = _Judge(p, seconds, Rows.of(p, work * unit), Rows.of(p, sources), max(totals))
    found = ranks.of_first(comm, "cutting bricks", lambda: judge.best(comm.size, old))
    return old if found is None else found


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

    def time(self, made: Division) -> float:
        """Return the time of the slowest brick and of messages."""
        return self._time(made, self._loads(made)[1])

    def _time(self, made: Division, taken: Numbers) -> float:
        apart = self.seconds.single / made.size * made.single
        return float(taken.max()) + apart + self.seconds.byte * division.travels(self.p, made.shape, self.points)

    def best(self, most: int, old: Division | None) -> Division | None:
        """Return the best bricks for `most` ranks, None for old ones that are about as good."""
        if old is not None and self.time(old) <= KEPT * self.cut(old.shape, 1)[1]:
            return None
        tries = {pair: self.cut(pair, 1)[1] for pair in division.pairs(self.p, most, self.points)}
        best = sorted(tries, key=lambda pair: (tries[pair], pair[1]))[:FINALISTS]
        return min((self.cut(pair, TURNS) for pair in best), key=lambda one: one[1])[0]

    def cut(self, pair: tuple[int, int], turns: int) -> tuple[Division, float]:
        """Return bricks whose slowest one is as fast as whole rows allow, and its time.

        Margins and ghosts are known for whole bricks only: where a brick takes longer than its points and rows, these
        count more when the rows are cut again.
        """
        n1, n2 = self.work.shape
        made = Division(self.p, (0, n1), ((0, n2),))
        factors, found = np.ones((1, 1)), []
        for _ in range(turns):
            made = self._recut(made, factors, pair)
            plain, taken = self._loads(made)
            found.append((made, self._time(made, taken)))
            factors = taken / np.maximum(plain, 1e-300)
        return min(found, key=lambda one: one[1])

    def _recut(self, made: Division, factors: Numbers, pair: tuple[int, int]) -> Division:
        """Return bricks of equal work, weighted by the factors of the current bricks."""
        n1, n2 = self.work.shape
        of_y = np.empty(n1)
        for first, end, z, of_strip in zip(made.y, made.y[1:], made.z, factors, strict=False):
            there = self.work.sums_between(np.arange(first, end + 1), np.array(z)) + self.even * np.diff(z)
            of_y[first:end] = there @ of_strip
        y = division.balanced(of_y, pair[0])
        of_z = self.work.sums_between(np.array(y), np.arange(n2 + 1)) + self.even * np.diff(y)[:, None]
        if made.shape == pair:
            of_z *= [np.repeat(of_strip, np.diff(z)) for of_strip, z in zip(factors, made.z, strict=True)]
        return Division(self.p, y, tuple(division.balanced(row, pair[1], 2) for row in of_z))

    def _loads(self, made: Division) -> tuple[Numbers, Numbers]:
        """Return the times of bricks: for their points and rows, and with margins and ghosts."""
        p, seconds, every = self.p, self.seconds, math.prod(self.work.shape)
        edges = np.array([(one.first[1], one.end[1], one.first[2], one.end[2]) for one in made.bricks], float).T
        y0, y1, z0, z1 = edges
        cut = made.bricks[0].cut
        _, reach_y, reach_z = (reach / h * on for reach, h, on in zip(brick.reach(p), p.h, cut, strict=True))
        inside, area = self.work.sums(*edges), (y1 - y0) * (z1 - z0) / every
        touched = (y1 - y0 + p.P * cut[1]) * (z1 - z0 + p.P * cut[2]) / every
        around = self.sources.sums(y0 - reach_y, y1 + reach_y, z0 - reach_z, z1 + reach_z)
        ghosts = around - self.sources.sums(*edges)
        plain = inside + (seconds.rows + seconds.touched) * area
        taken = inside + seconds.rows * area + seconds.touched * touched + seconds.ghost * ghosts
        return plain.reshape(made.shape), taken.reshape(made.shape)
