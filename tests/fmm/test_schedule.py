"""Fast multipole sums as tasks: bit for bit those of phases, in any order and on any number of workers."""

import numpy as np
import pytest

import parki
from parki.engine.steps import glue
from parki.fmm.options import UNMODELLED
from tests.tasks import scheduled_sums

METHODS = ("kifmm", "chebyshev")
SLOW = pytest.mark.slow

CASES = {
    "cube": {"kernel": "coulomb"},
    "sphere": {"kernel": "coulomb"},
    "clusters": {"kernel": "coulomb"},
    "two clouds": {"kernel": "coulomb"},
    "vectors": {"kernel": "stokes_sl"},
    "a length": {"kernel": "yukawa", "kappa": 3.0},
    "gradient": {"kernel": "coulomb", "gradient": True},
    "single": {"kernel": "coulomb", "tolerance": 1e-3},
    "few": {"kernel": "coulomb"},
}


def made(name, rng, **more):
    """Return a plan by phases, one by tasks, and a density."""
    x, y = scheduled_sums.points(name, rng, 4000)
    given = {"leaf_size": 40, "tolerance": 1e-5} | CASES[name]
    kernel = given.pop("kernel")
    phases, tasks = (
        parki.fmm.plan(kernel, x, y, schedule=schedule, **given, **more) for schedule in ("phases", "drain")
    )
    return phases, tasks, scheduled_sums.density(phases, y.shape[1], rng, y.dtype)


def of_methods(names, *slow):
    """Return pairs of a case and a method; with Chebyshev's interpolation, those of `slow` are marked slow."""
    some = [(name, "chebyshev", [SLOW] * (name in slow)) for name in names]
    return [*((name, "kifmm") for name in names), *(pytest.param(*case, marks=marks) for *case, marks in some)]


@pytest.mark.parametrize(("name", "method"), of_methods(CASES, "vectors", "gradient", "two clouds", "sphere"))
def test_bits_are_those_of_phases(name, method, rng):
    phases, tasks, q = made(name, rng, threads=2, method=method)
    expected = np.vstack(phases(q))
    for _ in range(4):  # the first calls learn the order
        np.testing.assert_array_equal(np.vstack(tasks(q)), expected)
    kinds = scheduled_sums.kinds(tasks)
    assert {"GATHER", "SCATTER", "P2P"} <= kinds
    if name != "few":
        far = {"FFT", "JOIN", "IFFT"} if method == "kifmm" else {"ENTER", "COMPRESS", "LEAVE"}
        assert {"P2M", "M2M", "M2L", "L2L", "L2P", *far} <= kinds
    if name in ("clusters", "gradient", "a length"):
        assert {"M2P", "P2L"} <= kinds


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("threads", [1, 5])
@pytest.mark.parametrize("schedule", ["drain", "fifo", "heteroprio", "heft", "static"])
def test_any_number_of_workers(threads, schedule, method, rng):
    if method == "chebyshev" and schedule not in UNMODELLED:
        pytest.skip("chebyshev has no model of its tasks")
    x, _ = scheduled_sums.points("clusters", rng, 4000)
    q = rng.standard_normal(x.shape[1])
    given = {"tolerance": 1e-5, "leaf_size": 40, "method": method}
    expected = parki.fmm.plan("coulomb", x, x, **given)(q)
    np.testing.assert_array_equal(
        parki.fmm.plan("coulomb", x, x, schedule=schedule, threads=threads, **given)(q), expected
    )


def orders(name, rng, draws, change=None, late=None, **more):
    """Return results of random orders of ready tasks by one worker, and the result of phases."""
    some = made(name, rng, threads=1, **more)
    return scheduled_sums.orders(some, rng, draws, change, late, some[1].structure.expansion.particles.rows)


@pytest.mark.parametrize(
    ("name", "method"), of_methods(["clusters", "two clouds", "a length"], "two clouds", "a length")
)
def test_random_orders_of_ready_tasks(name, method, rng):
    found, expected = orders(name, rng, 20, method=method)
    for u in found:
        np.testing.assert_array_equal(u, expected)


@pytest.mark.parametrize(
    ("one", "others"),
    [("P2M", "M2M"), ("M2M", "FFT"), ("FFT", "JOIN"), ("JOIN", "M2L"), ("M2L", "JOIN"), ("JOIN", "IFFT"),
     ("IFFT", "P2L L2L"), ("P2L", "L2L"), ("L2L", "L2P"), ("P2P", "SCATTER"), ("L2P", "SCATTER"), ("GATHER", "P2P"),
     ("M2M", "M2P")],
)  # fmt: skip
def test_an_edge_that_is_missing_is_found(one, others, rng):
    found, expected = orders("clusters", rng, 12, scheduled_sums.without(one, others))
    assert not all(np.array_equal(u, expected) for u in found)


@pytest.mark.parametrize(
    ("one", "others"),
    [("P2M", "M2M"), ("P2M", "ENTER"), ("M2M", "ENTER"), ("ENTER", "COMPRESS"), ("COMPRESS", "M2L"),
     ("M2L", "COMPRESS"), ("M2L", "LEAVE"), ("LEAVE", "P2L L2L"), ("P2L", "L2L"), ("L2L", "L2P"), ("L2P", "SCATTER"),
     ("M2M", "M2P"), ("FILL", "LEAVE")],
)  # fmt: skip
def test_an_edge_that_is_missing_is_found_by_interpolation(one, others, rng):
    found, expected = orders("clusters", rng, 6, scheduled_sums.without(one, others), one, method="chebyshev")
    assert not all(np.array_equal(u, expected) for u in found)


@pytest.mark.parametrize("method", METHODS)
def test_arrays_longer_than_a_launch(method, rng, monkeypatch):
    monkeypatch.setattr(glue, "MAX_LEAGUE", 12_345)
    phases, tasks, q = made("clusters", rng, method=method)
    np.testing.assert_array_equal(tasks(q), phases(q))


@pytest.mark.parametrize("method", METHODS)
def test_every_item_is_in_one_task(method, rng):
    _, tasks, _ = made("clusters", rng, method=method)
    scheduled_sums.check_items(tasks)


@pytest.mark.parametrize("method", METHODS)
def test_moves_copies_and_times(method, rng):
    phases, tasks, q = made("cube", rng, method=method)
    tasks(q)
    times = tasks.walltime
    assert set(times.time) == set(phases.walltime.time)
    assert all(times.time[name] > 0 for name in ("upward", "m2l", "downward", "near"))
    scheduled_sums.check_moves_and_copies(phases, tasks, q, rng)


@pytest.mark.parametrize("method", METHODS)
def test_traces_and_pictures(method, rng, tmp_path):
    scheduled_sums.check_traces(*made("cube", rng, threads=2, method=method), tmp_path)


@pytest.mark.parametrize("method", ["kifmm", pytest.param("chebyshev", marks=SLOW)])
def test_results_and_densities_of_any_layout(method, rng):
    scheduled_sums.check_layouts(*made("vectors", rng, method=method))


def test_schedules_are_refused_where_there_are_none(rng):
    x = rng.random((3, 10))
    with pytest.raises(ValueError, match="schedule is 'heft' with method='chebyshev'; expected method='kifmm'"):
        parki.fmm.plan("coulomb", x, x, method="chebyshev", schedule="heft")
    with pytest.raises(ValueError, match="schedule is 'halves'"):
        parki.fmm.plan("coulomb", x, x, schedule="halves")
    with pytest.raises(ValueError, match="schedule is 'drain' in 'GpuSim'; expected a host"):
        parki.fmm.plan("coulomb", x, x, schedule="drain", execution_space="GpuSim")
