"""Sums by phases and as tasks: clouds of points, tasks in random orders, and checks that both share."""

import copy
import itertools

import numpy as np
import pytest

from parki.tasks.graph import IntLists
from parki.tasks.trace import Trace


def points(name, rng, n):
    """Return targets and sources."""
    x = rng.random((3, n))
    if name == "sphere":
        x = rng.standard_normal((3, n))
        x /= np.linalg.norm(x, axis=0)
    if name in ("clusters", "gradient", "a length"):
        x = 0.5 + 0.01 * rng.standard_normal((3, n)) * np.exp(2 * rng.random(n))
    if name == "crowd":
        x[:, ::7] = x[:, :1]
    if name in ("single", "floats"):
        x = x.astype(np.float32)
    if name == "few":
        x = x[:, :5]
    if name == "two clouds":
        return rng.random((3, n // 2)) + 0.7, x
    return x, x


def density(plan, n, rng, dtype=np.float64):
    """Return a random density for a plan's n sources."""
    return rng.standard_normal((plan.kernel.dens, n)).astype(dtype).squeeze()


def kinds(tasks):
    """Return the kinds of the tasks of a plan."""
    return set(tasks.sums[1].placed.cut.graph.kinds)


def orders(made, rng, draws, change=None, late=None, rows=None):
    """Return results of random orders of ready tasks by one worker, with kind `late` last, and the result of phases.

    `rows` is the handle of sources in the plan's memory, of which only the density changes.
    """
    phases, tasks, q = made
    placed = tasks.sums[1].placed
    graph = placed.cut.graph
    if change is not None:
        change(graph)
    tasks(q)
    placed._runs = np.inf  # orders are given here
    found = []
    last = np.zeros(len(graph)) if late is None else graph.kind == graph.kinds.index(late)
    for _ in range(draws):
        order = np.lexsort((rng.permutation(len(graph)), last))
        placed._job.reorder(np.argsort(order).astype(np.int32))
        for handle in placed.steps.handles:  # values that a task reads too early are NaN
            if handle.role == "state":
                a = placed[handle]
                (a[:, 3 : 3 + phases.kernel.dens] if handle is rows else a)[...] = np.nan
        found.append(np.vstack(tasks(q)))
    return found, np.vstack(phases(q))


def without(one, others):
    """Return a function that removes the edges from tasks of a kind to tasks of other kinds from a graph."""

    def change(graph):
        kind = np.array(graph.kinds)[graph.kind]
        before, owner = graph.before.values, graph.before.owner
        kept = ~((kind[before] == one) & np.isin(kind[owner], others.split()))
        assert not kept.all()
        object.__setattr__(graph, "before", IntLists.of(owner[kept], before[kept], len(graph)))

    return change


def check_items(tasks):
    """Check that every item of every step is in exactly one task."""
    placed = tasks.sums[1].placed
    cut, steps = placed.cut, placed._listed
    for k, step in enumerate(steps):
        mine = np.flatnonzero(cut.step == k)
        ranges = sorted((int(cut.first[c]), int(cut.first[c] + cut.count[c])) for c in mine)
        assert ranges[0][0] == 0
        assert ranges[-1][1] == step.items
        assert all(a[1] == b[0] for a, b in itertools.pairwise(ranges))


def check_moves_and_copies(phases, tasks, q, rng):
    """Check sums at other points, of copies of plans, and of the transpose."""
    z = rng.random((3, q.size))
    for plan in (phases, tasks):
        plan.move(z)
    np.testing.assert_array_equal(tasks(q), phases(q))
    np.testing.assert_array_equal(copy.copy(tasks)(q), phases(q))
    assert tasks.memory > 0
    assert tasks.operator().T @ q == pytest.approx(phases.operator().T @ q, rel=1e-13)


def check_traces(phases, tasks, q, folder):
    """Check the trace and the picture of a call."""
    assert phases.schedule is None
    with pytest.raises(RuntimeError, match="has not been called"):
        tasks.schedule.trace(folder / "sum.json")
    tasks(q)
    assert tasks.schedule.workers == 2
    assert tasks.schedule.bound <= tasks.schedule.seconds
    tasks.schedule.trace(folder / "sum.json")
    read, last = Trace.read(folder / "sum.json"), tasks.schedule.last
    np.testing.assert_array_equal(read.unit, last.unit)
    np.testing.assert_array_equal(read.begin, last.begin)
    assert read.units == last.units
    last.check(tasks.sums[1].placed.cut.graph)
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    tasks.schedule.gantt(folder / "sum.png")
    assert (folder / "sum.png").stat().st_size > 10_000


def check_layouts(phases, tasks, q):
    """Check results and densities of any layout."""
    np.testing.assert_array_equal(tasks(np.asfortranarray(q)), phases(q))
    out = np.empty_like(q)
    assert tasks(q, out=out) is out
    np.testing.assert_array_equal(out, phases(q))
    np.testing.assert_array_equal(tasks(np.stack([q, -q])), phases(np.stack([q, -q])))
