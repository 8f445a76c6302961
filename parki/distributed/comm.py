"""Communicators: the few calls that sums over many processes make, and the messages that these send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from parki.arrays import Array

Operation = Literal["sum", "min", "max"]
OPERATIONS = {"sum": np.add, "min": np.minimum, "max": np.maximum}


class Pending(Protocol):  # numpydoc ignore=PR01
    """Wait for messages that are under way.

    See Also
    --------
    Comm.exchange : Begin to send and to receive.

    Examples
    --------
    >>> from parki.distributed import World
    >>> def work(comm):
    ...     pending = comm.exchange({}, {}, "sort")
    ...     pending.finish()
    ...     return pending.test()
    >>> World(2).run(work)
    [True, True]
    """

    def test(self) -> bool:
        """Let messages progress, and tell whether all have come and gone.

        Returns
        -------
        bool
            True once all have.
        """

    def finish(self) -> None:
        """Wait until all messages have come and gone."""


@dataclass
class Traffic:
    """Count the bytes and messages that a rank has sent to others, by phase.

    Parameters
    ----------
    nbytes, messages : dict, optional
        Counts by phase; by default empty.

    See Also
    --------
    parki.timing.PhaseTimes : The counts of one call of a plan.

    Examples
    --------
    >>> from parki.distributed import Traffic
    >>> traffic = Traffic()
    >>> traffic.count("sort", 800)
    >>> traffic
    Traffic(nbytes={'sort': 800}, messages={'sort': 1})
    """

    nbytes: dict[str, int] = field(default_factory=dict)
    messages: dict[str, int] = field(default_factory=dict)

    def count(self, phase: str, nbytes: int, messages: int = 1) -> None:
        """Add messages of a phase.

        Parameters
        ----------
        phase : str
            Name of the phase.
        nbytes, messages : int
            Numbers to add.
        """
        self.nbytes[phase] = self.nbytes.get(phase, 0) + nbytes
        self.messages[phase] = self.messages.get(phase, 0) + messages

    def agreed(self, nbytes: int, ranks: int) -> None:
        """Add a reduction of numbers over ranks, by halves.

        Parameters
        ----------
        nbytes : int
            Bytes of the numbers.
        ranks : int
            Ranks that take part.
        """
        rounds = (ranks - 1).bit_length()
        self.count("agree", nbytes * rounds, rounds)

    def copy(self) -> Traffic:
        """Return the counts of now.

        Returns
        -------
        Traffic
            Counts that later messages do not change.
        """
        return Traffic(dict(self.nbytes), dict(self.messages))


@runtime_checkable
class Comm(Protocol):  # numpydoc ignore=PR01
    """Connect ranks 0 … size − 1 that make the same calls in the same order.

    Calls with `comm` take a communicator of mpi4py, or any object with these attributes and methods.

    Attributes
    ----------
    rank, size : int
        Number of this rank, and of all.
    node : tuple of int
        Ranks that share a machine with this one, itself among them, in order.
    peers : int
        Ranks that share this one's cores, itself among them.
    place : int
        Number of this rank's process among those of its machine.
    traffic : Traffic
        Bytes and messages that this rank has sent.

    See Also
    --------
    World : Ranks of one process, with communicators of this kind.

    Examples
    --------
    >>> import numpy as np, parki
    >>> from parki.distributed import World
    >>> def work(comm):  # each rank has one charge, and sums over both
    ...     x, q = np.array([[2.0 * comm.rank], [0.0], [0.0]]), np.array([1.0 + 3 * comm.rank])
    ...     return parki.direct.direct_sum("coulomb", x, x, q, comm=comm).tolist()
    >>> World(2).run(work)
    [[2.0], [0.5]]
    """

    rank: int
    size: int
    node: tuple[int, ...]
    peers: int
    place: int
    traffic: Traffic

    def allreduce(self, x: Any, op: Operation = "sum") -> np.ndarray:
        """Return the sum, minimum or maximum of all ranks' numbers, entry by entry; sums in the order of ranks.

        Parameters
        ----------
        x : number or array
            The numbers of this rank.
        op : {"sum", "min", "max"}, default "sum"
            The operation.

        Returns
        -------
        array
            The result, the same on all ranks.
        """

    def allgather(self, x: Any) -> list[Any]:
        """Return one object of each rank.

        Parameters
        ----------
        x : object
            The object of this rank.

        Returns
        -------
        list
            The objects by rank.
        """

    def bcast(self, x: Any, root: int = 0) -> Any:
        """Return the object of the root.

        Parameters
        ----------
        x : object
            The object of this rank; others than the root's are not used.
        root : int, default 0
            A rank.

        Returns
        -------
        object
            The object of the root, on all ranks.
        """

    def barrier(self) -> None:
        """Wait for all ranks."""

    def rest(self) -> None:
        """Wait for all ranks, however long, and leave the cores to working ranks."""

    def exchange(self, send: Mapping[int, Array], receive: Mapping[int, Array], phase: str) -> Pending:
        """Begin to send arrays to some ranks, and to receive others from ranks that send as many bytes.

        Arrays are C-contiguous.  Until the end an array to be sent must not change, nor one to be received be read.

        Parameters
        ----------
        send, receive : dict
            Arrays by rank.
        phase : str
            The phase that the messages are counted for.

        Returns
        -------
        Pending
            The messages under way.
        """

    def exchange_unknown(self, send: Mapping[int, Array], like: Array, phase: str) -> dict[int, Array]:
        """Return arrays ``(n, …)`` by the ranks that sent some.

        Parameters
        ----------
        send : dict
            Arrays by rank.
        like : array (m, …)
            An array with rows of the shape and dtype of the rows that come.
        phase : str
            The phase that the messages are counted for.

        Returns
        -------
        dict
            Arrays by the ranks that sent them.
        """
