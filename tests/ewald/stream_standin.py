"""CuPy's streams, graphs and memory pools for the stand-in: operations on a recorded stream wait for a launch.

A graph runs them with the memory of the recording, even if a pool has given that memory to others meanwhile.
"""

import contextlib
from collections import Counter

import numpy as np

counts = Counter()


class CUDARuntimeError(RuntimeError):
    pass


class Event:
    def __init__(self, of, graph):
        self.of, self.graph = of, graph


class Graph:
    """Recorded operations, to be run again with the memory of the recording."""

    def __init__(self, origin):
        self.operations, self.blocks, self.origin, self.forked, self.valid = [], [], origin, set(), True

    def upload(self):
        Stream.told.append(("upload", get_current_stream().ptr))

    def launch(self):
        assert recording() is None
        assert not any(block is gone for block in self.blocks for gone in freed)
        Stream.told.append(("launch", get_current_stream().ptr))
        for operation in self.operations:
            operation()


class Stream:
    """A stream; `told` lists the requests to all streams, in order, `recorded` the graph that each adds to."""

    told, current, recorded = [], [], {}

    def __init__(self, null=False, non_blocking=False):
        self.ptr = id(self) if non_blocking else 0

    def synchronize(self):
        unrecorded()
        counts["wait"] += 1

    def record(self):
        self.told.append(("record", self.ptr))
        return Event(self.ptr, self.recorded.get(self.ptr))

    def wait_event(self, event):
        self.told.append(("wait", self.ptr, event.of))
        if event.graph is not None and self.ptr != event.graph.origin:
            self.recorded[self.ptr] = event.graph
            event.graph.forked.add(self.ptr)
        elif event.graph is not None:
            event.graph.forked.discard(event.of)

    def begin_capture(self, mode):
        assert (self.ptr != 0, mode) == (True, "thread")
        self.told.append(("begin", self.ptr))
        self.recorded[self.ptr] = Graph(self.ptr)

    def end_capture(self):
        self.told.append(("end", self.ptr))
        found = self.recorded[self.ptr]
        for ptr in [ptr for ptr, graph in self.recorded.items() if graph is found]:
            del self.recorded[ptr]
        if found.forked or not found.valid:
            raise CUDARuntimeError(f"cudaErrorStreamCapture{'Unjoined' if found.valid else 'Invalidated'}")
        return found

    def __enter__(self):
        self.current.append(self)

    def __exit__(self, *_):
        self.current.pop()


def get_current_stream():
    return Stream.current[-1] if Stream.current else Stream()


def recording():
    return Stream.recorded.get(get_current_stream().ptr)


def unrecorded():
    """Raise while a stream is recorded, for operations that no stream can record; else run waiting operations."""
    if (graph := recording()) is not None:
        graph.valid = False
        raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported")
    while waiting:
        waiting.pop(0)()


def later(operation, blocking=False):
    """Run an operation before the next one that is not recorded, or at once if it is `blocking`."""
    waiting.append(operation)
    if blocking:
        unrecorded()


def perform(operation):
    if (graph := recording()) is None:
        unrecorded()
        operation()
    else:
        graph.operations.append(operation)


class Block:
    """Memory of a pool, which takes it back when the last array in it is gone."""

    def __init__(self, pool, held):
        self.pool, self.held, self.__array_interface__ = pool, held, held.__array_interface__

    def __del__(self):
        self.pool.idle.append(self.held)


class MemoryPool:
    """Pool that gives the smallest block that fits; freed memory is kept in `freed`, and no graph may use it."""

    def __init__(self):
        self.idle, self.total = [], 0

    def malloc(self, size):
        fitting = sorted((held.nbytes, i) for i, held in enumerate(self.idle) if held.nbytes >= size)
        if fitting:
            return Block(self, self.idle.pop(fitting[0][1]))
        unrecorded()  # a pool that grows takes memory from the device
        self.total += size
        return Block(self, np.full(size, 0xFF, np.uint8))

    def total_bytes(self):
        return self.total

    def free_all_blocks(self):
        self.total -= sum(held.nbytes for held in self.idle)
        freed.extend(self.idle)
        self.idle.clear()


allocators, freed, waiting = [], [], []


class PinnedBlock(Block):
    """Pinned host memory that is overwritten as soon as the array in it is gone, as by a next owner."""

    def __init__(self, size):
        super().__init__(None, np.full(size, 0xFF, np.uint8))

    def __del__(self):
        self.held.fill(0xFF)


def empty_pinned(size, dtype):
    return np.asarray(PinnedBlock(size * np.dtype(dtype).itemsize)).view(dtype)


@contextlib.contextmanager
def using_allocator(malloc):
    allocators.append(malloc)
    try:
        yield
    finally:
        allocators.pop()


def lasting(a):
    """Return a view that does not keep a pool's block in use: recorded operations do not keep it, either."""
    base = a
    while isinstance(base, np.ndarray):
        base = base.base
    if not isinstance(base, Block):
        return a
    if (graph := recording()) is not None:
        graph.blocks.append(base.held)
    return np.ndarray(a.shape, a.dtype, base.held, a.ctypes.data - base.held.ctypes.data, a.strides)
