"""Counts of sources at targets with the kernel G = 1: lists of clusters and of octants, in integers."""

import numpy as np
import pytest

from parki.engine.run.spaces import Space
from parki.treecode import interactions
from parki.trees import cluster, octlists, octree
from parki.trees.bysource import ListsBySource
from tests.trees import receiving

SERIAL = Space("Serial")
each_set = pytest.mark.parametrize("names", receiving.SETS, ids=receiving.IDS)


# Clusters -------------------------------------------------------------------------------------------------------------
def cluster_trees(names, leaf_size, batch_size, rng):
    y, x = receiving.points(names, rng)
    sources = cluster.build(y, leaf_size, SERIAL).nodes
    same = x is y and leaf_size == batch_size
    return (sources if same else cluster.build(x, batch_size, SERIAL).nodes), sources


def built(method, targets, sources):
    pairs = ListsBySource.of(targets, sources, receiving.traversed(method, targets, sources))
    return interactions.build(pairs, receiving.rule(method)).only


@each_set
@pytest.mark.parametrize("method", ["dual", "pc", "cp"])
@pytest.mark.parametrize(("leaf_size", "batch_size"), [(1, 1), (8, 8), (5, 30), (60, 9), (1000, 1000)])
def test_pairs_of_clusters(names, method, leaf_size, batch_size, rng):
    targets, sources = cluster_trees(names, leaf_size, batch_size, rng)
    pairs = receiving.traversed(method, targets, sources)
    carried = receiving.weights(sources.n_points, rng)
    sums = receiving.of_nodes(sources, carried)

    def received(t, s):
        return receiving.at_targets(targets, targets, receiving.of_pairs(t, s, sums, targets.n))

    parts = {"far": received(pairs.far_t, pairs.far_s), "near": received(pairs.near_t, pairs.near_s)}
    receiving.assert_all(parts.values(), carried)


@each_set
@pytest.mark.parametrize("method", ["dual", "pc", "cp"])
@pytest.mark.parametrize(("leaf_size", "batch_size"), [(8, 8), (5, 30), (60, 9)])
def test_interactions(names, method, leaf_size, batch_size, rng):
    targets, sources = cluster_trees(names, leaf_size, batch_size, rng)
    found = built(method, targets, sources)
    carried = receiving.weights(sources.n_points, rng)
    parts = receiving.by_kind(targets, sources, found, carried)
    receiving.assert_all(parts.values(), carried)


def test_all_kinds_of_pairs_are_there(rng):
    """Check that the sets above have lists of every kind, and crowds in one place that are summed as one source."""
    kinds, lumps = set(), 0
    for names in receiving.SETS:
        for method in ("dual", "pc", "cp"):
            targets, sources = cluster_trees(names, 5, 30, rng)
            found = built(method, targets, sources)
            kinds |= {(method, kind) for kind in ("pp", "cp") if len(getattr(found, kind).items)}
            kinds |= {(method, kind) for kind in ("pc", "cc") if getattr(found, kind)}
            lumps += len(found.lumps)
    assert {("dual", kind) for kind in ("pp", "pc", "cp", "cc")} | {("pc", "pc"), ("cp", "cp")} <= kinds
    assert lumps


# Octants --------------------------------------------------------------------------------------------------------------
@each_set
@pytest.mark.parametrize(("leaf_size", "few", "fill"), [(1, 0, None), (4, 3, None), (9, 0, 5.0), (60, 20, None)])
def test_lists_of_octants(names, leaf_size, few, fill, rng):
    y, x = receiving.points(names, rng)
    nodes = octree.build(y, None if x is y else x, leaf_size, SERIAL, fill=fill).nodes
    found, carried = octlists.lists(nodes, few).only, receiving.weights(nodes.sources.n_points, rng)
    parts = receiving.by_list(nodes, nodes.sources, found, carried)
    receiving.assert_all(parts.values(), carried)
    np.testing.assert_array_equal(receiving.of_near(nodes, nodes.sources, found, carried), parts["u"])


def test_all_lists_of_octants_are_there(rng):
    seen = set()
    for names in receiving.SETS:
        y, x = receiving.points(names, rng)
        found = octlists.lists(octree.build(y, None if x is y else x, 4, SERIAL).nodes, 3).only
        seen |= {name for name in "uvwx" if len(getattr(found, f"{name}_t"))}
    assert seen == set("uvwx")
