"""Sums over many processes: ``comm=`` on the calls and plans of parki.

A call with a communicator of mpi4py is made by all of its ranks, each with its own points: `parki.distributed.comm`
has the few calls of MPI that are used.  Ranks of one process, for tests of programs over ranks, are those of a `World`.
"""

from parki.distributed.comm import Comm, Pending, Traffic
from parki.distributed.simulated import Aborted, World

__all__ = ["Aborted", "Comm", "Pending", "Traffic", "World"]


def __dir__() -> list[str]:
    return sorted(__all__)
