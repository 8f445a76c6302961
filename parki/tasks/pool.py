"""Executor of graphs of tasks on a host: C++ with threads of its own, compiled on first use like kernels."""

import ctypes
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from parki.engine import loading, objects, spaces, target
from parki.tasks.graph import Graph, IntLists
from parki.tasks.sharing import Sharing

HEADERS = ("pk_tasks.h", "pk_ready.h")
SLICE = 50  # milliseconds after which the caller's thread checks for an interrupt
LINE = 64  # bytes of a cache line
MOST = 1024  # tasks, at most, in a batch of a device
AHEAD = 2  # batches that a device holds at once

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
        + [("sharing", ctypes.c_void_p)]
    )


@cache
def _entries() -> ctypes.CDLL:
    """Return the compiled executor, loaded once, because a look-up takes a millisecond."""
    unit = objects.Unit("tasks", "tasks", f'#include "{HEADERS[0]}"\n', HEADERS, target(), ("-pthread",))
    library = loading.load(objects.build(unit))
    for name in ("pk_tasks_begin", "pk_tasks_stop", "pk_tasks_end"):
        entry = getattr(library, name)
        entry.argtypes, entry.restype = [ctypes.c_void_p], None
    number, tasks = ctypes.c_int32, ctypes.POINTER(ctypes.c_int32)
    library.pk_tasks_help.argtypes = [ctypes.c_void_p, number]
    library.pk_tasks_take.argtypes = [ctypes.c_void_p, number, tasks, number, number]
    library.pk_tasks_gave.argtypes, library.pk_tasks_gave.restype = [ctypes.c_void_p, tasks, number, number], None
    return library


class DeviceUnit(Protocol):
    """A device that runs tasks, on a thread of its own.

    Attributes
    ----------
    name : str
    """

    name: str

    def current(self) -> AbstractContextManager[None]:
        """Return the context in which a thread works on the device."""

    def begin(self) -> None:
        """Forget the copies of earlier runs."""

    def start(self, tasks: Sequence[int]) -> Any:
        """Begin to run tasks; return an event for `finish`."""

    def finish(self, event: Any) -> None:
        """Wait for tasks that were begun, and for their results."""


class DeviceFailure(NamedTuple):
    """Error of a device, and the tasks that raised it: none if the device failed before its first task."""

    error: BaseException
    device: str
    tasks: list[int]


@dataclass(frozen=True, eq=False)
class Calls:
    """Calls of kernels that make up the tasks.

    Attributes
    ----------
    begin : array (tasks + 1,) of int32
        First call of each task.
    run, args : array (calls,) of uint64
        Addresses of entry points and of argument structures.
    patches : IntLists
        Rows of `pointers` for each call.
    pointers : array (patches, 2) of int64
        Offset of a pointer in an argument structure, and offset of its bytes in the room of the worker.
    fault : array (calls,) of uint64
        Addresses of records of four numbers, which are 0 unless the call has failed.
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
    """Times of the tasks of a run.

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
    """Graph of tasks with their calls, which may run any number of times.

    Parameters
    ----------
    graph : Graph
    calls : Calls
    threads : int
        Number of workers, including the caller's thread.
    turn : array (tasks,), optional
        Number of each task; the ready task with the least number comes first.  By default the task that became ready
        first.
    may_fault : bool
        True if calls may leave records of faults.
    sharing : Sharing, optional
        Rules by which cores and devices share the tasks, instead of `turn`.
    devices : sequence of DeviceUnit
        Devices of the sharing's node.
    """

    def __init__(
        self, graph: Graph, calls: Calls, threads: int, turn: NDArray[np.int32] | None = None, *,
        may_fault: bool = False, sharing: Sharing | None = None, devices: Sequence[DeviceUnit] = (),
    ) -> None:  # fmt: skip
        self.graph, self.calls, self.threads, self.devices = graph, calls, threads, devices
        self.failures: list[DeviceFailure] = []
        n, predecessors, successors = len(graph), graph.before, graph.after
        self._waits = np.diff(predecessors.begin).astype(np.int32)
        self._room = np.zeros(calls.room * threads + LINE, np.uint8)
        start = self._room.ctypes.data
        self._arrays: dict[str, NDArray[Any]] = {
            "call_begin": calls.begin, "run": calls.run, "args": calls.args, "patch_begin": calls.patches.begin,
            "patches": calls.pointers[calls.patches.values], "fault": calls.fault, "after_begin": successors.begin,
            "after": successors.values, "waits": self._waits.copy(),
            "turn": np.zeros(n, np.int32) if turn is None else np.ascontiguousarray(turn, np.int32),
            "worker": np.zeros(n, np.int32), "began": np.zeros(n, np.int64), "ended": np.zeros(n, np.int64),
        }  # fmt: skip
        self._job = _PoolJob(
            tasks=n, threads=threads, in_order=turn is None, may_fault=may_fault, room_bytes=calls.room
        )
        for name, a in self._arrays.items():
            setattr(self._job, name, a.ctypes.data)
        self._job.rooms = start + -start % LINE
        if sharing is not None:
            self.share(sharing)

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """Arrays that the job keeps."""
        return [*self._arrays.values(), self._room]

    def run(self) -> int | None:
        """Run all tasks.

        Returns
        -------
        int or None
            Number of the first failed call on a core, None if there is none; `failures` has the failures of devices.

        Raises
        ------
        KeyboardInterrupt
            After an interrupt, once running tasks have ended; no other task begins.
        """
        self._run()
        return None if self._job.failed < 0 else self._job.failed

    def _run(self) -> None:
        entries, job = _entries(), self._job
        self._arrays["waits"][:] = self._waits
        job.threads = 1 if spaces.forked() and not self.devices else self.threads
        address = ctypes.addressof(job)
        self.failures = []
        threads = [
            threading.Thread(target=self._serve, args=arguments, daemon=True) for arguments in enumerate(self.devices)
        ]
        entries.pk_tasks_begin(address)
        try:
            for thread in threads:
                thread.start()
            while not entries.pk_tasks_help(address, SLICE):
                pass
        finally:
            entries.pk_tasks_stop(address)
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
            entries.pk_tasks_end(address)

    def _serve(self, number: int, device: DeviceUnit) -> None:
        """Run tasks on a device until none is left or one has failed."""
        entries, address, launches = _entries(), ctypes.addressof(self._job), deque[tuple[list[int], Any]]()

        def give(tasks: list[int], *, good: bool) -> None:
            entries.pk_tasks_gave(address, (ctypes.c_int32 * len(tasks))(*tasks), len(tasks), good)

        tasks: list[int] = []
        try:
            with device.current():
                device.begin()
                room = (ctypes.c_int32 * MOST)()
                while True:
                    n = entries.pk_tasks_take(address, number, room, MOST, 0 if launches else SLICE)
                    tasks = room[: max(n, 0)]
                    if n > 0:
                        launches.append((tasks, device.start(tasks)))
                    if launches and (n <= 0 or len(launches) == AHEAD):
                        tasks, event = launches[0]
                        device.finish(event)
                        launches.popleft()
                        give(tasks, good=True)
                    elif n < 0:
                        return
        except BaseException as error:  # raised by the caller's thread
            self.failures.append(DeviceFailure(error, device.name, tasks))
            entries.pk_tasks_stop(address)
            for batch in dict.fromkeys([*(tuple(members) for members, _ in launches), tuple(tasks)]):
                if batch:
                    give(list(batch), good=False)

    @property
    def done(self) -> int:
        """Number of tasks of the last run that have ended."""
        return int(self._job.done)

    def share(self, sharing: Sharing) -> None:
        """Set the rules by which cores and devices share the tasks in the next runs."""
        self._sharing, self._record = sharing, sharing.record()
        self._job.sharing, self._job.in_order = ctypes.addressof(self._record), sharing.in_order
        self.reorder(sharing.turn)

    def reorder(self, turn: NDArray[np.int32]) -> None:
        """Set the order of ready tasks for the next runs."""
        self._arrays["turn"][:] = turn

    def expect(self, seconds: NDArray[np.float64]) -> None:
        """Accept the expected seconds of tasks; this executor ignores them and uses the order alone."""

    def task_of(self, call: int) -> int:
        """Return the task that a call belongs to."""
        return int(np.searchsorted(self.calls.begin, call, side="right")) - 1

    def record(self) -> Record:
        """Return the times of the last run."""
        a, start = self._arrays, self._job.now
        return Record(a["worker"].copy(), (a["began"] - start) * 1e-9, (a["ended"] - start) * 1e-9)


def pool_threads() -> int:
    """Return the number of threads of the pool."""
    return int(_entries().pk_tasks_threads())
