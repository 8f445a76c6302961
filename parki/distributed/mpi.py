"""Communicator over MPI, by mpi4py: imported when a caller gives a communicator of mpi4py."""

from __future__ import annotations

import ctypes
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from mpi4py import MPI

from parki.arrays import Array, module_of
from parki.distributed.comm import OPERATIONS, Operation, Traffic

LONGEST = 1 << 30  # bytes of a message, at most: MPI's libraries count up to 2³¹
PAUSE = (1e-5, 1e-3)  # seconds between two looks, shortest and longest, of a wait that may time out
OPS = {"sum": MPI.SUM, "min": MPI.MIN, "max": MPI.MAX}
_KEY = MPI.Comm.Create_keyval(delete_fn=lambda comm, key, duplicate: duplicate.free())


def of(comm: MPI.Intracomm) -> MpiComm:
    """Return the wrapper of a communicator, made of a duplicate in the first call, which is collective.

    Raises
    ------
    ValueError
        For the null communicator of processes that a split has left out.
    """
    if comm == MPI.COMM_NULL:
        raise ValueError("comm is MPI.COMM_NULL; expected a communicator that this process is in.")
    wrapper = comm.Get_attr(_KEY)
    if wrapper is None:
        wrapper = MpiComm(comm.Dup())
        comm.Set_attr(_KEY, wrapper)
    return wrapper


def gpu_aware() -> bool:
    """Return whether MPI takes arrays of a GPU: as the library says, or ``PARKI_MPI_GPU`` (1 or 0)."""
    setting = os.environ.get("PARKI_MPI_GPU")
    if setting is not None:
        return setting not in ("", "0")
    if os.name == "nt":  # where a process has no table of all its symbols, and MPI takes no arrays of a GPU
        return False
    query = getattr(ctypes.CDLL(None), "MPIX_Query_cuda_support", None)
    return bool(query is not None and query())


class MpiComm:
    """Communicator of mpi4py: see `parki.distributed.comm.Comm`.

    With ``PARKI_MPI_TIMEOUT``, in seconds, a rank that waits longer reports the phase, and ends the job.

    Attributes
    ----------
    longest : int
        Bytes of a message, at most: longer messages are cut.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm, self.rank, self.size = comm, comm.Get_rank(), comm.Get_size()
        self.traffic, self.longest = Traffic(), LONGEST
        self.timeout = float(os.environ.get("PARKI_MPI_TIMEOUT", "0"))
        shared = comm.Split_type(MPI.COMM_TYPE_SHARED)
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        entries = shared.allgather((self.rank, cores))
        self.node, self.peers = (
            tuple(rank for rank, _ in entries),
            sum(rank_cores == cores for _, rank_cores in entries),
        )
        self.place = self.node.index(self.rank)
        shared.Free()
        self._aware = gpu_aware()

    def free(self) -> None:
        """Free the duplicate."""
        if not MPI.Is_finalized():
            self._comm.Free()

    # Collectives ------------------------------------------------------------------------------------------------------
    def allreduce(self, x: Any, op: Operation = "sum") -> np.ndarray:
        """Return the sum, minimum or maximum of all ranks' numbers; sums in the order of ranks."""
        own_values = np.array(x)
        self.traffic.agreed(own_values.nbytes, self.size)
        if op == "sum" and own_values.dtype.kind == "f":
            all_values = np.empty((self.size, *own_values.shape), own_values.dtype)
            self.wait(self._comm.Iallgather(np.ascontiguousarray(own_values), all_values), "allreduce(sum)")
            return OPERATIONS[op].reduce(all_values)
        total = np.empty_like(own_values)
        self.wait(self._comm.Iallreduce(own_values, total, OPS[op]), f"allreduce({op})")
        return total

    def allgather(self, x: Any) -> list[Any]:
        """Return one object of each rank."""
        own_bytes = np.frombuffer(pickle.dumps(x), np.uint8)
        sizes = np.empty(self.size, np.int64)
        self.wait(self._comm.Iallgather(np.array([own_bytes.size], np.int64), sizes), "allgather")
        all_bytes, ends = np.empty(sizes.sum(), np.uint8), np.cumsum(sizes)
        self.wait(self._comm.Iallgatherv(own_bytes, [all_bytes, sizes, ends - sizes, MPI.BYTE]), "allgather")
        return [pickle.loads(all_bytes[end - size : end]) for size, end in zip(sizes, ends, strict=True)]

    def bcast(self, x: Any, root: int = 0) -> Any:
        """Return the object of the root."""
        own_bytes = np.frombuffer(pickle.dumps(x) if self.rank == root else b"", np.uint8)
        size = np.array([own_bytes.size], np.int64)
        self.wait(self._comm.Ibcast(size, root), "bcast")
        message = own_bytes.copy() if self.rank == root else np.empty(size[0], np.uint8)
        self.wait(self._comm.Ibcast(message, root), "bcast")
        return x if self.rank == root else pickle.loads(message)

    def barrier(self) -> None:
        """Wait for all ranks."""
        self.wait(self._comm.Ibarrier(), "barrier")

    def rest(self) -> None:
        """Wait for all ranks asleep, without a time-out."""
        request = self._comm.Ibarrier()
        while not request.Test():
            time.sleep(PAUSE[1])

    # Messages ---------------------------------------------------------------------------------------------------------
    def exchange(self, send: Mapping[int, Array], receive: Mapping[int, Array], phase: str) -> Messages:
        """Begin to send and to receive arrays."""
        for target, a in send.items():
            if target != self.rank and a.nbytes:
                self.traffic.count(phase, a.nbytes)
        return Messages(self, self._comm, send, receive, phase)

    def exchange_unknown(self, send: Mapping[int, Array], like: Array, phase: str) -> dict[int, Array]:
        """Return arrays by the ranks that sent some."""
        xp, counts, lengths = module_of(like), np.zeros(self.size, np.int64), np.empty(self.size, np.int64)
        for target, a in send.items():
            counts[target] = len(a) + 1  # an array without rows is sent, too
        self.wait(self._comm.Ialltoall(counts, lengths), phase)
        arrays = {int(q): xp.empty((int(lengths[q]) - 1, *like.shape[1:]), like.dtype) for q in np.flatnonzero(lengths)}
        self.exchange(send, arrays, phase).finish()
        return arrays

    def message(self, a: Array) -> tuple[Array, bool]:
        """Return an array's bytes where MPI can read and write them, and whether these are a copy on the host."""
        if isinstance(a, np.ndarray) or self._aware:
            return a.reshape(-1).view(np.uint8), False
        import cupyx

        return cupyx.empty_pinned(a.nbytes, np.uint8), True

    def pieces(self, nbytes: int) -> list[slice]:
        """Return the slices into which a message is cut."""
        return [slice(first, min(first + self.longest, nbytes)) for first in range(0, nbytes, self.longest)]

    def wait(self, request: Any, action: str, test: Callable[[], bool] | None = None) -> None:
        """Wait for a request, or until all of a list are done; no longer than the time-out."""
        if not self.timeout:
            if test is None:
                request.Wait()
            else:
                MPI.Request.Waitall(request)
            return
        is_done, start, pause = test or request.Test, time.perf_counter(), PAUSE[0]
        while not is_done():
            if time.perf_counter() - start > self.timeout:
                stream = sys.__stderr__ or sys.stderr  # in commands only one rank speaks, except for this message
                stream.write(
                    f"parki: rank {self.rank} of {self.size} has waited {self.timeout:g} s (PARKI_MPI_TIMEOUT) in "
                    f"{action}: the job ends.\n"
                )
                stream.flush()
                self._comm.Abort(1)
            time.sleep(pause)
            pause = min(2 * pause, PAUSE[1])


class Messages:
    """Messages under way."""

    def __init__(
        self, comm: MpiComm, raw: MPI.Intracomm, send: Mapping[int, Array], receive: Mapping[int, Array], phase: str
    ) -> None:
        self._comm, self._phase, self._requests = comm, phase, []
        self._staged: list[tuple[Array, Array]] = []  # arrays of a GPU that come, and their bytes on the host
        if comm.rank in receive:
            receive[comm.rank][...] = send[comm.rank].reshape(receive[comm.rank].shape)
        sends = sorted(_others(comm, send), key=lambda item: (item[0] - comm.rank) % comm.size)  # not all to 0
        receipts = _others(comm, receive)
        outgoing, incoming = ([(q, a, *comm.message(a)) for q, a in entries] for entries in (sends, receipts))
        for _, a, data, is_copy in outgoing:
            if is_copy:
                a.reshape(-1).view(np.uint8).get(out=data, blocking=False)
        # Bytes to send must be ready, and received bytes must not overwrite memory that work under way still reads.
        _wait_for(a for _, a in sends + receipts)
        for source, a, data, is_copy in incoming:
            if is_copy:
                self._staged.append((a, data))
            for piece in comm.pieces(a.nbytes):
                self._requests.append(raw.Irecv([data[piece], MPI.BYTE], source))
        for target, a, data, _ in outgoing:
            for piece in comm.pieces(a.nbytes):
                self._requests.append(raw.Isend([data[piece], MPI.BYTE], target))
        self._kept = [data for _, _, data, _ in outgoing + incoming]

    def test(self) -> bool:
        """Let messages progress, and tell whether all have come and gone."""
        return MPI.Request.Testall(self._requests)

    def finish(self) -> None:
        """Wait until all messages have come and gone."""
        if self._requests:
            self._comm.wait(self._requests, self._phase, self.test)
        for a, data in self._staged:
            a.reshape(-1).view(np.uint8).set(data)
        _wait_for(a for a, _ in self._staged)  # memory that is copied from may be reused afterwards
        self._requests, self._kept, self._staged = [], [], []


def _others(comm: MpiComm, arrays: Mapping[int, Array]) -> list[tuple[int, Array]]:
    """Return the arrays with bytes that go to, or come from, other ranks."""
    return [(q, a) for q, a in arrays.items() if q != comm.rank and a.nbytes]


def _wait_for(arrays: Iterable[Array]) -> None:
    """Wait for earlier work on a GPU, if arrays lie on one."""
    array = next((a for a in arrays if not isinstance(a, np.ndarray)), None)
    if array is not None:
        module_of(array).cuda.get_current_stream().synchronize()
