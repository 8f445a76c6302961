"""The executor of graphs of tasks on a host: C++ with threads of its own, compiled on first use as kernels are."""

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki.engine import spaces
from parki.engine.runtime import build, loading
from parki.engine.runtime.compiler import target
from parki.engine.settled import once
from parki.tasks.graph import Graph, IntLists

HEADER = "pk_tasks.h"
SLICE = 50  # milliseconds after which the caller's thread looks for an interrupt
LINE = 64  # bytes of a cache line

_ADDRESSES = (
    "call_begin run args patch_begin patches fault after_begin after waits turn worker began ended rooms".split()
)


class _PoolJob(ctypes.Structure):
    """``struct pk_job`` of the header."""

    _fields_ = (
        [(name, ctypes.c_int32) for name in ("tasks", "threads", "in_order", "may_fault")]
        + [(name, ctypes.c_void_p) for name in _ADDRESSES]
        + [("room_bytes", ctypes.c_int64), ("now", ctypes.c_int64)]
        + [("failed", ctypes.c_int32), ("done", ctypes.c_int32), ("state", ctypes.c_void_p)]
    )


@once
def _entries() -> ctypes.CDLL:
    """Return the compiled executor."""
    unit = build.Unit("tasks", "tasks", f'#include "{HEADER}"\n', (HEADER,), target(), ("-pthread",))
    opened = loading.load(build.build(unit))
    for name in ("pk_tasks_begin", "pk_tasks_stop", "pk_tasks_end"):
        entry = getattr(opened, name)
        entry.argtypes, entry.restype = [ctypes.c_void_p], None
    opened.pk_tasks_help.argtypes = [ctypes.c_void_p, ctypes.c_int32]
    return opened


@dataclass(frozen=True, eq=False)
class Calls:
    """Calls of kernels that tasks are made of.

    Attributes
    ----------
    begin : array (tasks + 1,) of int32
        Of each task among the calls.
    run, args : array (calls,) of uint64
        Addresses of entry points and of argument structures.
    patches : IntLists
        Of each call the rows of `pointers`.
    pointers : array (patches, 2) of int64
        Offset of a pointer in an argument structure, and offset of its bytes in the room of the worker.
    fault : array (calls,) of uint64
        Addresses of records of four numbers, which are 0 as long as nothing has failed.
    room : int
        Bytes of the room of a worker.
    """

    begin: NDArray[np.int32]
    run: NDArray[np.uint64]
    args: NDArray[np.uint64]
    patches: IntLists
    pointers: NDArray[np.int64]
    fault: NDArray[np.uint64]
    room: int


@dataclass(frozen=True, eq=False)
class Record:
    """The times of the tasks of a run.

    Attributes
    ----------
    worker : array (tasks,) of int32
    began, ended : array (tasks,) of float64
        Seconds after the beginning of the run.
    """

    worker: NDArray[np.int32]
    began: NDArray[np.float64]
    ended: NDArray[np.float64]


class GraphRun:
    """A graph of tasks with their calls, which may be run again and again.

    Parameters
    ----------
    graph : Graph
    calls : Calls
    threads : int
        Workers; the caller's thread is one of them.
    turn : array (tasks,), optional
        Among ready tasks the one with the least number comes first; by default the first that became ready.
    may_fault : bool
        Whether calls leave records of faults.
    """

    def __init__(
        self, graph: Graph, calls: Calls, threads: int, turn: NDArray[np.int32] | None = None, *,
        may_fault: bool = False,
    ) -> None:  # fmt: skip
        self.graph, self.calls, self.threads = graph, calls, threads
        n, before, after = len(graph), graph.before, graph.after
        self._waits = np.diff(before.begin).astype(np.int32)
        self._room = np.zeros(calls.room * threads + LINE, np.uint8)
        start = self._room.ctypes.data
        self._arrays: dict[str, NDArray[Any]] = {
            "call_begin": calls.begin, "run": calls.run, "args": calls.args, "patch_begin": calls.patches.begin,
            "patches": calls.pointers[calls.patches.values], "fault": calls.fault, "after_begin": after.begin,
            "after": after.values, "waits": self._waits.copy(),
            "turn": np.zeros(n, np.int32) if turn is None else np.ascontiguousarray(turn, np.int32),
            "worker": np.zeros(n, np.int32), "began": np.zeros(n, np.int64), "ended": np.zeros(n, np.int64),
        }  # fmt: skip
        self._job = _PoolJob(
            tasks=n, threads=threads, in_order=turn is None, may_fault=may_fault, room_bytes=calls.room
        )
        for name, a in self._arrays.items():
            setattr(self._job, name, a.ctypes.data)
        self._job.rooms = start + -start % LINE

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """Return the arrays that the job keeps."""
        return [*self._arrays.values(), self._room]

    def run(self) -> int | None:
        """Run all tasks.

        Returns
        -------
        int or None
            The number of the first call that has failed, None if none has.

        Raises
        ------
        KeyboardInterrupt
            When tasks that run have ended; none begins after an interrupt.
        """
        self._run()
        return None if self._job.failed < 0 else self._job.failed

    def _run(self) -> None:
        entries, job = _entries(), self._job
        self._arrays["waits"][:] = self._waits
        job.threads = 1 if spaces.forked() else self.threads
        address = ctypes.addressof(job)
        entries.pk_tasks_begin(address)
        try:
            while not entries.pk_tasks_help(address, SLICE):
                pass
        finally:
            entries.pk_tasks_stop(address)
            entries.pk_tasks_end(address)

    @property
    def done(self) -> int:
        """Return how many tasks of the last run have ended."""
        return int(self._job.done)

    def reorder(self, turn: NDArray[np.int32]) -> None:
        """Take another order of ready tasks, for the next runs."""
        self._arrays["turn"][:] = turn

    def expect(self, seconds: NDArray[np.float64]) -> None:
        """Take the seconds that tasks are expected to last; this executor goes by their order alone."""

    def task_of(self, call: int) -> int:
        """Return the task that a call belongs to."""
        return int(np.searchsorted(self.calls.begin, call, side="right")) - 1

    def record(self) -> Record:
        """Return the times of the last run."""
        a, now = self._arrays, self._job.now
        return Record(a["worker"].copy(), (a["began"] - now) * 1e-9, (a["ended"] - now) * 1e-9)


def pool_threads() -> int:
    """Return the number of threads of the pool."""
    return int(_entries().pk_tasks_threads())
