"""With the kernel G = 1 every target receives the number of sources: lists of clusters and of octants, in integers."""

import numpy as np
import pytest

from parki.engine.spaces import Space
from parki.treecode import interactions
from parki.treecode.interactions import Rule
from parki.treecode.params import KINDS
from parki.trees import cluster, dual, lists, octlists, octree
from tests.trees import receiving

SERIAL = Space("Serial")
IDS = ["-".join(filter(None, names)) for names in receiving.SETS]
THETA = 0.7

each_set = pytest.mark.parametrize("names", receiving.SETS, ids=IDS)


def assert_all(parts, carried, n):
    """The parts (n, 2) of all lists add up to the sum over all sources, at each of n targets."""
    assert all(part.shape == (n, 2) for part in parts.values())
    got = sum(parts.values())
    np.testing.assert_array_equal(got, np.broadcast_to(carried.sum(axis=0, dtype=np.uint64), (n, 2)))


# Clusters -------------------------------------------------------------------------------------------------------------
def cluster_trees(names, leaf_size, batch_size, rng):
    y, x = receiving.points(names, rng)
    sources = cluster.build(y, leaf_size, SERIAL)
    same = x is y and leaf_size == batch_size
    return (sources if same else cluster.build(x, batch_size, SERIAL)), sources


def traversed(method, targets, sources):
    match method:
        case "dual":
            return dual.traverse(targets, sources, THETA)
        case "pc":
            return lists.traverse(targets, sources, THETA)
        case _:
            return lists.traverse(sources, targets, THETA).swapped()


def rule(method):
    """Few points, which vary, so that all kinds of pairs are cheapest somewhere."""
    return Rule(3, True, KINDS[method], 0.5, 0.05, lambda r: 1 / r, lambda h: np.ones_like(h))


def node_sums(begin, end, carried):
    total = receiving.upto(carried)
    return total[end] - total[begin]


@each_set
@pytest.mark.parametrize("method", ["dual", "pc", "cp"])
@pytest.mark.parametrize(("leaf_size", "batch_size"), [(1, 1), (8, 8), (5, 30), (60, 9), (1000, 1000)])
def test_pairs_of_clusters(names, method, leaf_size, batch_size, rng):
    targets, sources = cluster_trees(names, leaf_size, batch_size, rng)
    pairs = traversed(method, targets, sources)
    carried = receiving.weights(sources.n, rng)
    sums = node_sums(sources.begin, sources.end, carried)

    def received(t, s):
        got = receiving.of_pairs(t, s, sums, len(targets.begin))
        return receiving.at_targets(targets, targets.begin, targets.end, got, targets.n)

    parts = {"far": received(pairs.far_t, pairs.far_s), "near": received(pairs.near_t, pairs.near_s)}
    assert_all(parts, carried, targets.n)


def received_by_kind(targets, sources, found, carried):
    """The sums at targets (n, 2) of each kind of list, as launches make them."""
    lumps = node_sums(sources.begin, sources.end, carried)[found.lumps]
    rows = np.concatenate([carried, lumps])
    nodes = node_sums(sources.begin, sources.end, carried)
    parts = {}
    for kind, of_lists, source_rows in (
        ("pp", [found.pp], rows), ("cp", [found.cp], rows),
        ("pc", found.pc.values(), nodes), ("cc", found.cc.values(), nodes),
    ):  # fmt: skip
        parts[kind] = np.zeros((targets.n, 2), np.uint64)
        for of in of_lists:
            got = receiving.of_items(of.items, of.sources, source_rows)
            if kind in ("pp", "pc"):
                for (_, first, count, m, *_), value in zip(of.items.tolist(), got, strict=True):
                    assert m == 0
                    parts[kind][first : first + count] += value
            else:
                assert (of.items[:, 1] == of.items[:, 0] * of.items[:, 3].astype(np.int64) ** 3).all()
                assert (of.items[:, 2] == of.items[:, 3] ** 3).all()
                at = receiving.of_pairs(of.items[:, 0], np.arange(len(got)), got, len(targets.begin))
                parts[kind] += receiving.at_targets(targets, targets.begin, targets.end, at, targets.n)
    return parts


@each_set
@pytest.mark.parametrize("method", ["dual", "pc", "cp"])
@pytest.mark.parametrize(("leaf_size", "batch_size"), [(8, 8), (5, 30), (60, 9)])
def test_interactions(names, method, leaf_size, batch_size, rng):
    targets, sources = cluster_trees(names, leaf_size, batch_size, rng)
    found = interactions.build(targets, sources, traversed(method, targets, sources), rule(method))
    carried = receiving.weights(sources.n, rng)
    assert_all(received_by_kind(targets, sources, found, carried), carried, targets.n)


def test_all_kinds_of_pairs_are_there(rng):
    """The sets above have lists of every kind, and crowds in one place that are summed as one source."""
    kinds, lumps = set(), 0
    for names in receiving.SETS:
        for method in ("dual", "pc", "cp"):
            targets, sources = cluster_trees(names, 5, 30, rng)
            found = interactions.build(targets, sources, traversed(method, targets, sources), rule(method))
            kinds |= {(method, kind) for kind in ("pp", "cp") if len(getattr(found, kind).items)}
            kinds |= {(method, kind) for kind in ("pc", "cc") if getattr(found, kind)}
            lumps += len(found.lumps)
    assert {("dual", kind) for kind in ("pp", "pc", "cp", "cc")} | {("pc", "pc"), ("cp", "cp")} <= kinds
    assert lumps


# Octants --------------------------------------------------------------------------------------------------------------
def octants_of(tree, octet):
    return tree.child[tree.octet_parent[octet]]


def v_pairs(tree, found):
    """Pairs of boxes of V lists: children of paired octets that do not touch."""
    t, s = np.repeat(octants_of(tree, found.v_t), 8, axis=1), np.tile(octants_of(tree, found.v_s), (1, 8))
    t, s = t.ravel(), s.ravel()
    t, s = (box[(t >= 0) & (s >= 0)] for box in (t, s))
    apart = (np.abs(tree.anchor[t] - tree.anchor[s]) > 1).any(axis=1)
    return t[apart], s[apart]


def received_by_list(tree, found, carried):
    """The sums at targets (n, 2) of each list, from boxes down to leaves."""
    sums = node_sums(tree.begin_src, tree.end_src, carried)
    pairs = {name: (getattr(found, f"{name}_t"), getattr(found, f"{name}_s")) for name in "uwx"}
    parts = {}
    for name, (t, s) in (pairs | {"v": v_pairs(tree, found)}).items():
        assert name not in "uw" or tree.is_leaf[t].all()
        got = receiving.of_pairs(t, s, sums, tree.n)
        parts[name] = receiving.at_targets(tree, tree.begin_trg, tree.end_trg, got, tree.targets.n)
    return parts


@each_set
@pytest.mark.parametrize(("leaf_size", "few", "fill"), [(1, 0, None), (4, 3, None), (9, 0, 5.0), (60, 20, None)])
def test_lists_of_octants(names, leaf_size, few, fill, rng):
    y, x = receiving.points(names, rng)
    tree = octree.build(y, None if x is y else x, leaf_size, SERIAL, fill=fill)
    found, carried = octlists.lists(tree, few), receiving.weights(tree.sources.n, rng)
    parts = received_by_list(tree, found, carried)
    assert_all(parts, carried, tree.targets.n)

    items, ranges = octlists.near(tree, found)
    placed = np.column_stack([items, np.zeros_like(items[:, :2])])[:, [4, 0, 1, 5, 2, 3]]
    near = np.zeros_like(parts["u"])
    for (_, begin, end, *_), value in zip(placed.tolist(), receiving.of_items(placed, ranges, carried), strict=True):
        near[begin:end] += value
    np.testing.assert_array_equal(near, parts["u"])


def test_all_lists_of_octants_are_there(rng):
    seen = set()
    for names in receiving.SETS:
        y, x = receiving.points(names, rng)
        found = octlists.lists(octree.build(y, None if x is y else x, 4, SERIAL), 3)
        seen |= {name for name in "uvwx" if len(getattr(found, f"{name}_t"))}
    assert seen == set("uvwx")
