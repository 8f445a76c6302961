"""Simulated ranks in one process: 1 to 4096 greenlets, for tests of index logic and of the bytes that are sent.

Messages are copied when sent, all ranks must make collective calls in one order, and the bytes of each are counted.
One rank runs at a time, in an order drawn from a seed: runs repeat, other seeds try other orders, and a deadlock is
found at once and named.  A rank that raises ends the run.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any

import numpy as np

from parki.arrays import Array, module_of, to_host
from parki.distributed.comm import OPERATIONS, Operation, Traffic


class Aborted(RuntimeError):
    """Raise where another rank has failed, or all ranks wait."""


class World:
    """Simulate ranks in one process, one of which runs at a time.

    Parameters
    ----------
    size : int
        Number of ranks.
    seed : int, default 0
        Seed of the order in which ranks go on.
    delay : tuple of two floats, optional
        Seconds a message and seconds a byte that messages take at least, by the wall clock.

    Attributes
    ----------
    busy : list of float
        Seconds in which each rank went on, while the others did not.
    comms : list of Comm
        The communicators of the ranks.

    See Also
    --------
    Comm : The calls of each rank's communicator.

    Notes
    -----
    Ranks are greenlets: the package ``greenlet`` is needed.

    Examples
    --------
    >>> from parki.distributed import World
    >>> def work(comm):
    ...     return float(comm.allreduce(comm.rank + 1))
    >>> World(3).run(work)
    [6.0, 6.0, 6.0]
    """

    def __init__(self, size: int, seed: int = 0, delay: tuple[float, float] = (0.0, 0.0)) -> None:
        self.size, self.delay = size, delay
        self._random, self._error = random.Random(seed), None
        self.busy = [0.0] * size
        self._ready: list[int] = []
        self._waiting: dict[int, str] = {}
        self._meetings: dict[int, _Meeting] = {}
        # As in MPI, the n-th array that a rank sends to another matches the n-th request there.
        self._mail: dict[tuple[int, int, int], tuple[float, np.ndarray]] = {}
        self._sent: dict[tuple[int, int], count[int]] = defaultdict(count)
        self._asked: dict[tuple[int, int], count[int]] = defaultdict(count)
        self.comms = [SimulatedComm(self, rank) for rank in range(size)]

    def run(self, work: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return the results of ``work(comm, *arguments)`` on every rank.

        Parameters
        ----------
        work : callable
            Function that every rank calls.
        *arguments : object
            Arguments behind the communicator, the same for all ranks.

        Returns
        -------
        list
            The results by rank.

        Raises
        ------
        Exception
            The first one that any rank raises.
        Aborted
            Where all ranks wait, naming the calls in which they do.
        """
        import greenlet

        results: list[Any] = [None] * self.size
        self._main = greenlet.getcurrent()

        def one(rank: int) -> None:
            try:
                results[rank] = work(self.comms[rank], *arguments)
            except Aborted:
                pass
            except BaseException as error:
                self._fail(error)

        ranks = [greenlet.greenlet(one) for _ in range(self.size)]
        self._ready = list(range(self.size))
        while self._ready or self._waiting:
            if not self._ready:
                text = ", ".join(f"rank {r} in {action}" for r, action in sorted(self._waiting.items())[:4])
                self._fail(Aborted(f"all of {len(self._waiting)} ranks wait: {text}"))
            place = self._random.randrange(len(self._ready))
            self._ready[place], self._ready[-1] = self._ready[-1], self._ready[place]
            rank = self._ready.pop()
            start = time.perf_counter()
            ranks[rank].switch(*(() if ranks[rank] else (rank,)))
            self.busy[rank] += time.perf_counter() - start
        if self._error is not None:
            raise self._error
        return results

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error
        self.wake(list(self._waiting))

    def wait(self, rank: int, action: str) -> None:
        """Let other ranks go on until one of them wakes this one."""
        self._waiting[rank] = action
        self._main.switch()
        if self._error is not None:
            raise Aborted("another rank failed") from self._error

    def let_others(self, rank: int) -> None:
        """Let other ranks go on; this rank goes on after some of them."""
        self._ready.append(rank)
        self._main.switch()
        if self._error is not None:
            raise Aborted("another rank failed") from self._error

    def wake(self, ranks: Iterable[int]) -> None:
        """Let waiting ranks go on."""
        for rank in ranks:
            if rank in self._waiting:
                del self._waiting[rank]
                self._ready.append(rank)

    def together(self, rank: int, number: int, name: str, value: Any) -> list[Any]:
        """Give an object to a collective call; return the objects of all ranks, once all have come."""
        meeting = self._meetings.setdefault(number, _Meeting(name, self.size))
        if meeting.name != name:
            first_rank = meeting.here[0]
            raise RuntimeError(
                f"rank {rank} calls {name}, rank {first_rank} {meeting.name}; expected one call of all ranks"
            )
        meeting.given[rank] = value
        meeting.here.append(rank)
        if len(meeting.here) < self.size:
            self.wait(rank, name)
        else:
            self.wake(meeting.here)
        meeting.left -= 1
        if not meeting.left:
            del self._meetings[number]
        return meeting.given

    def send(self, source: int, target: int, a: Array) -> None:
        """Put a copy of an array into a mailbox."""
        arrival = time.perf_counter() + self.delay[0] + self.delay[1] * a.nbytes if any(self.delay) else 0.0
        number = next(self._sent[target, source])
        self._mail[target, source, number] = arrival, np.ascontiguousarray(to_host(a)).copy()
        self.wake([target])

    def asked(self, rank: int, source: int) -> int:
        """Ask for the next array of a sender; return its number."""
        return next(self._asked[rank, source])

    def arrived(self, rank: int, source: int, number: int) -> np.ndarray | None:
        """Return an array of a sender, None if it has not come."""
        arrival, a = self._mail.get((rank, source, number), (0.0, None))
        if a is None or (arrival and arrival > time.perf_counter()):
            return None
        del self._mail[rank, source, number]
        return a

    def posted(self, rank: int, source: int, number: int) -> bool:
        """Tell whether an array of a sender is under way."""
        return (rank, source, number) in self._mail


class _Meeting:
    """A collective call that not all ranks have left."""

    def __init__(self, name: str, size: int) -> None:
        self.name, self.left = name, size
        self.given: list[Any] = [None] * size
        self.here: list[int] = []


class SimulatedComm:
    """Communicator of a simulated rank: see `parki.distributed.comm.Comm`."""

    def __init__(self, world: World, rank: int) -> None:
        self.world, self.rank, self.size = world, rank, world.size
        self.node, self.traffic, self._calls = tuple(range(world.size)), Traffic(), 0
        self.peers, self.place = 1, 0  # one rank goes on at a time, in one process

    def _together(self, name: str, value: Any) -> list[Any]:
        self._calls += 1
        return self.world.together(self.rank, self._calls, name, value)

    def allreduce(self, x: Any, op: Operation = "sum") -> np.ndarray:
        """Return the sum, minimum or maximum of all ranks' numbers."""
        own_values = np.array(x)
        self.traffic.agreed(own_values.nbytes, self.size)
        return OPERATIONS[op].reduce(self._together(f"allreduce({op})", own_values))

    def allgather(self, x: Any) -> list[Any]:
        """Return one object of each rank."""
        return list(self._together("allgather", x))

    def bcast(self, x: Any, root: int = 0) -> Any:
        """Return the object of the root."""
        return self._together("bcast", x)[root]

    def barrier(self) -> None:
        """Wait for all ranks."""
        self._together("barrier", None)

    def rest(self) -> None:
        """Wait for all ranks."""
        self._together("rest", None)

    def exchange(self, send: Mapping[int, Array], receive: Mapping[int, Array], phase: str) -> _Letters:
        """Begin to send and to receive arrays."""
        for target, a in send.items():
            self.world.send(self.rank, target, a)
            if target != self.rank and a.nbytes:
                self.traffic.count(phase, a.nbytes)
        return _Letters(self, dict(receive), phase)

    def exchange_unknown(self, send: Mapping[int, Array], like: Array, phase: str) -> dict[int, Array]:
        """Return arrays by the ranks that sent some."""
        letters = self._together("exchange_unknown", {target: to_host(a).copy() for target, a in send.items()})
        for target, a in send.items():
            if target != self.rank and a.nbytes:
                self.traffic.count(phase, a.nbytes)
        xp = module_of(like)
        return {source: xp.asarray(letter[self.rank]) for source, letter in enumerate(letters) if self.rank in letter}


class _Letters:
    """Arrays that a simulated rank waits for."""

    def __init__(self, comm: SimulatedComm, receive: dict[int, Array], phase: str) -> None:
        self._comm, self._receive, self._phase = comm, receive, phase
        self._numbers = {source: comm.world.asked(comm.rank, source) for source in receive}

    def test(self) -> bool:
        """Take arrays that have come; tell whether all have come."""
        comm = self._comm
        for source in list(self._receive):
            a = comm.world.arrived(comm.rank, source, self._numbers[source])
            if a is not None:
                self._take(source, a)
        return not self._receive

    def finish(self) -> None:
        """Wait for all arrays."""
        comm = self._comm
        while not self.test():
            if any(comm.world.posted(comm.rank, source, self._numbers[source]) for source in self._receive):
                comm.world.let_others(comm.rank)  # under way
            else:
                comm.world.wait(comm.rank, f"{self._phase}, from rank {next(iter(self._receive))}")

    def _take(self, source: int, a: np.ndarray) -> None:
        buffer = self._receive.pop(source)
        if buffer.nbytes != a.nbytes or buffer.dtype != a.dtype:
            text, expected = (f"{b.nbytes} bytes of {b.dtype}" for b in (a, buffer))
            raise RuntimeError(f"{self._phase}: found {text} from rank {source}, expected {expected}")
        buffer[...] = module_of(buffer).asarray(a.reshape(buffer.shape))
