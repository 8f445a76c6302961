"""Treecodes as tasks: bit for bit the sums of phases, in any order and on any number of workers."""

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


def points(name, rng, n=2000):
    """Targets and sources."""
    x = rng.random((3, n))
    if name == "sphere":
        x = rng.standard_normal((3, n))
        x /= np.linalg.norm(x, axis=0)
    if name in ("clusters", "gradient", "a length"):
        x = 0.5 + 0.01 * rng.standard_normal((3, n)) * np.exp(2 * rng.random(n))
    if name == "crowd":
        x[:, ::7] = x[:, :1]
    if name == "floats":
        x = x.astype(np.float32)
    if name == "few":
        x = x[:, :5]
    if name == "two clouds":
        return rng.random((3, n // 2)) + 0.7, x
    return x, x


def made(name, rng, **more):
    """Return a plan by phases, one by tasks, and a density."""
    x, y = points(name, rng)
    given = {"leaf_size": 30, "batch_size": 30, "theta": 0.7, "degree": 3} | CASES[name] | more
    kernel = given.pop("kernel")
    phases, tasks = (parki.treecode.plan(kernel, x, y, schedule=schedule, **given) for schedule in ("phases", "drain"))
    return phases, tasks, rng.standard_normal((phases.kernel.dens, y.shape[1])).astype(y.dtype).squeeze()


@pytest.mark.parametrize("method", ["dual", "pc", "cp"])
@pytest.mark.parametrize("name", CASES)
def test_bits_are_those_of_phases(name, method, rng):
    phases, tasks, q = made(name, rng, method=method, threads=2)
    expected = np.vstack(phases(q))
    for _ in range(2):  # the first ones learn the order
        np.testing.assert_array_equal(np.vstack(tasks(q)), expected)
    kinds = set(tasks.sums[1].placed.cut.graph.kinds)
    assert "JOIN" not in kinds
    assert {"GATHER", "SCATTER", "P2P"} <= kinds
    if name != "few":
        assert ({"P2L", "L2L", "L2P"} if method == "cp" else {"P2M", "M2M", "M2P"}) <= kinds
    if method == "dual" and name == "clusters":
        assert {"M2L", "P2L", "ADD", "L2L", "L2P"} <= kinds


@pytest.mark.parametrize("threads", [1, 5])
@pytest.mark.parametrize("schedule", ["drain", "fifo"])
def test_any_number_of_workers(threads, schedule, rng):
    x, _ = points("clusters", rng)
    q = rng.standard_normal(x.shape[1])
    given = {"degree": 3, "leaf_size": 30, "batch_size": 30}
    expected = parki.treecode.plan("coulomb", x, x, **given)(q)
    np.testing.assert_array_equal(
        parki.treecode.plan("coulomb", x, x, schedule=schedule, threads=threads, **given)(q), expected
    )


def orders(name, rng, draws, change=None, late=None, **more):
    """Return results of random orders of ready tasks by one worker, those of a kind `late` last, and that of phases."""
    phases, tasks, q = made(name, rng, threads=1, **more)
    placed = tasks.sums[1].placed
    if change is not None:
        change(placed.cut.graph)
    tasks(q)
    placed._runs = np.inf  # orders are given here
    found, graph = [], placed.cut.graph
    last = np.zeros(len(graph)) if late is None else graph.kind == graph.kinds.index(late)
    for _ in range(draws):
        order = np.lexsort((rng.permutation(len(graph)), last))
        placed._job.reorder(np.argsort(order).astype(np.int32))
        for handle in placed.steps.handles:  # what a task reads too early is NaN
            if handle.role == "state":
                placed[handle][...] = np.nan
        found.append(np.vstack(tasks(q)))
    return found, np.vstack(phases(q))


@pytest.mark.parametrize("method", ["dual", "pc", "cp"])
@pytest.mark.parametrize("name", ["clusters", "two clouds", "crowd", "gradient"])
def test_random_orders_of_ready_tasks(name, method, rng):
    found, expected = orders(name, rng, 8, method=method)
    for u in found:
        np.testing.assert_array_equal(u, expected)


@pytest.mark.parametrize(
    ("one", "others"),
    [("GATHER", "P2P"), ("GATHER", "P2M"), ("GATHER", "P2L"), ("FILL", "P2P"), ("P2M", "M2M"), ("M2M", "GATHER"),
     ("GATHER", "M2P"), ("GATHER", "M2L"), ("FILL", "M2P"), ("M2L", "ADD"), ("M2P", "ADD"), ("ADD", "L2L"),
     ("P2L", "ADD L2L"), ("L2L", "L2P"), ("ADD", "L2P"), ("L2P", "SCATTER"), ("M2M", "M2M"), ("L2L", "L2L")],
)  # fmt: skip
def test_an_edge_that_is_missing_is_found(one, others, rng):
    def change(graph: Graph):
        kind = np.array(graph.kinds)[graph.kind]
        before, owner = graph.before.values, graph.before.owner
        kept = ~((kind[before] == one) & np.isin(kind[owner], others.split()))
        assert not kept.all()
        object.__setattr__(graph, "before", IntLists.of(owner[kept], before[kept], len(graph)))

    found, expected = orders("clusters", rng, 4, change, late=one)
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
    placed = tasks.sums[1].placed
    cut, steps = placed.cut, placed._listed
    for k, step in enumerate(steps):
        mine = np.flatnonzero(cut.step == k)
        ranges = sorted((int(cut.first[c]), int(cut.first[c] + cut.count[c])) for c in mine)
        assert ranges[0][0] == 0
        assert ranges[-1][1] == step.items
        assert all(a[1] == b[0] for a, b in itertools.pairwise(ranges))


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
    z = rng.random((3, q.size))
    for plan in (phases, tasks):
        plan.move(z)
    np.testing.assert_array_equal(tasks(q), phases(q))
    np.testing.assert_array_equal(copy.copy(tasks)(q), phases(q))
    assert tasks.memory > 0
    assert tasks.operator().T @ q == pytest.approx(phases.operator().T @ q, rel=1e-13)


def test_traces_and_pictures(rng, tmp_path):
    phases, tasks, q = made("cube", rng, threads=2)
    assert phases.schedule is None
    with pytest.raises(RuntimeError, match="has not been called"):
        tasks.schedule.trace(tmp_path / "sum.json")
    tasks(q)
    assert tasks.schedule.workers == 2
    assert tasks.schedule.bound <= tasks.schedule.seconds
    tasks.schedule.trace(tmp_path / "sum.json")
    read, last = Trace.read(tmp_path / "sum.json"), tasks.schedule.last
    np.testing.assert_array_equal(read.unit, last.unit)
    np.testing.assert_array_equal(read.begin, last.begin)
    last.check(tasks.sums[1].placed.cut.graph)
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


def test_one_shot_sums_take_a_schedule(rng):
    x, _ = points("cube", rng, 500)
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
