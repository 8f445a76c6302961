"""Workers: assignment of parts, their order, failures, and too few threads."""

import _thread
import threading
import time

import pytest

from parki.engine.steps import workers
from parki.timing import PhaseTimes


@pytest.mark.parametrize(
    ("threads", "nbytes", "size", "each"),
    [
        (1, 100, 1, 1), (2, 100, 2, 1), (8, 100, 8, 1), (9, 100, 4, 2), (16, 100, 8, 2), (64, 100, 8, 8), (64, 5, 5, 1),
        (4, 0, 1, 1), (4, 3, 3, 1),
    ],
)  # fmt: skip
def test_how_many_share_the_work(threads, nbytes, size, each, monkeypatch):
    monkeypatch.setattr(workers, "WORTH", 1)
    assert workers.share(threads, nbytes) == (size, each)


def test_stages_wait_for_each_other():
    done, lock = [], threading.Lock()

    def piece(stage):
        def run(worker, times):
            time.sleep(0.005)
            with lock:
                done.append((stage, worker))

        return run

    workers.run([[piece(0)] * 9, [], [piece(1)] * 2, [piece(2)] * 9], [None] * 4)
    assert [stage for stage, _ in done] == [0] * 9 + [1] * 2 + [2] * 9
    assert len({worker for _, worker in done}) > 1


def test_everyone_has_times_of_his_own():
    seen, met = set(), threading.Barrier(3, timeout=30)

    def piece(worker, times):
        met.wait()
        seen.add((worker, times))

    workers.run([[piece] * 3], ["a", "b", "c"])
    assert seen == {(0, "a"), (1, "b"), (2, "c")}


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("who", ["caller", "other"])
def test_a_failure_stops_all_and_reaches_the_caller(error, who):
    begun, met = [], threading.Barrier(2, timeout=30)

    def piece(worker, times):
        if len(begun) < 2:
            begun.append(worker)
            met.wait()
            if (worker == 0) is (who == "caller"):
                raise error("one of them")
            time.sleep(0.05)
        else:
            begun.append(worker)

    before = _thread._count()
    with pytest.raises(error, match="one of them"):
        workers.run([[piece] * 1000, [piece]], [None, None])
    assert len(begun) < 1000
    assert _thread._count() <= before + 1  # a thread that has opened its last lock may still be leaving


def test_without_more_threads_the_caller_does_it_all(monkeypatch):
    def refused(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", refused)
    done = []
    workers.run([[lambda worker, times: done.append(worker)] * 4] * 2, [None] * 3)
    assert done == [0] * 8


def test_times_of_workers_add_up_to_the_time_that_passed():
    def piece(name, seconds):
        def run(worker, times):
            with times.phase(name):
                time.sleep(seconds)

        return run

    times, seen = PhaseTimes({"one": "One", "two": "Two"}), []
    times.watch, began = seen.append, time.perf_counter()
    with times.members(2) as members:
        workers.run([[piece("one", 0.02)] * 4, [piece("two", 0.01)] * 4], members)
    passed = time.perf_counter() - began
    assert 0.06 <= times.total <= passed
    assert times.time["one"] == pytest.approx(2 * times.time["two"], rel=0.5)
    assert set(seen) == {"one", "two"}
    with pytest.raises(KeyError), times.members(2) as members:
        workers.run([[piece("three", 0.0)]], members)
