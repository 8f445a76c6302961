"""Launches that are the same every time, as one CUDA graph: recorded once, then asked for in one go.

It has run on a stand-in for CuPy only: no graph has been recorded on a GPU yet.
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

ROOM = 4  # runs at most until all temporary arrays fit what has been allocated


class Replay:
    """The same launches again and again: as ever at first, recorded the second time, from then on one graph.

    They must use the same arrays every time and go to CuPy's current stream, or to streams that fork from it and join
    it by events; and neither wait for the device nor read from it.  The graph keeps the memory of arrays that come and
    go between them; who gives the launches keeps everything else that they use.  The device is the current one.
    """

    def __init__(self) -> None:
        self._ran, self._graph, self._pool = False, None, None
        self._release: weakref.finalize | None = None  # there from the second time on

    @property
    def nbytes(self) -> int:
        """Bytes that the graph keeps for temporary arrays."""
        return 0 if self._pool is None else self._pool.total_bytes()

    def run(self, launches: Callable[[], None]) -> None:
        """Launch, in the order of CuPy's current stream.

        If the driver refuses to record, a warning says why (logger ``parki.engine``), and this and all later times go
        on as the first.
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
        # CuPy's pools keep their blocks also when nothing refers to them any more.
        self._release = weakref.finalize(self, _free, cuda.Device(), pool)
        self._release.atexit = False
        try:
            stream = cuda.Stream(non_blocking=True)  # the default one cannot be recorded
            with cuda.using_allocator(pool.malloc):
                _settle(stream, pool, launches)
                graph = _recorded(stream, launches)
            graph.upload()
        except (RuntimeError, MemoryError) as failed:  # CuPy's own are of these kinds
            log.warning("no CUDA graph could be recorded, so that launches go on one by one: %s", failed)
        else:
            self._graph, self._pool = graph, pool
        finally:
            if self._graph is None:
                self._release()


def _free(device: Any, pool: Any) -> None:
    with device:  # which is waited for before its memory is freed
        pool.free_all_blocks()


def _settle(stream: Any, pool: Any, launches: Callable[[], None]) -> None:
    """Launch in the stream until that allocates nothing more; what is launched later waits for it."""
    here, held = devices.cupy().cuda.get_current_stream(), -1
    stream.wait_event(here.record())
    try:
        with stream:
            for _ in range(ROOM):
                if pool.total_bytes() == held:
                    break
                held = pool.total_bytes()
                launches()
    finally:
        here.wait_event(stream.record())


def _recorded(stream: Any, launches: Callable[[], None]) -> Any:
    """The graph of what is launched in the stream.

    Meanwhile other threads may allocate and free memory, this one must not: no garbage is collected either.
    """
    mode, collects = devices.cupy().cuda.runtime.streamCaptureModeThreadLocal, gc.isenabled()
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
        if collects:
            gc.enable()
