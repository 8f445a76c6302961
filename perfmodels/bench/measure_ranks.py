"""Measurements of benchmarks over ranks: steps that all ranks begin together, in turns with those of one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from parki.distributed.agreement import agreed
from parki.distributed.comm import Comm
from parki.engine import Space
from parki.perfmodels.bench.measure import Row, absent, clock, row
from parki.timing import CallCounts

ALONE = 1_000_000  # particles up to which one process sums them, too
Steps = Mapping[str, Callable[[], object]]


@dataclass
class Turns:
    """Times of steps by their names, one a turn, after one turn that does not count.

    Attributes
    ----------
    many : dict
        Seconds of each step over ranks, until the slowest has ended.
    one : dict
        Seconds of each step by one process; empty if one process has not summed, and on all ranks but the first.
    counts : list
        Times, bytes and messages of this rank's call in each turn.
    """

    many: dict[str, list[float]] = field(default_factory=dict)
    one: dict[str, list[float]] = field(default_factory=dict)
    counts: list[CallCounts] = field(default_factory=list)

    @classmethod
    def of(
        cls, comm: Comm, steps: Steps, steps_alone: Steps, space: Space, repeat: int, counts: Callable[[], CallCounts]
    ) -> Turns:  # fmt: skip
        """Return the times of `repeat` turns: collective.

        Parameters
        ----------
        comm : Comm
        many, one : dict
            Steps of a turn by name, over ranks and, on the first rank, by one process, for which the others wait.
        space : Space
        repeat : int
        counts : callable
            Returns the counts of the last call over ranks.
        """
        result = cls({name: [] for name in steps}, {name: [] for name in steps_alone})
        for turn in range(1 + repeat):
            for name, step in steps.items():
                elapsed = slowest(comm, clock(step, space))
                result.many[name] += [elapsed] * (turn > 0)
            result.counts += [counts()] * (turn > 0)
            for name, seconds in alone(comm, {name: clock(step, space) for name, step in steps_alone.items()}).items():
                result.one[name] += [seconds] * (turn > 0)
        return result

    def together(self, name: str, *steps: str) -> None:
        """Add a step by this name whose times are the sums of several others'."""
        for times in filter(None, (self.many, self.one)):
            times[name] = np.sum([times[step] for step in steps], axis=0).tolist()

    @property
    def best(self) -> CallCounts:
        """Counts of this rank's part of the fastest call over ranks."""
        return self.counts[int(np.argmin(self.many["call"]))]

    def rows(self, step: str, n: int, titles: tuple[str, str], **details: object) -> list[Row]:
        """Return the rows of a step by one process and over ranks, for n particles, with these titles."""
        times_alone, count, unit = self.one.get(step), n / 1e6, "M particles"
        first = (
            absent(titles[0], f"more than {ALONE:,} particles")
            if times_alone is None
            else row(titles[0], times_alone, count, unit)
        )
        return [first, row(titles[1], self.many[step], count, unit, first if times_alone else None, **details)]


def alone(comm: Comm, steps: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """Return the seconds of the first rank's steps, while the others leave it the cores: collective."""
    with agreed(comm, "the sum by one process"):
        try:
            return {name: step() for name, step in steps.items()}
        finally:
            comm.rest()


def slowest(comm: Comm, run: Callable[[], float]) -> float:
    """Return the seconds of a step that all ranks begin together, until the last one has ended."""
    comm.barrier()
    start = time.perf_counter()
    run()
    return float(comm.allreduce(time.perf_counter() - start, "max"))


def counted(n: int, noun: str) -> str:
    """Return a number with its noun: 1 rank, 2 ranks."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
