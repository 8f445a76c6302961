"""The executor: order, workers, failures, interrupts, several jobs, forks."""

import _thread
import ctypes
import os
import threading
import time

import numpy as np
import pytest

from parki.tasks import pool
from parki.tasks.graph import IntLists
from tests.tasks import graphs

LIBRARY = ctypes.CDLL(None)
FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def no_patches(calls):
    """Return the patches and pointers of calls that need no room."""
    return IntLists(np.zeros(calls + 1, np.int32), np.zeros(0, np.int32)), np.zeros((0, 2), np.int64)


def addresses(some):
    """Return the addresses of entry points."""
    return np.array([ctypes.cast(one, ctypes.c_void_p).value for one in some], np.uint64)


def job(reads, writes, action, threads, turn=None, run=pool.GraphRun):
    """Return a job whose tasks call ``action(task)``, and what must be kept for it."""
    return of_graph(graphs.graph(reads, writes), action, threads, turn, run)


def of_graph(made, action, threads, turn=None, run=pool.GraphRun):
    """Return a job of a graph whose tasks call ``action(task)``, and what must be kept for it."""
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


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("in_order", [True, False])
def test_every_task_runs_once_after_all_that_it_waits_for(threads, in_order, rng):
    reads, writes = graphs.drawn(rng, 200, 40)
    ended, before = [], graphs.by_hand(reads, writes)
    turn = None if in_order else rng.permutation(200).astype(np.int32)
    one = job(reads, writes, ended.append, threads, turn)
    for _ in range(5):
        ended.clear()
        assert one.run() is None
        assert sorted(ended) == list(range(200))
        record = one.record()
        assert set(record.worker.tolist()) <= set(range(threads))
        assert (record.began <= record.ended).all()
        assert all(record.ended[other] <= record.began[task] for task, some in enumerate(before) for other in some)
        for worker in range(threads):
            mine = np.flatnonzero(record.worker == worker)
            mine = mine[np.argsort(record.began[mine])]
            assert (record.ended[mine[:-1]] <= record.began[mine[1:]]).all()


def test_one_worker_takes_the_least_turn_among_ready_tasks():
    ended = []
    # 0 frees 1 and 2; 3 is free
    one = job([[], [0], [0], []], [[0], [], [], []], ended.append, 1, np.array([1, 3, 2, 0], np.int32))
    assert one.run() is None
    assert ended == [3, 0, 2, 1]
    one.reorder(np.array([0, 1, 2, 3], np.int32))
    assert one.run() is None
    assert ended[4:] == [0, 1, 2, 3]
    assert (one.record().worker == 0).all()


def test_one_worker_starts_no_thread():
    before = pool.pool_threads()
    assert job([[]] * 9, [[]] * 9, lambda task: None, 1).run() is None
    assert pool.pool_threads() <= before


def test_workers_share_tasks_that_last():
    one = job([[]] * 8, [[]] * 8, lambda task: time.sleep(0.02), 4)
    assert one.run() is None
    assert len(set(one.record().worker.tolist())) > 1


@pytest.mark.parametrize("threads", [1, 3])
def test_a_fault_stops_all_and_is_told(threads):
    chain = [[k - 1] if k else [] for k in range(20)], [[k] for k in range(20)]
    ran = []

    def action(task):
        ran.append(task)
        if task == 7 and not one.kept[2][7, 0]:
            one.kept[2][7] = 1, 2, 3, 4

    one = job(*chain, action, threads)
    assert one.run() == 7
    assert ran == list(range(8))
    assert one.task_of(7) == 7
    one.kept[2][:] = 0
    ran.clear()
    one.kept[2][7, 0] = 0
    ok = job(*chain, ran.append, threads)
    assert ok.run() is None
    assert ran == list(range(20))


@pytest.mark.skipif(not hasattr(LIBRARY, "usleep"), reason="this system has no usleep")
@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_ends_the_run_and_the_next_one_is_whole(threads):
    n, each = 60, 20_000  # tasks, and microseconds of each: code that knows nothing of Python
    patches, pointers = no_patches(n)
    calls = pool.Calls(
        np.arange(n + 1, dtype=np.int32), np.full(n, addresses([LIBRARY.usleep])[0], np.uint64),
        np.full(n, each, np.uint64), patches, pointers, np.zeros(n, np.uint64), 0,
    )  # fmt: skip
    one = pool.GraphRun(graphs.graph([[]] * n, [[]] * n), calls, threads)
    timer = threading.Timer(0.1, _thread.interrupt_main)
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        one.run()
    assert time.monotonic() - began < 0.8 * n * each * 1e-6 / threads
    timer.join()
    assert 0 < one.done < n
    assert one.run() is None
    assert one.done == n


def test_two_jobs_share_the_pool():
    done = [[], []]
    jobs = [job([[]] * 50, [[]] * 50, lambda task, k=k: (done[k].append(task), time.sleep(0.001)), 3) for k in (0, 1)]
    callers = [threading.Thread(target=one.run) for one in jobs]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(timeout=60)
    assert [sorted(some) for some in done] == [list(range(50))] * 2
    assert pool.pool_threads() <= 4


def test_threads_without_work_end():
    assert job([[]] * 8, [[]] * 8, lambda task: time.sleep(0.01), 3).run() is None
    until = time.monotonic() + 20
    while pool.pool_threads() and time.monotonic() < until:
        time.sleep(0.05)
    assert pool.pool_threads() == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_the_child_of_a_fork_runs_alone():
    one = job([[]] * 8, [[]] * 8, lambda task: time.sleep(0.005), 3)
    assert one.run() is None
    child = os.fork()
    if not child:
        os._exit(0 if one.run() is None and (one.record().worker == 0).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert one.run() is None
