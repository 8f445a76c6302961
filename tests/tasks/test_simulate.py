"""Simulated schedules: equal to frozen ones, valid, and never idle while a task could run."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parki.tasks import bound, policy
from parki.tasks.durations import Durations
from parki.tasks.graph import Graph, IntLists
from parki.tasks.node import Node
from parki.tasks.phases import phases
from parki.tasks.simulate import results, simulate
from tests.tasks import frozen

CASES = frozen.read()
FREE = {"bandwidth": 1e30, "latency": 0.0, "launch": 0.0, "task": 0.0}  # copies and launches that take no time


def random_graph(seed, n):
    """Return a graph of n tasks of three kinds that read and write a few data, and durations with gaps."""
    rng = np.random.default_rng(seed)
    data, kind = max(2, n // 3), rng.integers(0, 3, n)
    reads = IntLists.of(np.repeat(np.arange(n), 2), rng.integers(0, data, 2 * n), n)
    writes = IntLists.of(np.arange(n), rng.integers(0, data, n), n)
    kinds, items = ("P2M", "M2L", "P2P"), rng.integers(1, 40, n).astype(float)
    graph = Graph(kinds, kind.astype(np.uint8), np.arange(n, dtype=np.int32), rng.random(n), items, reads, writes,
                  rng.random(data) * 1e6, rng.random(n))  # fmt: skip
    core, device = rng.exponential(1e-3, n), rng.exponential(1e-4, n)
    only = rng.integers(0, 3, 3)[kind]  # 1: only cores, 2: only devices
    core[only == 2], device[only == 1] = np.inf, np.inf
    return graph, Durations.of(graph, core, device, {"M2L": 2}, {"P2P": 64})


def test_there_are_twenty():
    assert len(CASES) == 20


@pytest.mark.parametrize("case", range(len(CASES)))
def test_frozen_schedules(case):
    row = CASES[case]
    graph, durations, node = frozen.made(*row["case"])
    assert len(graph) == row["tasks"]
    assert bound.area_bound(durations, node) == pytest.approx(row["bound"], rel=1e-8)
    for name in frozen.NAMES.values():
        # in the other simulator a batch leaves half of the ready tasks to any others, however small it is, and cores
        # prefer kinds that others wait for, however much they lose by them
        plain = dataclasses.replace(policy.find(name), least=0.0, whole=False, loses=math.inf)
        trace, (seconds, moved, launches) = simulate(graph, durations, node, plain), row[name]
        assert trace.seconds == pytest.approx(seconds, rel=1e-12)
        assert trace.moved == pytest.approx(moved, rel=1e-12, abs=0)
        assert len(trace.launches) == launches
        trace.check(graph)


@pytest.mark.parametrize("name", policy.POLICIES)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 60), cores=st.integers(1, 5), devices=st.integers(1, 3))
def test_some_unit_always_works(name, seed, n, cores, devices):
    graph, durations = random_graph(seed, n)
    node = Node(cores, devices, **FREE)
    trace = simulate(graph, durations, node, name)
    trace.check(graph)
    assert trace.seconds >= bound.least_seconds(graph, durations, node) * (1 - 1e-12)
    order = np.argsort(trace.begin)
    reached = np.maximum.accumulate(trace.end[order])
    assert (trace.begin[order][1:] <= reached[:-1] * (1 + 1e-12)).all()
    assert trace.seconds == pytest.approx(reached[-1])
    core, device = durations.runs(node)
    assert np.where(trace.unit < cores, core, device).all()


@given(seed=st.integers(0, 10**6), n=st.integers(1, 60))
def test_a_map_is_kept(seed, n):
    graph, durations = random_graph(seed, n)
    node = Node(3, 2)
    first = simulate(graph, durations, node, "drain")
    again = simulate(graph, durations, node, policy.static(first.unit, first.begin))
    again.check(graph)
    np.testing.assert_array_equal(again.unit, first.unit)
    assert simulate(graph, durations, node, policy.static(first.unit)).unit.tolist() == first.unit.tolist()


def test_a_run_in_the_order_of_an_earlier_one_takes_as_long():
    graph, durations, _ = frozen.made(*CASES[3]["case"])
    node = Node(1)
    first = simulate(graph, durations, node, "fifo")
    again = simulate(graph, durations, node, policy.static(first.unit, first.begin))
    assert again.seconds == pytest.approx(float(durations.on_core(node).sum()))
    np.testing.assert_array_equal(np.argsort(again.begin), np.argsort(first.begin))


@pytest.mark.parametrize("case", [1, 5, 8])
def test_barriers(case):
    graph, durations, node = frozen.made(*CASES[case]["case"])
    phase, trace = phases(graph), simulate(graph, durations, node, "phases")
    assert (phase[graph.before.owner] >= phase[graph.before.values]).all()
    begin, end = (np.array([some(a[phase == i]) for i in range(phase.max() + 1)])
                  for some, a in ((np.min, trace.begin), (np.max, trace.end)))  # fmt: skip
    assert (begin[1:] >= end[:-1]).all()
    m2m = graph.kind == graph.kinds.index("M2M")
    assert len(np.unique(phase[m2m])) == len(np.unique(graph.rank(m2m)[m2m]))


def test_more_cores_take_less_time_and_copies_more():
    graph, durations, _ = frozen.made(*CASES[6]["case"])
    few, many = (simulate(graph, durations, Node(n), "drain") for n in (2, 8))
    assert many.seconds < 0.3 * few.seconds
    assert few.moved == many.moved == 0.0
    quick, slow = (simulate(graph, durations, Node(8, 1, bandwidth=rate), "drain") for rate in (1e12, 1e9))
    assert quick.seconds < slow.seconds


def test_results_are_data_that_none_reads_afterwards():
    graph, durations, _ = frozen.made(*CASES[5]["case"])
    parts = graph.group[graph.kind == graph.kinds.index("P2P")].max() + 1
    assert results(graph) == list(range(len(graph.nbytes) - 2 * parts, len(graph.nbytes)))
    alone = Node(0, 1)
    trace = simulate(graph, durations, alone, "drain")
    assert trace.seconds > trace.end.max() + alone.latency
    read = np.unique(graph.reads.values)
    once = graph.nbytes[results(graph)].sum() + graph.nbytes[read].sum()
    assert once > trace.moved > graph.nbytes[results(graph)].sum()


def test_nothing_takes_no_time():
    empty = IntLists(np.zeros(1, np.int32), np.zeros(0, np.int32))
    none = np.zeros(0)
    graph = Graph(("P2P",), none.astype(np.uint8), none.astype(np.int32), none, none, empty, empty, none, none)
    trace = simulate(graph, Durations(none, none, none, none), Node(2))
    assert (trace.seconds, len(trace), trace.share()) == (0.0, 0, 0.0)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda g, d: simulate(g, d, Node(1, 1), "heteroprior"),
            "schedule: found 'heteroprior', expected one of drain",
        ),
        (lambda g, d: simulate(g, d, Node(0, 1)), "node: found 0 cores and 1 devices, expected a unit that may run"),
        (lambda g, d: simulate(g, d, Node(1, 1), policy.static([0])), "units: found an array of shape"),
        (lambda g, d: simulate(g, d, Node(1, 1), policy.static([2] * len(g))), "numbers to 2, expected a unit below 2"),
        (lambda g, d: simulate(g, d, Node(1, 1), policy.static([1] * len(g))), "on device 0, expected a unit that may"),
        (lambda g, d: simulate(frozen.made(*CASES[1]["case"])[0], d, Node(1)), "durations: found those of"),
        (lambda g, d: Node(0, 0), "cores, devices: found 0 and 0"),
        (lambda g, d: Node(1, 1, bandwidth=0.0), "bandwidth, ahead: found 0.0 and 2"),
        (lambda g, d: Durations(d.core * np.nan, d.device, d.launches, d.wave), "found NaN"),
        (lambda g, d: Durations(d.core * np.inf, d.device, d.launches, d.wave), "found no time of task"),
    ],
)
def test_wrong_input(call, says):
    graph, durations, _ = frozen.made(*CASES[18]["case"])
    with pytest.raises(ValueError, match=says):
        call(graph, durations)
