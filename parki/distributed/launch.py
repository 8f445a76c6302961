"""Ranks on which a launcher of MPI has begun a command of parki: find them, let one speak, and end them together."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
from collections.abc import Iterator
from typing import Any

from parki.distributed import agreement

#: Environment variables that launchers set: mpirun of Open MPI and MPICH, PMIx, srun.
LAUNCHERS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "SLURM_PROCID")


def world(size: int = 2) -> Any:
    """Return the communicator of all ranks of a launcher, None for fewer than `size` ranks and without one."""
    if not any(name in os.environ for name in LAUNCHERS) or importlib.util.find_spec("mpi4py") is None:
        return None
    from mpi4py import MPI

    return MPI.COMM_WORLD if MPI.COMM_WORLD.Get_size() >= size else None


@contextlib.contextmanager
def told_by_one(comm: Any) -> Iterator[None]:
    """Let the first rank alone print in the body."""
    if first(comm):
        yield
        return
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def first(comm: Any) -> bool:
    """Tell whether this is the first rank, or a process alone."""
    return comm is None or comm.rank == 0


def speaks(comm: Any, error: BaseException) -> bool:
    """Tell whether this rank has to report its error: the first rank, and any with an error of its own."""
    return first(comm) or agreement.finder(error) is None


def found_by(comm: Any, error: BaseException) -> str:
    """Return a note, after a space, on the rank that found an error, if not the first: its arrays begin elsewhere."""
    note = None if comm is None else agreement.finder(error)
    return "" if note is None or note.startswith("Found by rank 0 ") else f" {note}"


def end(comm: Any, status: int, error: BaseException | None = None) -> int:
    """Return the status of a command that has failed, and end the other ranks unless they have its error, too."""
    if comm is not None and (error is None or agreement.finder(error) is None):
        from mpi4py import run

        run.set_abort_status(status)
    return status
