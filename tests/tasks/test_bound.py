"""Bounds: the linear program and its solution by sorting agree, and the longest path counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parki.tasks import bound
from parki.tasks.durations import Durations
from parki.tasks.graph import Graph, IntLists
from parki.tasks.node import Node
from tests.tasks import frozen


def durations(core, device):
    n = len(core)
    return Durations(np.array(core, float), np.array(device, float), np.ones(n), np.zeros(n))


@given(
    seed=st.integers(0, 10**6), n=st.integers(1, 40), cores=st.integers(0, 9), devices=st.integers(0, 4),
    only=st.booleans(),
)  # fmt: skip
def test_the_program_and_sorting_agree(seed, n, cores, devices, only):
    cores = max(cores, devices == 0)
    rng = np.random.default_rng(seed)
    core, device = rng.exponential(1e-3, n), rng.exponential(1e-3, n) * rng.choice([0.01, 1.0, 30.0])
    if only and cores and devices:
        of = rng.integers(0, 4, n)
        core[of == 1], device[of == 2] = np.inf, np.inf
    made, node = durations(core, device), Node(cores, devices)
    assert bound.area_bound(made, node) == pytest.approx(bound.area_bound_by_program(made, node), rel=1e-6)


@pytest.mark.parametrize("case", [7, 10, 15, 18])
def test_the_program_and_sorting_agree_on_trees(case):
    _, made, node = frozen.made(*frozen.read()[case]["case"])
    assert bound.area_bound(made, node) == pytest.approx(bound.area_bound_by_program(made, node), rel=1e-6)


def test_a_task_is_divided():
    # one device ten times as fast as the core, and one task: both end at once
    assert bound.area_bound(durations([11.0], [1.1]), Node(1, 1)) == pytest.approx(1.0)
    assert bound.area_bound(durations([8.0, 8.0], [1.0, 4.0]), Node(1, 1)) == pytest.approx(10 / 3)
    assert bound.area_bound(durations([6.0, np.inf], [np.inf, 1.0]), Node(2, 1)) == 3.0
    assert bound.area_bound(durations([0.1, np.inf], [1.0, 9.0]), Node(1, 1)) == 9.0


def test_the_longest_path():
    n = 5
    chain = IntLists.of(np.arange(n), np.zeros(n), n)
    graph = Graph(("P2P",), np.zeros(n, np.uint8), np.arange(n, dtype=np.int32), np.ones(n), np.ones(n), chain, chain,
                  np.ones(1), np.zeros(n))  # fmt: skip
    made = durations([2.0] * n, [1.0] * n)
    assert bound.least_seconds(graph, made, Node(9, 3)) == 5.0
    assert bound.least_seconds(graph, made, Node(9)) == 10.0  # no device: its durations do not matter
    assert bound.area_bound(made, Node(9)) == pytest.approx(10 / 9)
