"""Adaptive octrees of sources and targets: boxes are cut at the centres of their cubes, level by level.

Source: L. Ying, G. Biros, D. Zorin, "A kernel-independent adaptive fast multipole algorithm in two and three
dimensions", J. Comput. Phys. 196 (2004) 591–626, section 3.
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

MAX_LEVEL = 20  # keys of 3 bits a level fit in 64 bits, and centres of boxes are known to 1e-10 of their sides
OCTANTS = np.array([[o >> 2, o >> 1 & 1, o & 1] for o in range(8)], np.int32)

Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Sorted:
    """Points (3, N) in the order of a tree, points[:, j] the point order[j] of those given; where these were."""

    points: Array
    order: Array

    @property
    def n(self) -> int:
        """Number of points."""
        return int(self.points.shape[1])


@dataclass(frozen=True)
class Octree:
    """Sources and targets in the order of nested cubes; M boxes, level by level, in Morton order within a level.

    Octant 4 x + 2 y + z of a box has the bits x, y, z set where it is above the centre.  Boxes that hold neither
    sources nor targets are left out.  An *octet* is the eight places for children below a box that has some.

    Attributes
    ----------
    low : array (3,) of float64
        Lowest corner of the root.
    width : float
        Its side length.
    sources, targets : Sorted
        The same object if the targets are the sources.
    level, parent, first_child, n_children, octant : arrays (M,) of int32
        Box by box; children are next to each other; the root's parent is −1, and first_child is −1 for leaves.
    begin_src, end_src, begin_trg, end_trg : arrays (M,) of int32
        A box holds the sources begin_src to end_src − 1, and the targets likewise.
    key : array (M,) of int64
        Morton key: octants from the root down, three bits each.
    anchor : array (M, 3) of int32
        Lowest corner in units of the box's own side, counted from the root's.
    child : array (M, 8) of int32
        Children by octant, −1 where there is none.
    level_begin : array (L + 1,) of int32
        Level l holds the boxes level_begin[l] to level_begin[l + 1] − 1.
    octet : array (M,) of int32
        Number of the octet below a box, −1 for leaves; octets are in the order of their parents.
    octet_parent : array (K,) of int32
        The box above an octet.
    octet_begin : array (L + 1,) of int32
        Octets octet_begin[l] to octet_begin[l + 1] − 1 are those below boxes of level l.
    slot : array (M,) of int32
        8 times the octet that a box is in, plus its octant; −1 for the root.

    Everything but sources and targets are NumPy arrays.
    """

    low: NDArray[np.float64]
    width: float
    sources: Sorted
    targets: Sorted
    level: Ints
    parent: Ints
    first_child: Ints
    n_children: Ints
    octant: Ints
    begin_src: Ints
    end_src: Ints
    begin_trg: Ints
    end_trg: Ints
    key: NDArray[np.int64]
    anchor: Ints
    child: Ints
    level_begin: Ints
    octet: Ints
    octet_parent: Ints
    octet_begin: Ints
    slot: Ints

    @property
    def n(self) -> int:
        """Number of boxes."""
        return len(self.level)

    @property
    def depth(self) -> int:
        """The deepest level; the root's is 0."""
        return len(self.level_begin) - 2

    @cached_property
    def half(self) -> NDArray[np.float64]:
        """Half side lengths ``(M,)``."""
        return np.ldexp(self.width, -(self.level + 1))

    @cached_property
    def centre(self) -> NDArray[np.float64]:
        """Centres ``(M, 3)``."""
        return self.low + self.half[:, None] * (2 * self.anchor + 1)

    @cached_property
    def n_src(self) -> Ints:
        """Sources of each box ``(M,)``."""
        return self.end_src - self.begin_src

    @cached_property
    def n_trg(self) -> Ints:
        """Targets of each box ``(M,)``."""
        return self.end_trg - self.begin_trg

    @cached_property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Whether a box has no children ``(M,)``."""
        return self.n_children == 0


def build(
    sources: Array, targets: Array | None, leaf_size: int, space: Space, *, fill: float | None = None,
    levels: int = MAX_LEVEL,
) -> Octree:  # fmt: skip
    """Build an octree.

    A box is cut while it has more than `leaf_size` sources, or more than that many targets, unless all its points are
    equal or it is on the last level.  Points on a face between boxes belong to the upper one.  The root's lowest
    corner is that of all points.  Its side is the longest side of their box, and at least so much longer than points on
    its upper faces are inside: 1e-12 of it, or a unit in the last place; it is 1 if no two points differ.  The tree
    does not depend on the space or its threads.

    Parameters
    ----------
    sources : array (3, N)
        Finite, float32 or float64: CuPy's where `space` is a GPU, else NumPy's.  Not written to.
    targets : array (3, N_t), optional
        Of the same dtype; by default the sources.
    leaf_size : int
        Most sources, and most targets, of a leaf: at least 1.
    space : Space
        Where passes over the points run.
    fill : float, optional
        At least 1: boxes across the points' box on the level where there are so many or more across the root, whose
        side becomes as much longer as that takes.  Every number of boxes across is then possible, not only powers of 2.

    Raises
    ------
    ValueError
        If an argument does not fit, or if points are so far apart that their distance is not a number.
    """
    passes.check_points("sources", sources)
    passes.check_leaf_size(leaf_size)
    if targets is not None:
        passes.check_points("targets", targets)
        if targets.dtype != sources.dtype:
            raise ValueError(f"targets has dtype {targets.dtype}; expected that of sources, {sources.dtype}.")
    if fill is not None and not 1 <= fill < math.inf:
        raise ValueError(f"fill is {fill!r}; expected a number of at least 1, or None.")
    given = [sources] if targets is None or targets is sources else [sources, targets]
    points = [Passes(x, space) for x in given]
    low, width = _root(points, fill)
    made = _Levels()
    begin, end = [np.zeros(1, np.int32) for _ in points], [np.array([p.n], np.int32) for p in points]
    parent, octant, anchor = np.full(1, -1, np.int32), np.zeros(1, np.int32), np.zeros((1, 3), np.int32)
    while True:
        first = made.append(begin, end, parent, octant, anchor)
        split = np.zeros(len(parent), bool)
        if made.n <= min(levels, MAX_LEVEL):
            split = np.logical_or.reduce([e - b > leaf_size for b, e in zip(begin, end, strict=True)])
        at = np.flatnonzero(split)
        ranges = [(p, b[at], e[at]) for p, b, e in zip(points, begin, end, strict=True)]
        middle = _middles(low, np.ldexp(width, -made.n), anchor[at], sources.dtype)
        counted = [p.count(b, e, middle) for p, b, e in ranges]
        apart = _apart(ranges, sum(c.total for c in counted))
        split[at[~apart]] = False
        for p, b, e in zip(points, begin, end, strict=True):
            p.finish(b[~split], e[~split])
        at, counted = at[apart], [c.only(apart) for c in counted]
        if not len(at):
            break
        for p, c in zip(points, counted, strict=True):
            p.place(c, bounds=False)
        full = sum(c.total for c in counted) > 0
        owner, octant = (i.astype(np.int32) for i in np.nonzero(full))
        begin = [c.begin[full] for c in counted]
        end = [b + c.total[full] for b, c in zip(begin, counted, strict=True)]
        parent, anchor = (first + at[owner]).astype(np.int32), 2 * anchor[at[owner]] + OCTANTS[octant]
    return made.tree(low, width, [Sorted(*p.result()) for p in points])


def workunits(real: np.dtype[Any], space: Space) -> list[engine.Workunit]:
    """All workunits that `build` launches in a space, for compiling ahead."""
    return passes.workunits(real, space, bounds=False)


def _root(points: list[Passes], fill: float | None) -> tuple[NDArray[np.float64], float]:
    """Lowest corner and side length of the root."""
    some = [p.bounds(np.zeros(1, np.int32), np.array([p.n], np.int32)) for p in points if p.n]
    if not some:
        return np.zeros(3), 1.0
    low, high = np.min([b[0][0] for b in some], axis=0), np.max([b[1][0] for b in some], axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        side = float((high - low).max())
        if side == 0:
            return low, 1.0
        above = max(side * (1 + 1e-12), float((np.nextafter(high, np.inf) - low).max()))
        mantissa = math.frexp(fill or 1.0)[0]
        width = above if mantissa == 0.5 else above / mantissa
    if not math.isfinite(width):
        raise ValueError(f"points are up to {side} apart; expected finite points, at finite distances.")
    return low, width


def _middles(low: NDArray[np.float64], half: float, anchor: Ints, dtype: np.dtype[Any]) -> Array:
    """Centres of boxes, (boxes, 3): the lowest of the numbers that points can be which are not below them."""
    exact = low + half * (2 * anchor + 1)
    rounded = exact.astype(dtype)
    return np.where(rounded < exact, np.nextafter(rounded, dtype.type(np.inf)), rounded)


def _apart(ranges: list[tuple[Passes, Ints, Ints]], total: Ints) -> NDArray[np.bool_]:
    """Whether boxes hold points that differ, from the points of their octants."""
    apart = np.count_nonzero(total, axis=1) > 1
    lone = np.flatnonzero(~apart)
    if len(lone):
        bounds = [p.bounds(b[lone], e[lone]) for p, b, e in ranges]
        low, high = np.min([b[0] for b in bounds], axis=0), np.max([b[1] for b in bounds], axis=0)
        apart[lone] = (low < high).any(axis=1)
    return apart


class _Levels:
    """Boxes, level by level."""

    def __init__(self) -> None:
        self.n, self.count = 0, 0
        self.parts: list[tuple[Array, ...]] = []

    def append(self, begin: list[Ints], end: list[Ints], parent: Ints, octant: Ints, anchor: Ints) -> int:
        """Add a level; return the number of its first box."""
        first = self.count
        key = np.zeros(1, np.int64)
        if self.n:
            above = self.parts[-1][4]
            key = 8 * above[parent - (first - len(above))] + octant
        self.parts.append((begin[0], end[0], begin[-1], end[-1], key, parent, octant, anchor))
        self.n += 1
        self.count += len(parent)
        return first

    def tree(self, low: NDArray[np.float64], width: float, points: list[Sorted]) -> Octree:
        """The tree of all levels."""
        sizes = [len(part[0]) for part in self.parts]
        joined = [np.concatenate(part) for part in zip(*self.parts, strict=True)]
        begin_src, end_src, begin_trg, end_trg, key, parent, octant, anchor = joined
        level_begin = np.cumsum([0, *sizes], dtype=np.int32)
        child = np.full((self.count, 8), -1, np.int32)
        child[parent[1:], octant[1:]] = np.arange(1, self.count, dtype=np.int32)
        n_children = np.count_nonzero(child >= 0, axis=1).astype(np.int32)
        octet_parent = np.flatnonzero(n_children).astype(np.int32)
        octet, first_child = np.full((2, self.count), -1, np.int32)
        octet[octet_parent] = np.arange(len(octet_parent))
        first_child[octet_parent] = 1 + np.cumsum(n_children[octet_parent]) - n_children[octet_parent]
        slot = 8 * octet[parent] + octant
        slot[0] = -1
        return Octree(
            low,
            width,
            points[0],
            points[-1],
            np.repeat(np.arange(self.n, dtype=np.int32), sizes),
            parent,
            first_child,
            n_children,
            octant,
            begin_src,
            end_src,
            begin_trg,
            end_trg,
            key,
            anchor,
            child,
            level_begin,
            octet,
            octet_parent,
            np.searchsorted(octet_parent, level_begin).astype(np.int32),
            slot,
        )
