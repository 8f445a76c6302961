"""Numbers that targets receive from sources along lists, summed in integers.

Every source carries 1 and a random number; sums are modulo 2⁶⁴.  Each target must receive the number of sources, and
the sum of the random numbers: then a missing source and another that comes twice do not compensate each other.
"""

import numpy as np

from parki import samples
from parki.arrays import spread
from parki.treecode.interactions import FarPairRule
from parki.treecode.params import KINDS
from parki.trees import dual, lists, octlists

SHAPES = {
    "random": lambda rng, n: rng.random((3, n)),
    "clustered": lambda rng, n: samples.plummer(n, int(rng.integers(1000))),
    "coincident": lambda rng, n: np.concatenate([rng.random((3, n // 3)), np.full((3, n - n // 3), 0.3)], axis=1),
    "collinear": lambda rng, n: np.array([[1.0], [2.0], [-0.5]]) * rng.standard_normal(n),
    "planar": lambda rng, n: rng.random((3, n)) * [[1.0], [0.0], [0.4]],
    "single": lambda rng, n: rng.random((3, 1)),
    "apart": lambda rng, n: np.add(rng.random((3, n)), [[3.0], [0.5], [0.0]]),
}
#: Sources, and targets that are not the sources or None.
SETS = [(name, None) for name in SHAPES]
SETS += [("random", "apart"), ("clustered", "random"), ("coincident", "collinear"), ("single", "planar"),
         ("planar", "single"), ("coincident", "coincident")]  # fmt: skip
IDS = ["-".join(filter(None, names)) for names in SETS]
THETA = 0.7


def points(names, rng, n=700):
    """Return sources and targets of a pair of names; the same array if there is one name."""
    sources, targets = names
    y = SHAPES[sources](rng, n)
    return y, y if targets is None else SHAPES[targets](rng, n // 2)


def weights(n, rng):
    """Return the numbers (n, 2) that sources carry."""
    return np.column_stack([np.ones(n, np.uint64), rng.integers(0, 2**63, n).astype(np.uint64)])


def upto(weights):
    """Return sums over the first 0 … n rows."""
    return np.concatenate([np.zeros((1, 2), np.uint64), np.cumsum(weights, axis=0, dtype=np.uint64)])


def of_pairs(t, s, node_weights, n_nodes):
    """Return sums over the source nodes of each target node."""
    got = np.zeros((n_nodes, 2), np.uint64)
    np.add.at(got, t, node_weights[s])
    return got


def of_nodes(spans, carried):
    """Return sums over the points of each node."""
    total = upto(carried)
    return total[spans.end] - total[spans.begin]


def at_targets(nodes, spans, got):
    """Hand sums of nodes down to their children, level by level, and from leaves to their targets (n, 2)."""
    got = got.copy()
    for first, last in zip(nodes.level_begin[1:-1], nodes.level_begin[2:], strict=True):
        got[first:last] += got[nodes.parent[first:last]]
    leaf = np.flatnonzero(nodes.is_leaf)
    place = spread(spans.begin[leaf], spans.count[leaf])
    assert (np.bincount(place, minlength=spans.n_points) == 1).all()  # every target is in one leaf
    out = np.zeros((spans.n_points, 2), np.uint64)
    out[place] = np.repeat(got[leaf], spans.count[leaf], axis=0)
    return out


def of_items(items, ranges_or_nodes, row_weights):
    """Return sums over the sources of each item: ranges of rows, or rows themselves."""
    a = ranges_or_nodes
    total = upto(row_weights)
    each = total[a[:, 1]] - total[a[:, 0]] if a.ndim == 2 else row_weights[a]
    along = upto(each)
    return along[items[:, 5]] - along[items[:, 4]]


def traversed(method, targets, sources):
    """Return pairs of nodes by the traversal of a method."""
    match method:
        case "dual":
            return dual.traverse(targets, sources, THETA)
        case "pc":
            return lists.traverse(targets, sources, THETA)
        case _:
            return lists.traverse(sources, targets, THETA).swapped()


def rule(method):
    """Return a rule with few points, which vary, so that all kinds of pairs are cheapest somewhere."""
    return FarPairRule(3, True, KINDS[method], 0.5, 0.05, lambda r: 1 / r, lambda h: np.ones_like(h))


def by_kind(targets, sources, found, carried):
    """Return sums at targets (n, 2) of each kind of list of clusters, as launches make them."""
    nodes = of_nodes(sources, carried)
    rows = np.concatenate([carried, nodes[found.lumps]])
    parts = {}
    for kind, of_lists, source_rows in (
        ("pp", [found.pp], rows), ("cp", [found.cp], rows),
        ("pc", found.pc.values(), nodes), ("cc", found.cc.values(), nodes),
    ):  # fmt: skip
        parts[kind] = np.zeros((targets.n_points, 2), np.uint64)
        for of in of_lists:
            got = of_items(of.items, of.sources, source_rows)
            if kind in ("pp", "pc"):
                for (_, first, count, m, *_), value in zip(of.items.tolist(), got, strict=True):
                    assert m == 0
                    parts[kind][first : first + count] += value
            else:
                assert (of.items[:, 1] == of.items[:, 0] * of.items[:, 3].astype(np.int64) ** 3).all()
                assert (of.items[:, 2] == of.items[:, 3] ** 3).all()
                at = of_pairs(of.items[:, 0], np.arange(len(got)), got, targets.n)
                parts[kind] += at_targets(targets, targets, at)
    return parts


def v_pairs(nodes, found):
    """Return pairs of boxes of V lists: children of paired octets that do not touch."""
    t, s = (nodes.child[nodes.octet_parent[octet]] for octet in (found.v_t, found.v_s))
    t, s = np.repeat(t, 8, axis=1).ravel(), np.tile(s, (1, 8)).ravel()
    t, s = (box[(t >= 0) & (s >= 0)] for box in (t, s))
    apart = (np.abs(nodes.anchor[t] - nodes.anchor[s]) > 1).any(axis=1)
    return t[apart], s[apart]


def by_list(nodes, sources, found, carried):
    """Return sums at targets (n, 2) of each list of an octree, from boxes down to leaves."""
    sums = of_nodes(sources, carried)
    pairs = {name: (getattr(found, f"{name}_t"), getattr(found, f"{name}_s")) for name in "uwx"}
    parts = {}
    for name, (t, s) in (pairs | {"v": v_pairs(nodes, found)}).items():
        assert name not in "uw" or nodes.is_leaf[t].all()
        parts[name] = at_targets(nodes, nodes.targets, of_pairs(t, s, sums, nodes.n))
    return parts


def of_near(nodes, sources, found, carried):
    """Return sums at targets (n, 2) of U lists as ranges of sources."""
    items, ranges = octlists.near(nodes, sources, found)
    nothing = np.zeros_like(items[:, 0])
    items = np.column_stack([nothing, items[:, :2], nothing, items[:, 2:]])
    near = np.zeros((nodes.targets.n_points, 2), np.uint64)
    for (_, begin, end, *_), value in zip(items.tolist(), of_items(items, ranges, carried), strict=True):
        near[begin:end] += value
    return near


def assert_all(parts, carried):
    """Assert that the parts (n, 2) of all lists add up to the sum over all sources, at each target."""
    got = sum(parts)
    np.testing.assert_array_equal(got, np.broadcast_to(carried.sum(axis=0, dtype=np.uint64), got.shape))
