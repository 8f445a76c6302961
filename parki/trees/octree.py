"""Adaptive octrees of sources and targets: boxes are cut at the centres of their cubes, level by level.

Source: L. Ying, G. Biros, D. Zorin, "A kernel-independent adaptive fast multipole algorithm in two and three
dimensions", J. Comput. Phys. 196 (2004) 591–626, section 3.
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

MAX_LEVEL = 20  # last level of a tree: keys of 3 bits a level fit in 64 bits, and centres are known to 1e-10 of sides
SIDE_BITS = 6  # of a root's side that is rounded: 3 % more, at most
OCTANTS = np.array([[o >> 2, o >> 1 & 1, o & 1] for o in range(8)], np.int32)


@dataclass(frozen=True)
class OctNodes(Nodes):
    """Nested cubes, in Morton order within a level, without points; NumPy arrays.

    Octant 4 x + 2 y + z of a box has the bits x, y, z set where it is above the centre.  Boxes that hold neither
    sources nor targets are left out.  An *octet* is the eight places for children below a box that has some.

    Attributes
    ----------
    low : array (3,) of float64
        Lowest corner of the root.
    width : float
        Side length of the root.
    sources, targets : Spans
        Places of the points that boxes hold; the same object if the targets are the sources.
    octant : array (M,) of int32
        Octant of each box in its parent.
    key : array (M,) of int64
        Morton key: octants from the root down, three bits each.
    anchor : array (M, 3) of int32
        Lowest corner in units of the box's own side, counted from the root's.
    child : array (M, 8) of int32
        Children by octant, −1 where there is none.
    octet : array (M,) of int32
        Number of the octet below a box, −1 for leaves; octets are in the order of their parents.
    octet_parent : array (K,) of int32
        The box above an octet.
    octet_begin : array (L + 1,) of int32
        Octets octet_begin[l] to octet_begin[l + 1] − 1 are those below boxes of level l.
    slot : array (M,) of int32
        8 times the octet that a box is in, plus its octant; −1 for the root.
    part : Spans, optional
        Places of the sources whose expansions this process makes, where others make more; see `own`.
    """

    low: NDArray[np.float64]
    width: float
    sources: Spans
    targets: Spans
    octant: Ints
    key: NDArray[np.int64]
    anchor: Ints
    child: Ints
    octet: Ints
    octet_parent: Ints
    octet_begin: Ints
    slot: Ints
    part: Spans | None = None

    @property
    def own(self) -> Spans:
        """Return the places of the sources whose expansions this process makes."""
        return self.sources if self.part is None else self.part

    @cached_property
    def half(self) -> NDArray[np.float64]:
        """Return the half side lengths ``(M,)``."""
        return np.ldexp(self.width, -(self.level + 1))

    @cached_property
    def centre(self) -> NDArray[np.float64]:
        """Return the centres ``(M, 3)``."""
        return self.low + self.half[:, None] * (2 * self.anchor + 1)


@dataclass(frozen=True)
class Octree:
    """Nested cubes, and the sources and targets that they hold.

    Attributes
    ----------
    nodes : OctNodes
    sources, targets : Sorted
        Points in the order of the nodes; the same object if the targets are the sources.
    """

    nodes: OctNodes
    sources: Sorted
    targets: Sorted


def build(
    sources: Array, targets: Array | None, leaf_size: int, space: Space, *, fill: float | None = None,
    deepest: int = MAX_LEVEL, is_rounded: bool = False,
) -> Octree:  # fmt: skip
    """Build an octree.

    A box is cut while it has more than `leaf_size` sources, or more than `leaf_size` targets, unless all its points are
    equal or it is on the last level.  Points on a face between boxes belong to the upper one.  The root's lowest
    corner is that of all points.  Its side is the longest side of their box, made longer by 1e-12 or by a unit in the
    last place, so that points on upper faces are inside; it is 1 if no two points differ.  The tree does not depend on
    the space or its threads.

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
        At least 1: boxes across the points' box on the first level with at least this number of boxes across the root,
        whose side becomes as much longer as that takes.  Any number of boxes across is then possible, not only powers
        of 2.
    deepest : int
        Last level, 20 at most; the root's is 0.
    is_rounded : bool
        Round the root's side up to a number of 6 bits, which points that move a little mostly keep.

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
    sets = [sources] if targets is None or targets is sources else [sources, targets]
    points = [Passes(x, space) for x in sets]
    low, width = root_cube(points, fill, is_rounded)
    tree_levels = levels.grow(points, Cubes(low, width, leaf_size, min(deepest, MAX_LEVEL), sources.dtype))
    sorted_sets = [Sorted(*p.result()) for p in points]
    return Octree(_nodes(low, width, tree_levels), sorted_sets[0], sorted_sets[-1])


def workunits(real: np.dtype[Any], space: Space) -> dict[str, engine.Workunit]:
    """Return every workunit that `build` launches in a space, for compiling ahead."""
    return passes.workunits(real.name, space, False)


def root_cube(
    points: Sequence[PointSet], fill: float | None, is_rounded: bool
) -> tuple[NDArray[np.float64], float]:  # fmt: skip
    """Return the lowest corner and the side length of the root."""
    bounds = [p.bounds(np.zeros(1, np.int32), np.array([p.n], np.int32)) for p in points if p.n_all]
    if not bounds:
        return np.zeros(3), 1.0
    low, high = np.min([b[0][0] for b in bounds], axis=0), np.max([b[1][0] for b in bounds], axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        side = float((high - low).max())
        if side == 0:
            return low, 1.0
        least_width = max(side * (1 + 1e-12), float((np.nextafter(high, np.inf) - low).max()))
        width = least_width / share(fill)
        if is_rounded and width < math.inf:
            mantissa, exponent = math.frexp(width)
            width = math.ldexp(math.ceil(mantissa * 2**SIDE_BITS), exponent - SIDE_BITS)
    if not math.isfinite(width):
        raise ValueError(f"points are up to {side} apart; expected finite points, at finite distances.")
    return low, width


def share(fill: float | None) -> float:
    """Return the share of the root's side that the box of all points takes."""
    mantissa = math.frexp(fill or 1.0)[0]
    return 1.0 if mantissa == 0.5 else mantissa


def levels_of(across: float, fill: float | None) -> int:
    """Return the last level with at most `across` boxes across all points, in a root that is made for `fill`."""
    across_root = across / share(fill)
    return max(0, math.floor(math.log2(min(max(across_root, 1.0), 2.0**MAX_LEVEL))))


@dataclass(frozen=True)
class Cubes:
    """Rule of an octree: boxes are cut at the centres of their cubes, whose columns are anchors and keys."""

    low: NDArray[np.float64]
    width: float
    leaf_size: int
    deepest: int
    dtype: np.dtype[Any]
    bounds: bool = False

    def root(self, sets: Sequence[PointSet]) -> tuple[NDArray[Any], ...]:
        """Return the root's anchor and key."""
        return np.zeros((1, 3), np.int32), np.zeros(1, np.int64)

    def splits(self, level: Level) -> NDArray[np.bool_]:
        """Return whether boxes have many points of some set, and may have children."""
        mask = np.logical_or.reduce([count > self.leaf_size for count in level.count])
        return mask & (level.depth < self.deepest)

    def middles(self, level: Level, index: Ints) -> Array:
        """Return the centres (R, 3) of boxes, rounded up to numbers of the points' type."""
        exact = self.low + np.ldexp(self.width, -level.depth[index, None] - 1) * (2 * level.box[0][index] + 1)
        centre = exact.astype(self.dtype)
        return np.where(centre < exact, np.nextafter(centre, self.dtype.type(np.inf)), centre)

    def divided(self, sets: Sequence[PointSet], level: Level, index: Ints, total: Ints) -> NDArray[np.bool_]:
        """Return whether boxes hold points that differ: in several octants, or apart in one."""
        mask = np.count_nonzero(total, axis=1) > 1
        rows = np.flatnonzero(~mask)
        if len(rows):
            spans = zip(sets, level.begin, level.end, strict=True)
            bounds = [p.bounds(b[index[rows]], e[index[rows]]) for p, b, e in spans]
            low, high = np.min([b[0] for b in bounds], axis=0), np.max([b[1] for b in bounds], axis=0)
            mask[rows] = (low < high).any(axis=1)
        return mask

    def children(self, level: Level, parent: Ints, octant: Ints, bounds: list[Bounds]) -> tuple[NDArray[Any], ...]:
        """Return the anchors and keys of children."""
        anchor, key = level.box
        return 2 * anchor[parent] + OCTANTS[octant], 8 * key[parent] + octant


def _nodes(low: NDArray[np.float64], width: float, tree_levels: list[Level]) -> OctNodes:
    """Join levels."""
    topology, (anchor, key) = levels.topology(tree_levels), levels.columns(tree_levels)
    spans = [levels.spans(tree_levels, k) for k in range(len(tree_levels[0].begin))]
    octant = np.concatenate([level.octant for level in tree_levels])
    return joined((low, width), topology, spans[0], spans[-1], {"octant": octant, "key": key, "anchor": anchor})


def joined(
    root: tuple[NDArray[np.float64], float], topology: dict[str, Ints], sources: Spans, targets: Spans,
    columns: dict[str, NDArray[Any]], part: Spans | None = None,
) -> OctNodes:  # fmt: skip
    """Return nodes with their octets.

    Parameters
    ----------
    root : (array (3,), float)
        Lowest corner and width of the root.
    topology : dict
        Columns of `parki.trees.nodes.Nodes`; nodes with a first child have all their children.
    sources, targets : Spans
    columns : dict
        Octants, keys and anchors.
    part : Spans, optional
    """
    parent, octant = topology["parent"], columns["octant"]
    child, octet = np.full((len(parent), 8), -1, np.int32), np.full(len(parent), -1, np.int32)
    child[parent[1:], octant[1:]] = np.arange(1, len(parent), dtype=np.int32)
    octet_parent = np.flatnonzero(topology["first_child"] >= 0).astype(np.int32)
    octet[octet_parent] = np.arange(len(octet_parent))
    slot = 8 * octet[parent] + octant
    slot[0] = -1
    octet_begin = np.searchsorted(octet_parent, topology["level_begin"]).astype(np.int32)
    return OctNodes(
        **topology, low=root[0], width=root[1], sources=sources, targets=targets, **columns, child=child, octet=octet,
        octet_parent=octet_parent, octet_begin=octet_begin, slot=slot, part=part,
    )  # fmt: skip
