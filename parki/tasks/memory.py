"""Copies of data in the memories of a node: the memories where each datum is valid, and transfers between them."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from parki.tasks.node import HOST, Node


class Link(Protocol):
    """Transfers between memories."""

    def carry(self, datum: int, source: int, target: int, start: float) -> float:
        """Copy a datum that is valid in `source` from time `start` on; return the time when the copy may be read."""


class Channels:
    """Transfers with bandwidth and latency: one at a time in each direction between two memories.

    Attributes
    ----------
    moved : float
        Bytes of all transfers.
    transfers : int
        Number of all transfers.
    """

    def __init__(self, nbytes: Sequence[float], node: Node) -> None:
        self._nbytes, self._node = nbytes, node
        self._free: dict[tuple[int, int], float] = {}
        self.moved, self.transfers = 0.0, 0

    def carry(self, datum: int, source: int, target: int, start: float) -> float:
        """Return the time at which a copy arrives, which begins once the datum is valid and the channel free."""
        node, nbytes = self._node, self._nbytes[datum]
        rate = node.bandwidth if HOST in (source, target) else node.between
        end = max(self._free.get((source, target), 0.0), start) + nbytes / rate
        self._free[source, target] = end
        self.moved += nbytes
        self.transfers += 1
        return end + node.latency


class Copies:
    """Valid copies of data: at first all are on the host, and a write leaves one valid copy.

    Parameters
    ----------
    nbytes : sequence of float
        Bytes of each datum.
    link : Link
        Carrier of copies.
    direct : bool
        True if copies go from device to device; else they go through the host.
    """

    def __init__(self, nbytes: Sequence[float], link: Link, direct: bool = False) -> None:
        self._nbytes, self._link, self._direct = nbytes, link, direct
        #: Memories where each datum is valid, and the times since when.
        self.valid: list[dict[int, float]] = [{HOST: 0.0} for _ in nbytes]

    def fetch(self, data: Iterable[int], memory: int, time: float) -> float:
        """Copy to a memory the data that are not valid there; return the time at which all are valid."""
        arrival = time
        for datum in data:
            valid = self.valid[datum]
            if memory not in valid:
                self._bring(datum, memory, time)
            arrival = max(arrival, valid[memory])
        return arrival

    def write(self, data: Iterable[int], memory: int, time: float) -> None:
        """Make the copies in one memory the only valid ones."""
        for datum in data:
            self.valid[datum] = {memory: time}

    def missing(self, data: Iterable[int], memory: int) -> float:
        """Return the bytes of data that are not valid in a memory."""
        return sum([self._nbytes[datum] for datum in data if memory not in self.valid[datum]])

    def _bring(self, datum: int, memory: int, time: float) -> None:
        valid = self.valid[datum]
        source = HOST if HOST in valid else min(valid, key=valid.__getitem__)
        if HOST not in (source, memory) and not self._direct:
            self._copy(datum, source, HOST, time)
            source = HOST
        self._copy(datum, source, memory, time)

    def _copy(self, datum: int, source: int, memory: int, time: float) -> None:
        valid = self.valid[datum]
        valid[memory] = self._link.carry(datum, source, memory, max(time, valid[source]))
