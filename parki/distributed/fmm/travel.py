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
    separation = (np.abs(2 * steps[:, None, None] + OCTANTS - OCTANTS[:, None]) > 1).any(axis=-1)  # target, source
    sources = (separation * _BITS).sum(axis=-1).astype(np.uint8)
    mask = np.arange(256)[:, None] & _BITS > 0
    return np.bitwise_or.reduce(np.where(mask[None], sources[:, None], 0), axis=-1).astype(np.uint8)


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
        lone_mask = hi - lo == 1
        high = nodes.level >= TOP_LEVEL
        first, end = tables.contributors(boxes.essential.table, boxes.tree.cuts)
        known_mask = (end - first > 1) | np.isin(names, boxes.essential.told)  # to other ranks, by targets or as ghosts
        makers = (nodes.own.count > 0) & high & known_mask
        users = used(nodes, boxes.lists) & high & ~(lone_mask & (lo == boxes.tree.comm.rank))
        index = np.flatnonzero(makers | users)
        row = np.zeros(len(names), np.int64)
        row[index] = np.arange(len(index))
        makers, users = np.flatnonzero(makers), np.flatnonzero(users)
        shelf = np.zeros(len(names), np.int64)
        parts = Parts(names[makers], shelf[makers], row[makers], lo[makers], hi[makers])
        return cls(index, parts, Wishes(names[users], shelf[users], row[users], lo[users]))


def used(nodes: OctNodes, lists: OctLists) -> NDArray[np.bool_]:
    """Return whether each box is a source of V or W lists."""
    child = nodes.child[nodes.octet_parent]
    targets = (((child >= 0) & (nodes.targets.count > 0)[child]) * _BITS).sum(axis=1).astype(np.uint8)
    octants = np.zeros(len(child), np.uint8)
    np.bitwise_or.at(octants, lists.v_s, FAR[lists.v_direction, targets[lists.v_t]])
    mask = np.zeros(nodes.n, bool)
    mask[child[(octants[:, None] & _BITS > 0) & (child >= 0)]] = True
    mask[lists.w_s] = True
    return mask & (nodes.sources.count > 0)


def places(boxes: Ints, place: tuple[Ints | None, ...]) -> list[Ints | None]:
    """Return the places of some boxes along the axes of an array, None along the axis of their values."""
    return [None if axis is None else np.ascontiguousarray(axis[boxes], np.int64) for axis in place]
