"""Policies in numbers: orders, buckets, halves, owners and the rules of termination."""

import dataclasses

import numpy as np
import pytest

from parki.tasks import policy
from parki.tasks.durations import Durations
from parki.tasks.graph import Graph, IntLists
from parki.tasks.node import Node
from parki.tasks.simulate import simulate
from tests.tasks import frozen

KINDS = ("P2M", "M2L", "L2P", "P2P")


def apart(kinds, core, device, work=None):
    """Return a graph of tasks that do not wait for each other, and their durations."""
    n = len(kinds)
    kind = np.array([KINDS.index(name) for name in kinds], np.uint8)
    some = IntLists.of(np.arange(n), np.arange(n), n)
    graph = Graph(KINDS, kind, np.arange(n, dtype=np.int32), np.ones(n) if work is None else np.array(work, float),
                  np.ones(n), some, some, np.zeros(n), np.arange(n) / n)  # fmt: skip
    return graph, Durations.of(graph, core, device, {}, {})


def named(made, which):
    return [made.names[b] for b in made.orders[which]]


def test_orders_follow_the_accelerations():
    graph, durations = apart(["P2M", "M2L", "L2P", "P2P"], [1.0, 8.0, 2.0, 4.0], [1.0, 0.1, 1.0, 1.0])
    node = Node(4, 1, launch=0.0, task=0.0)
    made = policy.buckets(policy.find("drain"), graph, durations, node)
    assert named(made, 1) == ["M2L", "P2P", "L2P", "P2M"]
    assert named(made, 0) == ["P2M", "L2P", "P2P", "M2L"]  # others wait for P2M
    published = policy.buckets(policy.find("heteroprio"), graph, durations, node)
    assert named(published, 1) == ["P2P", "M2L", "L2P", "P2M"]
    assert named(published, 0) == ["P2M", "M2L", "L2P", "P2P"]


def test_a_class_is_not_asked_for_tasks_that_it_may_not_run():
    graph, durations = apart(["M2L", "P2P", "L2P"], [1.0, np.inf, 1.0], [0.1, 0.1, np.inf])
    made = policy.buckets(policy.find("drain"), graph, durations, Node(2, 2))
    assert (named(made, 0), named(made, 1)) == (["L2P", "M2L"], ["P2P", "M2L"])
    assert made.few[0].tolist() == made.few[1].tolist() == [0.0] * len(made.names)
    ruled = policy.buckets(policy.find("heteroprio"), graph, durations, Node(2, 2, launch=0.0, task=0.0))
    assert ruled.few[0].tolist() == [0.0, 20.0, 0.0, 0.0]  # ten times as fast, two devices


def test_the_larger_half_of_p2p_has_a_bucket():
    graph, durations = apart(["P2P"] * 5 + ["M2L"], [1.0] * 6, [0.1] * 6, work=[3, 1, 5, 2, 4, 1])
    made = policy.buckets(policy.find("heteroprio-halves"), graph, durations, Node(1, 1))
    assert [made.names[b] for b in made.bucket] == ["P2P large", "P2P small", "P2P large", "P2P small", "P2P large",
                                                    "M2L"]  # fmt: skip
    assert named(made, 1) == ["P2P large", "P2P small", "M2L"]
    assert named(made, 0) == ["M2L", "P2P small", "P2P large"]


def test_devices_own_runs_of_places():
    graph, durations = apart(["P2P"] * 8, [np.inf] * 8, [0.1] * 8)
    trace = simulate(graph, durations, Node(1, 4), policy.unbatched(policy.find("drain")))
    assert trace.unit.tolist() == [1, 1, 2, 2, 3, 3, 4, 4]


def test_a_core_leaves_a_long_task_to_the_device():
    # 40 tasks of 1 s on the core and 0.1 s on the device: after three, what is left takes the device less than 1 s
    graph, durations = apart(["P2P"] * 40, [1.0] * 40, [0.1] * 40)
    trace = simulate(graph, durations, Node(1, 1, launch=0.0, task=0.0), policy.unbatched(policy.find("drain")))
    by_core = trace.begin[trace.unit == 0]
    assert by_core.tolist() == pytest.approx([0.0, 1.0, 2.0])
    assert trace.seconds == pytest.approx(3.7, rel=1e-3)
    number = simulate(graph, durations, Node(1, 1, launch=0.0, task=0.0), policy.unbatched(policy.find("heteroprio")))
    assert number.begin[number.unit == 0].tolist() == pytest.approx([0.0, 1.0, 2.0])
    fifo = simulate(graph, durations, Node(1, 1, launch=0.0, task=0.0), "fifo")
    assert fifo.seconds > trace.seconds


def test_batches_fill_a_device_twice_and_leave_half():
    graph, durations, _ = frozen.made(*frozen.read()[7]["case"])
    node = Node(16, 1)
    one, many = (simulate(graph, durations, node, some) for some in
                 (policy.unbatched(policy.find("drain")), policy.find("drain")))  # fmt: skip
    assert len(one.launches) == len(graph) > 1.3 * len(many.launches)
    assert many.seconds < one.seconds
    _, of, size = np.unique(many.launch, return_inverse=True, return_counts=True)
    work = np.bincount(of, np.where(many.unit == 16, durations.device, 0.0))
    least = np.array([durations.device[of == i].max() for i in range(len(size))])
    wave = np.array([durations.wave[of == i][0] for i in range(len(size))])
    assert (work < 2 * wave + least)[size > 1].all()
    assert size.max() > 4


def test_a_batch_fills_a_wave_before_it_leaves_any():
    graph, durations, _ = frozen.made(*frozen.read()[7]["case"])
    node = Node(16, 1)
    halving = dataclasses.replace(policy.find("drain"), least=0.0)
    half, wave = (simulate(graph, durations, node, some) for some in (halving, policy.find("drain")))
    assert len(wave.launches) < len(half.launches)
    assert wave.seconds < half.seconds


def test_cores_leave_kinds_by_which_they_lose_too_much():
    node = Node(4, 1, launch=0.0, task=0.0)
    for seconds, order in ((1.9, ["P2M", "P2P", "M2L"]), (2.1, ["P2P", "P2M", "M2L"])):
        graph, durations = apart(["P2M", "M2L", "P2P"], [seconds, 4.0, 1.0], [0.1, 0.1, 0.1])
        assert named(policy.buckets(policy.find("drain"), graph, durations, node), 0) == order
        always = dataclasses.replace(policy.find("drain"), loses=np.inf)
        assert named(policy.buckets(always, graph, durations, node), 0)[0] == "P2M"


def test_the_only_device_takes_all_that_no_core_runs():
    alone = apart(["M2L"] * 20, [np.inf] * 20, [0.1] * 20)
    assert [len(simulate(*alone, Node(2, devices), "drain").launches) == 1 for devices in (1, 2)] == [True, False]
    shared = apart(["M2L"] * 20, [1.0] * 20, [0.1] * 20)
    assert len(simulate(*shared, Node(2, 1), "drain").launches) > 5


def test_names():
    assert {"drain", "heteroprio", "heft", "fifo", "phases"} <= set(policy.POLICIES)
    assert all(policy.find(name).name == name for name in policy.POLICIES)
