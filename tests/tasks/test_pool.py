"""Executor: order, workers, failures, interrupts, several jobs, forks."""

import os
import threading
import time

import numpy as np
import pytest

from parki.tasks import pool
from tests.tasks import graphs, jobs
from tests.tasks.jobs import job


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


@pytest.mark.usefixtures("interruptible")
@pytest.mark.skipif(jobs.NO_USLEEP, reason="this system has no usleep")
@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_ends_the_run_and_the_next_one_is_whole(threads):
    jobs.check_interrupt(pool.GraphRun, threads, after=0.1)


def test_two_jobs_share_the_pool():
    done = [[], []]
    two = [job([[]] * 50, [[]] * 50, lambda task, k=k: (done[k].append(task), time.sleep(0.001)), 3) for k in (0, 1)]
    callers = [threading.Thread(target=one.run) for one in two]
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
