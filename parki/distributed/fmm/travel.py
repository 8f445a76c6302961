"""Boxes whose values travel: this rank's parts of boxes that others may use, and boxes that its lists use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parki.distributed.exchange.census import Parts, Wishes
from parki.distributed.fmm.boxes import RankBoxes
from parki.distributed.trees import tables
from parki.fmm.expansion import TOP_LEVEL
from parki.trees.nodes import Ints
from parki.trees.octlists import CENTRE, DIRECTIONS, OctLists
from parki.trees.octree import OCTANTS, OctNodes

_BITS = np.uint8(1) << np.arange(8, dtype=np.uint8)


def _far() -> NDArray[np.uint8]:
    """Return octants of an octet in a direction that are apart from some of the octants of another (26, 256)."""
    steps = DIRECTIONS[np.arange(27) != CENTRE]
    apart = (np.abs(2 * steps[:, None, None] + OCTANTS - OCTANTS[:, None]) > 1).any(axis=-1)  # target, source
    sources = (apart * _BITS).sum(axis=-1).astype(np.uint8)
    some = np.arange(256)[:, None] & _BITS > 0
    return np.bitwise_or.reduce(np.where(some[None], sources[:, None], 0), axis=-1).astype(np.uint8)


FAR = _far()


@dataclass(frozen=True, eq=False)
class Travelling:
    """Boxes whose values travel, in the order of their numbers; the row of a value is a box's place among them.

    Attributes
    ----------
    boxes : array (n,)
    parts : Parts
        Boxes of which this rank has sources.
    wishes : Wishes
        Boxes that its lists use, and that have sources on other ranks.
    """

    boxes: NDArray[np.intp]
    parts: Parts
    wishes: Wishes

    @classmethod
    def of(cls, boxes: RankBoxes) -> Travelling:
        """Return the boxes of a rank's lists."""
        nodes, names = boxes.nodes, boxes.names
        lo, hi = boxes.contributors
        alone = hi - lo == 1
        high = nodes.level >= TOP_LEVEL
        first, end = tables.contributors(boxes.essential.table, boxes.tree.cuts)
        known = (end - first > 1) | np.isin(names, boxes.essential.told)  # to other ranks, by targets or as ghosts
        made = (nodes.own.count > 0) & high & known
        wanted = used(nodes, boxes.lists) & high & ~(alone & (lo == boxes.tree.comm.rank))
        some = np.flatnonzero(made | wanted)
        row = np.zeros(len(names), np.int64)
        row[some] = np.arange(len(some))
        made, wanted = np.flatnonzero(made), np.flatnonzero(wanted)
        shelf = np.zeros(len(names), np.int64)
        parts = Parts(names[made], shelf[made], row[made], lo[made], hi[made])
        return cls(some, parts, Wishes(names[wanted], shelf[wanted], row[wanted], lo[wanted]))


def used(nodes: OctNodes, lists: OctLists) -> NDArray[np.bool_]:
    """Return whether each box is a source of V or W lists."""
    child = nodes.child[nodes.octet_parent]
    targets = (((child >= 0) & (nodes.targets.count > 0)[child]) * _BITS).sum(axis=1).astype(np.uint8)
    octants = np.zeros(len(child), np.uint8)
    np.bitwise_or.at(octants, lists.v_s, FAR[lists.v_direction, targets[lists.v_t]])
    found = np.zeros(nodes.n, bool)
    found[child[(octants[:, None] & _BITS > 0) & (child >= 0)]] = True
    found[lists.w_s] = True
    return found & (nodes.sources.count > 0)


def places(boxes: Ints, place: tuple[Ints | None, ...]) -> list[Ints | None]:
    """Return the places of some boxes along the axes of an array, None along the axis of their values."""
    return [None if axis is None else np.ascontiguousarray(axis[boxes], np.int64) for axis in place]
