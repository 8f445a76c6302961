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

        def rows(which: np.ndarray) -> list[np.ndarray]:
            return by_shelf(parts.shelf[which], parts.row[which], len(shelves))

        offered = {to: census.offered[at] for to, at in by_rank(parts.begin[census.offered]).items()}
        made = {source: census.made[at] for source, at in by_rank(census.maker).items()}
        wanted = {source: census.wanted[at] for source, at in made.items()}
        answers = {to: np.empty(len(at), bool) for to, at in offered.items()}
        comm.exchange(wanted, answers, census.phase).finish()
        send = {to: rows(at[answers[to]]) for to, at in offered.items()}
        receive = {source: rows(at[wanted[source]]) for source, at in made.items()}
        sums = Parcels(comm, send, receive, shelves, census.phase)
        used = {to: rows(census.used[at]) for to, at in by_rank(census.user).items() if to != comm.rank}
        come = {
            source: by_shelf(wishes.shelf[at], wishes.row[at], len(shelves))
            for source, at in by_rank(wishes.owner).items()
            if source != comm.rank
        }
        values = Parcels(comm, used, come, shelves, census.phase)
        (anything,) = totals(comm, sums.sent.messages)
        super().__init__([(sums, True), (values, False)] if anything else [(values, False)])
