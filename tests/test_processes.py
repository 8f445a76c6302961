"""Plans and their process: too many threads, forks during a call, interrupts."""

import os
import subprocess
import sys
import textwrap

import pytest

from parki import cli
from parki.engine import forks
from parki.engine.run import limits, spaces

HEAD = """
import os, signal, sys, threading, warnings
import numpy as np
import parki
from parki.engine.steps import workers
workers.WORTH = 1
warnings.simplefilter("ignore")
r = np.random.default_rng(3)
def made(method, n, **options):
    x, q = r.random((3, n)), r.normal(size=n)
    if method == "ewald":
        return parki.ewald.plan("laplace", x, x, box=(1, 1, 1), tolerance=1e-8, **options), q
    if method == "direct":
        return (lambda q: parki.direct.direct_sum("laplace", x, x, q)), q
    module = parki.treecode if method == "bldtt" else parki.fmm
    return module.plan("coulomb", x, x, tolerance=1e-6, **options), q
"""
METHODS = ("ewald", "bldtt", "kifmm")
forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


def script(text, *given):
    done = subprocess.run(
        [sys.executable, "-c", HEAD + textwrap.dedent(text), *given],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout.split()


# Threads --------------------------------------------------------------------------------------------------------------
def test_more_threads_than_there_may_be_are_refused(monkeypatch):
    most, why = limits.most_threads()
    assert spaces.Space("OpenMP", most).threads == most
    with pytest.raises(ValueError, match=rf"threads=100000: expected at most {most}, ") as caught:
        spaces.Space("OpenMP", 100000)
    assert why in str(caught.value)
    monkeypatch.setenv("OMP_NUM_THREADS", "99999")
    with pytest.raises(ValueError, match=rf"OMP_NUM_THREADS=99999: expected at most {most}, "):
        spaces.threads()


def test_the_command_refuses_them_too(capsys):
    given = ["--n", "10", "--no-picture", "--threads", "100000"]
    assert cli.main(["demo", *given]) == 2
    assert "threads=100000: expected at most" in capsys.readouterr().err


def test_the_system_may_allow_fewer(monkeypatch, tmp_path):
    (tmp_path / "threads-max").write_text("300\n")
    monkeypatch.setattr(limits, "Path", lambda name: tmp_path / name.rpartition("/")[2])
    limits.most_threads.cache_clear()
    try:
        assert limits.most_threads()[0] <= 300
        with pytest.raises(ValueError, match=r"threads=301: expected at most \d+, .*limit"):
            spaces.Space("OpenMP", 301)
    finally:
        limits.most_threads.cache_clear()


@pytest.mark.parametrize("way", ["option", "variable"])
@pytest.mark.parametrize("method", METHODS)
def test_a_process_that_asks_for_them_lives_on(method, way, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    text = """
    method, way = sys.argv[1:]
    if way == "variable":
        os.environ["OMP_NUM_THREADS"] = "99999"
    try:
        plan, q = made(method, 300, **({} if way == "variable" else {"threads": 100000}))
        plan(q)
    except ValueError as error:
        print(str(error).partition("=")[0])
    """
    assert script(text, method, way) == ["OMP_NUM_THREADS" if way == "variable" else "threads"]


# Forks ----------------------------------------------------------------------------------------------------------------
@forking
@pytest.mark.parametrize("method", METHODS)
def test_a_fork_during_a_call_of_another_thread_can_use_the_plan(method):
    text = """
    plan, q = made(sys.argv[1], 3000, threads=2)
    exact, inside, leave = plan(q), threading.Event(), threading.Event()
    def call():
        with plan._lock:  # as its calls do, for as long as this test wants
            inside.set()
            leave.wait()
            plan(q)
    threading.Thread(target=call, daemon=True).start()
    inside.wait()
    child = os.fork()
    if not child:
        signal.alarm(30)
        u = plan(q)
        os._exit(7 if np.abs(u - exact).max() <= 1e-11 * np.abs(exact).max() else 1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    leave.set()
    print(status, np.array_equal(plan(q), exact))
    """
    assert script(text, method) == ["7", "True"]


@forking
def test_locks_are_free_in_a_fork_unless_its_own_thread_holds_them():
    text = """
    from parki.engine import forks
    mine, others = forks.lock(), forks.lock()
    held = threading.Event()
    def hold():
        with others:
            held.set()
            threading.Event().wait()
    threading.Thread(target=hold, daemon=True).start()
    held.wait()
    with mine:
        child = os.fork()
        if not child:
            signal.alarm(30)
            with others, mine:
                pass
            taken = []
            other = threading.Thread(target=lambda: taken.append(mine.acquire(blocking=False)))
            other.start()
            other.join()
            os._exit(7 if taken == [False] else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), others.acquire(blocking=False))
    """
    assert script(text) == ["7", "False"]
    assert forks.lock().acquire(blocking=False)


# Interrupts -----------------------------------------------------------------------------------------------------------
@pytest.mark.skipif(sys.platform == "win32", reason="signals are others there")
@pytest.mark.parametrize("method", [*METHODS, "direct"])
def test_an_interrupt_ends_a_sum_and_the_plan_stays_usable(method):
    text = """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    plan, q = made(sys.argv[1], 20000)
    exact, times = plan(q), 0
    for k in range(6):
        sent = [0]
        def interrupt():
            os.kill(os.getpid(), signal.SIGINT)
            sent[0] = 1
        timer = threading.Timer(0.004 + 0.011 * k, interrupt)
        after = 0
        try:
            timer.start()  # inside: on a busy machine the interrupt can come before it returns
            while True:
                before = sent[0]
                plan(q)
                after += before
        except KeyboardInterrupt:
            times += 1
        timer.join()
        assert not after, after  # no call begins after the interrupt
        assert np.array_equal(plan(q), exact), k
    done = []
    other = threading.Thread(target=lambda: done.append(plan(q)), daemon=True)
    other.start()
    other.join(60)
    print(times, len(done))
    """
    assert script(text, method) == ["6", "1"]
