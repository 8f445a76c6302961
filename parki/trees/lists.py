"""Lists of pairs of clusters: batches against a tree, partners handed down to leaves, rows, and ranges of points.

Sources: N. Vaughn, L. Wilson, R. Krasny, "A GPU-accelerated barycentric Lagrange treecode", 2020 IEEE Int. Parallel
and Distributed Processing Symposium Workshops, section 2.4 (batches against clusters).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

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


def csr(rows: Nodes, columns: Nodes, n_rows: int, *, sort: bool = False) -> tuple[NDArray[np.int32], Nodes]:
    """Sort pairs by row, stably, or by row and column; repeated pairs are kept.

    Parameters
    ----------
    rows, columns : arrays (K,) of int32
        Rows are in 0 … n_rows − 1, columns ≥ 0.
    n_rows : int
    sort : bool
        Sort the pairs of a row by column.

    Returns
    -------
    starts : array (n_rows + 1,) of int32
        Row r has the places starts[r] … starts[r + 1] − 1.
    columns : array (K,) of int32
    """
    matrix = _by_row(rows, columns, n_rows, int(columns.max(initial=0)) + 1, sort=sort)
    return _starts(matrix.indptr), matrix.indices.astype(np.int32, copy=False)


def joined_ranges(rows: Nodes, nodes: Nodes, begin: Nodes, end: Nodes, n_rows: int) -> tuple[Nodes, Nodes]:
    """Sort the points of the nodes of each row, and join ranges that touch.

    Parameters
    ----------
    rows, nodes : arrays (K,) of int32
        Pairs of a row in 0 … n_rows − 1 and a node; nodes of one row have no points in common.
    begin, end : arrays (M,) of int32
        Node i has the points begin[i] … end[i] − 1.  Nodes without points are dropped.
    n_rows : int

    Returns
    -------
    starts : array (n_rows + 1,) of int32
        Row r has the ranges starts[r] … starts[r + 1] − 1.
    ranges : array (R, 2) of int32
        First point and end of points, ascending in each row.
    """
    full = begin < end
    if not full.all():
        mask = full[nodes]
        rows, nodes = rows[mask], nodes[mask]
    order = np.argsort(begin, kind="stable")
    place = np.empty(len(begin), np.int32)
    place[order] = np.arange(len(begin), dtype=np.int32)
    matrix = _by_row(rows, place[nodes], n_rows, len(begin), sort=True)
    first, last = begin[order][matrix.indices], end[order][matrix.indices]
    new = np.ones(len(first) + 1, bool)
    new[1:-1] = first[1:] != last[:-1]
    new[matrix.indptr] = True
    number = np.append(0, np.cumsum(new[:-1]))
    ranges = np.stack([first[new[:-1]], last[new[1:]]], axis=1)
    return _starts(number[matrix.indptr]), ranges


def _by_row(rows: Nodes, columns: Nodes, n_rows: int, n_columns: int, *, sort: bool = False) -> csr_array:
    """Return pairs by row, in their order or sorted by column, in a time linear in their number."""
    pairs = coo_array((np.zeros(len(rows), np.int8), (rows, columns)), shape=(n_rows, n_columns))
    pairs.has_canonical_format = True  # else SciPy would join equal pairs; its counting sort keeps their order
    return pairs.tocsc().tocsr() if sort else pairs.tocsr()


def _starts(values: NDArray[np.integer]) -> Nodes:
    return index32("the number of pairs of clusters", values, "Take a larger leaf_size.")
