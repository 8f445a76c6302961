"""A communicator that delays messages as a network would, by the wall clock, while ranks go on working.

``mpirun -n 2 python -m mpi4py tests/distributed/delayed.py`` prints the share of that time that is hidden.
"""

import sys
import time

import numpy as np

from parki.distributed import communicators


class DelayedComm:
    """A wrapped communicator: an exchange takes at least `alpha` seconds and its bytes over `beta` (bytes/s)."""

    def __init__(self, comm, alpha, beta):
        self._comm, self.alpha, self.beta, self.delays = comm, alpha, beta, 0.0
        self.rank, self.size, self.node = comm.rank, comm.size, comm.node
        self.peers, self.place = comm.peers, comm.place

    @property
    def traffic(self):
        return self._comm.traffic

    def __getattr__(self, name):
        return getattr(self._comm, name)

    def allreduce(self, x, op="sum"):
        return self._comm.allreduce(x, op)

    def allgather(self, x):
        return self._comm.allgather(x)

    def bcast(self, x, root=0):
        return self._comm.bcast(x, root)

    def barrier(self):
        self._comm.barrier()

    def rest(self):
        self._comm.rest()

    def exchange_unknown(self, send, like, phase):
        return self._comm.exchange_unknown(send, like, phase)

    def exchange(self, send, receive, phase):
        there, here = (sum(a.nbytes for q, a in part.items() if q != self.rank) for part in (send, receive))
        seconds = (self.alpha + max(there, here) / self.beta) * bool(there or here)
        self.delays += seconds
        return Delayed(self._comm.exchange(send, receive, phase), time.perf_counter() + seconds)


class Delayed:
    """Messages that do not arrive before a given time."""

    def __init__(self, pending, until):
        self._pending, self._until = pending, until

    def test(self):
        return self._pending.test() and time.perf_counter() >= self._until

    def finish(self):
        self._pending.finish()
        time.sleep(max(0.0, self._until - time.perf_counter()))


def main():
    from mpi4py import MPI

    import parki

    comm = DelayedComm(communicators.of(MPI.COMM_WORLD), 1e-3, 1e9)
    rng = np.random.default_rng(comm.rank)
    n = 50_000
    x, f, normals = rng.random((3, n)), rng.standard_normal((6, n)), rng.standard_normal((3, n))
    plan = parki.ewald.plan("stokes_comb", x, x, box=(1, 1, 1), tolerance=1e-7, comm=comm)
    for _ in range(5):
        comm.delays = 0.0
        plan(f, normals)
        beside = plan.sums[1].beside
        exchanged = comm.alpha * 4 + sum(plan.walltime.nbytes[name] for name in ("ghost_grid", "exchange")) / comm.beta
        every = comm.allgather((beside.waited, exchanged))
        if comm.rank == 0:
            hidden = [1 - waited / delays for waited, delays in every]
            sys.stdout.write(f"delays {1e3 * exchanged:.1f} ms, hidden {min(hidden):.3f} to {max(hidden):.3f}\n")


if __name__ == "__main__":
    main()
