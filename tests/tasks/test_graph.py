"""Graphs of tasks: edges from data, longest paths, orders."""

import numpy as np
import pytest

from tests.tasks import graphs


@pytest.mark.parametrize("seed", range(60))
def test_tasks_wait_for_all_who_touch_what_they_write_and_for_no_others(seed):
    rng = np.random.default_rng(seed)
    reads, writes = graphs.drawn(rng, int(rng.integers(1, 40)), int(rng.integers(1, 9)))
    made = graphs.graph(reads, writes)
    before = [made.before[task].tolist() for task in range(len(made))]
    assert graphs.closure(before) == graphs.closure(graphs.by_hand(reads, writes))
    assert all(other < task for task, some in enumerate(before) for other in some)
    after = [made.after[task].tolist() for task in range(len(made))]
    assert sorted((j, i) for i, some in enumerate(before) for j in some) == [
        (j, i) for j, some in enumerate(after) for i in some
    ]


@pytest.mark.parametrize("seed", range(10))
def test_ranks_are_the_longest_paths(seed):
    rng = np.random.default_rng(seed)
    reads, writes = graphs.drawn(rng, 14, 5)
    made, seconds = graphs.graph(reads, writes), rng.random(14)
    before = graphs.by_hand(reads, writes)

    def longest(task):
        return seconds[task] + max((longest(other) for other in range(14) if task in before[other]), default=0.0)

    np.testing.assert_allclose(made.rank(seconds), [longest(task) for task in range(14)], rtol=1e-14)
    assert made.critical_path(seconds) == pytest.approx(max(longest(task) for task in range(14)), rel=1e-14)
    turn = made.turn(seconds)
    assert sorted(turn) == list(range(14))
    assert all(turn[other] < turn[task] for task, some in enumerate(before) for other in some)


def test_tasks_without_data_wait_for_nothing():
    made = graphs.graph([[], [0], []], [[], [], [1]])
    assert len(made.before.values) == 0
    assert made.name(2) == "T 2"
    assert graphs.graph([], []).critical_path([]) == 0
