"""Lists with several sources: with sources in two trees, all lists together have every pair of points once."""

from dataclasses import replace

import numpy as np
import pytest

from parki.engine.run.spaces import Space
from parki.treecode import interactions
from parki.trees import cluster, octlists, octree
from parki.trees.bysource import ListsBySource
from parki.trees.nodes import Spans
from tests.trees import receiving

SERIAL = Space("Serial")
SPLITS = {
    "at random": lambda y, rng: rng.random(y.shape[1]) < 0.3,
    "by place": lambda y, rng: y[0] < np.median(y[0]),
    "all in one": lambda y, rng: np.ones(y.shape[1], bool),
}

each_set = pytest.mark.parametrize("names", receiving.SETS, ids=receiving.IDS)
each_split = pytest.mark.parametrize("split", SPLITS)


def nodes_of(x, leaf_size):
    return cluster.build(np.ascontiguousarray(x), leaf_size, SERIAL).nodes


@each_set
@each_split
@pytest.mark.parametrize("method", ["dual", "pc", "cp"])
def test_clusters(names, split, method, rng):
    y, x = receiving.points(names, rng)
    first = SPLITS[split](y, rng)
    targets, one, other = nodes_of(x, 12), nodes_of(y[:, first], 8), nodes_of(y[:, ~first], 20)
    pairs = ListsBySource.of(targets, one, receiving.traversed(method, targets, one))
    pairs = pairs.appended(other, receiving.traversed(method, targets, other))
    lists = interactions.build(pairs, receiving.rule(method))
    assert lists.targets is targets
    assert lists.sources == (one, other)

    carried = receiving.weights(y.shape[1], rng)
    mine = carried[: one.n_points], carried[one.n_points :]
    parts = [
        part
        for nodes, found, c in zip(lists.sources, lists.lists, mine, strict=True)
        for part in receiving.by_kind(targets, nodes, found, c).values()
    ]
    receiving.assert_all(parts, carried)


def test_the_error_is_shared_among_all_sources(rng):
    """Check that the error of a pair follows from the weight and work of the pairs with all sources."""
    x = rng.random((3, 2000))
    targets, one = nodes_of(x, 20), nodes_of(x[:, :1000], 20)
    far_away = nodes_of(0.01 * rng.random((3, 50_000)) + [[30], [0], [0]], 20_000)
    rule = replace(receiving.rule("dual"), points=9, error=1e-3)
    pairs = ListsBySource.of(targets, one, receiving.traversed("dual", targets, one))
    alone = interactions.build(pairs, rule).only
    twice = interactions.build(pairs.appended(one, pairs.only), rule)
    assert twice.lists[0].pairs == twice.lists[1].pairs == alone.pairs  # weight and work are both doubled
    both = interactions.build(pairs.appended(far_away, receiving.traversed("dual", targets, far_away)), rule)
    assert sum(both.lists[0].pairs) < sum(alone.pairs)  # a strong field of little work allows larger errors


def spans_of(nodes, held):
    """Return the spans of boxes for the sources `held`, given by place in the tree, counted among themselves."""
    before = np.concatenate([[0], np.cumsum(held)]).astype(np.int32)
    return Spans(before[nodes.sources.begin], before[nodes.sources.end])


@each_set
@each_split
@pytest.mark.parametrize(("leaf_size", "few"), [(1, 0), (4, 3), (60, 20)])
def test_octants(names, split, leaf_size, few, rng):
    y, x = receiving.points(names, rng)
    tree = octree.build(y, None if x is y else x, leaf_size, SERIAL)
    held = SPLITS[split](y, rng)[tree.sources.order]
    one, other = spans_of(tree.nodes, held), spans_of(tree.nodes, ~held)
    lists = octlists.lists(replace(tree.nodes, sources=one), few, further_sources=[other])
    assert lists.sources == (one, other)

    carried = receiving.weights(tree.sources.n, rng)
    parts = []
    for spans, found, c in zip(lists.sources, lists.lists, (carried[held], carried[~held]), strict=True):
        by_list = receiving.by_list(tree.nodes, spans, found, c)
        np.testing.assert_array_equal(receiving.of_near(tree.nodes, spans, found, c), by_list["u"])
        parts += by_list.values()
    receiving.assert_all(parts, carried)


def test_the_lists_of_a_single_source(rng):
    targets = nodes_of(rng.random((3, 50)), 5)
    pairs = receiving.traversed("dual", targets, targets)
    lists = ListsBySource.of(targets, targets, pairs)
    assert lists.only is pairs
    with pytest.raises(ValueError, match="sources are 2; expected a single one"):
        _ = lists.appended(targets, pairs).only
    with pytest.raises(ValueError, match="lists are 1; expected one for each of 2 sources"):
        ListsBySource(targets, (targets, targets), (pairs,))
