"""`parki bench ewald --mpi`: Ewald sums over ranks, their phases and messages, beside the sum by one process."""

from __future__ import annotations

import argparse
import functools
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import parki
from parki import memory, ranks
from parki.arrays import Array
from parki.distributed.agreement import agreed
from parki.distributed.comm import Comm
from parki.engine.spaces import workers
from parki.perfmodels.bench_sums import KERNELS, SAMPLE
from parki.perfmodels.measure import CUBE, Row, absent, asked_space, clock, cloud, on, row, strengths, table
from parki.plan import Plan
from parki.portions import Portion
from parki.timing import CallCounts

N = 100_000  # particles of all ranks where no number is asked for
ALONE = 1_000_000  # particles up to which one process sums them, too
BYTES = 48  # of a particle at least
RECORDS = ("json", "compare", "plot")


def main(asked: argparse.Namespace) -> int:
    """Measure sums over all ranks of ``asked.comm``, and print a table of each kernel: collective.

    Raises
    ------
    ValueError
        Without a communicator, for another benchmark than ewald, and for options of the others' records.
    """
    with ranks.together(asked.comm, "reading options"):
        check(asked)
        space, n = asked_space(asked), asked.n or N
        comm = ranks.of(asked.comm)
        memory.require(BYTES * n / comm.size, f"--n {n}", "A smaller --n takes less.")
    options = {"box": CUBE, "tolerance": asked.tolerance, "execution_space": space}
    for kernel in KERNELS:
        rows, summary = measured(kernel, n, comm, options, asked.repeat)
        print(f"{table(rows)}\n\n{summary}\n")  # noqa: T201
    return 0


def check(asked: argparse.Namespace) -> None:
    """Raise ValueError for what --mpi cannot do."""
    if asked.name != "ewald":
        raise ValueError(f"--mpi was given with {asked.name}; expected ewald, the benchmark that sums over ranks.")
    if given := [f"--{name}" for name in RECORDS if getattr(asked, name)]:
        raise ValueError(f"{given[0]} was given with --mpi, which keeps no records; expected one of the two.")
    if asked.comm is None and importlib.util.find_spec("mpi4py") is None:
        raise ValueError('--mpi needs mpi4py, which is not installed: pip install "parki[mpi]"')
    if asked.comm is None:
        raise ValueError("--mpi was given without a launcher of MPI; expected mpirun -n 4 parki bench ewald --mpi.")


def measured(kernel: str, n: int, comm: Comm, options: Row, repeat: int) -> tuple[list[Row], str]:
    """Return rows of the sum by one process and of that over ranks, and the summary of the fastest call over ranks.

    A call over ranks lasts until the slowest has its results.  Calls take turns, after one turn that does not count;
    while the first rank sums alone, with its threads, the others wait.

    Parameters
    ----------
    kernel : str
    n : int
        Particles of all ranks; each has its share of them anywhere in the box.
    comm : Comm
    options : dict
        Of plans.
    repeat : int
    """
    options = options | {"return_walltime": True}  # a GPU is waited for in each phase, in both sums
    plan, call = prepared(kernel, share(n, comm.rank, comm.size), options | {"comm": comm})
    run, beside = clock(call, plan.space), None
    with agreed(comm, "preparing the sum by one process"):
        if comm.rank == 0 and n <= ALONE:
            every = [share(n, rank, comm.size) for rank in range(comm.size)]
            whole = tuple(np.concatenate(arrays, axis=1) for arrays in zip(*every, strict=True))
            beside = clock(prepared(kernel, whole, options | {"execution_space": plan.space})[1], plan.space)
    times: list[float] = []
    alone: list[float] = []
    counts: list[CallCounts] = []
    for _ in range(1 + repeat):
        times.append(slowest(comm, run))
        counts.append(plan.walltime.counts())
        with agreed(comm, "the sum by one process"):
            if beside is not None:
                alone.append(beside())
    best = 1 + int(np.argmin(times[1:]))
    error = plan.error(SAMPLE).value
    name, threads = f"{kernel}, N = {n:,}, {options['tolerance']:g}", workers(plan.space)
    each = _count(threads, "thread")
    one, many = f"{name}: one process of {each}", f"{name}: {_count(comm.size, 'rank')} of {each}"
    first = row(one, alone[1:], n / 1e6, "M particles") if alone else absent(one, f"more than {ALONE:,} particles")
    rows = [first, row(many, times[1:], n / 1e6, "M particles", first if alone else None, error=error)]
    return rows, plan.walltime.summary(counts[best])


def share(n: int, rank: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return one rank's points, densities and normals of n in all."""
    places = Portion(rank, size).places(n)
    return cloud(places.stop - places.start, (1, rank))


def prepared(kernel: str, given: tuple[np.ndarray, ...], options: Row) -> tuple[Plan[Any], Callable[[], Array]]:
    """Return a plan for points, densities and normals, and its call."""
    x, dens, normals = on(options["execution_space"], given)
    plan = parki.ewald.plan(kernel, x, x, **options)
    return plan, functools.partial(plan, *strengths(kernel, dens, normals))


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def slowest(comm: Comm, run: Callable[[], float]) -> float:
    """Return the seconds of a call that all ranks begin together, until the last one has ended."""
    comm.barrier()
    began = time.perf_counter()
    run()
    return float(comm.allreduce(time.perf_counter() - began, "max"))
