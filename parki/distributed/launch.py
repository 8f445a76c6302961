"""Find the ranks on which a launcher of MPI has begun a command of parki, and end them together."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
from collections.abc import Iterator
from typing import Any

#: Variables that launchers set: mpirun of Open MPI and MPICH, those of PMIx, srun.
LAUNCHERS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "SLURM_PROCID")


def world() -> Any:
    """Return the communicator of all ranks that a launcher has begun, None for a process alone."""
    if not any(name in os.environ for name in LAUNCHERS) or importlib.util.find_spec("mpi4py") is None:
        return None
    from mpi4py import MPI

    return MPI.COMM_WORLD if MPI.COMM_WORLD.Get_size() > 1 else None


@contextlib.contextmanager
def told_by_one(comm: Any) -> Iterator[None]:
    """Let the first rank alone say something in the body."""
    if comm is None or comm.rank == 0:
        yield
        return
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def end(comm: Any, status: int) -> int:
    """Return the status of a command; one that is not 0 ends all ranks."""
    if comm is not None and status:
        from mpi4py import run

        run.set_abort_status(status)
    return status
