"""Skeletons: nodes of all sources that a rank's targets may meet, and the points and charges that they do meet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parki.arrays import Array, spread
from parki.distributed.comm import Comm
from parki.distributed.delivery import Delivery
from parki.distributed.exchange.parcels import by_rank
from parki.distributed.treecode.outline import Opening, Outline, Outlines
from parki.distributed.trees import kinds, tables
from parki.distributed.trees.shared import SharedTree
from parki.distributed.trees.tables import Places, Table
from parki.engine import Space
from parki.trees.cluster import ClusterNodes
from parki.trees.nodes import Ints


def exchanged(comm: Comm, sources: SharedTree, targets: ClusterNodes, opening: Opening) -> tuple[Table, int]:
    """Return nodes of sources that this rank's targets may meet, with its own and those above; collective.

    The number of groups of all outlines is returned, too.
    """
    outlines = Outlines(comm.allgather(Outline.of(targets, opening)), opening)
    nodes = kinds.cluster_nodes(sources.table, sources.mine)
    centre, radius = nodes.centre, opening.radius(nodes)
    owner = tables.contributors(sources.table, sources.cuts)[0]
    rank = np.flatnonzero(outlines.some & (np.arange(comm.size) != comm.rank))
    node, parts = np.zeros(len(rank), np.intp), []
    while len(rank):
        open_ = np.flatnonzero(nodes.n_children[node] > 0)
        open_ = open_[outlines.opens(rank[open_], centre[node[open_]], radius[node[open_]])]
        count = nodes.n_children[node[open_]]
        rank, node = np.repeat(rank[open_], count), spread(nodes.first_child[node[open_]], count)
        parts.append((rank[owner[node] == comm.rank], node[owner[node] == comm.rank]))
    ranks, rows = (np.concatenate(part) for part in zip(*parts, strict=True)) if parts else np.empty((2, 0), np.intp)
    send = {q: sources.table[rows[index]] for q, index in by_rank(ranks).items()}
    messages = comm.exchange_unknown(send, sources.table[:0], "tree")
    return tables.merged([sources.table, *messages.values()]), outlines.groups


@dataclass(frozen=True, eq=False)
class Wanted:
    """Ranges of source points of other ranks that a rank's lists contain.

    Attributes
    ----------
    begin, end : arrays
        Sorted and disjoint, without places of this rank.
    own : (int, int)
        The first and the end of this rank's places.
    total : int
        Number of points of all ranks.
    """

    begin: Places
    end: Places
    own: tuple[int, int]
    total: int

    @classmethod
    def of(cls, nodes: ClusterNodes, index: Ints, own_range: tuple[int, int]) -> Wanted:
        """Return the ranges of the points of some nodes."""
        begin, end = nodes.begin[index].astype(np.int64), nodes.end[index].astype(np.int64)
        # Parts before this rank's own places and after them.
        begin, end = (
            np.concatenate([begin, np.maximum(begin, own_range[1])]),
            np.concatenate([np.minimum(end, own_range[0]), end]),
        )
        mask = begin < end
        order = np.argsort(begin[mask], kind="stable")
        begin, end = begin[mask][order], np.maximum.accumulate(end[mask][order])
        new = np.ones(len(begin), bool)
        new[1:] = begin[1:] > end[:-1]
        new |= (begin >= own_range[1]) & (np.append(-1, begin[:-1]) < own_range[0])
        first = np.flatnonzero(new)
        return cls(begin[first], end[np.append(first[1:], len(end))[: len(first)] - 1], own_range, nodes.n_points)

    @property
    def before(self) -> int:
        """Return the number of points ahead of this rank's own."""
        mask = self.begin < self.own[0]
        return int((self.end - self.begin)[mask].sum())

    @property
    def count(self) -> int:
        """Return the number of points of other ranks."""
        return int((self.end - self.begin).sum())

    @property
    def places(self) -> Places:
        """Return the places of all points of other ranks, in order."""
        return spread(self.begin, self.end - self.begin)

    @property
    def here(self) -> slice:
        """Return the range of this rank's own points among all that are present here."""
        return slice(self.before, self.before + self.own[1] - self.own[0])

    def located(self, place: Places | Ints) -> Ints:
        """Return the number of points present here before each place; places beyond the end stay beyond the end."""
        own_ends = [[first] for first in self.own] if self.own[0] < self.own[1] else np.empty((2, 0))
        begin, end = (np.append(a, b).astype(np.int64) for a, b in zip((self.begin, self.end), own_ends, strict=True))
        order = np.argsort(begin, kind="stable")
        begin, end = np.append(-1, begin[order]), np.append(-1, end[order])
        offsets = np.append(0, np.cumsum(end - begin))
        row = np.searchsorted(begin, place, side="right") - 1
        inside = np.minimum(place, end[row]) - begin[row]
        return (offsets[row] + inside + np.maximum(place - self.total, 0)).astype(np.int32)

    def delivered(self, comm: Comm, sources: SharedTree, space: Space) -> tuple[Array, Places]:
        """Return the points of other ranks (3, n) in order, and the places that others want of this one; collective."""
        firsts, place = sources.firsts[0], self.places
        rank = np.searchsorted(firsts[1:-1], place, side="right")
        ask = {q: place[index] for q, index in by_rank(rank).items()}
        requests = comm.exchange_unknown(ask, np.empty(0, np.int64), "tree")
        first = sources.own()[0]
        send = {q: (places - first).astype(np.int32) for q, places in requests.items()}
        way = Delivery(comm, send, {q: len(a) for q, a in ask.items()}, "tree", space)
        all_places = np.concatenate([np.empty(0, np.int64), *requests.values()])
        return way.there(sources.points[0]), np.unique(all_places)
