"""Octree of a rank: its own boxes and ghosts, in the form that lists and expansions take."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from parki.distributed.agreement import agreed
from parki.distributed.fmm import ghosts, morton
from parki.distributed.fmm.ghosts import Essential, GhostPoints
from parki.distributed.trees import tables
from parki.distributed.trees.shared import SharedTree
from parki.distributed.trees.tables import Places
from parki.engine import Space
from parki.trees import octlists, octree
from parki.trees.nodes import PartialSpans, Spans
from parki.trees.octlists import OctLists
from parki.trees.octree import OctNodes, Octree
from parki.trees.points import Sorted

SOURCES, TARGETS = 0, 1  # columns of boxes' places
Root = tuple[NDArray[np.float64], float]


@dataclass(frozen=True, eq=False)
class RankBoxes:
    """Boxes and lists of a rank.

    Attributes
    ----------
    tree : SharedTree
    nodes : OctNodes
        Own boxes and ghosts.  Sources are counted over all ranks and have places where their points are present
        here; targets are this rank's.
    lists : OctLists
        Lists of this rank's targets.
    essential : Essential
    """

    tree: SharedTree
    nodes: OctNodes
    lists: OctLists
    essential: Essential

    @classmethod
    def of(cls, tree: SharedTree, root: Root, threshold: int) -> RankBoxes:
        """Bring boxes around this rank's and make lists; collective."""
        essential = ghosts.essential(tree)
        with agreed(tree.comm, "making lists"):
            nodes = _nodes(tree, essential, root)
            lists = octlists.lists(nodes, threshold).only
        return cls(tree, nodes, lists, essential)

    @property
    def shared(self) -> bool:
        """Tell whether targets are the sources."""
        return len(self.tree.points) == 1

    @property
    def names(self) -> Places:
        """Return the numbers of boxes, the same on all ranks."""
        return tables.names(self.essential.table)

    @property
    def contributors(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return for each box the ranks lo … hi − 1 that have its sources."""
        table = self.essential.table
        return tables.ranks(table["first"][:, SOURCES], table["number"][:, SOURCES], self.tree.firsts[0])

    @property
    def first_here(self) -> NDArray[np.bool_]:
        """Return the boxes whose first target is on this rank: each box belongs to one rank."""
        table = self.essential.table
        first = table["first"][:, TARGETS], table["number"][:, TARGETS]
        return tables.ranks(*first, self.tree.firsts[-1])[0] == self.tree.comm.rank

    def with_points(self, space: Space) -> tuple[Octree, GhostPoints]:
        """Return the octree of this rank with all points that its particles meet; collective."""
        table, lists = self.essential.table, self.lists
        first, number = table["first"][:, SOURCES], table["number"][:, SOURCES]
        a, b = self.tree.own(0)
        mask = np.zeros(len(table), bool)
        mask[lists.u_s], mask[lists.x_s] = True, True
        mask &= (first < a) | (first >= b)
        index = np.flatnonzero(mask)
        index = index[np.argsort(first[index])]
        points = GhostPoints.of(self.tree, first[index], number[index], space)
        mask |= table["leaf"] & (first >= a) & (first + number <= b) & (number > 0)
        begin = np.zeros(len(table), np.int32)
        begin[mask] = points.here(first[mask])
        end = begin + np.where(mask, number, 0).astype(np.int32)
        sources = PartialSpans(begin, end, self.nodes.sources.count)
        own_spans = self.nodes.own
        part = Spans(own_spans.begin + points.own.start, own_spans.end + points.own.start)
        nodes = replace(self.nodes, sources=sources, part=part)
        orders, targets = self.tree.orders, self.tree.points[-1]
        return Octree(nodes, Sorted(points.points, orders[0]), Sorted(targets, orders[-1])), points


def _nodes(tree: SharedTree, essential: Essential, root: Root) -> OctNodes:
    """Return nodes, whose sources have numbers but no places yet."""
    table = essential.table
    topology = tables.topology(table)._asdict()
    n_children = topology["n_children"]
    n_children[~table["leaf"] & (n_children == 0)] = 1  # their children are on other ranks
    number = table["number"].astype(np.int32)
    zeros = np.zeros(len(table), np.int32)
    columns = {
        "octant": (table["key"] & 7).astype(np.int32),
        "key": np.ascontiguousarray(table["key"]),
        "anchor": morton.anchors(table["key"]).astype(np.int32),
    }
    sources = PartialSpans(zeros, zeros, number[:, SOURCES])
    targets, own_spans = (_clipped(table, k, tree.own(-k)) for k in (TARGETS, SOURCES))
    return octree.joined(root, topology, sources, targets, columns, own_spans)


def _clipped(table: tables.Table, k: int, limits: tuple[int, int]) -> Spans:
    """Return places among the points of this rank."""
    first, end = table["first"][:, k], table["first"][:, k] + table["number"][:, k]
    begin, end = (np.clip(a, *limits) - limits[0] for a in (first, end))
    return Spans(begin.astype(np.int32), end.astype(np.int32))
