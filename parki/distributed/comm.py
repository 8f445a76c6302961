"""Communicators: the few calls that sums over many processes make, and the messages that these send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from parki.arrays import Array

Operation = Literal["sum", "min", "max"]
OPERATIONS = {"sum": np.add, "min": np.minimum, "max": np.maximum}


class Pending(Protocol):
    """Messages that are under way."""

    def test(self) -> bool:
        """Let messages progress, and tell whether all have come and gone."""

    def finish(self) -> None:
        """Wait until all messages have come and gone."""


@dataclass
class Traffic:
    """Bytes and messages that a rank has sent to others, by phase."""

    nbytes: dict[str, int] = field(default_factory=dict)
    messages: dict[str, int] = field(default_factory=dict)

    def count(self, phase: str, nbytes: int, messages: int = 1) -> None:
        """Add messages of a phase."""
        self.nbytes[phase] = self.nbytes.get(phase, 0) + nbytes
        self.messages[phase] = self.messages.get(phase, 0) + messages

    def agreed(self, nbytes: int, ranks: int) -> None:
        """Add a reduction of numbers over ranks, by halves."""
        rounds = (ranks - 1).bit_length()
        self.count("agree", nbytes * rounds, rounds)

    def copy(self) -> Traffic:
        """Return the counts of now."""
        return Traffic(dict(self.nbytes), dict(self.messages))


@runtime_checkable
class Comm(Protocol):
    """Ranks 0 … size − 1 that call the same things in the same order.

    Attributes
    ----------
    rank, size : int
    node : tuple of int
        Ranks that share a machine with this one, itself among them, in order.
    peers : int
        Ranks that share this one's cores, itself among them.
    place : int
        Number of this rank's process among those of its machine.
    traffic : Traffic
    """

    rank: int
    size: int
    node: tuple[int, ...]
    peers: int
    place: int
    traffic: Traffic

    def allreduce(self, x: Any, op: Operation = "sum") -> np.ndarray:
        """Return the sum, least or largest of all ranks' numbers, entry by entry; sums in the order of ranks."""

    def allgather(self, x: Any) -> list[Any]:
        """Return one object of each rank."""

    def bcast(self, x: Any, root: int = 0) -> Any:
        """Return the object of the root."""

    def barrier(self) -> None:
        """Wait for all ranks."""

    def rest(self) -> None:
        """Wait for all ranks, however long, and leave the cores to those that work."""

    def exchange(self, send: Mapping[int, Array], receive: Mapping[int, Array], phase: str) -> Pending:
        """Begin to send arrays to some ranks, and to receive others from ranks that send as many bytes.

        Arrays are C-contiguous.  Those to be sent must not change, those to be received not be read, before the end.
        """

    def exchange_unknown(self, send: Mapping[int, Array], like: Array, phase: str) -> dict[int, Array]:
        """Return arrays ``(n, …)`` by the ranks that sent some: rows of the shape and dtype of those of `like`."""
