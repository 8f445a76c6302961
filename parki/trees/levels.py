"""Growth of trees, level by level: choose nodes to split, count the points of their octants, sort, go on below.

Counts and bounds come from an object for each set of points, and decisions from a rule: trees are the same whether one
process holds all points (`passes.Passes`) or counts are summed over many.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from parki.arrays import Array
from parki.trees.nodes import Ints, Spans
from parki.trees.passes import Bounds, Counted


class PointSet(Protocol):
    """Points that answer questions about nodes, each question for many nodes at once."""

    @property
    def n(self) -> int:
        """Return the number of points in this process."""

    @property
    def n_all(self) -> int:
        """Return the number of points in all processes."""

    def bounds(self, begin: Ints, end: Ints) -> Bounds:
        """Return the minimal boxes of nodes, of the points in all processes."""

    def count(self, begin: Ints, end: Ints, middle: Array) -> Counted:
        """Count the points of each octant of nodes, cut at `middle` (R, 3)."""

    def place(self, counts: Counted, *, bounds: bool) -> Bounds | None:
        """Sort the points of counted nodes by octant; return the octants' minimal boxes (R, 8, 3) if `bounds`."""

    def finish(self, begin: Ints, end: Ints) -> None:
        """Record leaves, whose points do not move any more."""


@dataclass(frozen=True)
class Level:
    """Nodes of one level, or of several levels if a tree grows on from them.

    Attributes
    ----------
    depth : array (K,) of int32
        Levels of the nodes in the tree.
    first : int
        Number of the first node among all.
    begin, end, count : lists of arrays (K,) of int32
        For each set of points: places in this process, and numbers of points in all processes.
    parent, octant : arrays (K,) of int32
        Number of the parent among all nodes, and the node's octant in it.
    box : tuple of arrays (K, …)
        Columns that belong to the rule.
    """

    depth: Ints
    first: int
    begin: list[Ints]
    end: list[Ints]
    count: list[Ints]
    parent: Ints
    octant: Ints
    box: tuple[NDArray[Any], ...]


class SplittingRule(Protocol):
    """Decisions of one kind of tree; `bounds` says whether `children` takes minimal boxes."""

    bounds: bool

    def root(self, sets: Sequence[PointSet]) -> tuple[NDArray[Any], ...]:
        """Return the columns of the root."""

    def splits(self, level: Level) -> NDArray[np.bool_]:
        """Return whether each node is to be split."""

    def middles(self, level: Level, index: Ints) -> Array:
        """Return the places (R, 3) where the nodes `index` are cut."""

    def divided(self, sets: Sequence[PointSet], level: Level, index: Ints, total: Ints) -> NDArray[np.bool_]:
        """Return whether the nodes `index`, with `total` (R, 8) points in their octants, are split after all."""

    def children(self, level: Level, parent: Ints, octant: Ints, bounds: list[Bounds]) -> tuple[NDArray[Any], ...]:
        """Return the columns of children: octants of the nodes `parent`, with their minimal boxes for each set."""


def grow(sets: Sequence[PointSet], rule: SplittingRule, level: Level | None = None) -> list[Level]:
    """Sort sets of points into one tree; return its levels, from the root or from the nodes of `level` down."""
    level, levels = level or _root(sets, rule), []
    while True:
        levels.append(level)
        split = rule.splits(level)
        index = np.flatnonzero(split)
        middle = rule.middles(level, index)
        spans = list(zip(sets, level.begin, level.end, strict=True))
        counts = [s.count(b[index], e[index], middle) for s, b, e in spans]
        mask = rule.divided(sets, level, index, sum(c.total for c in counts))
        split[index[~mask]] = False
        for s, b, e in spans:
            s.finish(b[~split], e[~split])
        index, counts = index[mask], [c.only(mask) for c in counts]
        if not len(index):
            return levels
        boxes = [s.place(c, bounds=rule.bounds) for s, c in zip(sets, counts, strict=True)]
        level = _below(level, rule, index, counts, boxes)


def _root(sets: Sequence[PointSet], rule: SplittingRule) -> Level:
    """Return the level of the root."""
    begin, end = [np.zeros(1, np.int32) for _ in sets], [np.array([s.n], np.int32) for s in sets]
    count = [np.array([s.n_all], np.int32) for s in sets]
    parent = np.full(1, -1, np.int32)
    return Level(np.zeros(1, np.int32), 0, begin, end, count, parent, np.zeros(1, np.int32), rule.root(sets))


def _below(level: Level, rule: SplittingRule, index: Ints, counts: list[Counted], boxes: list[Bounds | None]) -> Level:
    """Return the octants that have points, of the nodes `index`."""
    full = sum(c.total for c in counts) > 0
    owner, octant = (i.astype(np.int32) for i in np.nonzero(full))
    bounds = [(box[0][full], box[1][full]) for box in boxes if box is not None]
    return Level(
        level.depth[index[owner]] + np.int32(1),
        level.first + len(level.parent),
        [c.begin[full] for c in counts],
        [c.end[full] for c in counts],
        [c.total[full] for c in counts],
        (level.first + index[owner]).astype(np.int32),
        octant,
        rule.children(level, index[owner], octant, bounds),
    )


def topology(levels: list[Level]) -> dict[str, Ints]:
    """Return the fields of `nodes.Nodes`."""
    sizes = [len(level.parent) for level in levels]
    parent = np.concatenate([level.parent for level in levels])
    n_children = np.bincount(parent[1:], minlength=len(parent)).astype(np.int32)
    first_child = np.full(len(parent), -1, np.int32)
    inner = np.flatnonzero(n_children)
    first_child[inner] = 1 + np.cumsum(n_children[inner]) - n_children[inner]
    return {
        "level": np.concatenate([level.depth for level in levels]),
        "parent": parent,
        "first_child": first_child,
        "n_children": n_children,
        "level_begin": np.cumsum([0, *sizes], dtype=np.int32),
    }


def spans(levels: list[Level], k: int) -> Spans:
    """Return the places of the k-th set of points."""
    return Spans(
        np.concatenate([level.begin[k] for level in levels]), np.concatenate([level.end[k] for level in levels])
    )


def columns(levels: list[Level]) -> tuple[NDArray[Any], ...]:
    """Return the rule's columns of all nodes."""
    return tuple(np.concatenate(column) for column in zip(*(level.box for level in levels), strict=True))
