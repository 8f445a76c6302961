"""Nodes of trees without points: parents and children, and the places of the points that nodes hold."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Spans:
    """Places of one set of points in the order of a tree: node i holds begin[i] … end[i] − 1.

    Attributes
    ----------
    begin, end : arrays (M,) of int32
    """

    begin: Ints
    end: Ints

    @cached_property
    def count(self) -> Ints:
        """Return the number of points of each node ``(M,)``."""
        return self.end - self.begin

    @property
    def n_points(self) -> int:
        """Return the number of points of the root."""
        return int(self.count[0])


@dataclass(frozen=True)
class PartialSpans(Spans):
    """Places of the points of a set that are in this process; other points may be elsewhere.

    Attributes
    ----------
    number : array (M,) of int32
        Numbers of points in all processes.
    """

    number: Ints

    @property
    def count(self) -> Ints:  # type: ignore[override]
        """Return the number of points of each node in all processes ``(M,)``."""
        return self.number


@dataclass(frozen=True)
class Nodes:
    """M nodes, level by level, the children of a node next to each other; NumPy arrays.

    Attributes
    ----------
    level, parent, first_child, n_children : arrays (M,) of int32
        The root's parent is −1, and first_child is −1 for leaves.
    level_begin : array (L + 1,) of int32
        Level l holds the nodes level_begin[l] to level_begin[l + 1] − 1.
    """

    level: Ints
    parent: Ints
    first_child: Ints
    n_children: Ints
    level_begin: Ints

    @property
    def n(self) -> int:
        """Return the number of nodes."""
        return len(self.level)

    @property
    def depth(self) -> int:
        """Return the deepest level; the root's is 0."""
        return len(self.level_begin) - 2

    @cached_property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Return whether each node has no children ``(M,)``."""
        return self.n_children == 0
