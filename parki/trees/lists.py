"""Lists of pairs of clusters: batches against a tree, partners handed down to leaves, rows, and ranges of points.

Sources: N. Vaughn, L. Wilson, R. Krasny, "A GPU-accelerated barycentric Lagrange treecode", 2020 IEEE Int. Parallel
and Distributed Processing Symposium Workshops, section 2.4 (batches against clusters).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from parki.arrays import index32, spread
from parki.trees.cluster import ClusterNodes
from parki.trees.dual import Children, GrowingPairs, NodeBalls, Nodes, Pairs, blocks, is_far, joined


def traverse(
    batches: ClusterNodes, sources: ClusterNodes, theta: float, *, separation: float = 0.0, cubes: bool = False,
    small: int = 0,
) -> Pairs:  # fmt: skip
    """Pair each leaf of `batches` with nodes of `sources`, from the root.

    A pair is far by the criterion of `dual.traverse`.  A pair that is not far is near if the source is a leaf; else its
    children take the source's place.  For clusters of targets against batches of sources exchange the arguments, and
    the pairs by `Pairs.swapped`.

    Parameters
    ----------
    batches, sources : ClusterNodes
    theta, separation, cubes
        As in `dual.traverse`.
    small : int
        A well separated source of at most this number of points is near nevertheless, leaf or not: its points cost
        less than its proxy points.
    """
    count = len(batches.leaves) * min(batches.n_points, sources.n_points, 1)
    frontier, pairs = (batches.leaves[:count], np.zeros(count, np.int32)), GrowingPairs()
    t_geometry, s_geometry = NodeBalls.of(batches, sources, cubes=cubes)
    children, large = Children(sources), sources.count > small
    while len(frontier[0]):
        next_pairs = []
        for block in blocks(len(frontier[0])):
            t, s = frontier[0][block], frontier[1][block]
            far = is_far(t_geometry.take(t), s_geometry.take(s), theta, separation * t_geometry.scale)
            near = np.where(far, ~large[s], children.none[s])
            pairs.near(t[near], s[near])
            split, far = ~(far | near), far & ~near
            pairs.far(t[far], s[far])
            next_pairs.append(children.instead(s[split], t[split])[::-1])
        frontier = joined(next_pairs)
    return pairs.pairs()


def to_leaves(nodes: ClusterNodes, node: Nodes, partner: Nodes) -> tuple[Nodes, Nodes]:
    """Hand partners of nodes down to the leaves below.

    Parameters
    ----------
    nodes : ClusterNodes
    node, other : arrays (K,) of int32
        Nodes, and a partner of each of them.

    Returns
    -------
    leaf, other : arrays of int32
        Every leaf below each node (the node itself, if it is one), and the node's partner, in the order given.
    """
    leaf_begin = nodes.begin[nodes.leaves]
    first = np.searchsorted(leaf_begin, nodes.begin)[node]
    count = np.searchsorted(leaf_begin, nodes.end)[node] - first
    return nodes.leaves[spread(first, count)], np.repeat(partner, count)


def csr(rows: Nodes, columns: Nodes, n_rows: int) -> tuple[NDArray[np.int32], Nodes]:
    """Sort pairs by row, stably; repeated pairs are kept.

    Parameters
    ----------
    rows, columns : arrays (K,) of int32
        Rows are in 0 … n_rows − 1, columns ≥ 0.
    n_rows : int

    Returns
    -------
    starts : array (n_rows + 1,) of int32
        Row r has the places starts[r] … starts[r + 1] − 1.
    columns : array (K,) of int32
    """
    shape = n_rows, int(columns.max(initial=0)) + 1
    pairs = coo_array((np.zeros(len(rows), np.int8), (rows, columns)), shape=shape)
    pairs.has_canonical_format = True  # else SciPy would join equal pairs; its counting sort keeps their order
    matrix = pairs.tocsr()
    starts = index32("the number of pairs of clusters", matrix.indptr, "Take a larger leaf_size.")
    return starts, matrix.indices.astype(np.int32, copy=False)


def merge_ranges(
    rows: Nodes, begin: NDArray[np.int32], end: NDArray[np.int32]
) -> tuple[Nodes, NDArray[np.int32], NDArray[np.int32]]:
    """Sort the ranges of each row, and join ranges that touch.

    Parameters
    ----------
    rows, begin, end : arrays (K,) of int32
        Range begin … end − 1 belongs to a row ≥ 0; ranges of one row do not overlap.  Empty ranges are dropped.

    Returns
    -------
    rows, begin, end : arrays of int32
        Sorted by row, then by begin.
    """
    mask = begin < end
    if not mask.all():
        rows, begin, end = rows[mask], begin[mask], end[mask]
    last = rows.astype(np.int64) << 32
    first = last + begin
    last += end
    first.sort()
    last.sort()  # same order as `first`, as ranges do not overlap
    new = np.ones(len(first), bool)
    new[1:] = first[1:] != last[:-1]
    first, last = first[new], last[np.append(new[1:], True)[: len(new)]]
    return (first >> 32).astype(np.int32), (first & 0xFFFFFFFF).astype(np.int32), (last & 0xFFFFFFFF).astype(np.int32)
