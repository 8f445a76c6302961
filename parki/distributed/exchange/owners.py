"""Values from contributors to owners, who sum them, and from owners to users: two exchanges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parki.distributed.agreement import totals
from parki.distributed.exchange.census import Census
from parki.distributed.exchange.parcels import Parcels, Shelf, by_rank, by_shelf
from parki.distributed.exchange.rounds import Rounds


class OwnersToUsers(Rounds):
    """Exchange of values by owners; construction is collective.

    Contributors send the parts that any rank wants to owners, which add them to their own in the order of ranks: all
    users have the same bits.  Where no rank wants a value of several contributors, the first exchange is left out.

    Parameters
    ----------
    census : Census
    shelves : sequence of Shelf
    """

    def __init__(self, census: Census, shelves: Sequence[Shelf]) -> None:
        comm, parts, wishes = census.comm, census.parts, census.wishes

        def rows(index: np.ndarray) -> list[np.ndarray]:
            return by_shelf(parts.shelf[index], parts.row[index], len(shelves))

        offers = {target: census.offered[index] for target, index in by_rank(parts.begin[census.offered]).items()}
        parts_by_source = {source: census.made[index] for source, index in by_rank(census.maker).items()}
        requests = {source: census.wanted[index] for source, index in parts_by_source.items()}
        answers = {target: np.empty(len(index), bool) for target, index in offers.items()}
        comm.exchange(requests, answers, census.phase).finish()
        send = {target: rows(index[answers[target]]) for target, index in offers.items()}
        receive = {source: rows(index[requests[source]]) for source, index in parts_by_source.items()}
        sums = Parcels(comm, send, receive, shelves, census.phase)
        uses = {
            target: rows(census.used[index]) for target, index in by_rank(census.user).items() if target != comm.rank
        }
        arrivals = {
            source: by_shelf(wishes.shelf[index], wishes.row[index], len(shelves))
            for source, index in by_rank(wishes.owner).items()
            if source != comm.rank
        }
        values = Parcels(comm, uses, arrivals, shelves, census.phase)
        (n_messages,) = totals(comm, sums.sent.messages)
        super().__init__([(sums, True), (values, False)] if n_messages else [(values, False)])
