"""Schedules of large sums: their distance from the bound, and the machine of RR-8513."""

import functools

import numpy as np
import pytest

from parki.tasks import bound
from parki.tasks.node import Node
from parki.tasks.simulate import simulate
from tests.tasks import frozen
from tests.tasks.uniform import KINDS, Cut, Leaves

CONSUMER = Node(16, 1, bandwidth=2.4e10)
POINTS = {"x5650": 125}  # points of a box's expansion; 218 for other machines


@functools.cache
def cube(n, depth, octets, leaves, core="xeon", device="rtx4090"):
    """Return graph and durations of n uniform points."""
    cut = Cut(Leaves.cube(n, depth, 1), octets, leaves, POINTS.get(core, 218))
    graph = cut.graph()
    (on_core, _), (on_device, allowed) = frozen.unit(core), frozen.unit(device)
    durations = cut.durations(graph, on_core, on_device)
    durations.device[~np.isin(graph.kind, [KINDS.index(name) for name in allowed])] = np.inf
    return graph, durations


def test_a_consumer_gpu_and_cores():
    graph, durations = cube(10**6, 5, 32, 128)
    least = bound.least_seconds(graph, durations, CONSUMER)
    assert least == pytest.approx(72.5e-3, rel=0.01)
    took = {name: simulate(graph, durations, CONSUMER, name).seconds for name in ("drain", "heteroprio", "phases")}
    assert least / took["drain"] >= 0.88
    assert took["drain"] < took["phases"] < took["heteroprio"]
    alone = simulate(graph, durations, Node(0, 1, bandwidth=2.4e10)).seconds
    assert alone > 1.4 * took["drain"]


def test_cores_gain_without_barriers():
    graph, durations = cube(10**6, 5, 8, 32)
    took = {name: simulate(graph, durations, Node(64), name).seconds for name in ("heft", "phases")}
    assert took["phases"] > 1.03 * took["heft"]


def test_a_consumer_gpu_and_cores_with_ten_million_points():
    graph, durations = cube(10**7, 6, 64, 256)
    assert bound.least_seconds(graph, durations, CONSUMER) >= 0.95 * simulate(graph, durations, CONSUMER).seconds


def test_several_devices_scale():
    graph, durations = cube(10**7, 6, 128, 512, device="h200")
    one, eight = (simulate(graph, durations, Node(0, n, between=3.5e11)) for n in (1, 8))
    assert one.seconds > 6.5 * eight.seconds
    graph.place[:] = np.random.default_rng(0).random(len(graph))  # owners without neighbours
    assert simulate(graph, durations, Node(0, 8, between=3.5e11)).moved > 2 * eight.moved
    cube.cache_clear()


@pytest.mark.parametrize(
    ("name", "seconds"),
    [("drain", 12.31), ("heteroprio", 13.75), ("heteroprio-halves", 13.75), ("heft", 15.9), ("fifo", 24.3)],
)
def test_the_published_machine(name, seconds):
    # 30e6 points in a cube, 9 cores and 3 devices with code for P2P and M2L; 12.5 s were published
    graph, durations = cube(30_000_000, 6, 250, 2000, "x5650", "m2070")
    node = Node(9, 3, bandwidth=5e9)
    assert bound.least_seconds(graph, durations, node) == pytest.approx(12.23, rel=0.002)
    assert simulate(graph, durations, node, name).seconds == pytest.approx(seconds, rel=0.02)
