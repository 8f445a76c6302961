"""Treecode and FMM sums over ranks: plans and calls, beside those of one process with as many threads."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki import pairs, ranks, samples
from parki.arrays import Array
from parki.distributed.agreement import agreed
from parki.distributed.comm import Comm
from parki.engine import Space, cpus, spaces, workers
from parki.perfmodels.bench import measure_ranks
from parki.perfmodels.bench.measure import Row, on
from parki.perfmodels.bench.measure_ranks import Turns, counted
from parki.perfmodels.bench.sums import SAMPLE
from parki.plan import Plan
from parki.portions import Portion
from parki.timing import CallCounts

KERNELS = ("coulomb", "stokes_sl")
POINTS: dict[str, Callable[[int, int], NDArray[np.float64]]] = {
    "uniform": samples.uniform,
    "plummer": samples.plummer,
    "sphere": samples.sphere,
}


class FreeSteps:
    """Steps of a turn: making a plan anew, and calling the plan."""

    def __init__(self, method: ModuleType, kernel: str, arguments: tuple[np.ndarray, ...], options: Row) -> None:
        self._x, self._density = on(options["execution_space"], arguments)
        self._method, self._kernel, self._options = method, kernel, options
        self.made: Plan[Any] | None = None

    @property
    def steps(self) -> dict[str, Callable[[], object]]:
        """Steps by name."""
        return {"plan": self.plan, "call": self.call}

    def plan(self) -> Plan[Any]:
        """Make the plan anew, once the last one is gone."""
        self.made = None
        self.made = self._method.plan(self._kernel, self._x, self._x, **self._options)
        return self.made

    def call(self) -> Array:
        """Call the plan."""
        return self.made(self._density)

    def counts(self) -> CallCounts:
        """Return the counts of the last call."""
        return self.made.walltime.counts()


def measured(
    method: ModuleType, kernel: str, points: str, n: int, comm: Comm, options: Row, repeat: int
) -> tuple[list[Row], str]:  # fmt: skip
    """Return rows of plans, calls and both, by one process and over ranks, and the summary of the fastest call.

    Parameters
    ----------
    method : module
        `parki.treecode` or `parki.fmm`.
    kernel : str
    points : str
        The set of points, of `POINTS`.
    n : int
        Particles of all ranks; each has its share of them anywhere in the set.
    comm : Comm
    options : dict
        Of plans.
    repeat : int
    """
    options = options | {"timed": True}  # a GPU is waited for in each phase, in both sums
    steps_of_ranks = FreeSteps(method, kernel, share(kernel, points, n, comm.rank, comm.size), options | {"comm": comm})
    plan = steps_of_ranks.plan()
    threads = ranks.total(comm, workers(plan.space))
    space, note = one_space(plan.space, threads)
    steps_alone: dict[str, Callable[[], object]] = {}
    with agreed(comm, "preparing the sum by one process"):
        if comm.rank == 0 and n <= measure_ranks.ALONE:
            shares = [share(kernel, points, n, rank, comm.size) for rank in range(comm.size)]
            all_arrays = tuple(np.concatenate(arrays, axis=-1) for arrays in zip(*shares, strict=True))
            steps_alone = FreeSteps(method, kernel, all_arrays, options | {"execution_space": space}).steps
    turns = Turns.of(comm, steps_of_ranks.steps, steps_alone, plan.space, repeat, steps_of_ranks.counts)
    turns.together("both", "plan", "call")
    error, name = steps_of_ranks.made.error(SAMPLE).value, f"{kernel}, {points}, N = {n:,}, {options['tolerance']:g}"
    rows = []
    for step in turns.many:
        by_one = f"{name}: {step}, one process of {counted(workers(space), 'thread')}{note}"
        by_ranks = f"{name}: {step}, {counted(comm.size, 'rank')} of {counted(workers(plan.space), 'thread')}"
        rows += turns.rows(step, n, (by_one, by_ranks), **({"error": error} if step == "call" else {}))
    return rows, steps_of_ranks.made.walltime.summary(turns.best)


def one_space(space: Space, threads: int) -> tuple[Space, str]:
    """Return the space of one process beside ranks with `threads` in all, and the reason if it has fewer threads."""
    threads_alone = max(workers(space), min(threads, cpus()))
    if not space.native or threads_alone == workers(space) == threads:
        return space, ""
    if spaces.available()["OpenMP"] is not None:
        return space, " for want of OpenMP"
    return Space("OpenMP", threads_alone, space.engine), " for want of cores" if threads_alone < threads else ""


def share(kernel: str, points: str, n: int, rank: int, size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return one rank's points (3, …) of a set and their densities (…), of n in all."""
    places, components = Portion(rank, size).places(n), pairs.PAIRS[kernel].dens
    number = places.stop - places.start
    density = samples.charges(components * number, size + rank)
    return POINTS[points](number, rank), density if components == 1 else density.reshape(components, number)
