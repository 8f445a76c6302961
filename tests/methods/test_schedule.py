"""Sums as tasks: bit for bit those of phases, in any order and on any number of workers."""

import numpy as np
import pytest

import parki
from parki.engine.steps import glue
from parki.fmm import expansion
from parki.fmm.options import UNMODELLED
from tests.methods.sums import FMM, METHODS, TREECODES, module, once, table
from tests.tasks import scheduled_sums

SLOW = pytest.mark.slow
OPTIONS = table({"leaf_size": 30, "batch_size": 30, "theta": 0.7, "degree": 2}, {"leaf_size": 40, "order": 3})
N = table(2000, 4000)
#: Kernel and options of each set of points; treecodes have some of their own.
CASES = {
    "cube": {"kernel": "coulomb"},
    "sphere": {"kernel": "coulomb"},
    "clusters": {"kernel": "coulomb"},
    "two clouds": {"kernel": "coulomb"},
    "vectors": {"kernel": "stokes_sl"},
    "a length": {"kernel": "yukawa", "kappa": 3.0},
    "gradient": {"kernel": "coulomb", "gradient": True},
    "floats": {"kernel": "coulomb"},
    "few": {"kernel": "coulomb"},
    "crowd": {"kernel": "coulomb"},
}
OWN = {"sphere": {"far_precision": "single"}, "clusters": {"far_precision": "single"}, "floats": {"theta": 0.9}}
#: Fast multipole sums have no launches of their own for many sources at one place.
ALL = [(name, method) for name in CASES for method in METHODS if name != "crowd" or method in TREECODES]
#: Methods that stand for the others in quick runs, where a case has kernels of its own to compile.
STAND_FOR = {"vectors": ("dual", "kifmm"), "gradient": ("dual", "kifmm"), "a length": ("pc", *FMM)}
IN_TURN = [
    pytest.param(name, method, marks=[SLOW] * (method not in STAND_FOR.get(name, METHODS))) for name, method in ALL
]
MISSING = {
    "dual": [
        ("GATHER", "P2P"), ("GATHER", "P2M"), ("GATHER", "P2L"), ("FILL", "P2P"), ("P2M", "M2M"), ("M2M", "GATHER"),
        ("GATHER", "M2P"), ("GATHER", "M2L"), ("FILL", "M2P"), ("M2L", "ADD"), ("M2P", "ADD"), ("ADD", "L2L"),
        ("P2L", "ADD L2L"), ("L2L", "L2P"), ("ADD", "L2P"), ("L2P", "SCATTER"), ("M2M", "M2M"), ("L2L", "L2L"),
    ],
    "kifmm": [
        ("P2M", "M2M"), ("M2M", "FFT"), ("FFT", "JOIN"), ("JOIN", "M2L"), ("M2L", "JOIN"), ("JOIN", "IFFT"),
        ("IFFT", "P2L L2L"), ("P2L", "L2L"), ("L2L", "L2P"), ("P2P", "SCATTER"), ("L2P", "SCATTER"), ("GATHER", "P2P"),
        ("M2M", "M2P"),
    ],
    "chebyshev": [
        ("P2M", "M2M"), ("P2M", "ENTER"), ("M2M", "ENTER"), ("ENTER", "COMPRESS"), ("COMPRESS", "M2L"),
        ("M2L", "COMPRESS"), ("M2L", "LEAVE"), ("LEAVE", "P2L L2L"), ("P2L", "L2L"), ("L2L", "L2P"),
        ("L2P", "SCATTER"), ("M2M", "M2P"), ("FILL", "LEAVE"),
    ],
}  # fmt: skip
#: Kinds of tasks that every graph with far pairs has.
KINDS = {
    "dual": {"P2M", "M2M", "M2P"},
    "pc": {"P2M", "M2M", "M2P"},
    "cp": {"P2L", "L2L", "L2P"},
    "kifmm": {"P2M", "M2M", "M2L", "L2L", "L2P", "FFT", "JOIN", "IFFT"},
    "chebyshev": {"P2M", "M2M", "M2L", "L2L", "L2P", "ENTER", "COMPRESS", "LEAVE"},
}


@pytest.fixture(autouse=True)
def whole_lists(monkeypatch):
    """Let leaves of phases meet their sources as those of tasks do, each pair twice."""
    monkeypatch.setattr(expansion, "FEWEST_PAIRS", np.inf)


def made(name, method, rng, **more):
    """Return a plan by phases, one by tasks, and a density."""
    x, y = scheduled_sums.points(name, rng, N[method])
    options = OPTIONS[method] | CASES[name] | (OWN.get(name, {}) if method in TREECODES else {}) | {"method": method}
    kernel = options.pop("kernel")
    phases, tasks = (
        module(method).plan(kernel, x, y, schedule=schedule, **options, **more) for schedule in ("phases", "drain")
    )
    return phases, tasks, scheduled_sums.density(phases, y.shape[1], rng, y.dtype)


@pytest.mark.parametrize(("name", "method"), IN_TURN)
def test_bits_are_those_of_phases(name, method, rng):
    phases, tasks, q = made(name, method, rng, threads=2)
    expected = np.vstack(phases(q))
    for _ in range(2 if method in TREECODES else 4):  # the first passes learn the order
        np.testing.assert_array_equal(np.vstack(tasks(q)), expected)
    kinds = scheduled_sums.kinds(tasks)
    assert {"GATHER", "SCATTER", "P2P"} <= kinds
    assert ("JOIN" in kinds) == (method == "kifmm" and name != "few")
    if name != "few":
        assert KINDS[method] <= kinds
    if method == "dual" and name == "clusters":
        assert {"M2L", "P2L", "ADD", "L2L", "L2P"} <= kinds
    if method in FMM and name in ("clusters", "gradient", "a length"):
        assert {"M2P", "P2L"} <= kinds


@pytest.mark.parametrize(
    ("method", "schedule"),
    [(method, schedule) for method in ("dual", "chebyshev") for schedule in UNMODELLED if schedule != "phases"]
    + [("kifmm", schedule) for schedule in ("drain", "fifo", "heteroprio", "heft", "static")],
)
@pytest.mark.parametrize("threads", [1, 5])
def test_any_number_of_workers(threads, schedule, method, rng):
    x, _ = scheduled_sums.points("clusters", rng, N[method])
    q = rng.standard_normal(x.shape[1])
    options = OPTIONS[method] | {"method": method}
    if method in TREECODES:
        options["far_precision"] = "single"
    expected = module(method).plan("coulomb", x, x, **options)(q)
    np.testing.assert_array_equal(
        module(method).plan("coulomb", x, x, schedule=schedule, threads=threads, **options)(q), expected
    )


def orders(name, method, rng, draws, change=None, late=None):
    """Return results of random orders of ready tasks by one worker, and the result of phases."""
    some = made(name, method, rng, threads=1)
    rows = some[1].structure.expansion.particles.rows if method in FMM else None
    return scheduled_sums.orders(some, rng, draws, change, late, rows)


@pytest.mark.parametrize(
    ("name", "method"),
    [
        *((name, method) for name in ("clusters", "two clouds", "crowd") for method in TREECODES),
        ("gradient", "dual"),
        *((name, "kifmm") for name in ("clusters", "two clouds", "a length")),
        ("clusters", "chebyshev"),
        *(pytest.param(name, "chebyshev", marks=SLOW) for name in ("two clouds", "a length")),
    ],
)
def test_random_orders_of_ready_tasks(name, method, rng):
    found, expected = orders(name, method, rng, 8 if method in TREECODES else 20)
    for u in found:
        np.testing.assert_array_equal(u, expected)


@pytest.mark.parametrize(
    ("method", "one", "others"), [(method, *edge) for method, edges in MISSING.items() for edge in edges]
)
def test_an_edge_that_is_missing_is_found(method, one, others, rng):
    draws, late = {"dual": (4, one), "kifmm": (12, one), "chebyshev": (6, one)}[method]
    found, expected = orders("clusters", method, rng, draws, scheduled_sums.without(one, others), late)
    assert not all(np.array_equal(u, expected) for u in found)


@pytest.mark.parametrize("method", ["dual", *FMM])
def test_arrays_longer_than_a_launch(method, rng, monkeypatch):
    monkeypatch.setattr(glue, "MAX_LEAGUE", 400 if method in TREECODES else 12_345)
    phases, tasks, q = made("clusters", method, rng)
    np.testing.assert_array_equal(tasks(q), phases(q))
    if method in TREECODES:
        pieces = sum(step.unit.l0.name == "fill" for step in tasks.sums[1].placed._listed)
        assert pieces > sum(step.unit.l0.name == "fill" for step in phases.sums[1].placed.steps) // 2 > 10


@pytest.mark.parametrize("method", ["dual", *FMM])
def test_every_item_is_in_one_task(method, rng):
    _, tasks, _ = made("clusters", method, rng)
    scheduled_sums.check_items(tasks)


def test_tasks_have_about_equal_work(rng):
    _, tasks, _ = made("clusters", "pc", rng, threads=4)
    graph = tasks.sums[1].placed.cut.graph
    near = graph.work[graph.kind == graph.kinds.index("P2P")]
    assert len(near) >= 8 * 4
    assert near.max() < near.sum() / 4


@pytest.mark.parametrize("method", ["dual", *FMM])
def test_moves_copies_and_times(method, rng):
    phases, tasks, q = made("cube", method, rng)
    tasks(q)
    times = tasks.walltime
    assert set(times.time) == set(phases.walltime.time)
    timed = ("upward", "pp", "pc", "downward") if method in TREECODES else ("upward", "m2l", "downward", "near")
    assert all(times.time[name] > 0 for name in timed)
    assert "tasks on" in str(tasks)
    assert "tasks on" not in str(phases)
    scheduled_sums.check_moves_and_copies(phases, tasks, q, rng)


@pytest.mark.parametrize("method", ["dual", *FMM])
def test_traces_and_pictures(method, rng, tmp_path):
    scheduled_sums.check_traces(*made("cube", method, rng, threads=2), tmp_path)


@pytest.mark.parametrize("method", ["dual", "kifmm", pytest.param("chebyshev", marks=SLOW)])
def test_results_and_densities_of_any_layout(method, rng):
    scheduled_sums.check_layouts(*made("vectors", method, rng))


def test_one_shot_sums_take_a_schedule(rng):
    x, _ = scheduled_sums.points("cube", rng, 500)
    q = rng.standard_normal(500)
    options = OPTIONS["cp"]
    np.testing.assert_array_equal(once("cp", x, x, q, **options, schedule="fifo"), once("cp", x, x, q, **options))


def test_schedules_are_refused_where_there_are_none(rng):
    x = rng.random((3, 10))
    with pytest.raises(ValueError, match="schedule is 'heft'"):
        parki.treecode.plan("coulomb", x, x, schedule="heft")
    with pytest.raises(ValueError, match="schedule is 'heft' with method='chebyshev'; expected method='kifmm'"):
        parki.fmm.plan("coulomb", x, x, method="chebyshev", schedule="heft")
    with pytest.raises(ValueError, match="schedule is 'halves'"):
        parki.fmm.plan("coulomb", x, x, schedule="halves")
    for method in ("dual", "kifmm"):
        with pytest.raises(ValueError, match="schedule is 'drain' in 'GpuSim'; expected a host"):
            module(method).plan("coulomb", x, x, method=method, schedule="drain", execution_space="GpuSim")
    with pytest.raises(ValueError, match="schedule is 'drain' with comm; expected 'phases' over ranks"):
        parki.treecode.options.TreecodeOptions(schedule="drain", comm=object())
