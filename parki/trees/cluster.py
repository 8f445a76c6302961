"""Trees of clusters, built level by level: nodes are cut at the middles of minimal boxes.

Source: L. Wilson, N. Vaughn, R. Krasny, "A GPU-accelerated fast summation method based on barycentric Lagrange
interpolation and dual tree traversal", Comput. Phys. Commun. 265 (2021) 108017, section 2.3.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki import engine
from parki.arrays import Array
from parki.engine.spaces import Space
from parki.trees import passes
from parki.trees.passes import Passes

ASPECT = math.sqrt(2)
MAX_LEVELS = 100  # points spaced by powers of 2 would make a level for each


@dataclass(frozen=True)
class ClusterTree:
    """Points in the order of nested clusters; M nodes, level by level, the children of a node next to each other.

    Attributes
    ----------
    points : array (3, N)
        The points, sorted: a node holds the places begin to end − 1.  Where the points given were.
    order : array (N,) of int32
        points[:, j] is the point order[j] of those given.
    begin, end, parent, first_child, n_children, level : arrays (M,) of int32
        Node by node; the root's parent is −1, and first_child is −1 for leaves.
    low, high : arrays (M, 3) of float64
        Minimal boxes.
    level_begin : array (L + 1,) of int32
        Level l holds the nodes level_begin[l] to level_begin[l + 1] − 1.
    leaves : array of int32
        Nodes without children, by the points that they hold.

    Everything but `points` and `order` are NumPy arrays.
    """

    points: Array
    order: Array
    begin: NDArray[np.int32]
    end: NDArray[np.int32]
    parent: NDArray[np.int32]
    first_child: NDArray[np.int32]
    n_children: NDArray[np.int32]
    level: NDArray[np.int32]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    level_begin: NDArray[np.int32]
    leaves: NDArray[np.int32]

    @property
    def n(self) -> int:
        """Number of points."""
        return int(self.points.shape[1])

    @cached_property
    def count(self) -> NDArray[np.int32]:
        """Number of points of each node ``(M,)``."""
        return self.end - self.begin

    @cached_property
    def centre(self) -> NDArray[np.float64]:
        """Centres of the boxes ``(M, 3)``."""
        return 0.5 * self.low + 0.5 * self.high  # the sum itself may overflow

    @cached_property
    def half(self) -> NDArray[np.float64]:
        """Half side lengths of the boxes ``(M, 3)``."""
        return 0.5 * self.high - 0.5 * self.low

    @cached_property
    def radius(self) -> NDArray[np.float64]:
        """Half diagonals of the boxes ``(M,)``."""
        return np.hypot(np.hypot(self.half[:, 0], self.half[:, 1]), self.half[:, 2])

    @cached_property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Whether a node has no children ``(M,)``."""
        return self.n_children == 0


def build(x: Array, leaf_size: int, space: Space, *, aspect: float = ASPECT) -> ClusterTree:
    """Build a tree of clusters with minimal boxes.

    A node of more than `leaf_size` points is cut at the middle of its box along its longest axis, and along those
    whose side is longer than the longest over `aspect`: along one axis only if it has no more than twice `leaf_size`
    points, along two if it has no more than four times as many.  Children without points are left out.  A node whose
    points are all equal is a leaf, and so is one on the hundredth level.  Without points there is one empty leaf.  The
    tree does not depend on the space or its threads.

    Parameters
    ----------
    x : array (3, N)
        Finite, float32 or float64: CuPy's where `space` is a GPU, else NumPy's.  Not written to.
    leaf_size : int
        Most points of a leaf, at least 1.
    space : Space
        Where passes over the points run.
    aspect : float
        At least 1.

    Raises
    ------
    ValueError
        If an argument does not fit.
    """
    passes.check_points("x", x)
    passes.check_leaf_size(leaf_size)
    if not aspect >= 1:
        raise ValueError(f"aspect is {aspect!r}; expected a number of at least 1.")
    points, nodes = Passes(x, space), _Nodes()
    begin, end, parent = (np.array([v], np.int32) for v in (0, x.shape[1], -1))
    low, high = points.bounds(begin, end) if x.shape[1] else (np.zeros((1, 3)),) * 2
    while True:
        first = nodes.append(begin, end, parent, low, high)
        split = (end - begin > leaf_size) & (low < high).any(axis=1) & (nodes.levels < MAX_LEVELS)
        points.finish(begin[~split], end[~split])
        at = np.flatnonzero(split)
        if not len(at):
            break
        middle = _middles(low[at], high[at], end[at] - begin[at], int(leaf_size), aspect, x.dtype)
        counted = points.count(begin[at], end[at], middle)
        low, high = points.place(counted, bounds=True)
        full = counted.total > 0
        begin, low, high, owner = counted.begin[full], low[full], high[full], np.nonzero(full)[0]
        end = begin + counted.total[full]
        parent = (first + at[owner]).astype(np.int32)
    return nodes.tree(*points.result())


def workunits(real: np.dtype[Any], space: Space) -> list[engine.Workunit]:
    """All workunits that `build` launches in a space, for compiling ahead."""
    return passes.workunits(real, space, bounds=True)


def _middles(
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    count: NDArray[np.int32],
    leaf_size: int,
    aspect: float,
    dtype: np.dtype[Any],
) -> Array:
    """Where each node is cut, (nodes, 3): points not below go to the upper child; infinite where it is not cut."""
    side = 0.5 * high - 0.5 * low  # halves do not overflow
    most = np.where(count <= 2 * leaf_size, 1, np.where(count <= 4 * leaf_size, 2, 3))
    by_length = np.argsort(-side, axis=1, kind="stable")
    rank = np.argsort(by_length, axis=1, kind="stable")
    longest = side.max(axis=1, keepdims=True)
    cut = (rank == 0) | ((rank < most[:, None]) & (side > longest / aspect))
    middle = (0.5 * low + 0.5 * high).astype(dtype)
    middle = np.where(middle > low, middle, high)  # neighbouring numbers: the upper one is the middle
    return np.where(cut & (low < high), middle, np.inf).astype(dtype)


class _Nodes:
    """Nodes, level by level."""

    def __init__(self) -> None:
        self.levels, self.count = 0, 0
        self.parts: list[tuple[Array, ...]] = []

    def append(self, begin: Array, end: Array, parent: Array, low: Array, high: Array) -> int:
        """Add a level; return the number of its first node."""
        first = self.count
        self.parts.append((begin, end, parent, low, high))
        self.levels += 1
        self.count += len(begin)
        return first

    def tree(self, points: Array, order: Array) -> ClusterTree:
        """The tree of all levels."""
        begin, end, parent, low, high = (np.concatenate(part) for part in zip(*self.parts, strict=True))
        sizes = [len(part[0]) for part in self.parts]
        n_children = np.bincount(parent[1:], minlength=self.count).astype(np.int32)
        first_child = np.full(self.count, -1, np.int32)
        first_child[parent[:0:-1]] = np.arange(self.count - 1, 0, -1)  # the last one to be written is the first child
        leaves = np.flatnonzero(n_children == 0)
        return ClusterTree(
            points,
            order,
            begin,
            end,
            parent,
            first_child,
            n_children,
            np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
            low,
            high,
            np.cumsum([0, *sizes], dtype=np.int32),
            leaves[np.argsort(begin[leaves], kind="stable")].astype(np.int32),
        )
