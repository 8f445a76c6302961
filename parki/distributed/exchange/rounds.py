"""Rounds: exchanges of rows one after another, while other work goes on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parki.arrays import Array
from parki.distributed.comm import Comm
from parki.distributed.exchange.parcels import Arriving, Parcels
from parki.perfmodels.network import Network


class Rounds:
    """Exchanges of rows, each of which begins when the one before has ended on this rank.

    Between `start` and the end other work may go on, but no other exchange of the same communicator may begin: ranks
    would not begin theirs in the same order.  Those that have begun before `start` may end at any time.

    Parameters
    ----------
    rounds : sequence of (Parcels, bool)
        Exchanges, as many on all ranks, and whether their rows are added.

    Attributes
    ----------
    nbytes, messages : int
        Bytes and messages that this rank sends in a call.
    partners : set of int
        Ranks that this one sends to.
    steps : int
        Number of rounds, the same on all ranks.
    """

    def __init__(self, rounds: Sequence[tuple[Parcels, bool]]) -> None:
        self._rounds = rounds
        self._next = 0
        self._arriving: Arriving | None = None
        self._given: Sequence[Array] = ()
        self._shelves: Sequence[Array] = ()
        self.nbytes = sum(parcels.sent.nbytes for parcels, _ in rounds)
        self.messages = sum(parcels.sent.messages for parcels, _ in rounds)
        self.partners: set[int] = set().union(*(parcels.partners for parcels, _ in rounds))
        self.steps = len(rounds)

    def start(self, shelves: Sequence[Array]) -> None:
        """Begin to exchange values.

        Parameters
        ----------
        shelves : sequence of arrays (rows, width)
            Contiguous, all of NumPy or all of CuPy.  Parts are read, and complete values of nodes that this rank uses
            written; parts of other nodes that are exchanged may become sums of several.
        """
        self._given, self._shelves, self._next = shelves, self._before(shelves), 0
        self._go_on()

    def test(self) -> bool:
        """Let messages progress, begin rounds that can begin, and tell whether all is done."""
        while self._arriving is not None:
            if not self._arriving.test():
                return False
            self._arriving.finish()
            self._go_on()
        return True

    def finish(self) -> None:
        """Wait until complete values have been written."""
        while self._arriving is not None:
            self._arriving.finish()
            self._go_on()

    def seconds(self, comm: Comm, network: Network) -> float:
        """Return the predicted time of a call: the sum over rounds of the slowest rank's time; collective."""
        sides = [(parcels.sent, parcels.received) for parcels, _ in self._rounds]
        seconds = [max(network.seconds(side.messages, side.nbytes) for side in pair) for pair in sides]
        return float(np.sum(comm.allreduce(np.array([0.0, *seconds]), "max")))

    @property
    def arrays(self) -> list[Array]:
        """Return every array that is kept."""
        return [a for parcels, _ in self._rounds for a in parcels.arrays]

    def _go_on(self) -> None:
        """Begin the next round, or end the call."""
        if self._next < len(self._rounds):
            parcels, add = self._rounds[self._next]
            self._next += 1
            self._arriving = parcels.start(self._shelves, add)
        else:
            self._arriving = None
            self._after(self._given)
            self._given = self._shelves = ()

    def _before(self, shelves: Sequence[Array]) -> Sequence[Array]:
        """Return the arrays whose rows are exchanged."""
        return shelves

    def _after(self, shelves: Sequence[Array]) -> None:
        """Write complete values to where users expect them, if rounds have not done so."""
