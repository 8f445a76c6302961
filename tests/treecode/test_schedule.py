"""Treecodes as tasks: bit for bit the sums of phases, in any order and on any number of workers."""

import numpy as np
import pytest

import parki
from parki.engine.steps import glue
from tests.tasks import scheduled_sums

CASES = {
    "cube": {"kernel": "coulomb"},
    "sphere": {"kernel": "coulomb", "far_precision": "single"},
    "clusters": {"kernel": "coulomb", "far_precision": "single"},
    "two clouds": {"kernel": "coulomb"},
    "crowd": {"kernel": "coulomb"},
    "vectors": {"kernel": "stokes_sl"},
    "a length": {"kernel": "yukawa", "kappa": 3.0},
    "gradient": {"kernel": "coulomb", "gradient": True},
    "floats": {"kernel": "coulomb", "theta": 0.9},
    "few": {"kernel": "coulomb"},
}


def made(name, rng, **more):
    """Return a plan by phases, one by tasks, and a density."""
    x, y = scheduled_sums.points(name, rng, 2000)
    given = {"leaf_size": 30, "batch_size": 30, "theta": 0.7, "degree": 3} | CASES[name] | more
    kernel = given.pop("kernel")
    phases, tasks = (parki.treecode.plan(kernel, x, y, schedule=schedule, **given) for schedule in ("phases", "drain"))
    return phases, tasks, scheduled_sums.density(phases, y.shape[1], rng, y.dtype)


@pytest.mark.parametrize("method", ["dual", "pc", "cp"])
@pytest.mark.parametrize("name", CASES)
def test_bits_are_those_of_phases(name, method, rng):
    phases, tasks, q = made(name, rng, method=method, threads=2)
    expected = np.vstack(phases(q))
    for _ in range(2):  # the first pass learns the order
        np.testing.assert_array_equal(np.vstack(tasks(q)), expected)
    kinds = scheduled_sums.kinds(tasks)
    assert "JOIN" not in kinds
    assert {"GATHER", "SCATTER", "P2P"} <= kinds
    if name != "few":
        assert ({"P2L", "L2L", "L2P"} if method == "cp" else {"P2M", "M2M", "M2P"}) <= kinds
    if method == "dual" and name == "clusters":
        assert {"M2L", "P2L", "ADD", "L2L", "L2P"} <= kinds


@pytest.mark.parametrize("threads", [1, 5])
@pytest.mark.parametrize("schedule", ["drain", "fifo"])
def test_any_number_of_workers(threads, schedule, rng):
    x, _ = scheduled_sums.points("clusters", rng, 2000)
    q = rng.standard_normal(x.shape[1])
    given = {"degree": 3, "leaf_size": 30, "batch_size": 30}
    expected = parki.treecode.plan("coulomb", x, x, **given)(q)
    np.testing.assert_array_equal(
        parki.treecode.plan("coulomb", x, x, schedule=schedule, threads=threads, **given)(q), expected
    )


@pytest.mark.parametrize("method", ["dual", "pc", "cp"])
@pytest.mark.parametrize("name", ["clusters", "two clouds", "crowd", "gradient"])
def test_random_orders_of_ready_tasks(name, method, rng):
    found, expected = scheduled_sums.orders(made(name, rng, threads=1, method=method), rng, 8)
    for u in found:
        np.testing.assert_array_equal(u, expected)


@pytest.mark.parametrize(
    ("one", "others"),
    [("GATHER", "P2P"), ("GATHER", "P2M"), ("GATHER", "P2L"), ("FILL", "P2P"), ("P2M", "M2M"), ("M2M", "GATHER"),
     ("GATHER", "M2P"), ("GATHER", "M2L"), ("FILL", "M2P"), ("M2L", "ADD"), ("M2P", "ADD"), ("ADD", "L2L"),
     ("P2L", "ADD L2L"), ("L2L", "L2P"), ("ADD", "L2P"), ("L2P", "SCATTER"), ("M2M", "M2M"), ("L2L", "L2L")],
)  # fmt: skip
def test_an_edge_that_is_missing_is_found(one, others, rng):
    found, expected = scheduled_sums.orders(
        made("clusters", rng, threads=1), rng, 4, scheduled_sums.without(one, others), one
    )
    assert not all(np.array_equal(u, expected) for u in found)


@pytest.mark.parametrize("name", ["clusters", "vectors"])
def test_arrays_longer_than_a_launch(name, rng, monkeypatch):
    monkeypatch.setattr(glue, "MAX_LEAGUE", 1_234)
    phases, tasks, q = made(name, rng)
    np.testing.assert_array_equal(tasks(q), phases(q))
    pieces = sum(step.unit.l0.name == "fill" for step in tasks.sums[1].placed._listed)
    assert pieces > sum(step.unit.l0.name == "fill" for step in phases.sums[1].placed.steps) // 2 > 10


def test_every_item_is_in_one_task(rng):
    _, tasks, _ = made("gradient", rng)
    scheduled_sums.check_items(tasks)


def test_tasks_have_about_equal_work(rng):
    _, tasks, _ = made("clusters", rng, threads=4, method="pc")
    graph = tasks.sums[1].placed.cut.graph
    near = graph.work[graph.kind == graph.kinds.index("P2P")]
    assert len(near) >= 8 * 4
    assert near.max() < near.sum() / 4


def test_moves_copies_and_times(rng):
    phases, tasks, q = made("cube", rng)
    tasks(q)
    times = tasks.walltime
    assert set(times.time) == set(phases.walltime.time)
    assert all(times.time[name] > 0 for name in ("upward", "pp", "pc", "downward"))
    assert "tasks on" in str(tasks)
    assert "tasks on" not in str(phases)
    scheduled_sums.check_moves_and_copies(phases, tasks, q, rng)


def test_traces_and_pictures(rng, tmp_path):
    scheduled_sums.check_traces(*made("cube", rng, threads=2), tmp_path)


def test_results_and_densities_of_any_layout(rng):
    scheduled_sums.check_layouts(*made("vectors", rng))


def test_one_shot_sums_take_a_schedule(rng):
    x, _ = scheduled_sums.points("cube", rng, 500)
    q = rng.standard_normal(500)
    expected = parki.treecode.bltc(x, x, q, variant="cp", leaf_size=30, batch_size=30)
    found = parki.treecode.bltc(x, x, q, variant="cp", leaf_size=30, batch_size=30, schedule="fifo")
    np.testing.assert_array_equal(found, expected)


def test_schedules_are_refused_where_there_are_none(rng):
    x = rng.random((3, 10))
    with pytest.raises(ValueError, match="schedule is 'heft'"):
        parki.treecode.plan("coulomb", x, x, schedule="heft")
    with pytest.raises(ValueError, match="schedule is 'drain' in 'GpuSim'; expected a host"):
        parki.treecode.plan("coulomb", x, x, schedule="drain", execution_space="GpuSim")
    with pytest.raises(ValueError, match="schedule is 'drain' with comm; expected 'phases' over ranks"):
        parki.treecode.options.TreecodeOptions(schedule="drain", comm=object())
