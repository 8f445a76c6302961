"""Numbers that targets receive from sources along lists, summed in integers.

Every source carries 1 and a random number; sums are modulo 2⁶⁴.  Each target must receive the number of sources, and
the sum of the random numbers: a source that is missing and another that comes twice do not make up for each other.
"""

import numpy as np

from parki import samples
from parki.trees.dual import spread

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


def points(names, rng, n=700):
    """Sources and targets of a pair of names; the same array if there is one name."""
    sources, targets = names
    y = SHAPES[sources](rng, n)
    return y, y if targets is None else SHAPES[targets](rng, n // 2)


def weights(n, rng):
    """Numbers (n, 2) that sources carry."""
    return np.column_stack([np.ones(n, np.uint64), rng.integers(0, 2**63, n).astype(np.uint64)])


def upto(weights):
    """Sums over the first 0 … n rows."""
    return np.concatenate([np.zeros((1, 2), np.uint64), np.cumsum(weights, axis=0, dtype=np.uint64)])


def of_pairs(t, s, node_weights, n_nodes):
    """Sums over the source nodes of each target node."""
    got = np.zeros((n_nodes, 2), np.uint64)
    np.add.at(got, t, node_weights[s])
    return got


def at_targets(nodes, begin, end, got, n):
    """Hand sums of nodes down to their children, level by level, and from leaves to their targets (n, 2)."""
    got = got.copy()
    for first, last in zip(nodes.level_begin[1:-1], nodes.level_begin[2:], strict=True):
        got[first:last] += got[nodes.parent[first:last]]
    leaf = np.flatnonzero(nodes.is_leaf)
    times = np.zeros(n, int)
    out = np.zeros((n, 2), np.uint64)
    place = spread(begin[leaf], end[leaf] - begin[leaf])
    np.add.at(times, place, 1)
    assert (times == 1).all()  # every target is in one leaf
    out[place] = np.repeat(got[leaf], end[leaf] - begin[leaf], axis=0)
    return out


def of_items(items, ranges_or_nodes, row_weights):
    """Sums over the sources of each item: ranges of rows, or rows themselves."""
    a = ranges_or_nodes
    total = upto(row_weights)
    each = total[a[:, 1]] - total[a[:, 0]] if a.ndim == 2 else row_weights[a]
    along = upto(each)
    return along[items[:, 5]] - along[items[:, 4]]
