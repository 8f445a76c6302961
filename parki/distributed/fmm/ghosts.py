"""Ghosts: boxes of other ranks that may meet a rank's own, and the points of some of them.

The owner of a box sends it to the ranks with points in the 27 places around the box's parent.  A rank then has the
parents and the siblings of all its boxes, and the children of all boxes that touch a box of its own on their level.

Source: I. Lashuk et al., "A massively parallel adaptive fast-multipole method on heterogeneous architectures", SC09,
algorithm 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parki.arrays import Array, spread
from parki.distributed.comm import Comm
from parki.distributed.delivery import Delivery
from parki.distributed.exchange.parcels import by_rank
from parki.distributed.fmm import morton
from parki.distributed.trees import tables
from parki.distributed.trees.shared import SharedTree
from parki.distributed.trees.tables import Places, Table
from parki.engine import Space, spaces

LEVEL_BITS = 5  # low bits of a box's number, which hold its level; the others hold its key


@dataclass(frozen=True, eq=False)
class Essential:
    """Boxes from which a rank's lists are made.

    Attributes
    ----------
    table : Table
        Own boxes, the boxes above them, and ghosts.
    told : array of int64
        Names of own boxes that are ghosts of other ranks.
    """

    table: Table
    told: Places


def essential(tree: SharedTree) -> Essential:
    """Return the boxes around those of this rank; collective."""
    comm, table = tree.comm, tree.table
    first, end = tree.mine
    own_rows = table[(table["begin"] >= first) & (table["begin"] < end) & (table["level"] > 0)]
    parent, child = np.unique(own_rows["key"] >> 3 << LEVEL_BITS | own_rows["level"] - 1, return_inverse=True)
    box, rank = _users(comm, tree, parent >> LEVEL_BITS, parent & ((1 << LEVEL_BITS) - 1))
    send, sent_mask = {}, np.zeros(len(own_rows), bool)
    for q, index in by_rank(rank).items():
        near = np.zeros(len(parent), bool)
        near[box[index]] = True
        mask = near[child]
        send[q], sent_mask[mask] = own_rows[mask], True
    messages = comm.exchange_unknown(send, table[:0], "tree")
    return Essential(tables.merged([table, *messages.values()]), tables.names(own_rows[sent_mask]))


def _users(comm: Comm, tree: SharedTree, key: Places, level: Places) -> tuple[Places, Places]:
    """Return boxes and the other ranks whose points may be in the 27 places around them, each pair once."""
    leaves = tree.leaves[:1]
    firsts = comm.allgather([int(value) for value in morton.finest(leaves["key"], leaves["level"])])
    ranks = np.array([q for q, first in enumerate(firsts) if first], np.int64)
    starts = np.array([first[0] for first in firsts if first], np.int64)
    box, begin, end = morton.around(key, level)
    lo = np.maximum(np.searchsorted(starts, begin, side="right") - 1, 0)
    hi = np.searchsorted(starts, end)
    count = np.maximum(hi - lo, 0)
    pairs = np.repeat(box, count) * comm.size + ranks[spread(lo, count)]
    pairs = np.unique(pairs[pairs % comm.size != comm.rank])
    return pairs // comm.size, pairs % comm.size


@dataclass(frozen=True, eq=False)
class GhostPoints:
    """Sources of other ranks that a rank's particles meet: all its sources are those of lower ranks, own, of higher.

    Attributes
    ----------
    begin, count : arrays (n,)
        Places of all sources of this rank, as ranges in ascending order.
    send : dict of arrays of int
        Own sources that go to other ranks.
    receive : dict of int
        Numbers of sources that come, by rank.
    own : slice
        This rank's own among its sources.
    points : array (3, n)
        Points of all its sources.
    """

    begin: Places
    count: Places
    send: dict[int, NDArray[np.int32]]
    receive: dict[int, int]
    own: slice
    points: Array

    @classmethod
    def of(cls, tree: SharedTree, begin: Places, count: Places, space: Space) -> GhostPoints:
        """Ask for the sources at ranges of places of other ranks, in ascending order, each of one rank; collective."""
        comm, (first, end) = tree.comm, tree.own(0)
        owner, _ = tables.ranks(begin, count, tree.firsts[0])
        ranges = np.stack([begin, count], axis=1)
        requests = {q: ranges[entry] for q, entry in by_rank(owner).items()}
        messages = comm.exchange_unknown(requests, ranges[:0], "tree")
        send = {q: spread(rows[:, 0] - first, rows[:, 1]).astype(np.int32) for q, rows in messages.items()}
        receive = {q: int(rows[:, 1].sum()) for q, rows in requests.items()}
        index_by_rank = send | {comm.rank: np.arange(end - first, dtype=np.int32)}
        asarray = spaces.array_module(space).asarray
        delivery = Delivery(comm, {q: asarray(index) for q, index in index_by_rank.items()}, receive, "sort", space)
        points = delivery.there(tree.points[0])
        lower = sum(n for q, n in receive.items() if q < comm.rank)
        position = int(np.searchsorted(begin, first))
        parts = [(a[:position], own_entry, a[position:]) for a, own_entry in ((begin, [first]), (count, [end - first]))]
        begin, count = (np.concatenate(part) for part in parts)
        return cls(begin, count, send, receive, slice(lower, lower + end - first), points)

    def here(self, first: Places) -> Places:
        """Return the places, among this rank's sources, of global places that are present here."""
        offset = np.cumsum(self.count) - self.count
        row = np.searchsorted(self.begin, first, side="right") - 1
        return offset[row] + first - self.begin[row]
