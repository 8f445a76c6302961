"""`parki bench NAME --mpi`: sums over ranks, their phases and messages, beside the sum by one process."""

from __future__ import annotations

import argparse
import functools
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

import parki
from parki import memory, ranks
from parki.arrays import Array
from parki.distributed.agreement import agreed
from parki.distributed.comm import Comm
from parki.engine import workers
from parki.perfmodels.bench import measure_ranks, ranks_free
from parki.perfmodels.bench.measure import CUBE, Row, asked_space, cloud, on, strengths, table
from parki.perfmodels.bench.measure_ranks import Turns, counted
from parki.perfmodels.bench.sums import KERNELS, SAMPLE
from parki.plan import Plan
from parki.portions import Portion

N = 100_000  # particles of all ranks, where no --n is given
BYTES = 48  # least bytes of a particle
RECORDS = ("json", "compare", "plot")  # options that --mpi does not take
#: Benchmarks over ranks → the module of their plans, None for Ewald sums.
METHODS = {"ewald": None, "treecode": parki.treecode, "fmm": parki.fmm}


def main(args: argparse.Namespace) -> int:
    """Measure sums over all ranks of ``args.comm``, and print a table of each kernel: collective.

    Raises
    ------
    ValueError
        Without a communicator, for benchmarks that are not in `METHODS`, and for options that --mpi does not take.
    """
    with ranks.together(args.comm, "reading options"):
        check(args)
        space, n = asked_space(args), args.n or N
        comm = ranks.of(args.comm)
        memory.require(BYTES * n / comm.size, f"--n {n}", "A smaller --n takes less.")
    options, method = {"tolerance": args.tolerance, "execution_space": space}, METHODS[args.name]
    for kernel in KERNELS if method is None else ranks_free.KERNELS:
        if method is None:
            rows, summary = measured(kernel, n, comm, options | {"box": CUBE}, args.repeat)
        else:
            sums = method, kernel, args.points or "uniform"
            rows, summary = ranks_free.measured(*sums, n, comm, options, args.repeat)
        print(f"{table(rows)}\n\n{summary}\n")  # noqa: T201
    return 0


def check(args: argparse.Namespace) -> None:
    """Raise ValueError for benchmarks and options that --mpi does not take, and without MPI."""
    if args.name not in METHODS:
        expected = " or ".join([", ".join([*METHODS][:-1]), [*METHODS][-1]])
        raise ValueError(f"--mpi was given with {args.name}; expected {expected}, which sum over ranks.")
    if flags := [f"--{name}" for name in RECORDS if getattr(args, name)]:
        raise ValueError(f"{flags[0]} was given with --mpi, which keeps no records; expected one of the two.")
    if args.points is not None and METHODS[args.name] is None:
        raise ValueError(f"--points was given with {args.name}, whose points fill a box; expected sums in free space.")
    if args.comm is None and importlib.util.find_spec("mpi4py") is None:
        raise ValueError('--mpi needs mpi4py, which is not installed: pip install "parki[mpi]"')
    if args.comm is None:
        raise ValueError(
            f"--mpi was given without a launcher of MPI; expected mpirun -n 4 parki bench {args.name} --mpi."
        )


def measured(kernel: str, n: int, comm: Comm, options: Row, repeat: int) -> tuple[list[Row], str]:
    """Return rows of the sum by one process and of that over ranks, and the summary of the fastest call over ranks.

    A call over ranks lasts until the slowest has its results; while the first rank sums alone, with its threads, the
    others wait.

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
    steps_alone: dict[str, Callable[[], Array]] = {}
    with agreed(comm, "preparing the sum by one process"):
        if comm.rank == 0 and n <= measure_ranks.ALONE:
            shares = [share(n, rank, comm.size) for rank in range(comm.size)]
            all_arrays = tuple(np.concatenate(arrays, axis=1) for arrays in zip(*shares, strict=True))
            steps_alone["call"] = prepared(kernel, all_arrays, options | {"execution_space": plan.space})[1]
    turns = Turns.of(comm, {"call": call}, steps_alone, plan.space, repeat, plan.walltime.counts)
    error, name = plan.error(SAMPLE).value, f"{kernel}, N = {n:,}, {options['tolerance']:g}"
    threads_of_each = counted(workers(plan.space), "thread")
    titles = f"{name}: one process of {threads_of_each}", f"{name}: {counted(comm.size, 'rank')} of {threads_of_each}"
    return turns.rows("call", n, titles, error=error), plan.walltime.summary(turns.best)


def share(n: int, rank: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return one rank's points, densities and normals of n in all."""
    places = Portion(rank, size).places(n)
    return cloud(places.stop - places.start, (1, rank))


def prepared(kernel: str, arguments: tuple[np.ndarray, ...], options: Row) -> tuple[Plan[Any], Callable[[], Array]]:
    """Return a plan for points, densities and normals, and its call."""
    x, dens, normals = on(options["execution_space"], arguments)
    plan = parki.ewald.plan(kernel, x, x, **options)
    return plan, functools.partial(plan, *strengths(kernel, dens, normals))
