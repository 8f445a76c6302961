"""Outlines of the targets of ranks: few groups of nodes, which tell other ranks the clusters that a rank may need.

A node of sources is needed with its children if some target node would open it.  Other ranks know an outline of the
targets: groups of nodes that are near each other, of about one size, leaves apart.  Of a group they know the box around
the centres, and the least and the largest radius.  A node that no such target could open is not opened.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from parki.arrays import spread
from parki.trees.cluster import ClusterNodes
from parki.trees.dual import blocks
from parki.trees.nodes import Ints

BOXES = 64  # boxes into which targets are grouped, at most
GROUPS = 1024  # groups of an outline, about
ALONE = 256  # largest leaves that are groups of their own
CLASSES = 2  # classes of node sizes for each factor of 2
SURE = 1 - 1e-12  # factor of a distance that allows for rounding

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Opening:
    """Rule by which pairs of clusters are far, see `parki.trees.dual.traverse`.

    Attributes
    ----------
    method : {"dual", "pc", "cp"}
    theta, separation : float
    cubes : bool
    """

    method: str
    theta: float
    separation: float
    cubes: bool

    def radius(self, nodes: ClusterNodes) -> Numbers:
        """Return the radii of nodes."""
        return np.sqrt(3) * nodes.half.max(axis=1) if self.cubes else nodes.radius

    def may_be_near(self, distance: Numbers, radii: Numbers) -> NDArray[np.bool_]:
        """Return whether pairs at least this far apart, with radii of at most this sum, may fail to be far."""
        distance = distance * SURE
        return (self.theta * distance <= radii) | (distance - radii <= self.separation)


@dataclass(frozen=True)
class Outline:
    """Groups of a rank's target nodes.

    Attributes
    ----------
    low, high : arrays (G, 3)
        Boxes around the centres of nodes.
    least, largest : arrays (G,)
        Radii; leaves are not opened further, so their least radius counts as 0.
    leaf : array (G,) of bool
        Whether the nodes are leaves.
    """

    low: Numbers
    high: Numbers
    least: Numbers
    largest: Numbers
    leaf: NDArray[np.bool_]

    @classmethod
    def of(cls, nodes: ClusterNodes, opening: Opening) -> Outline:
        """Return the outline of the nodes of a rank's targets; empty for a rank without leaves."""
        radius, centre, leaf = opening.radius(nodes), nodes.centre, nodes.is_leaf
        index = np.flatnonzero(leaf | (opening.method == "dual"))
        if not len(nodes.leaves):
            index = index[:0]
        group, boxes = index, BOXES
        while len(index) > GROUPS and boxes:
            box = _boxes(nodes, boxes)[index]
            box[np.argsort(-radius[index] * leaf[index], kind="stable")[:ALONE]] = -1
            size = np.round(CLASSES * np.log2(np.maximum(radius[index], 1e-300))).astype(np.int64)
            lone_nodes = np.where(box < 0, index, 0)
            _, group = np.unique(
                np.stack([box, lone_nodes, size * (box >= 0), leaf[index]]), axis=1, return_inverse=True
            )
            boxes = boxes // 2 if group.max() >= GROUPS else 0
        order = np.argsort(group.ravel(), kind="stable")
        first = np.flatnonzero(np.diff(group.ravel()[order], prepend=-1))
        index = index[order]
        if not len(index):
            return cls(*(np.empty(shape) for shape in ((0, 3), (0, 3), 0, 0)), np.empty(0, bool))
        low, high = np.minimum.reduceat(centre[index], first), np.maximum.reduceat(centre[index], first)
        smallest, largest = np.minimum.reduceat(radius[index], first), np.maximum.reduceat(radius[index], first)
        leaf = leaf[index[first]]
        return cls(low, high, np.where(leaf, 0.0, smallest), largest, leaf)


def _boxes(nodes: ClusterNodes, limit: int) -> Ints:
    """Return the node of at most `limit` that each node is below, -1 for nodes above; the fullest are opened first."""
    heap, closed_nodes = [(-nodes.count[0], 0)], []
    while heap:
        _, node = heapq.heappop(heap)
        n = int(nodes.n_children[node])
        if not n or len(heap) + len(closed_nodes) + n > limit:
            closed_nodes.append(node)
            continue
        for child in range(int(nodes.first_child[node]), int(nodes.first_child[node]) + n):
            heapq.heappush(heap, (-nodes.count[child], child))
    box = np.full(nodes.n, -1, np.int32)
    box[closed_nodes] = closed_nodes
    for first, end in itertools.pairwise(nodes.level_begin[1:].tolist()):
        parent = box[nodes.parent[first:end]]
        box[first:end] = np.where(parent >= 0, parent, box[first:end])
    return box


class Outlines:
    """Outlines of all ranks, side by side.

    Parameters
    ----------
    every : list of Outline
    opening : Opening

    Attributes
    ----------
    some : array of bool
        Whether each rank has targets.
    groups : int
        Number of groups of all ranks.
    """

    def __init__(self, outlines: list[Outline], opening: Opening) -> None:
        self._opening = opening
        self.some = np.array([len(outline.low) > 0 for outline in outlines])
        self._groups = [np.concatenate([getattr(outline, f.name) for outline in outlines]) for f in fields(Outline)]
        self._begin = np.cumsum([0, *(len(outline.low) for outline in outlines)])
        self.groups = int(self._begin[-1])
        self._around = [_of_all(outlines, i, f.name) for i, f in enumerate(fields(Outline))]

    def opens(self, rank: NDArray[np.intp], centre: Numbers, radius: Numbers) -> NDArray[np.bool_]:
        """Return whether ranks (K,) may open nodes of sources with these centres (K, 3) and radii (K,)."""
        if self._opening.method == "cp":
            return self.some[rank]
        mask = self._near([a[rank] for a in self._around], centre, radius)
        index = np.flatnonzero(mask)
        count = (self._begin[1:] - self._begin[:-1])[rank[index]]
        pair, group = np.repeat(index, count), spread(self._begin[rank[index]], count)
        mask[:] = False
        for block in blocks(len(pair)):
            near = self._near([a[group[block]] for a in self._groups], centre[pair[block]], radius[pair[block]])
            mask[pair[block][near]] = True
        return mask

    def _near(self, groups: list[Numbers], centre: Numbers, radius: Numbers) -> NDArray[np.bool_]:
        """Return whether some target of a group may open a node, group by group."""
        low, high, smallest, largest, leaf = groups
        gap = np.maximum(np.maximum(low - centre, centre - high), 0.0)
        distance = np.sqrt((gap * gap).sum(axis=-1))
        radius_limit = np.where(leaf, largest, np.minimum(largest, radius))
        return self._opening.may_be_near(distance, radius_limit + radius) & (radius >= smallest * SURE)


def _of_all(outlines: list[Outline], i: int, name: str) -> Numbers:
    """Return one group for each rank that stands for all of its groups."""
    reduce, filler = ((np.min, np.inf), (np.max, -np.inf), (np.min, np.inf), (np.max, 0.0), (np.any, True))[i]
    empty = np.full(3, filler) if i < 2 else filler
    return np.stack([reduce(getattr(outline, name), axis=0) if len(outline.low) else empty for outline in outlines])
