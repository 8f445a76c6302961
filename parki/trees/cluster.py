"""Trees of clusters, built level by level: nodes are cut at the middles of minimal boxes.

Source: L. Wilson, N. Vaughn, R. Krasny, "A GPU-accelerated fast summation method based on barycentric Lagrange
interpolation and dual tree traversal", Comput. Phys. Commun. 265 (2021) 108017, section 2.3.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki import engine
from parki.arrays import Array
from parki.engine import Space
from parki.trees import levels, passes
from parki.trees.levels import Level, PointSet
from parki.trees.nodes import Ints, Nodes, Spans
from parki.trees.passes import Bounds, Passes
from parki.trees.points import Sorted

ASPECT = math.sqrt(2)  # longest side over the shortest side that is also cut
MAX_LEVELS = 100  # levels of a tree, at most: points spaced by powers of 2 would make a level for each


@dataclass(frozen=True)
class ClusterNodes(Spans, Nodes):
    """Nested clusters of one set of points, and their minimal boxes; NumPy arrays.

    Attributes
    ----------
    low, high : arrays (M, 3) of float64
        Minimal boxes.
    leaves : array of int32
        Nodes without children, in the order of their points.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    leaves: NDArray[np.int32]

    @cached_property
    def centre(self) -> NDArray[np.float64]:
        """Return the centres of the boxes ``(M, 3)``."""
        return 0.5 * self.low + 0.5 * self.high  # the sum itself may overflow

    @cached_property
    def half(self) -> NDArray[np.float64]:
        """Return the half side lengths of the boxes ``(M, 3)``."""
        return 0.5 * self.high - 0.5 * self.low

    @cached_property
    def radius(self) -> NDArray[np.float64]:
        """Return the half diagonals of the boxes ``(M,)``."""
        return np.hypot(np.hypot(self.half[:, 0], self.half[:, 1]), self.half[:, 2])


@dataclass(frozen=True)
class ClusterTree:
    """Nested clusters, and the points that they hold.

    Attributes
    ----------
    nodes : ClusterNodes
    sorted : Sorted
        The points in the order of the nodes.
    """

    nodes: ClusterNodes
    sorted: Sorted


def build(x: Array, leaf_size: int, space: Space, *, aspect: float = ASPECT) -> ClusterTree:
    """Build a tree of clusters with minimal boxes.

    A node of more than `leaf_size` points is cut at the middle of its box along its longest axis, and along each axis
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
    points = Passes(x, space)
    tree_levels = levels.grow([points], MinimalBoxes(int(leaf_size), aspect, x.dtype))
    return ClusterTree(_nodes(tree_levels), Sorted(*points.result()))


def workunits(real: np.dtype[Any], space: Space) -> dict[str, engine.Workunit]:
    """Return every workunit that `build` launches in a space, for compiling ahead."""
    return passes.workunits(real.name, space, True)


@dataclass(frozen=True)
class MinimalBoxes:
    """Rule of a tree of clusters: nodes are cut at the middles of minimal boxes, whose columns are low and high."""

    leaf_size: int
    aspect: float
    dtype: np.dtype[Any]
    bounds: bool = True

    def root(self, sets: Sequence[PointSet]) -> Bounds:
        """Return the minimal box of all points; without points, zeros."""
        (points,) = sets
        if not points.n_all:
            return np.zeros((1, 3)), np.zeros((1, 3))
        return points.bounds(np.zeros(1, np.int32), np.array([points.n], np.int32))

    def splits(self, level: Level) -> NDArray[np.bool_]:
        """Return whether nodes have many points, some of which differ, and may have children."""
        low, high = level.box
        return (level.count[0] > self.leaf_size) & (low < high).any(axis=1) & (level.depth + 1 < MAX_LEVELS)

    def middles(self, level: Level, index: Ints) -> Array:
        """Return the places (R, 3) where nodes are cut; points not below go to the upper child.

        The place is infinite along axes that are not cut.
        """
        low, high, count = level.box[0][index], level.box[1][index], level.count[0][index]
        side = 0.5 * high - 0.5 * low  # halves do not overflow
        n_axes = np.where(count <= 2 * self.leaf_size, 1, np.where(count <= 4 * self.leaf_size, 2, 3))
        axes = np.argsort(-side, axis=1, kind="stable")
        rank = np.argsort(axes, axis=1, kind="stable")
        longest = side.max(axis=1, keepdims=True)
        cut = (rank == 0) | ((rank < n_axes[:, None]) & (side > longest / self.aspect))
        middle = (0.5 * low + 0.5 * high).astype(self.dtype)
        middle = np.where(middle > low, middle, high)  # neighbouring numbers: the upper one is the middle
        return np.where(cut & (low < high), middle, np.inf).astype(self.dtype)

    def divided(self, sets: Sequence[PointSet], level: Level, index: Ints, total: Ints) -> NDArray[np.bool_]:
        """Return True for every node: the middle of a minimal box has points on both sides."""
        return np.ones(len(index), bool)

    def children(self, level: Level, parent: Ints, octant: Ints, bounds: list[Bounds]) -> Bounds:
        """Return the minimal boxes of children."""
        return bounds[0]


def _nodes(tree_levels: list[Level]) -> ClusterNodes:
    """Join levels."""
    low, high = levels.columns(tree_levels)
    topology, spans = levels.topology(tree_levels), levels.spans(tree_levels, 0)
    leaves = np.flatnonzero(topology["n_children"] == 0)
    leaves = leaves[np.argsort(spans.begin[leaves], kind="stable")].astype(np.int32)
    return ClusterNodes(**topology, begin=spans.begin, end=spans.end, low=low, high=high, leaves=leaves)
