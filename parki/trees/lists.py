"""Lists of pairs of clusters: batches against a tree, hand-down to leaves, rows, and ranges of points.

Sources: N. Vaughn, L. Wilson, R. Krasny, "A GPU-accelerated barycentric Lagrange treecode", 2020 IEEE Int. Parallel
and Distributed Processing Symposium Workshops, section 2.4 (batches against clusters).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from parki.arrays import index32
from parki.trees.cluster import ClusterTree
from parki.trees.dual import Children, Found, Geometry, Nodes, Pairs, blocks, is_far, joined, spread


def traverse(
    batches: ClusterTree, sources: ClusterTree, theta: float, *, separation: float = 0.0, cubes: bool = False,
    small: int = 0,
) -> Pairs:  # fmt: skip
    """Pair each leaf of `batches` with nodes of `sources`, from the root.

    A pair is far by the criterion of `dual.traverse`; one that is not is near if the source is a leaf, else the
    children take the source's place.  For clusters of targets against batches of sources exchange the arguments, and
    the pairs by `Pairs.swapped`.

    Parameters
    ----------
    batches, sources : ClusterTree
    theta, separation, cubes
        As in `dual.traverse`.
    small : int
        A well separated source of at most so many points is near all the same, though it may be no leaf: its points
        cost less than what would stand for them.
    """
    some = len(batches.leaves) * min(batches.n, sources.n, 1)
    frontier, found = (batches.leaves[:some], np.zeros(some, np.int32)), Found()
    t_geometry, s_geometry = Geometry.of(batches, sources, cubes=cubes)
    children, large = Children(sources), sources.count > small
    while len(frontier[0]):
        following = []
        for at in blocks(len(frontier[0])):
            t, s = frontier[0][at], frontier[1][at]
            far = is_far(t_geometry.take(t), s_geometry.take(s), theta, separation * t_geometry.scale)
            near = np.where(far, ~large[s], children.none[s])
            found.near(t[near], s[near])
            split, far = ~(far | near), far & ~near
            found.far(t[far], s[far])
            following.append(children.instead(s[split], t[split])[::-1])
        frontier = joined(following)
    return found.pairs()


def to_leaves(tree: ClusterTree, node: Nodes, other: Nodes) -> tuple[Nodes, Nodes]:
    """Hand what is attached to nodes down to the leaves below.

    Parameters
    ----------
    tree : ClusterTree
    node, other : arrays (K,) of int32
        Nodes, and what goes with each of them.

    Returns
    -------
    leaf, other : arrays of int32
        Every leaf below each node (itself, if it is one), and what goes with it, in the order given.
    """
    leaf_begin = tree.begin[tree.leaves]
    first = np.searchsorted(leaf_begin, tree.begin)[node]
    count = np.searchsorted(leaf_begin, tree.end)[node] - first
    return tree.leaves[spread(first, count)], np.repeat(other, count)


def csr(rows: Nodes, columns: Nodes, n_rows: int) -> tuple[NDArray[np.int32], Nodes]:
    """Sort pairs by row, stably; pairs that are there twice stay so.

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
    found = pairs.tocsr()
    starts = index32("the number of pairs of clusters", found.indptr, "Take a larger leaf_size.")
    return starts, found.indices.astype(np.int32, copy=False)


def merge_ranges(
    rows: Nodes, begin: NDArray[np.int32], end: NDArray[np.int32]
) -> tuple[Nodes, NDArray[np.int32], NDArray[np.int32]]:
    """Sort the ranges of each row, and join those that touch.

    Parameters
    ----------
    rows, begin, end : arrays (K,) of int32
        Range begin … end − 1 belongs to a row ≥ 0; ranges of one row do not overlap.  Empty ones are dropped.

    Returns
    -------
    rows, begin, end : arrays of int32
        Sorted by row, then by begin.
    """
    some = begin < end
    if not some.all():
        rows, begin, end = rows[some], begin[some], end[some]
    last = rows.astype(np.int64) << 32
    first = last + begin
    last += end
    first.sort()
    last.sort()  # in the same order, as ranges do not overlap
    new = np.ones(len(first), bool)
    new[1:] = first[1:] != last[:-1]
    first, last = first[new], last[np.append(new[1:], True)[: len(new)]]
    return (first >> 32).astype(np.int32), (first & 0xFFFFFFFF).astype(np.int32), (last & 0xFFFFFFFF).astype(np.int32)
