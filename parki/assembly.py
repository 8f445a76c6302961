"""Write the results of a sum over ranks to one file, equal to the file that one process writes.

Ranks write their own parts of .npy and HDF5 files one after the other.  File systems between machines keep the bytes of
a rank that closes a file before the next one opens it, but not always those of two ranks that write to one block at a
time.  With a parallel build of h5py ranks write HDF5 files together.  For other files the first rank gets all parts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from parki import formats
from parki.arrays import Array
from parki.distributed import communicators
from parki.distributed.agreement import agreed
from parki.distributed.comm import Comm
from parki.engine import writing
from parki.formats import DataLocation

OF_TARGETS = (".csv", ".vtu")  # files that hold the targets, too


def save(comm: Any, path: Path, results: Mapping[str, Array], trg: Array, facts: Mapping[str, Any]) -> None:
    """Write the results of all ranks to one file, in the order of ranks; the call is collective.

    Parameters
    ----------
    comm : communicator
        As a caller of a sum gives it.
    path : Path
    results : mapping
        Arrays (…, n) at this rank's targets, by name.
    trg : array (3, n)
    facts : mapping
        See `parki.formats.save`.

    Raises
    ------
    ValueError, OSError
        On all ranks, as `parki.formats.save`; the old file stays.
    """
    ranks, location = communicators.of(comm), formats.place(path)
    counts = ranks.allgather(trg.shape[-1])
    if location.suffix not in (".npy", *formats.HDF5):
        gathered = {name: _gathered(ranks, a, counts) for name, a in results.items()}
        trg = _gathered(ranks, trg, counts) if location.suffix in OF_TARGETS else trg
        with agreed(ranks, f"writing {path}"):
            if ranks.rank == 0:
                formats.save(path, gathered, trg, facts)
        return
    first = sum(counts[: ranks.rank])
    places = slice(first, first + trg.shape[-1])

    def table(work: Path) -> None:
        rows = formats.stacked(results)
        new = {"mode": "w+", "dtype": rows.dtype, "shape": (*rows.shape[:-1], sum(counts))}
        array = np.lib.format.open_memmap(work, **new if ranks.rank == 0 else {"mode": "r+"})
        array[..., places] = rows
        array.flush()

    def dataset(work: Path, **keywords: Any) -> None:
        if ranks.rank == 0 or keywords:
            with formats.result_group(work, location, facts, **keywords) as group:
                for name, a in results.items():
                    group.create_dataset(name, (*a.shape[:-1], sum(counts)), a.dtype)[..., places] = a
        else:
            with formats.full_disk(), formats.library(work, location.suffix).File(work, "r+") as file:
                for name, a in results.items():
                    file[location.group][name][..., places] = a

    with _replacing(ranks, location) as work:
        if location.suffix == ".npy":
            _in_turns(ranks, path, table, work)
        elif _parallel(comm, location):
            with agreed(ranks, f"writing {path}"):  # all ranks close the file, also one that has failed
                dataset(work, driver="mpio", comm=comm)
        else:
            _in_turns(ranks, path, dataset, work)


@contextlib.contextmanager
def _replacing(comm: Comm, location: DataLocation) -> Iterator[Path]:
    """Yield on all ranks the file to write, from `parki.engine.compile.writing.replacing` on the first rank."""
    with contextlib.ExitStack() as stack:
        work = None
        with agreed(comm, f"writing {location.file}"):
            if comm.rank == 0:
                work = stack.enter_context(writing.replacing(location.file, start=location.group != "/"))
        yield comm.bcast(work)
        with agreed(comm, f"writing {location.file}"):
            stack.close()


def _in_turns(comm: Comm, path: Path, write: Callable[[Path], None], work: Path) -> None:
    """Let ranks write one after the other; stop at the first that fails."""
    for rank in range(comm.size):
        with agreed(comm, f"writing {path}"):
            if rank == comm.rank:
                write(work)


def _gathered(comm: Comm, a: Array, counts: list[int]) -> Array:
    """Return arrays (…, n) of all ranks side by side on the first rank, and the own array on others."""
    parts = {}
    with agreed(comm, "making room for a result"):
        a = np.ascontiguousarray(a)
        if comm.rank == 0:
            parts = {rank: np.empty((*a.shape[:-1], n), a.dtype) for rank, n in enumerate(counts)}
    comm.exchange({0: a}, parts, "gather").finish()
    with agreed(comm, "gathering a result"):
        return np.concatenate(list(parts.values()), axis=-1) if parts else a


def _parallel(comm: Any, location: DataLocation) -> bool:
    """Tell whether ranks of MPI write HDF5 files together."""
    mpi = type(comm).__module__.partition(".")[0] == "mpi4py"
    return mpi and bool(formats.library(location.file, location.suffix).get_config().mpi)
