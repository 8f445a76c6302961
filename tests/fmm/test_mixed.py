"""Sums by equivalent sources on cores and simulated devices: results, copies, units, reasons, refusals."""

import _thread
import json
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import parki
from parki.engine.run import spaces
from parki.engine.run.spaces import Space
from parki.fmm import method, scheduling
from parki.fmm.options import FmmOptions
from parki.perfmodels.machine import Machine
from parki.tasks import device as devices
from parki.tasks import policy
from parki.tasks.device import DeviceTasks
from parki.tasks.durations import Durations
from parki.tasks.sharing import Sharing
from tests.quick import but

pytestmark = pytest.mark.usefixtures("all_digits")
CASES = {
    "coulomb": {"kernel": "coulomb"},
    "stokes": {"kernel": "stokes_sl"},
    "yukawa": {"kernel": "yukawa", "kappa": 3.0},
}
SOME = but("stokes", of=CASES)
BOTH = ("GpuSim", "OpenMP")
MISSING = "HIP" if spaces.available()["HIP"] is not None else "Cuda"  # no machine has both


def clusters(rng, n):
    return 0.5 + 0.01 * rng.standard_normal((3, n)) * np.exp(2 * rng.random(n))


def made(rng, n=700, case="coulomb", **more):
    """Return a plan on several units, a density and its sum by phases."""
    x, given = clusters(rng, n), {"leaf_size": 30, "order": 4} | CASES[case]
    kernel = given.pop("kernel")
    phases = parki.fmm.plan(kernel, x, x, schedule="phases", **given)
    q = rng.standard_normal((phases.kernel.dens, n)).squeeze()
    expected = phases(q)
    return parki.fmm.plan(kernel, x, x, **{"execution_space": BOTH, "threads": 2} | given | more), q, expected


def difference(u, v):
    return np.linalg.norm(u - v) / np.linalg.norm(v)


def mapped(plan, q, units):
    """Return the sum with each task run on its unit of a map."""
    placed = plan.sums[1].placed
    if placed._job is None:
        plan(q)
    placed._runs = np.inf  # maps are given here
    graph = placed.cut.graph
    placed._job.share(Sharing.of(policy.static(units), graph, placed._durations, placed.node))
    return plan(q)


def drawn(placed, rng):
    """Return a random unit for each task that devices may run, and a core for others."""
    units = rng.integers(0, placed.node.units, len(placed.cut.graph))
    return np.where(placed._here, units % placed.node.cores, units)


@pytest.mark.parametrize("case", SOME)
def test_random_maps(case, rng):
    plan, q, expected = made(rng, case=case, devices=[0, 1])
    placed = plan.sums[1].placed
    for _ in range(10):
        units = drawn(placed, rng)
        assert difference(mapped(plan, q, units), expected) < 1e-13
        last = plan.schedule.last
        last.check(placed.cut.graph)
        np.testing.assert_array_equal(last.unit, units)
    assert last.moved > 0


def test_workers_that_wait_long_for_their_tasks(rng, monkeypatch):
    plan, q, expected = made(rng)
    placed, start, slept = plan.sums[1].placed, DeviceTasks.start, []
    units = np.where(placed._here, 1, np.where(np.arange(len(placed._here)) % 2, 1, 2))

    def late(self, tasks):
        if not slept:
            slept.append(time.sleep(1.5))  # idle threads of the pool end after a second
        return start(self, tasks)

    plan(q)
    monkeypatch.setattr(DeviceTasks, "start", late)
    assert difference(mapped(plan, q, units), expected) < 1e-13
    assert slept


@pytest.mark.slow
def test_a_hundred_random_maps(rng):
    plan, q, expected = made(rng, 3000, devices=[0, 1])
    found = [difference(mapped(plan, q, drawn(plan.sums[1].placed, rng)), expected) for _ in range(100)]
    assert max(found) < 1e-13


def fetches(plan, q, units, monkeypatch, dropped):
    """Return the result of a run in which one copy to a device is not made, and the number of copies."""
    count, fetch = [0], devices._SameMemory.fetch

    def some(self, datum):
        count[0] += 1
        return 0 if count[0] - 1 == dropped else fetch(self, datum)

    with monkeypatch.context() as patch:
        patch.setattr(devices._SameMemory, "fetch", some)
        return mapped(plan, q, units), count[0]


def test_a_copy_that_is_missing_is_found(rng, monkeypatch):
    plan, q, expected = made(rng)
    units = drawn(plan.sums[1].placed, rng)
    mapped(plan, q, units)
    u, count = fetches(plan, q, units, monkeypatch, -1)
    assert difference(u, expected) < 1e-13
    assert count > 30
    for dropped in range(count):
        u, _ = fetches(plan, q, units, monkeypatch, dropped)
        assert not difference(u, expected) < 1e-13, dropped


@pytest.fixture
def quick_devices(monkeypatch):
    """Model devices a hundred times as fast as cores, so that a single one has all translations by transforms."""

    def modelled(graph, node):
        return Durations.of(graph, np.full(len(graph), 1e-4), np.full(len(graph), 1e-6), {}, {})

    monkeypatch.setattr(scheduling, "with_model", lambda choice, *_: replace(choice.units, modelled=modelled))


@pytest.mark.usefixtures("quick_devices")
@pytest.mark.parametrize("case", SOME)
def test_spectra_stay_with_the_only_device(case, rng):
    plan, q, expected = made(rng, case=case, schedule="drain")
    placed = plan.sums[1].placed
    rooms = [a for a in placed.cut.regions.arrays if a.name.endswith("_spectra")]
    assert rooms
    for a in rooms:
        placed[a][...] = 12345.0
    for _ in range(5):
        assert difference(plan(q), expected) < 1e-13
        last = plan.schedule.last
        last.check(placed.cut.graph)
        assert (last.unit[placed.cut.together] == 2).all()
    assert (last.unit[placed._here & ~placed.cut.together] < 2).all()
    assert all((placed[a] == 12345.0).all() for a in rooms)


@pytest.mark.usefixtures("quick_devices")
def test_a_copy_of_other_data_that_is_missing_is_found(rng, monkeypatch):
    plan, q, expected = made(rng, n=900, schedule="drain")
    placed = plan.sums[1].placed
    units = np.where(placed.cut.together, 2, drawn(placed, rng))
    mapped(plan, q, units)
    u, count = fetches(plan, q, units, monkeypatch, -1)
    assert difference(u, expected) < 1e-13
    for dropped in range(count):
        u, _ = fetches(plan, q, units, monkeypatch, dropped)
        assert not difference(u, expected) < 1e-13, dropped


@pytest.mark.parametrize("schedule", ["auto", "drain", "heteroprio", "heft", "fifo", "static"])
def test_policies(schedule, rng, tmp_path):
    plan, q, expected = made(rng, schedule=schedule)
    for _ in range(3):
        assert difference(plan(q), expected) < 1e-13
        plan.schedule.last.check(plan.sums[1].placed.cut.graph)
    assert plan.schedule.units == ["core 0", "core 1", "GpuSim 0"]
    assert 0 < plan.schedule.bound <= plan.schedule.seconds
    assert "GpuSim 0" in str(plan.schedule)
    plan.schedule.trace(tmp_path / "sum.json")
    names = [
        e["args"]["name"] for e in json.loads((tmp_path / "sum.json").read_text())["traceEvents"] if e["ph"] == "M"
    ]
    assert names == plan.schedule.units


def test_devices_alone(rng):
    plan, q, expected = made(rng, execution_space="GpuSim", devices=[0, 1])
    assert difference(plan(q), expected) < 1e-13
    placed = plan.sums[1].placed
    unit = placed.last.unit
    assert set(unit[~placed._here]) == {2, 3}
    assert set(unit[placed._here]) <= {0, 1}
    assert "tasks on GpuSim 0 and GpuSim 1, drain (GpuSim has no model: all units work)" in str(plan)


def test_deterministic_sums_repeat_their_bits(rng):
    plan, q, _ = made(rng, deterministic=True, devices=[0, 1])
    first, units = plan(q), plan.schedule.last.unit
    for _ in range(5):
        np.testing.assert_array_equal(plan(q), first)
        np.testing.assert_array_equal(plan.schedule.last.unit, units)


def test_moves_and_transposed_sums(rng):
    plan, q, _ = made(rng)
    z = clusters(rng, q.size)
    plan.move(z)
    expected = parki.fmm.plan("coulomb", z, z, order=4, leaf_size=30)
    assert difference(plan(q), expected(q)) < 1e-13
    assert difference(plan.operator().T @ q, expected.operator().T @ q) < 1e-12
    assert plan.memory > expected.memory


@pytest.mark.parametrize("where", ["begin", "start", "finish"])
def test_failures_of_a_device(where, rng, monkeypatch):
    plan, q, expected = made(rng, schedule="static")
    plan(q)
    threads = threading.active_count()
    with monkeypatch.context() as patch:
        patch.setattr(DeviceTasks, where, lambda *_: (_ for _ in ()).throw(MemoryError("no room")))
        with pytest.raises(MemoryError, match="no room") as caught:
            plan(q)
    assert "on GpuSim 0" in caught.value.__notes__[0]
    assert ("in task" in caught.value.__notes__[0]) is (where != "begin")
    assert threading.active_count() == threads
    assert difference(plan(q), expected) < 1e-13


def test_a_kernel_that_breaks_a_rule_on_a_device(rng, monkeypatch):
    plan, q, expected = made(rng, schedule="static")
    plan(q)
    kept = DeviceTasks._ranges

    def outside(self, tasks):
        return [(step, first + 10**6 * (k == 0), count) for k, (step, first, count) in enumerate(kept(self, tasks))]

    with monkeypatch.context() as patch:
        patch.setattr(DeviceTasks, "_ranges", outside)
        with pytest.raises(parki.engine.LaunchError, match="expected teams in") as caught:
            plan(q)
    assert "in task" in caught.value.__notes__[0]
    assert difference(plan(q), expected) < 1e-13


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_devices_too(rng):
    plan, q, expected = made(rng, execution_space="GpuSim", devices=[0, 1])
    plan(q)
    threads = threading.active_count()
    stop = threading.Event()

    def interrupt():
        stop.wait(0.3 * plan.schedule.seconds)
        _thread.interrupt_main()

    other = threading.Thread(target=interrupt)
    other.start()

    def sums():
        for _ in range(1000):
            plan(q)

    with pytest.raises(KeyboardInterrupt):
        sums()
    other.join()
    assert threading.active_count() == threads
    assert difference(plan(q), expected) < 1e-13


def test_the_child_of_a_fork_has_no_devices(rng, monkeypatch):
    plan, q, _ = made(rng)
    monkeypatch.setattr(spaces, "_forked", True)
    with pytest.raises(RuntimeError, match="GpuSim 0 cannot be used in a forked process; expected one of 'spawn'"):
        plan(q)


def test_a_device_with_too_little_memory_is_refused_before_anything_runs(rng, monkeypatch):
    plan, _, _ = made(rng)
    placed = plan.sums[1].placed
    space = SimpleNamespace(name="Cuda", own_memory=True, checks_accesses=False)
    for name, found in {
        "find": lambda _: ["a device"],
        "free_bytes": lambda _: 1000,
        "OwnStream": lambda *_: None,
    }.items():
        monkeypatch.setattr(devices.devices, name, found)
    with pytest.raises(MemoryError, match=r"Cuda 0 has 1,000 bytes free; the arrays of the sum take \d"):
        DeviceTasks(placed.steps, placed.cut, placed._here, ~placed._here, space, 0, placed.memory_of)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"execution_space": ()}, r"execution_space is \(\); expected one at least"),
        ({"execution_space": ("Serial", "OpenMP")}, "execution_space is Serial, OpenMP; expected one host and"),
        (
            {"execution_space": "OpenMP", "devices": [0]},
            r"devices is \(0,\) with 'OpenMP'; expected a space of devices",
        ),
        (
            {"execution_space": BOTH, "devices": [0, 0]},
            r"devices is \[0, 0\]; expected different whole numbers from 0 on",
        ),
        ({"execution_space": BOTH, "devices": [-1]}, r"devices is \[-1\]; expected different whole numbers"),
        ({"execution_space": BOTH, "devices": [0.5]}, r"devices is \[0.5\]; expected different whole numbers"),
        ({"execution_space": BOTH, "devices": "some"}, "devices is 'some'; expected different whole numbers"),
        (
            {"execution_space": BOTH, "schedule": "phases"},
            "execution_space names several spaces with schedule='phases'",
        ),
        ({"execution_space": BOTH, "method": "chebyshev"}, "names several spaces with method='chebyshev'; expected"),
        ({"execution_space": (MISSING, "OpenMP")}, f"execution space '{MISSING}'"),
    ],
)
def test_refusals(given, message, rng):
    x = rng.random((3, 20))
    with pytest.raises(ValueError, match=message):
        parki.fmm.plan("coulomb", x, x, **given)


def test_a_tuple_of_one_space_is_that_space(rng):
    x, q = rng.random((3, 50)), rng.standard_normal(50)
    plan = parki.fmm.plan("coulomb", x, x, execution_space=("Serial",))
    assert plan.space.name == "Serial"
    np.testing.assert_array_equal(plan(q), parki.fmm.plan("coulomb", x, x, execution_space="Serial")(q))


@pytest.mark.parametrize(
    ("gpu", "cores", "dtype", "reason"),
    [
        ("h200", 48, "float64", " cores: 48 beside it win 12 % at most"),
        ("rtx4090", 16, "float64", ""),
        ("rtx4090", 16, "float32", "computes as"),
    ],
)
def test_cores_that_are_not_worth_a_task(gpu, cores, dtype, reason, monkeypatch):
    monkeypatch.setattr(scheduling, "machine_of", lambda space: Machine.load("xeon" if space.native else gpu))
    options = FmmOptions(execution_space=("Cuda", "OpenMP"), threads=cores)
    units = scheduling.AskedUnits("OpenMP", Space("Cuda"), (0,), cores=True)
    found = scheduling.alone(options, units, dtype)
    assert (reason in found) if reason else found == ""
    monkeypatch.setattr(scheduling, "asked", lambda _: units)
    assert scheduling.space_of(options, dtype) == ((units.device, None) if reason else (units.host, cores))
    if reason:
        assert scheduling.without_model(options, units.device, dtype).why == found


def test_many_cores_take_tasks_where_models_promise_a_gain(rng, monkeypatch):
    x = clusters(rng, 4000)
    given = {"order": 4, "leaf_size": 30, "threads": 2}
    monkeypatch.setattr(method, "MANY_CORES", 2)
    for least, order in ((0.0, "drain"), (np.inf, "phases")):
        monkeypatch.setattr(scheduling, "WORTH_TASKS", least)
        plan = parki.fmm.plan("coulomb", x, x, **given)
        assert plan.chosen.schedule.order == order
        assert "simulated on 2 cores" in str(plan)
        assert (plan.schedule is not None) is (order == "drain")


@pytest.mark.parametrize("gain", [0.0, np.inf])
def test_a_modelled_device_works_alone_where_cores_gain_little(gain, rng, monkeypatch):
    monkeypatch.setattr(scheduling, "WORTH_CORES", gain)
    monkeypatch.setattr(scheduling, "without_model", modelled_devices(scheduling.without_model))
    monkeypatch.setattr(
        scheduling, "machine_of", lambda space: Machine.load("xeon" if space.native else "rtx4090")
    )  # fmt: skip
    plan, q, expected = made(rng)
    assert plan.chosen.schedule.units.cores is (gain == 0.0)
    assert "simulated, 2 cores beside 1 × GpuSim are" in str(plan)
    for _ in range(4):  # the first ones learn
        assert difference(plan(q), expected) < 1e-13


def modelled_devices(without_model):
    """Return a `without_model` that treats devices without a model as modelled."""

    def choice(options, space, dtype):
        found = without_model(options, space, dtype)
        return None if "no model" in found.why else found

    return choice
