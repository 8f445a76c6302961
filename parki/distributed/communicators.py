"""Conversion of a caller's communicator to the calls of `parki.distributed.comm.Comm`."""

from __future__ import annotations

from typing import Any

from parki.distributed.comm import Comm


def of(comm: Any) -> Comm:
    """Return a caller's communicator with the calls of `Comm`; collective when a communicator comes for the first time.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm, or any object with the attributes of `Comm`

    Raises
    ------
    TypeError
        For anything else.
    """
    if type(comm).__module__.partition(".")[0] == "mpi4py":
        from parki.distributed import mpi

        return mpi.of(comm)
    if isinstance(comm, Comm):
        return comm
    name = f"{type(comm).__module__}.{type(comm).__qualname__}"
    raise TypeError(f"comm is a {name}; expected a communicator of mpi4py, or None.")
