"""StarPU as an executor: results, order, failures, interrupts, other policies, and the state that it leaves."""

import os
import shutil
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import parki
from parki.engine.errors import LaunchError
from parki.tasks import starpu
from parki.tasks.graph import Graph
from parki.tasks.starpu import StarpuRun
from tests.tasks import graphs, jobs
from tests.tasks.jobs import job, of_graph

POLICIES = ("prio", "dmdas", "heteroprio", "lws", "eager")
CHAIN = [[k - 1] if k else [] for k in range(20)], [[k] for k in range(20)]


@pytest.fixture
def here():
    """Skip a test if StarPU is not installed; end StarPU after the test."""
    if starpu.installed() is None:
        pytest.skip(f"pkg-config finds neither {' nor '.join(starpu.PACKAGES)}: apt-get install libstarpu-dev")
    yield
    starpu.stop()


def workers(threads):
    """Return a number of workers that StarPU accepts, at most `threads`."""
    return min(threads, starpu._entries().pk_starpu_most_workers())


def points(name, rng, n=2500):
    """Return targets and sources."""
    x = rng.random((3, n))
    if name == "two clouds":
        return rng.random((3, n // 2)) + 0.7, x
    x = 0.5 + 0.01 * rng.standard_normal((3, n)) * np.exp(2 * rng.random(n))
    return x, x


def made(name, rng, schedule, threads=2):
    """Return a plan by phases, one by a schedule, and a density."""
    x, y = points(name, rng)
    given = {"tolerance": 1e-5, "leaf_size": 40, "threads": threads}
    phases, tasks = (parki.fmm.plan("coulomb", x, y, schedule=one, **given) for one in ("phases", schedule))
    return phases, tasks, rng.standard_normal(y.shape[1])


def script(text, **settings):
    """Return the output of a Python process that runs a text; assert that it has no errors."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STARPU_")} | settings
    command = [sys.executable, "-W", "error", "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


# Plans ----------------------------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("method", ["dual", "pc", "cp", "chebyshev"])
def test_bits_of_other_methods(method, rng):
    x, of = rng.random((3, 1500)), parki.fmm if method == "chebyshev" else parki.treecode
    size = {"order": 3} if method == "chebyshev" else {"degree": 3}
    phases, tasks = (
        of.plan("coulomb", x, x, method=method, schedule=schedule, threads=2, leaf_size=40, **size)
        for schedule in ("phases", "starpu")
    )
    q = rng.standard_normal(1500)
    for _ in range(2):
        np.testing.assert_array_equal(tasks(q), phases(q))
    assert tasks.schedule.policy == "starpu:prio"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ["clusters", "two clouds"])
@pytest.mark.parametrize("policy", POLICIES)
def test_bits_are_those_of_phases(policy, name, rng):
    phases, tasks, q = made(name, rng, f"starpu:{policy}")
    expected = phases(q)
    for _ in range(4):  # the first calls learn the seconds of tasks
        np.testing.assert_array_equal(tasks(q), expected)
    tasks.schedule.last.check(tasks.sums[1].placed.cut.graph)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("threads", [1, 5])
def test_any_number_of_workers(threads, rng):
    phases, tasks, q = made("clusters", rng, "starpu:lws", workers(threads))
    np.testing.assert_array_equal(tasks(q), phases(q))
    assert tasks.schedule.workers == workers(threads)


@pytest.mark.usefixtures("here")
def test_plans_of_several_policies_take_turns(rng):
    plans = [made("clusters", np.random.default_rng(1), f"starpu:{policy}", k) for policy, k in
             (("prio", 2), ("dmdas", 1), ("heteroprio", 2), ("dmdas", 2))]  # fmt: skip
    expected = plans[0][0](plans[0][2])
    for _ in range(2):
        for _, tasks, q in plans:
            np.testing.assert_array_equal(tasks(q), expected)
    found = {}
    callers = [threading.Thread(target=lambda k=k: found.update({k: plans[k][1](plans[k][2])})) for k in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(timeout=60)
    assert sorted(found) == [0, 1, 2, 3]
    for u in found.values():
        np.testing.assert_array_equal(u, expected)


@pytest.mark.usefixtures("here")
def test_a_plan_shows_its_policy(rng, tmp_path):
    _, tasks, q = made("clusters", rng, "starpu")
    assert "tasks on 2 cores, starpu:prio" in str(tasks)
    tasks(q)
    assert (tasks.schedule.policy, tasks.schedule.workers) == ("starpu:prio", 2)
    assert "tasks by 2 workers, starpu:prio" in str(tasks.schedule)
    tasks.schedule.trace(tmp_path / "sum.json")
    assert (tmp_path / "sum.json").stat().st_size > 1000


@pytest.mark.usefixtures("here")
def test_a_fault_in_a_kernel_leaves_the_plan_usable(rng):
    phases, tasks, q = made("clusters", rng, "starpu:prio")
    expected = tasks(q)
    placed = tasks.sums[1].placed
    graph = placed.cut.graph
    middle = np.flatnonzero(graph.kind == list(graph.kinds).index("L2L"))[0]
    call = placed.cut.begin[middle]
    placed._job._job.may_fault = True
    placed._tables._fault[call] = -1, 0, 8, 0  # as for a kernel that asks for scratch which it has not declared
    with pytest.raises(LaunchError, match="declares 8 bytes of scratch") as caught:
        tasks(q)
    assert caught.value.__notes__ == [f"in task {graph.name(middle)}, one of {len(graph)}"]
    assert placed._job.done < len(graph)
    np.testing.assert_array_equal(tasks(q), expected)
    np.testing.assert_array_equal(phases(q), expected)


# Refusals -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("absent", ["pkg-config", "library"])
def test_without_starpu_a_plan_says_how_to_get_it(absent, rng, monkeypatch):
    if absent == "pkg-config":
        monkeypatch.setattr(shutil, "which", lambda name: None)
    else:
        monkeypatch.setenv("PKG_CONFIG_LIBDIR", "/nowhere")
        monkeypatch.delenv("PKG_CONFIG_PATH", raising=False)
    x = rng.random((3, 10))
    said = r"schedule is 'starpu:lws'; StarPU is not installed \(pkg-config finds neither starpu-1.4 nor starpu-1.3\): "
    with pytest.raises(ValueError, match=said + "apt-get install libstarpu-dev pkg-config, or schedule='drain'"):
        parki.fmm.plan("coulomb", x, x, schedule="starpu:lws")


def test_names_that_are_no_schedules(rng):
    x = rng.random((3, 10))
    for name in ("starpu prio", "starpu-prio", 3):
        with pytest.raises(ValueError, match=r"expected one of 'auto', .* 'starpu', 'starpu:NAME'"):
            parki.fmm.plan("coulomb", x, x, schedule=name)
    with pytest.raises(ValueError, match=r"expected one of 'phases', 'drain', 'fifo', 'starpu', 'starpu:NAME'"):
        parki.treecode.plan("coulomb", x, x, schedule="heft")
    with pytest.raises(ValueError, match=r"schedule is 'heft' with method='chebyshev'; .* drain, fifo, starpu:NAME"):
        parki.fmm.plan("coulomb", x, x, schedule="heft", method="chebyshev")
    with pytest.raises(ValueError, match="schedule is 'starpu:prio' in 'GpuSim'; expected a host"):
        parki.fmm.plan("coulomb", x, x, schedule="starpu", execution_space="GpuSim")


@pytest.mark.usefixtures("here")
def test_policies_and_workers_that_starpu_does_not_have(rng):
    x = rng.random((3, 10))
    with pytest.raises(ValueError, match=r"'starpu:first'; StarPU 1\..* has no policy 'first', expected one of dm, "):
        parki.fmm.plan("coulomb", x, x, schedule="starpu:first")
    with pytest.raises(ValueError, match=r"with 4000 threads; StarPU 1\.\S+ was built for at most \d+: expected"):
        parki.fmm.plan("coulomb", x, x, schedule="starpu", threads=4000)


@pytest.mark.usefixtures("here")
def test_listed_schedules_are_policies_of_starpu():
    assert {starpu.policy(name) for name in starpu.SCHEDULES[1:]} <= set(starpu.policies())


# Graphs ---------------------------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("policy", POLICIES)
def test_every_task_runs_once_after_all_that_it_waits_for(policy, in_order, rng):
    reads, writes = graphs.drawn(rng, 200, 40)
    ended, before = [], graphs.by_hand(reads, writes)
    turn = None if in_order else rng.permutation(200).astype(np.int32)
    one = job(reads, writes, ended.append, 2, turn, partial(StarpuRun, name=policy))
    for _ in range(3):
        ended.clear()
        assert one.run() is None
        assert sorted(ended) == list(range(200))
        assert one.done == 200
        record = one.record()
        assert set(record.worker.tolist()) <= {0, 1}
        assert all(record.ended[other] <= record.began[task] for task, some in enumerate(before) for other in some)


def freed_at_once(kinds, turn, policy):
    """Return the order in which one worker runs tasks that the first one frees, and their job."""
    n = len(kinds)
    writes, reads, ended = graphs.listed([[0]] + [[]] * (n - 1)), graphs.listed([[]] + [[0]] * (n - 1)), []
    number = np.arange(n, dtype=np.int32)
    names = tuple(f"K{k}" for k in range(max(kinds) + 1))
    made = Graph(
        names, np.array(kinds, np.uint8), number, np.ones(n), np.ones(n), reads, writes, np.ones(1), number / n
    )
    one = of_graph(made, ended.append, 1, np.array(turn, np.int32), partial(StarpuRun, name=policy))
    assert one.run() is None
    assert ended[0] == 0
    return ended[1:], one


@pytest.mark.usefixtures("here")
def test_the_least_turn_comes_first():
    turn = [0, 8, 3, 5, 1, 7, 2, 6, 4]
    ended, one = freed_at_once([0] * 9, turn, "prio")
    assert ended == sorted(range(1, 9), key=turn.__getitem__)
    one.reorder(np.arange(9, dtype=np.int32))
    assert one.run() is None
    record = one.record()
    assert np.argsort(record.began).tolist() == list(range(9))


@pytest.mark.usefixtures("here")
def test_heteroprio_polls_kinds_by_their_mean_turn():
    kinds = [0, 1, 2, 0, 1, 2, 0, 1, 2]
    ended, one = freed_at_once(kinds, [6, 3, 0, 7, 4, 1, 8, 5, 2], "heteroprio")
    assert one._own["bucket"].tolist() == [2, 1, 0] * 3
    # a worker holds two tasks, and takes the one with the higher number of these
    assert [kinds[task] for task in ended[:2]] == [2, 2]
    one.reorder(np.array([0, 3, 6, 1, 4, 7, 2, 5, 8], np.int32))
    assert one.run() is None
    assert one._own["bucket"].tolist() == [0, 1, 2] * 3
    assert np.array(kinds)[np.argsort(one.record().began)[:2]].tolist() == [0, 0]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("policy", ["prio", "dmdas"])
def test_a_fault_stops_all_and_is_told(policy):
    ran = []

    def action(task):
        ran.append(task)
        if task == 7:
            one.kept[2][7] = 1, 2, 3, 4

    one = job(*CHAIN, action, 2, run=partial(StarpuRun, name=policy))
    assert one.run() == 7
    assert (ran, one.done) == (list(range(8)), 8)
    ran.clear()
    ok = job(*CHAIN, ran.append, 2, run=partial(StarpuRun, name=policy))
    assert ok.run() is None
    assert ran == list(range(20))


@pytest.mark.usefixtures("here")
@pytest.mark.usefixtures("interruptible")
@pytest.mark.skipif(jobs.NO_USLEEP, reason="this system has no usleep")
@pytest.mark.parametrize("policy", ["prio", "lws"])
def test_an_interrupt_ends_the_run_and_the_next_one_is_whole(policy):
    jobs.check_interrupt(partial(StarpuRun, name=policy), threads=2, after=0.2)


# The process ----------------------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("here")
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="this system does not list threads")
def test_workers_sleep_between_runs_and_go():
    def threads():
        return len(list(Path("/proc/self/task").iterdir()))

    def run(policy):
        assert job([[]] * 8, [[]] * 8, lambda task: None, 2, run=partial(StarpuRun, name=policy)).run() is None

    before = threads()
    run("prio")
    many = threads()
    for policy in ("lws", "dmdas", "prio", "prio"):
        run(policy)
    assert before < threads() <= many
    began = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - began < 0.05
    starpu.stop()
    assert threads() <= before


QUIET = """
import ctypes, os, signal
import numpy as np, parki
variable = ctypes.CDLL(None).getenv
variable.restype = ctypes.c_char_p
state = lambda: (signal.getsignal(signal.SIGINT), os.sched_getaffinity(0), dict(os.environ), variable(b"STARPU_SILENT"))
before = state()
x = parki.samples.uniform(1000, seed=1)
for policy in ("dmdas", "lws"):
    parki.fmm.plan("coulomb", x, x, schedule="starpu:" + policy, threads=2)(np.ones(1000))
assert state() == before
"""


@pytest.mark.usefixtures("here")
def test_a_process_prints_nothing_and_is_left_as_it_was(tmp_path):
    assert script(QUIET, HOME=str(tmp_path), PARKI_CACHE_DIR=str(parki.engine.compile.cache.folder())) == ""
    assert not list(tmp_path.iterdir())


FORK = """
import os, sys, warnings
import numpy as np, parki
x = parki.samples.uniform(1000, seed=1)
plan = parki.fmm.plan("coulomb", x, x, schedule="starpu", threads=2)
u = plan(np.ones(1000))
warnings.simplefilter("ignore")
child = os.fork()
same = np.array_equal(plan(np.ones(1000)), u)
if not child:
    sys.exit(not (same and (plan.schedule.last.unit == 0).all()))
assert os.waitpid(child, 0)[1] == 0 and same
print("done")
"""


@pytest.mark.usefixtures("here")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_the_child_of_a_fork_runs_alone():
    assert script(FORK) == "done\n"


OTHERS = """
import numpy as np, parki
from parki.tasks import starpu
assert starpu._entries().starpu_init(None) == 0
x = parki.samples.uniform(1000, seed=1)
plan = parki.fmm.plan("coulomb", x, x, schedule="starpu", threads=2)
try:
    plan(np.ones(1000))
except RuntimeError as error:
    print(error)
starpu._entries().starpu_shutdown()
print(plan(np.ones(1000)).shape)
"""


@pytest.mark.usefixtures("here")
def test_a_starpu_of_another_library_is_left_alone(tmp_path):
    said = script(OTHERS, STARPU_SILENT="1", STARPU_HOME=str(tmp_path), STARPU_CATCH_SIGNALS="0")
    assert "StarPU cannot be started: another library runs it in this process" in said
    assert said.endswith("(1000,)\n")
