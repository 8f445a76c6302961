"""Lists of boxes of an octree: pairs that meet directly, and through expansions of one of them or of both.

Every pair of a target and a source belongs to exactly one of: a pair of leaves (U), a pair of boxes of one level (V),
a leaf of targets and a finer box of sources (W), and a box of targets and a coarser leaf of sources (X).

Source: L. Ying, G. Biros, D. Zorin, "A kernel-independent adaptive fast multipole algorithm in two and three
dimensions", J. Comput. Phys. 196 (2004) 591–626, section 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parki.trees.bysource import ListsBySource
from parki.trees.lists import joined_ranges
from parki.trees.nodes import Ints, Spans
from parki.trees.octree import OCTANTS, OctNodes

# Directions (dx, dy, dz), dx the slowest: 13 is (0, 0, 0).
CENTRE = 13
DIRECTIONS = np.stack(np.meshgrid(*[[-1, 0, 1]] * 3, indexing="ij"), axis=-1).reshape(27, 3)
# Cells −1 … 2 in each direction around the octants of a box: the neighbour of that box, and the octant in it.
_CELLS = np.stack(np.meshgrid(*[[-1, 0, 1, 2]] * 3, indexing="ij"), axis=-1).reshape(64, 3)
_CELL_NEIGHBOUR = (_CELLS // 2 + 1) @ [9, 3, 1]
_CELL_OCTANT = (_CELLS % 2 @ [4, 2, 1]).astype(np.int32)
# Whether an octant of the box in a direction touches the box in the middle; the same for all generations below.
_TOUCHES = ((DIRECTIONS[:, None] == 0) | ((DIRECTIONS < 0)[:, None] == OCTANTS)).all(axis=-1)

Pair = tuple[Ints, Ints]


@dataclass(frozen=True)
class OctLists:
    """Pairs of boxes (target, source) of an octree, or of octets, int32, for one set of sources.

    Attributes
    ----------
    u_t, u_s : arrays
        Leaves that touch, and the W and X pairs of few points.
    w_t, w_s : arrays
        A leaf, and a finer box that does not touch it though its parent does.
    x_t, x_s : arrays
        A box, and a coarser leaf that touches the box's parent but not the box.
    v_t, v_s : arrays
        Octets whose parents are neighbours on one level: boxes of one and of the other that do not touch are pairs.
        Sorted by target, hence by level, then by direction.
    v_direction : array
        From the parent of the target octet to that of the source octet, 0 … 25: differences (dx, dy, dz) of −1, 0, 1
        with dx slowest, without (0, 0, 0).
    """

    u_t: Ints
    u_s: Ints
    w_t: Ints
    w_s: Ints
    x_t: Ints
    x_s: Ints
    v_t: Ints
    v_s: Ints
    v_direction: Ints


def lists(
    nodes: OctNodes, threshold: int = 0, further_sources: Sequence[Spans] = ()
) -> ListsBySource[OctNodes, Spans, OctLists]:
    """Make all lists of a tree, with its own sources and with further ones in the same boxes.

    Boxes without sources are no sources, and boxes without targets no targets; of a pair of octets, one has a box with
    sources, the other a box with targets.  Boxes whose children are not in the tree are neither leaves nor opened: the
    tree must have the children of boxes that touch a box with targets on their level.

    Parameters
    ----------
    nodes : OctNodes
    threshold : int
        A W pair whose source is a leaf of fewer sources, and an X pair whose target is a leaf of fewer targets, are
        U pairs instead: their points cost less than expansions.
    further_sources : sequence of Spans
        Places of further sources in the boxes: lists are the tree's own, then one for each of `further_sources`.
    """
    result = ListsBySource.of(nodes, nodes.sources, _lists(nodes, nodes.sources, threshold))
    for sources in further_sources:
        result = result.appended(sources, _lists(nodes, sources, threshold))
    return result


def _lists(nodes: OctNodes, sources: Spans, threshold: int) -> OctLists:
    """Make the lists of one set of sources, level by level."""
    pairs = _GrowingLists(nodes, sources, threshold)
    neighbours = np.full((1, 27), -1, np.int32)  # boxes in the 27 places around each box of a level
    neighbours[0, CENTRE] = 0
    coarse, fine, direction = np.empty(
        (3, 0), np.int32
    )  # leaves, and boxes of a level that touch them and are no leaves
    for level in range(nodes.depth + 1):
        box = np.arange(*nodes.level_begin[level : level + 2], dtype=np.int32)
        leaf, inner = nodes.is_leaf[box], nodes.octet[box] >= 0
        leaves, colleague, neighbours = box[leaf], neighbours[leaf], neighbours[inner]
        pairs.octets(nodes.octet[box[inner]], nodes.octet[neighbours])
        split = nodes.octet[colleague] >= 0
        last = (colleague >= 0) & ~split
        pairs.near(np.repeat(leaves, np.count_nonzero(last, axis=1)), colleague[last])
        row, place = np.nonzero(split)
        coarse = np.concatenate([coarse, leaves[row]])
        fine = np.concatenate([fine, colleague[row, place]])
        direction = np.concatenate([direction, place.astype(np.int32)])
        coarse, fine, direction = pairs.children(coarse, fine, direction)
        neighbours = _colleagues(nodes, neighbours, slice(*nodes.octet_begin[level : level + 2]))
    return pairs.lists()


def _colleagues(nodes: OctNodes, neighbours: Ints, octets: slice) -> Ints:
    """Return the boxes in the 27 places around each box in octets, (boxes, 27).

    `neighbours` (octets, 27) has the boxes around the boxes above.
    """
    # A missing box is −1 and stands for the last box, which is a leaf, so that its children are missing, too.
    cell = nodes.child.ravel().take(8 * neighbours.take(_CELL_NEIGHBOUR, axis=1) + _CELL_OCTANT).reshape(-1, 4, 4, 4)
    children = np.empty((len(cell), 8, 3, 3, 3), np.int32)
    for octant, (x, y, z) in enumerate(OCTANTS):
        children[:, octant] = cell[:, x : x + 3, y : y + 3, z : z + 3]
    return children[nodes.child[nodes.octet_parent[octets]] >= 0].reshape(-1, 27)


class _GrowingLists:
    """Collect the pairs of boxes for each interaction list: targets have target points, sources source points."""

    def __init__(self, nodes: OctNodes, sources: Spans, threshold: int) -> None:
        self.nodes, self.n_src, self.n_trg = nodes, sources.count, nodes.targets.count
        self.full = nodes.targets is sources and sources.n_points > 0  # no box lacks sources or targets
        self.few_src, self.few_trg = (nodes.is_leaf & (n < threshold) for n in (self.n_src, self.n_trg))
        self.u: list[Pair] = []
        self.w: list[Pair] = []
        self.x: list[Pair] = []
        self.v: list[tuple[Ints, Ints, Ints]] = []

    def _used(self, t: Ints, s: Ints) -> Pair:
        """Return the pairs of boxes with targets and boxes with sources."""
        if self.full:
            return t, s
        mask = (self.n_trg[t] > 0) & (self.n_src[s] > 0)
        return t[mask], s[mask]

    def near(self, t: Ints, s: Ints) -> None:
        """Add leaves that touch."""
        self.u.append(self._used(t, s))

    def _far(self, pairs: list[Pair], t: Ints, s: Ints, direct: NDArray[np.bool_]) -> None:
        """Add boxes that do not touch; boxes that are `direct` go to U lists."""
        pairs.append((t[~direct], s[~direct]))
        self.u.append((t[direct], s[direct]))

    def octets(self, target: Ints, neighbours: Ints) -> None:
        """Add pairs of octets: octets below boxes of one level, and octets below the boxes around (octets, 27)."""
        row, place = np.nonzero((neighbours >= 0) & (np.arange(27) != CENTRE))
        t, s = target[row], neighbours[row, place]
        direction = (place - (place > CENTRE)).astype(np.int32)
        if not self.full:
            parent = self.nodes.octet_parent
            mask = (self.n_trg[parent[t]] > 0) & (self.n_src[parent[s]] > 0)
            t, s, direction = t[mask], s[mask], direction[mask]
        self.v.append((t, s, direction))

    def children(self, coarse: Ints, fine: Ints, direction: Ints) -> tuple[Ints, Ints, Ints]:
        """Pair leaves with the children of finer boxes that touch them; return pairs to be split again."""
        child = self.nodes.child[fine]
        touches = _TOUCHES[direction]
        row, octant = np.nonzero((child >= 0) & ~touches)
        leaf, box = coarse[row], child[row, octant]
        w, x = self._used(leaf, box), self._used(box, leaf)
        self._far(self.w, *w, self.few_src[w[1]])
        self._far(self.x, *x, self.few_trg[x[0]])
        row, octant = np.nonzero((child >= 0) & touches)
        leaf, box = coarse[row], child[row, octant]
        last = self.nodes.is_leaf[box]
        self.near(leaf[last], box[last])
        self.near(box[last], leaf[last])
        return leaf[~last], box[~last], direction[row[~last]]

    def lists(self) -> OctLists:
        """Return all lists."""
        parts = self.u, self.w, self.x, self.v
        return OctLists(*(np.concatenate(column) for part in parts for column in zip(*part, strict=True)))


def leaves_in_order(nodes: OctNodes) -> tuple[NDArray[np.intp], Ints]:
    """Return the leaves that have targets, in the order of these, and the place of each box among them ``(M,)``."""
    leaves = np.flatnonzero(nodes.is_leaf & (nodes.targets.count > 0))
    leaves = leaves[np.argsort(nodes.targets.begin[leaves])]
    place = np.zeros(nodes.n, np.int32)
    place[leaves] = np.arange(len(leaves))
    return leaves, place


def near(nodes: OctNodes, sources: Spans, lists: OctLists) -> tuple[Ints, Ints]:
    """Return U lists as ranges of sources.

    Returns
    -------
    items : array (I, 4) of int32
        For each leaf with targets that has a U list: first target, end of targets, first range, end of ranges; in the
        order of targets.
    ranges : array (R, 2) of int32
        First source and end of sources; the ranges of one leaf are sorted, and no two touch.
    """
    begin_trg, end_trg = nodes.targets.begin, nodes.targets.end
    leaves, rank = leaves_in_order(nodes)
    starts, ranges = joined_ranges(rank[lists.u_t], lists.u_s, sources.begin, sources.end, len(leaves))
    items = np.stack([begin_trg[leaves], end_trg[leaves], starts[:-1], starts[1:]], axis=1)
    return np.ascontiguousarray(items[starts[:-1] < starts[1:]]), ranges
