"""Sums by equivalent sources as tasks: bit for bit those of phases, in any order and on any number of workers."""

import copy
import itertools

import numpy as np
import pytest

import parki
from parki.engine.steps import glue
from parki.tasks.graph import Graph, IntLists
from parki.tasks.trace import Trace

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


def points(name, rng, n=4000):
    """Targets and sources."""
    x = rng.random((3, n))
    if name == "sphere":
        x = rng.standard_normal((3, n))
        x /= np.linalg.norm(x, axis=0)
    if name in ("clusters", "gradient", "a length"):
        x = 0.5 + 0.01 * rng.standard_normal((3, n)) * np.exp(2 * rng.random(n))
    if name == "single":
        x = x.astype(np.float32)
    if name == "few":
        x = x[:, :5]
    if name == "two clouds":
        return rng.random((3, n // 2)) + 0.7, x
    return x, x


def made(name, rng, **more):
    """Return a plan by phases, one by tasks, and a density."""
    x, y = points(name, rng)
    given = {"leaf_size": 40, "tolerance": 1e-5} | CASES[name]
    kernel = given.pop("kernel")
    phases, tasks = (
        parki.fmm.plan(kernel, x, y, schedule=schedule, **given, **more) for schedule in ("phases", "drain")
    )
    return phases, tasks, rng.standard_normal((phases.kernel.dens, y.shape[1])).astype(y.dtype).squeeze()


@pytest.mark.parametrize("name", CASES)
def test_bits_are_those_of_phases(name, rng):
    phases, tasks, q = made(name, rng, threads=2)
    expected = np.vstack(phases(q))
    for _ in range(4):  # the first ones learn the order
        np.testing.assert_array_equal(np.vstack(tasks(q)), expected)
    graph = tasks.sums[1].placed.cut.graph
    assert {"GATHER", "SCATTER", "P2P"} <= set(graph.kinds)
    if name != "few":
        assert {"P2M", "M2M", "FFT", "JOIN", "M2L", "IFFT", "L2L", "L2P"} <= set(graph.kinds)
    if name in ("clusters", "gradient", "a length"):
        assert {"M2P", "P2L"} <= set(graph.kinds)


@pytest.mark.parametrize("threads", [1, 5])
@pytest.mark.parametrize("schedule", ["drain", "fifo", "heteroprio", "heft", "static"])
def test_any_number_of_workers(threads, schedule, rng):
    x, _ = points("clusters", rng)
    q = rng.standard_normal(x.shape[1])
    given = {"tolerance": 1e-5, "leaf_size": 40}
    expected = parki.fmm.plan("coulomb", x, x, **given)(q)
    np.testing.assert_array_equal(
        parki.fmm.plan("coulomb", x, x, schedule=schedule, threads=threads, **given)(q), expected
    )


def orders(name, rng, draws, change=None):
    """Return results of random orders of ready tasks by one worker, and that of phases."""
    phases, tasks, q = made(name, rng, threads=1)
    placed = tasks.sums[1].placed
    if change is not None:
        change(placed.cut.graph)
    tasks(q)
    placed._runs = np.inf  # orders are given here
    found = []
    for _ in range(draws):
        placed._job.reorder(rng.permutation(len(placed.cut.graph)).astype(np.int32))
        rows = tasks.structure.expansion.particles.rows
        for handle in placed.steps.handles:  # what a task reads too early is NaN
            if handle.role == "state":
                a = placed[handle]
                (a[:, 3 : 3 + phases.kernel.dens] if handle is rows else a)[...] = np.nan
        found.append(tasks(q))
    return found, phases(q)


@pytest.mark.parametrize("name", ["clusters", "two clouds", "a length"])
def test_random_orders_of_ready_tasks(name, rng):
    found, expected = orders(name, rng, 30)
    for u in found:
        np.testing.assert_array_equal(u, expected)


@pytest.mark.parametrize(
    ("one", "others"),
    [("P2M", "M2M"), ("M2M", "FFT"), ("FFT", "JOIN"), ("JOIN", "M2L"), ("M2L", "JOIN"), ("JOIN", "IFFT"),
     ("IFFT", "P2L L2L"), ("P2L", "L2L"), ("L2L", "L2P"), ("P2P", "SCATTER"), ("L2P", "SCATTER"), ("GATHER", "P2P"),
     ("M2M", "M2P")],
)  # fmt: skip
def test_an_edge_that_is_missing_is_found(one, others, rng):
    def change(graph: Graph):
        kind = np.array(graph.kinds)[graph.kind]
        before, owner = graph.before.values, graph.before.owner
        kept = ~((kind[before] == one) & np.isin(kind[owner], others.split()))
        assert not kept.all()
        object.__setattr__(graph, "before", IntLists.of(owner[kept], before[kept], len(graph)))

    found, expected = orders("clusters", rng, 12, change)
    assert not all(np.array_equal(u, expected) for u in found)


def test_arrays_longer_than_a_launch(rng, monkeypatch):
    monkeypatch.setattr(glue, "MAX_LEAGUE", 12_345)
    phases, tasks, q = made("clusters", rng)
    np.testing.assert_array_equal(tasks(q), phases(q))


def test_every_pair_of_the_lists_is_in_one_task(rng):
    _, tasks, _ = made("clusters", rng)
    placed = tasks.sums[1].placed
    cut, steps = placed.cut, placed._listed
    for k, step in enumerate(steps):
        mine = np.flatnonzero(cut.step == k)
        ranges = sorted((int(cut.first[c]), int(cut.first[c] + cut.count[c])) for c in mine)
        assert ranges[0][0] == 0
        assert ranges[-1][1] == step.items
        assert all(a[1] == b[0] for a, b in itertools.pairwise(ranges))


def test_moves_copies_and_times(rng):
    phases, tasks, q = made("cube", rng)
    tasks(q)
    times = tasks.walltime
    assert set(times.time) == set(phases.walltime.time)
    assert all(times.time[name] > 0 for name in ("upward", "m2l", "downward", "near"))
    z = rng.random((3, q.size))
    for plan in (phases, tasks):
        plan.move(z)
    np.testing.assert_array_equal(tasks(q), phases(q))
    np.testing.assert_array_equal(copy.copy(tasks)(q), phases(q))
    assert tasks.memory > 0
    assert tasks.operator().T @ q == pytest.approx(phases.operator().T @ q, rel=1e-13)


def test_traces_and_pictures(rng, tmp_path):
    phases, tasks, q = made("cube", rng)
    assert phases.schedule is None
    with pytest.raises(RuntimeError, match="has not been called"):
        tasks.schedule.trace(tmp_path / "sum.json")
    tasks(q)
    tasks.schedule.trace(tmp_path / "sum.json")
    read, last = Trace.read(tmp_path / "sum.json"), tasks.schedule.last
    np.testing.assert_array_equal(read.unit, last.unit)
    np.testing.assert_array_equal(read.begin, last.begin)
    assert read.units == last.units
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    tasks.schedule.gantt(tmp_path / "sum.png")
    assert (tmp_path / "sum.png").stat().st_size > 10_000


def test_results_and_densities_of_any_layout(rng):
    phases, tasks, q = made("vectors", rng)
    np.testing.assert_array_equal(tasks(np.asfortranarray(q)), phases(q))
    out = np.empty_like(q)
    assert tasks(q, out=out) is out
    np.testing.assert_array_equal(out, phases(q))
    np.testing.assert_array_equal(tasks(np.stack([q, -q])), phases(np.stack([q, -q])))


def test_schedules_are_refused_where_there_are_none(rng):
    x = rng.random((3, 10))
    with pytest.raises(ValueError, match="schedule is 'drain' with method='chebyshev'; expected method='kifmm'"):
        parki.fmm.plan("coulomb", x, x, method="chebyshev", schedule="drain")
    with pytest.raises(ValueError, match="schedule is 'halves'"):
        parki.fmm.plan("coulomb", x, x, schedule="halves")
    with pytest.raises(ValueError, match="schedule is 'drain' in 'GpuSim'; expected a host"):
        parki.fmm.plan("coulomb", x, x, schedule="drain", execution_space="GpuSim")
