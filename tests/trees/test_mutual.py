"""Lists of pairs of leaves that meet each other: every pair once, in blocks that have no leaf in common."""

import itertools

import numpy as np
import pytest

from parki.engine import Space
from parki.trees import mutual, octlists, octree
from tests.trees.receiving import assert_all, by_list, weights

SERIAL = Space("Serial")
SHAPES = ("cube", "sphere", "clusters")


def points(shape, n, rng):
    """Return points of a shape."""
    x = rng.random((3, n))
    if shape == "sphere":
        x = rng.standard_normal((3, n))
        x /= np.linalg.norm(x, axis=0)
    elif shape == "clusters":
        x[:, : n // 2] = 0.3 + 0.05 * rng.standard_normal((3, n // 2))
    return x


def lists_of(shape, n, leaf_size, few, rng, parts=7):
    """Return nodes, lists and the meetings of some parts."""
    nodes = octree.build(points(shape, n, rng), None, leaf_size, SERIAL).nodes
    found = octlists.lists(nodes, few).only
    return nodes, found, mutual.meetings(nodes, found, parts)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("leaf_size", "few"), [(5, 0), (20, 10), (60, 0)])
def test_every_pair_is_met_once(shape, leaf_size, few, rng):
    nodes, found, met = lists_of(shape, 3000, leaf_size, few, rng)
    carried = weights(3000, rng)
    parts = by_list(nodes, nodes.sources, found, carried)
    near, number = np.zeros((3000, 2), np.uint64), 0
    for leaf in np.flatnonzero(nodes.is_leaf):
        own = slice(nodes.sources.begin[leaf], nodes.sources.end[leaf])
        near[own] += carried[own].sum(axis=0)
    for first, end, begin, stop in met.items.tolist():
        for low, high in met.ranges[begin:stop].tolist():
            assert low >= end
            near[first:end] += carried[low:high].sum(axis=0)
            near[low:high] += carried[first:end].sum(axis=0)
            number += 2 * (end - first) * (high - low)
    np.testing.assert_array_equal(near, parts["u"])
    assert mutual.pairs(nodes, found) == number
    parts["u"] = near
    assert_all(parts.values(), carried)


@pytest.mark.parametrize("shape", SHAPES)
def test_meetings_of_a_round_have_no_particle_in_common(shape, rng):
    _, _, met = lists_of(shape, 3000, 8, 4, rng)
    assert met.meeting[0] == 0
    assert met.meeting[-1] == len(met.items)
    assert met.rounds[0] == 0
    assert met.rounds[-1] == len(met.meeting) - 1
    for first, end in itertools.pairwise(met.rounds):
        owner = np.full(3000, -1)
        for b in range(first, end):
            for t, t_end, begin, stop in met.items[met.meeting[b] : met.meeting[b + 1]].tolist():
                for low, high in [(t, t_end), *met.ranges[begin:stop].tolist()]:
                    assert np.isin(owner[low:high], (-1, b)).all()
                    owner[low:high] = b


def test_one_part_has_one_meeting(rng):
    _, _, met = lists_of("cube", 1000, 20, 0, rng, parts=1)
    assert met.rounds == [0, 1]
    assert met.meeting.tolist() == [0, len(met.items)]
