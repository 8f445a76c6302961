"""Means of measured seconds: from runs to durations, and back to the same schedule."""

import dataclasses

import numpy as np
import pytest

from parki.tasks import policy
from parki.tasks.durations import Durations
from parki.tasks.means import LEAST, Means
from parki.tasks.node import Node
from parki.tasks.simulate import simulate
from tests.tasks import frozen


@pytest.fixture(scope="module")
def case():
    graph, durations, _ = frozen.made(*frozen.read()[6]["case"])
    return graph, durations


def wrong(durations, factor):
    return dataclasses.replace(durations, core=durations.core * factor)


def test_a_simulated_run_gives_its_durations_back(case):
    graph, durations = case
    node, means = Node(4, task=0.0), Means()
    run = simulate(graph, durations, node)
    means.add(graph, run, node)
    found = means.blended(graph, wrong(durations, 7.0))
    # M2L tasks transform octets, too, so that their seconds are not in proportion to their work
    some = graph.kind != graph.kinds.index("M2L")
    seen = np.array([means.sums.get(key, [0])[0] for key in keys(graph)]) >= LEAST
    assert seen.mean() > 0.9
    np.testing.assert_allclose(found.core[seen & some], durations.core[seen & some], rtol=1e-12)
    np.testing.assert_array_equal(found.core[~seen], 7.0 * durations.core[~seen])
    again = simulate(graph, means.blended(graph, durations), node)
    assert again.seconds == pytest.approx(run.seconds, rel=0.02)


def keys(graph):
    size = np.floor(np.log2(graph.work)).astype(int)
    return [(graph.kinds[kind], False, int(s)) for kind, s in zip(graph.kind, size, strict=True)]


def test_launches_are_taken_off_and_shared(case):
    graph, durations = case
    full = Durations(durations.core, durations.device, durations.launches, np.zeros(len(graph)))
    node, means = Node(0, 1, bandwidth=1e30, latency=0.0), Means()
    run = simulate(graph, full, node, policy.unbatched(policy.find("drain")))
    assert len(run.launches) == len(graph)  # nothing is filled by waves of no length
    means.add(graph, run, node, full.launches)
    p2p = graph.kind == graph.kinds.index("P2P")
    found = means.blended(graph, dataclasses.replace(full, device=np.ones(len(graph))))
    np.testing.assert_allclose(found.device[p2p], full.device[p2p], rtol=1e-9)
    np.testing.assert_array_equal(found.core, full.core)
    batched, more = simulate(graph, durations, node), Means()
    assert len(batched.launches) < len(graph)
    more.add(graph, batched, node, durations.launches)
    whole = (batched.end - batched.begin)[batched.launches] - durations.launches[batched.launches] * node.launch
    assert sum(row[1] for row in more.sums.values()) == pytest.approx(whole.sum())


def test_runs_add_up_and_few_tasks_do_not_count(case):
    graph, durations = case
    node, means = Node(4, task=0.0), Means()
    for factor in (1.0, 3.0):
        means.add(graph, simulate(graph, wrong(durations, factor), node), node)
    p2p = graph.kind == graph.kinds.index("P2P")
    found = means.blended(graph, durations)
    np.testing.assert_allclose(found.core[p2p], 2.0 * durations.core[p2p], rtol=1e-9)
    np.testing.assert_array_equal(Means().blended(graph, durations).core, durations.core)
    few = Means()
    few.sums = {key: np.array([LEAST - 1, 1.0, 1.0]) for key in means.sums}
    np.testing.assert_array_equal(few.blended(graph, durations).core, durations.core)


def test_a_class_that_may_not_run_a_task_stays_away():
    graph, durations, _ = frozen.made(*frozen.read()[18]["case"])
    node, means = Node(9, 3), Means()
    means.add(graph, simulate(graph, durations, node), node)
    assert (np.isinf(means.blended(graph, durations).device) == np.isinf(durations.device)).all()
