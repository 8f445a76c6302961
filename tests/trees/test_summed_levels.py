"""Growth of trees from counts and bounds summed over processes, here threads with a part of the points each."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import numpy as np
import pytest

from parki.engine.run.spaces import Space
from parki.trees import cluster, levels, octree
from parki.trees.levels import topology
from parki.trees.passes import Passes

SERIAL = Space("Serial")


class Summed:
    """Points of one of several processes, which answers for all: `shared` has a place for each process."""

    def __init__(self, points, n_all, shared, rank, barrier):
        self.points, self.n, self.n_all = points, points.n, n_all
        self.shared, self.rank, self.barrier = shared, rank, barrier

    def _all(self, own):
        """Return the values of all processes; each process waits for all others."""
        self.shared[self.rank] = own
        self.barrier.wait(60)
        values = list(self.shared)
        self.barrier.wait(60)
        return values

    def _box(self, own):
        low, high = zip(*self._all(own), strict=True)
        return np.min(low, axis=0), np.max(high, axis=0)

    def bounds(self, begin, end):
        return self._box(self.points.bounds(begin, end))

    def count(self, begin, end, middle):
        own = self.points.count(begin, end, middle)
        return replace(own, total=np.sum(self._all(own.total), axis=0, dtype=np.int32))

    def place(self, counted, *, bounds):
        box = self.points.place(counted, bounds=bounds)
        return self._box(box) if bounds else None

    def finish(self, begin, end):
        self.points.finish(begin, end)


def grown(parts, rule):
    """Return the levels of each process; `parts` are its sets of points, `rule` is the rule of the tree."""
    n_all = [sum(x.shape[1] for x in of_set) for of_set in zip(*parts, strict=True)]
    shared, barrier = [None] * len(parts), Barrier(len(parts))

    def grow(rank):
        passes = [Passes(x, SERIAL) for x in parts[rank]]
        sets = [Summed(p, n, shared, rank, barrier) for p, n in zip(passes, n_all, strict=True)]
        return levels.grow(sets, rule), [p.result() for p in passes]

    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(grow, range(len(parts))))


def split(x, rng, ranks):
    """Return the points of each process, at random; the last process has none."""
    owner = rng.integers(0, ranks - 1, x.shape[1])
    return [np.ascontiguousarray(x[:, owner == rank]) for rank in range(ranks)]


def assert_held(parts, of_ranks, k):
    """Assert that leaves hold as many points in all processes as in one, and every point of a process once."""
    for part, (grown_levels, sorted_points) in zip(parts, of_ranks, strict=True):
        points, order = sorted_points[k]
        np.testing.assert_array_equal(np.sort(order), np.arange(part[k].shape[1]))
        np.testing.assert_array_equal(points, part[k][:, order])
        assert levels.spans(grown_levels, k).n_points == part[k].shape[1]
    count = sum(levels.spans(grown_levels, k).count for grown_levels, _ in of_ranks)
    for grown_levels, _ in of_ranks:
        np.testing.assert_array_equal(np.concatenate([level.count[k] for level in grown_levels]), count)
    return count


@pytest.mark.parametrize("ranks", [2, 4])
def test_clusters(shape, ranks, rng):
    x = shape(rng, 400)
    parts = [[part] for part in split(x, rng, ranks)]
    expected = cluster.build(x, 7, SERIAL).nodes
    of_ranks = grown(parts, cluster.MinimalBoxes(7, cluster.ASPECT, x.dtype))
    for grown_levels, _ in of_ranks:
        for name, values in topology(grown_levels).items():
            np.testing.assert_array_equal(values, getattr(expected, name), err_msg=name)
        for values, box in zip(levels.columns(grown_levels), (expected.low, expected.high), strict=True):
            np.testing.assert_array_equal(values, box)
    np.testing.assert_array_equal(assert_held(parts, of_ranks, 0), expected.count)


@pytest.mark.parametrize("ranks", [2, 4])
def test_octants(shape, ranks, rng):
    x, y = shape(rng, 400), shape(rng, 300) + 0.25
    parts = list(zip(split(y, rng, ranks), split(x, rng, ranks), strict=True))
    expected = octree.build(y, x, 7, SERIAL).nodes
    of_ranks = grown(parts, octree.Cubes(expected.low, expected.width, 7, octree.MAX_LEVEL, x.dtype))
    for grown_levels, _ in of_ranks:
        for name, values in topology(grown_levels).items():
            np.testing.assert_array_equal(values, getattr(expected, name), err_msg=name)
        for values, column in zip(levels.columns(grown_levels), (expected.anchor, expected.key), strict=True):
            np.testing.assert_array_equal(values, column)
    np.testing.assert_array_equal(assert_held(parts, of_ranks, 0), expected.sources.count)
    np.testing.assert_array_equal(assert_held(parts, of_ranks, 1), expected.targets.count)
