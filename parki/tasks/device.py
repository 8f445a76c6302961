"""Tasks on a device: its own arrays, copies of the rows that tasks read, and launches of their calls.

The host always holds the last version of every datum that other units touch: results of a device are copied to the host
when their tasks end.  The device keeps its copies, and for each copy the number of the task that wrote the version: a
read needs the version of the last writer before it in the order of the list.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import groupby
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from parki.engine import Prepared, Space, compile_for, devices
from parki.engine.steps import Launch, Memory, Step, StepList
from parki.tasks.cut import JOIN, CutSteps, Regions

NOTHING = -2  # version number of a missing copy; −1 is the host's version at the beginning


class DeviceTasks:
    """Tasks of a list of steps on one device.

    Parameters
    ----------
    steps : StepList
    cut : CutSteps
    here, away : array (tasks,) of bool
        Tasks that only the host may run, and those that only this device may run.
    space : Space
        A device, or the simulator, which begins each run with arrays of NaN.
    index : int
        Number of the device among those of its kind.
    home : Memory
        The arrays of the host.

    Attributes
    ----------
    name : str
        Name, such as "Cuda 0".
    copied, returned : int
        Bytes copied to the device, and from the device, in the last run.
    """

    def __init__(
        self, steps: StepList, cut: CutSteps, host_tasks: NDArray[np.bool_], device_tasks: NDArray[np.bool_],
        space: Space, index: int, home: Memory,
    ) -> None:  # fmt: skip
        self.space, self.name = space, f"{space.name} {index}"
        self._cut, self._graph = cut, cut.graph
        step_is_here = np.zeros(len(steps), bool)
        step_is_here[cut.step[np.repeat(host_tasks, np.diff(cut.begin))]] = True
        self._stream = devices.OwnStream(space.name, index) if space.own_memory else None
        self._require(steps, index)
        with self.current():
            compile_for(steps.units(), space)
            self._memory = Memory(space, 1)
            self._memory.allocate([a for a in steps.handles if a.role in ("state", "scratch", "constant")])
            self._ready: list[Prepared | None] = [
                None if is_host else Launch(step, space, self._memory).ready[0]
                for step, is_host in zip(steps, step_is_here, strict=True)
            ]
            self._link = _links(space)(cut.regions, home, self._memory)
        graph = cut.graph
        self._have = np.empty(len(graph.nbytes), np.int64)
        self._joins = {k for k, name in enumerate(graph.kinds) if name == JOIN}
        self._stays = np.ones(len(graph.nbytes), bool)  # data that no other unit touches
        for lists in (graph.reads, graph.writes):
            self._stays[lists.values[~device_tasks[lists.owner]]] = False
        self.copied = self.returned = 0

    def _require(self, steps: StepList, index: int) -> None:
        """Raise MemoryError if the arrays take more memory than the device has free."""
        nbytes = steps.nbytes()
        room = devices.free_bytes(devices.find(self.space.name)[index]) if self.space.own_memory else nbytes
        if nbytes > room:
            raise MemoryError(f"{self.name} has {room:,} bytes free; the arrays of the sum take {nbytes:,}.")

    @property
    def arrays(self) -> list[Any]:
        """Arrays of the device."""
        return [*self._memory.arrays, *(a for call in self._ready if call is not None for a in call.own)]

    def current(self) -> AbstractContextManager[None]:
        """Return the context in which a thread works on the device."""
        return nullcontext() if self._stream is None else self._stream.work()

    def begin(self) -> None:
        """Forget all copies."""
        self._have[:] = NOTHING
        self.copied = self.returned = 0
        if self.space.checks_accesses:
            for a in self._link.arrays:
                if a.dtype.kind == "f":
                    a[...] = np.nan

    def start(self, tasks: Sequence[int]) -> Any:
        """Copy the data of ready tasks, and launch the tasks; return an event that `finish` waits for.

        Parameters
        ----------
        tasks : sequence of int
            Tasks of one kind.
        """
        graph, outputs = self._graph, []
        for task in tasks:
            self._fetch(task)
            outputs.append(graph.writes[task])
        for step, first, count in self._ranges(tasks):
            self._ready[step].part(first, count).run()
        for task, data in zip(tasks, outputs, strict=True):
            self._have[data] = task
            for datum in data[~self._stays[data]].tolist():
                self.returned += self._link.home(datum)
        return self._link.event()

    def finish(self, event: Any) -> None:
        """Wait until the results of tasks have reached the host."""
        self._link.wait(event)

    def _fetch(self, task: int) -> None:
        """Copy the data that a task reads, unless the device has the needed version."""
        graph, begin = self._graph, self._graph.reads.begin
        part = slice(begin[task], begin[task + 1])
        data, versions = graph.reads.values[part], graph.versions[part]
        for datum, version in zip(data.tolist(), versions.tolist(), strict=True):
            if self._have[datum] != version:
                if not self._joined(version):
                    self.copied += self._link.fetch(datum)
                self._have[datum] = version

    def _joined(self, task: int) -> bool:
        """Return whether a join wrote a version, and the device has all blocks that the join reads."""
        graph, begin = self._graph, self._graph.reads.begin
        if task < 0 or int(graph.kind[task]) not in self._joins:
            return False
        part = slice(begin[task], begin[task + 1])
        return part.stop > part.start and np.array_equal(self._have[graph.reads.values[part]], graph.versions[part])

    def _ranges(self, tasks: Sequence[int]) -> list[tuple[int, int, int]]:
        """Return the ranges of steps of tasks, with adjacent ranges of a step merged."""
        cut = self._cut
        calls = [range(cut.begin[task], cut.begin[task + 1]) for task in tasks]
        ranges = [
            [(int(cut.step[c]), int(cut.first[c]), int(cut.count[c])) for c in task_calls] for task_calls in calls
        ]
        if any(len(task_ranges) != 1 for task_ranges in ranges):
            return [item for task_ranges in ranges for item in task_ranges]
        result: list[tuple[int, int, int]] = []
        for step, group in groupby(sorted(item for (item,) in ranges), key=lambda item: item[0]):
            for _, first, count in group:
                if result and result[-1][0] == step and result[-1][1] + result[-1][2] == first:
                    result[-1] = (step, result[-1][1], result[-1][2] + count)
                else:
                    result.append((step, first, count))
        return result


def host_only(steps: Sequence[Step], cut: CutSteps) -> NDArray[np.bool_]:
    """Return which tasks only a host may run, because they touch arrays of the caller or join blocks."""
    bound = np.array([any(a.whole.role in ("argument", "result") for a in step.handles.values()) for step in steps])
    first = cut.step[np.minimum(cut.begin[:-1], len(cut.step) - 1)]
    return bound[first] | (np.diff(cut.begin) == 0)


class _SameMemory:
    """Copies between arrays of NumPy."""

    def __init__(self, regions: Regions, home: Memory, device_memory: Memory) -> None:
        self._regions = regions
        self._home = [_flat(home.of(a)) for a in regions.arrays]
        self.arrays = [device_memory.of(a) for a in regions.arrays]
        self._there = [_flat(a) for a in self.arrays]

    def fetch(self, datum: int) -> int:
        """Copy a datum to the device; return its bytes."""
        return self._copy(datum, self._home, self._there)

    def home(self, datum: int) -> int:
        """Copy a datum from the device; return its bytes."""
        return self._copy(datum, self._there, self._home)

    def event(self) -> None:
        """Return None as the event, because copies are synchronous."""

    def wait(self, event: None) -> None:
        """Return at once, because copies are synchronous."""

    def _copy(self, datum: int, source: list[NDArray[np.uint8]], target: list[NDArray[np.uint8]]) -> int:
        r = self._regions
        array, shape, pitch = r.array[datum], (r.rows[datum], r.width[datum]), r.pitch[datum]
        first = r.first[datum]
        target_bytes, source_bytes = (as_strided(a[array][first:], shape, (pitch, 1)) for a in (target, source))
        target_bytes[...] = source_bytes
        return int(shape[0] * shape[1])


class _OwnMemory:
    """Copies between arrays of NumPy and of CuPy, in the order of the current stream."""

    def __init__(self, regions: Regions, home: Memory, device_memory: Memory) -> None:
        self._regions, self._cuda = regions, devices.cupy().cuda
        self.arrays = [device_memory.of(a) for a in regions.arrays]
        self._kept = [home.of(a) for a in regions.arrays]
        self._home = [a.ctypes.data for a in self._kept]
        self._there = [a.data.ptr for a in self.arrays]

    def fetch(self, datum: int) -> int:
        """Begin to copy a datum to the device; return its bytes."""
        return self._copy(datum, self._there, self._home, self._cuda.runtime.memcpyHostToDevice)

    def home(self, datum: int) -> int:
        """Begin to copy a datum from the device; return its bytes."""
        return self._copy(datum, self._home, self._there, self._cuda.runtime.memcpyDeviceToHost)

    def event(self) -> Any:
        """Return an event after all work begun so far."""
        event = self._cuda.Event(block=True, disable_timing=True)  # block=True: a waiting thread frees its core
        event.record()
        return event

    def wait(self, event: Any) -> None:
        """Wait for an event."""
        event.synchronize()

    def _copy(self, datum: int, target: list[int], source: list[int], way: int) -> int:
        r, stream = self._regions, self._cuda.get_current_stream().ptr
        array, first = int(r.array[datum]), int(r.first[datum])
        rows, width, pitch = int(r.rows[datum]), int(r.width[datum]), int(r.pitch[datum])
        if rows * width:
            self._cuda.runtime.memcpy2DAsync(
                target[array] + first, pitch, source[array] + first, pitch, width, rows, way, stream
            )
        return rows * width


def _links(space: Space) -> type[_SameMemory] | type[_OwnMemory]:
    return _OwnMemory if space.own_memory else _SameMemory


def _flat(a: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the bytes of an array without gaps."""
    return a.reshape(-1).view(np.uint8)
