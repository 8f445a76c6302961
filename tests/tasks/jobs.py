"""Jobs of Python functions, and a run that is interrupted in the middle."""

import _thread
import ctypes
import threading
import time

import numpy as np
import pytest

from parki.tasks import pool
from parki.tasks.graph import IntLists
from tests.tasks import graphs

LIBRARY = ctypes.CDLL(None)
NO_USLEEP = not hasattr(LIBRARY, "usleep")
FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def no_patches(calls):
    """Return the patches and pointers of calls that need no room."""
    return IntLists(np.zeros(calls + 1, np.int32), np.zeros(0, np.int32)), np.zeros((0, 2), np.int64)


def addresses(some):
    """Return the addresses of entry points."""
    return np.array([ctypes.cast(one, ctypes.c_void_p).value for one in some], np.uint64)


def job(reads, writes, action, threads, turn=None, run=pool.GraphRun):
    """Return a job whose tasks call ``action(task)``, with the objects that it needs attached."""
    return of_graph(graphs.graph(reads, writes), action, threads, turn, run)


def of_graph(made, action, threads, turn=None, run=pool.GraphRun):
    """Return a job of a graph whose tasks call ``action(task)``, with the objects that it needs attached."""
    n = len(made)
    numbers = np.arange(n, dtype=np.int64)
    entry = FUNCTION(lambda address: action(ctypes.c_int64.from_address(address).value))
    fault = np.zeros((n, 4), np.int64)
    patches, pointers = no_patches(n)
    calls = pool.Calls(
        np.arange(n + 1, dtype=np.int32), np.full(n, addresses([entry])[0], np.uint64),
        (numbers.ctypes.data + 8 * np.arange(n)).astype(np.uint64), patches, pointers,
        (fault.ctypes.data + 32 * np.arange(n)).astype(np.uint64), 0,
    )  # fmt: skip
    one = run(made, calls, threads, turn, may_fault=True)
    one.kept = entry, numbers, fault
    return one


def check_interrupt(run, threads, after):
    """Assert that a run interrupted after `after` seconds ends early and that the next one is complete."""
    n, each = 60, 20_000  # tasks, and microseconds of each, in code that knows nothing of Python
    patches, pointers = no_patches(n)
    calls = pool.Calls(
        np.arange(n + 1, dtype=np.int32), np.full(n, addresses([LIBRARY.usleep])[0], np.uint64),
        np.full(n, each, np.uint64), patches, pointers, np.zeros(n, np.uint64), 0,
    )  # fmt: skip
    one = run(graphs.graph([[]] * n, [[]] * n), calls, threads)
    job(
        [[]], [[]], lambda task: None, threads, run=run
    ).run()  # the executor is compiled and loaded before the clock starts
    timer = threading.Timer(after, _thread.interrupt_main)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):  # covers the start: on a busy machine the timer may fire before `run`
        [step() for step in (timer.start, one.run)]
    assert time.monotonic() - began < 0.8 * n * each * 1e-6 / threads
    timer.join()
    assert 0 < one.done < n
    assert one.run() is None
    assert one.done == n
