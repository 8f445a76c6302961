"""Locks between processes, which only save work: without them several would compile the same object.

A lock is a file that holds the number of its process and the name of its host.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import filelock

from parki.engine import config
from parki.engine.compile import processes

WORD = 5.0  # seconds of waiting until a message, and until a lock that names no process counts as abandoned

log = logging.getLogger(config.LOGGER)


@contextlib.contextmanager
def held(marker: Path, stop: threading.Event, condition: Callable[[], object]) -> Iterator[None]:
    """Hold the lock `marker`, or no lock if another process has done the work or the disk knows no locks.

    A lock of a dead process of this machine is taken over at once (by filelock); a lock of another machine when it is
    older than `processes.limit`, or has been waited for that long, whatever its time says; an empty lock after `WORD`
    seconds.  Where the disk knows no locks the body runs without one.

    Parameters
    ----------
    marker : Path
        In a folder that is there.
    stop : threading.Event
        Ends the waiting.
    condition : callable
        Tells whether another process has done the work.

    Raises
    ------
    InterruptedError
        When `stop` is set.
    """
    lock = filelock.SoftFileLock(marker)  # an exclusively created file: works on network disks where flock does not
    start, pause, announced, limit = time.monotonic(), 0.01, False, processes.limit()
    while True:
        try:
            lock.acquire(blocking=False)
            break
        except filelock.Timeout:
            wait = time.monotonic() - start
            if condition():
                break
            if reason := _abandoned(marker, wait, limit):
                log.warning("%s %s: taken for abandoned", marker, reason)
                marker.unlink(missing_ok=True)
                continue
            if wait > WORD and not announced:
                announced = True
                log.warning(
                    "waiting for %s, which holds %s: Ctrl-C stops the waiting; remove that file if nobody compiles; "
                    "%s ends the waiting after %g s", _holder(marker), marker, config.COMPILE_TIMEOUT, limit,
                )  # fmt: skip
        except OSError as error:
            log.info("no lock for %s (%s): compiling without one", marker, error)
            break
        if stop.wait(pause):
            raise InterruptedError(f"given up waiting for {marker}")
        pause = min(2.0 * pause, 0.5)
    try:
        yield
    finally:
        lock.release()


def _abandoned(marker: Path, wait: float, limit: float) -> str:
    """Return the reason to take a lock for abandoned, "" if there is none."""
    try:
        status = marker.stat()
    except OSError:
        return ""
    if time.time() - status.st_mtime > limit:
        return f"is older than {limit:g} s"
    if wait > limit:
        return f"has been waited for {limit:g} s"
    return "names no process" if not status.st_size and wait > WORD else ""


def _holder(marker: Path) -> str:
    """Return the holder of a lock, in words."""
    with contextlib.suppress(OSError, ValueError):
        number, host = marker.read_text("utf-8").splitlines()[:2]
        return f"process {int(number)} of {host}"
    return "an unknown process"
