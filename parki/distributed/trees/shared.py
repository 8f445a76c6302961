"""A rank's part of one tree: its nodes, those above them, and its points in their order."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from parki.arrays import Array, module_of, to_host
from parki.distributed.comm import Comm
from parki.distributed.delivery import Delivery
from parki.distributed.trees import tables
from parki.distributed.trees.growth import Grown, PlacedPoints
from parki.distributed.trees.tables import Places, Table
from parki.engine import Space, spaces


@dataclass(frozen=True, eq=False, kw_only=True)
class SharedTree(PlacedPoints):
    """A rank's part of a tree.

    Attributes
    ----------
    comm : Comm
    table : Table
        Nodes that have places of this rank, nodes shared with other ranks among them, and the root.
    """

    comm: Comm
    table: Table

    @classmethod
    def of(cls, comm: Comm, grown_tree: Grown) -> SharedTree:
        """Return the part of a tree that has grown."""
        table = _with_shared(comm, grown_tree, grown_tree.cuts, [grown_tree.own])
        return cls(comm=comm, table=table, **{f.name: getattr(grown_tree, f.name) for f in fields(PlacedPoints)})

    @classmethod
    def cut(cls, comm: Comm, grown_tree: Grown, cuts: Places, sets: list[Array], space: Space) -> SharedTree:
        """Return the part of a tree that has grown, cut at other places (P + 1, columns): collective.

        The first column of `cuts` has places among all points, the others among those of each of `sets`, which are
        this rank's points as its caller has them.
        """
        own_table, all_cuts, set_cuts = grown_tree.own, cuts[:, 0], list(cuts[:, 1:].T)
        lo, hi = tables.contributors(own_table, all_cuts)
        send = {q: own_table[(lo <= q) & (q < hi)] for q in range(int(lo.min(initial=0)), int(hi.max(initial=0)))}
        messages = comm.exchange_unknown({q: rows for q, rows in send.items() if len(rows)}, own_table[:0], "tree")
        table = _with_shared(comm, grown_tree, all_cuts, [own_table[:0], *messages.values()])
        deliveries, orders, points = [], [], []
        for k, (x, firsts) in enumerate(zip(sets, set_cuts, strict=True)):
            place = _entries(grown_tree, k, comm.rank)
            delivery, order = _to_places(comm, place, firsts, space)
            deliveries.append(delivery)
            orders.append(order)
            points.append(spaces.array_module(space).ascontiguousarray(delivery.there(x)[:, order]))
        arrays = {"cuts": all_cuts, "firsts": set_cuts, "deliveries": deliveries, "orders": orders, "points": points}
        return cls(comm=comm, table=table, repeated=grown_tree.repeated, **arrays)

    @property
    def mine(self) -> tuple[int, int]:
        """Return the first and the end of this rank's places."""
        return int(self.cuts[self.comm.rank]), int(self.cuts[self.comm.rank + 1])

    def own(self, k: int = 0) -> tuple[int, int]:
        """Return the first and the end of this rank's places among the points of a set."""
        return int(self.firsts[k][self.comm.rank]), int(self.firsts[k][self.comm.rank + 1])

    @property
    def leaves(self) -> Table:
        """Return this rank's leaves in the order of their places."""
        leaves = self.table[self.table["leaf"] & tables.within(self.table, *self.mine)]
        return leaves[np.argsort(leaves["begin"])]

    @property
    def arrays(self) -> list[Array]:
        """Return every array of the points."""
        return [*self.orders, *self.points, *(a for delivery in self.deliveries for a in delivery.arrays)]


def _with_shared(comm: Comm, grown_tree: Grown, cuts: Places, own_tables: list[Table]) -> Table:
    """Return a rank's nodes with the nodes above that have places of this rank, and the root."""
    top = grown_tree.top
    mask = tables.within(top, int(cuts[comm.rank]), int(cuts[comm.rank + 1])) | (top["level"] == 0)
    table = tables.merged([top[mask], *own_tables])
    if not len(top):  # the root is a leaf
        table = tables.merged(comm.allgather(grown_tree.own))
    return table


def _entries(grown_tree: Grown, k: int, rank: int) -> NDArray[np.int64]:
    """Return the place of each of the caller's points of a set among all points of the set."""
    order = grown_tree.orders[k]
    xp = module_of(order)
    place = xp.empty(len(order), np.int64)
    place[order] = xp.arange(len(order)) + int(grown_tree.firsts[k][rank])
    return to_host(grown_tree.deliveries[k].back(place[None])[0])


def _to_places(comm: Comm, place: NDArray[np.int64], firsts: Places, space: Space) -> tuple[Delivery, Array]:
    """Return the delivery of points to the ranks of their places, and their order there."""
    order = np.argsort(place).astype(np.int32)
    edges = np.searchsorted(place[order], firsts)
    xp = spaces.array_module(space)
    rows = {q: place[order[edges[q] : edges[q + 1]]] for q in range(comm.size) if edges[q] < edges[q + 1]}
    send = {q: xp.asarray(order[edges[q] : edges[q + 1]]) for q in rows}
    delivery, places = Delivery.known_by(comm, send, rows, np.empty(0, np.int64), "sort", space)
    return delivery, xp.asarray(np.argsort(places, kind="stable").astype(np.int32))
