"""Outlines of the targets of ranks: few boxes, by which others tell which of their clusters a rank may need.

A node of sources is needed with its children if some target node would open it.  Of the targets others know an outline:
the nodes above it one by one, and of each subtree below it the box, its radius, and the largest radius of a leaf.
Whatever lies in the subtree, its centre is in the box, and its radius at most that of the box: where a node would not
be opened by any such target, it is not.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parki.trees.cluster import ClusterNodes
from parki.trees.nodes import Ints

BOXES = 64  # of an outline, at most
SURE = 1 - 1e-12  # share of a distance that rounding leaves

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Opening:
    """The rule by which pairs of clusters are far, see `parki.trees.dual.traverse`.

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
        """Return whether pairs at least this far apart, of radii with at most this sum, may be not far."""
        distance = distance * SURE
        return (self.theta * distance <= radii) | (distance - radii <= self.separation)


@dataclass(frozen=True)
class Outline:
    """The outline of a rank's targets.

    Attributes
    ----------
    centre, radius : arrays (A, 3), (A,)
        Nodes above the boxes.
    low, high : arrays (B, 3)
        Boxes, of leaves their centres.
    largest, leaf : arrays (B,)
        The radius of each box, and the largest of the leaves in it.
    """

    centre: Numbers
    radius: Numbers
    low: Numbers
    high: Numbers
    largest: Numbers
    leaf: Numbers

    @classmethod
    def of(cls, nodes: ClusterNodes, opening: Opening) -> Outline:
        """Return the outline of the nodes of a rank's targets, none of a rank without leaves."""
        if not len(nodes.leaves):
            return cls(*(np.empty(shape) for shape in ((0, 3), 0, (0, 3), (0, 3), 0, 0)))
        radius, centre = opening.radius(nodes), nodes.centre
        inner, boxes = _highest(nodes, radius)
        leaf = _largest_leaf(nodes, radius)[boxes]
        last = nodes.is_leaf[boxes][:, None]
        low, high = (np.where(last, centre[boxes], side[boxes]) for side in (nodes.low, nodes.high))
        return cls(centre[inner], radius[inner], low, high, radius[boxes], leaf)


def _highest(nodes: ClusterNodes, radius: Numbers) -> tuple[Ints, Ints]:
    """Return the nodes that are opened, largest first, and those that are left: at most `BOXES`."""
    heap, opened, closed = [(-radius[0], 0)], [], []
    while heap:
        _, node = heapq.heappop(heap)
        n = int(nodes.n_children[node])
        if not n or len(heap) + len(closed) + n > BOXES:
            closed.append(node)
            continue
        opened.append(node)
        for child in range(int(nodes.first_child[node]), int(nodes.first_child[node]) + n):
            heapq.heappush(heap, (-radius[child], child))
    return np.array(opened, np.int32), np.array(closed, np.int32)


def _largest_leaf(nodes: ClusterNodes, radius: Numbers) -> Numbers:
    """Return the largest radius of a leaf below each node."""
    found = np.where(nodes.is_leaf, radius, 0.0)
    for level in range(nodes.depth, 0, -1):
        at = slice(int(nodes.level_begin[level]), int(nodes.level_begin[level + 1]))
        np.maximum.at(found, nodes.parent[at], found[at])
    return found


class Outlines:
    """The outlines of all ranks, side by side.

    Parameters
    ----------
    every : list of Outline
    opening : Opening
    """

    def __init__(self, every: list[Outline], opening: Opening) -> None:
        self._opening = opening
        self.some = np.array([len(one.low) > 0 for one in every])
        self._centre, self._low, self._high = (
            _side_by_side([getattr(one, name) for one in every], np.inf) for name in ("centre", "low", "high")
        )
        self._radius, self._largest, self._leaf = (
            _side_by_side([getattr(one, name)[:, None] for one in every], 0.0)[..., 0]
            for name in ("radius", "largest", "leaf")
        )

    def opens(self, rank: NDArray[np.intp], centre: Numbers, radius: Numbers) -> NDArray[np.bool_]:
        """Return whether ranks (K,) may open nodes of sources with these centres (K, 3) and radii (K,)."""
        opening, r = self._opening, radius[:, None]
        if opening.method == "cp":
            return self.some[rank]
        gap = np.maximum(np.maximum(self._low[rank] - centre[:, None], centre[:, None] - self._high[rank]), 0.0)
        most = self._leaf[rank]
        if opening.method == "dual":
            most = np.maximum(np.minimum(self._largest[rank], r), most)
        opened = opening.may_be_near(np.sqrt((gap * gap).sum(axis=-1)), most + r).any(axis=1)
        if opening.method == "dual":
            apart = np.sqrt(((self._centre[rank] - centre[:, None]) ** 2).sum(axis=-1))
            above = self._radius[rank]
            opened |= (opening.may_be_near(apart, above + r) & (r >= above * SURE)).any(axis=1)
        return opened


def _side_by_side(arrays: list[Numbers], missing: float) -> Numbers:
    """Return arrays (n, d) of ranks as one (ranks, most n, d), with a value where there is none."""
    made = np.full((len(arrays), max(1, *map(len, arrays)), arrays[0].shape[1]), missing)
    for one, a in zip(made, arrays, strict=True):
        one[: len(a)] = a
    return made
