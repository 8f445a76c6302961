"""CUDA graphs of launches that are the same every time: recorded once, then launched as one.

The module has run on a stand-in for CuPy only: no graph has been recorded on a GPU yet.
"""

import contextlib
import gc
import logging
import weakref
from collections.abc import Callable
from typing import Any

from parki.engine import config
from parki.engine.run import devices

log = logging.getLogger(config.LOGGER)

ROOM = 4  # runs before recording, at most; they end when the pool has room for all temporary arrays


class Replay:
    """Repeated launches: one by one the first time, recorded the second time, one graph from then on.

    The launches must use the same arrays every time, and neither wait for the device nor read from it.  They go to
    CuPy's current stream, or to streams that fork from that stream and join it by events.  The graph keeps the memory
    of temporary arrays; the caller keeps all other memory that the launches use.  The device is the current one.
    """

    def __init__(self) -> None:
        self._ran, self._graph, self._pool = False, None, None
        self._release: weakref.finalize | None = None  # set from the second run on

    @property
    def nbytes(self) -> int:
        """Bytes that the graph keeps for temporary arrays."""
        return 0 if self._pool is None else self._pool.total_bytes()

    def run(self, launches: Callable[[], None]) -> None:
        """Launch, in the order of CuPy's current stream.

        If the driver refuses to record, a warning says why (logger ``parki.engine``), and this and all later runs
        launch one by one.
        """
        if self._ran and self._release is None:
            self._record(launches)
        if self._graph is not None:
            self._graph.launch()
        else:
            launches()
        self._ran = True

    def _record(self, launches: Callable[[], None]) -> None:
        cuda = devices.cupy().cuda
        pool = cuda.MemoryPool()
        # CuPy's pools keep their blocks even when nothing refers to the pools any more.
        self._release = weakref.finalize(self, _free, cuda.Device(), pool)
        self._release.atexit = False
        try:
            stream = cuda.Stream(non_blocking=True)  # the default one cannot be recorded
            with cuda.using_allocator(pool.malloc):
                _settle(stream, pool, launches)
                graph = _recorded(stream, launches)
            graph.upload()
        except (RuntimeError, MemoryError) as error:  # CuPy's own errors are of these kinds
            log.warning("no CUDA graph could be recorded, so that launches go on one by one: %s", error)
        else:
            self._graph, self._pool = graph, pool
        finally:
            if self._graph is None:
                self._release()


def _free(device: Any, pool: Any) -> None:
    with device:  # freeing its memory waits for the device
        pool.free_all_blocks()


def _settle(stream: Any, pool: Any, launches: Callable[[], None]) -> None:
    """Run the launches in the stream until its pool stops growing; the current stream then waits for them."""
    stream_outside, size = devices.cupy().cuda.get_current_stream(), -1
    stream.wait_event(stream_outside.record())
    try:
        with stream:
            for _ in range(ROOM):
                if pool.total_bytes() == size:
                    break
                size = pool.total_bytes()
                launches()
    finally:
        stream_outside.wait_event(stream.record())


def _recorded(stream: Any, launches: Callable[[], None]) -> Any:
    """Return the graph of the launches, recorded in the stream.

    Meanwhile other threads may allocate and free memory, but this one must not: garbage collection is off.
    """
    mode, collecting = devices.cupy().cuda.runtime.streamCaptureModeThreadLocal, gc.isenabled()
    gc.disable()
    try:
        with stream:
            stream.begin_capture(mode)
            try:
                launches()
            except BaseException:
                with contextlib.suppress(RuntimeError):
                    stream.end_capture()
                raise
            return stream.end_capture()
    finally:
        if collecting:
            gc.enable()
