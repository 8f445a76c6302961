"""Entries along points that travel between ranks: to the owners of points, back, and to neighbours as ghosts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from parki import engine
from parki.arrays import Array, module_of, to_host
from parki.distributed.comm import Comm
from parki.engine import RangePolicy, Space, launchable, spaces

ROOMS = 10  # pieces of memory that are kept: both ways, two kinds of arrays, places before and after own entries
REALS = ("float32", "float64")
Ranges = dict[int, slice]  # of entries, by rank


class Delivery:
    """Entries of a rank's arrays that go to each rank, and the numbers of entries that come from each.

    Parameters
    ----------
    comm : Comm
    send : dict of arrays of int
        Entries by their destination rank; an entry may go to several ranks, and more than once.
    receive : dict of int
        Numbers of entries by their source rank.
    phase : str
        Phase under which messages are counted.
    space : Space, optional
        Space whose kernels pack entries; by default the arrays' module packs them.

    Attributes
    ----------
    sent, received : int
        Numbers of entries.
    """

    def __init__(
        self, comm: Comm, send: Mapping[int, Array], receive: Mapping[int, int], phase: str, space: Space | None = None
    ) -> None:
        self._comm, self._phase, self._space = comm, phase, space
        self._rooms: dict[tuple[Any, ...], Array] = {}
        xp = np if space is None else spaces.array_module(space)
        ranks = sorted(rank for rank, index in send.items() if len(index) and rank != comm.rank)
        self._index = _joined(xp, [send[rank] for rank in ranks])
        self._own = _joined(xp, [send[comm.rank]] if comm.rank in send else [])
        self._to = _ranges(ranks, [len(send[rank]) for rank in ranks])
        sources = sorted(rank for rank, n in receive.items() if n and rank != comm.rank)
        self._from = _ranges(sources, [receive[rank] for rank in sources])
        self._before = sum(receive[rank] for rank in sources if rank < comm.rank)
        self.sent = len(self._index) + len(self._own)
        self.received = len(self._own) + sum(receive[rank] for rank in sources)

    @classmethod
    def known_by(
        cls, comm: Comm, send: Mapping[int, Array], rows: Mapping[int, Array], like: Array, phase: str,
        space: Space | None = None,
    ) -> tuple[Delivery, Array]:  # fmt: skip
        """Return a delivery that receivers learn of by first rows, and these rows in the order of ranks.

        Parameters
        ----------
        comm : Comm
        send : dict of arrays of int
        rows : dict of arrays (n, …)
            A row for each entry that is sent.
        like : array (any, …)
            Array with the shape and dtype of rows.
        phase : str
        space : Space, optional
        """
        outgoing = {rank: module_of(like).ascontiguousarray(a) for rank, a in rows.items() if len(a)}
        incoming = comm.exchange_unknown(outgoing, like, phase)
        parts = [incoming[rank] for rank in sorted(incoming)]
        delivery = cls(comm, send, {rank: len(a) for rank, a in incoming.items()}, phase, space)
        return delivery, module_of(like).concatenate(parts) if parts else like[:0]

    def there(self, *arrays: Array, out: Array | None = None) -> Array:
        """Return the entries that come from all ranks, in their order, of arrays with entries along the last axis.

        Parameters
        ----------
        *arrays : array (…, n)
            Arrays of one dtype; several must be two-dimensional, and are stacked in the result.
        out : array (rows, received), optional
        """
        lead = arrays[0].shape[:-1] if len(arrays) == 1 else (sum(len(a) for a in arrays),)
        rows = [a.reshape(math.prod(a.shape[:-1]), a.shape[-1]) for a in arrays]
        xp, dtype, count = module_of(rows[0]), rows[0].dtype, sum(len(a) for a in rows)
        out = xp.empty((count, self.received), dtype) if out is None else out
        outgoing, incoming = self._messages(xp, dtype, count, len(self._index), self.received - len(self._own))
        own_range, first = slice(self._before, self._before + len(self._own)), 0
        for a in rows:
            self._pack(a, self._index, outgoing, first)
            part = out[first : first + len(a), own_range]
            if not self._launched("gather", a, self._own, part, rows=len(a)):
                part[...] = a[:, self._own]
            first += len(a)
        self._exchange(outgoing, incoming, (self._to, self._from))
        for block, columns in (
            (incoming[: own_range.start], slice(own_range.start)),
            (incoming[own_range.start :], slice(own_range.stop, None)),
        ):
            self._unpack(block, self._everyone(len(block)), out[:, columns])
        return out.reshape(*lead, self.received)

    def back(self, a: Array, out: Array | None = None) -> Array:
        """Return entries along the last axis to where they came from; each must have gone to one rank only."""
        rows, xp = a.reshape(math.prod(a.shape[:-1]), a.shape[-1]), module_of(a)
        out = xp.empty((len(rows), self.sent), a.dtype) if out is None else out
        outgoing, incoming = self._messages(xp, a.dtype, len(rows), self.received - len(self._own), len(self._index))
        own_range = slice(self._before, self._before + len(self._own))
        for block, columns in (
            (outgoing[: own_range.start], slice(own_range.start)),
            (outgoing[own_range.start :], slice(own_range.stop, None)),
        ):
            self._pack(rows[:, columns], self._everyone(len(block)), block)
        if not self._launched("scatter", rows[:, own_range], self._own, out, rows=len(rows)):
            out[:, self._own] = rows[:, own_range]
        self._exchange(outgoing, incoming, (self._from, self._to))
        self._unpack(incoming, self._index, out)
        return out.reshape(*a.shape[:-1], self.sent)

    def _messages(self, xp: Any, dtype: np.dtype, count: int, n: int, m: int) -> tuple[Array, Array]:
        """Return memory for n entries to send and m to receive, with `count` numbers each."""
        return self._room(xp, "packed", (n, count), dtype), self._room(xp, "come", (m, count), dtype)

    def _exchange(self, outgoing: Array, incoming: Array, ways: tuple[Ranges, Ranges]) -> None:
        """Send and receive entries, by ranks."""
        send, receive = (
            {q: a[part] for q, part in way.items()} for a, way in zip((outgoing, incoming), ways, strict=True)
        )
        self._comm.exchange(send, receive, self._phase).finish()

    def _pack(self, a: Array, order: Array, outgoing: Array, first: int = 0) -> None:
        """Set ``packed[j, first + k] = a[k, order[j]]``."""
        if not self._launched("gather_columns", a, order, outgoing, first=first, rows=len(a)):
            outgoing[:, first : first + len(a)] = a[:, order].T

    def _unpack(self, incoming: Array, order: Array, out: Array) -> None:
        """Set ``out[k, order[j]] = come[j, k]``."""
        if not self._launched("scatter_columns", incoming, order, out, rows=len(out)):
            out[:, order] = incoming.T

    def _launched(self, name: str, a: Array, order: Array, out: Array, **numbers: int) -> bool:
        """Run a workunit of `kernels/glue.py` per entry of an order; return False if it takes no such arrays."""
        if self._space is None or a.dtype.name not in REALS or not (launchable(a) and launchable(out)):
            return False
        if len(order):
            unit = engine.kernel("glue", name, real=a.dtype)
            engine.parallel_for(RangePolicy(self._space, len(order)), unit, a=a, order=order, out=out, **numbers)
        return True

    def _everyone(self, n: int) -> Array:
        key = ("everyone", n)
        if key not in self._rooms:
            xp = np if self._space is None else spaces.array_module(self._space)
            self._rooms[key] = xp.arange(n, dtype=np.int32)
        return self._rooms[key]

    def _room(self, xp: Any, name: str, shape: tuple[int, int], dtype: np.dtype) -> Array:
        """Return memory that later deliveries of as many rows use, too."""
        key = (name, shape, dtype.name)
        if key not in self._rooms:
            while len(self._rooms) >= ROOMS:
                del self._rooms[next(iter(self._rooms))]
            self._rooms[key] = xp.empty(shape, dtype)
        return self._rooms[key]

    @property
    def arrays(self) -> list[Array]:
        """Return every array that the delivery holds."""
        return [self._index, self._own, *self._rooms.values()]


def to_owners(comm: Comm, owner: Array, phase: str, space: Space | None = None) -> Delivery:
    """Return the delivery of entries to their owners, ranks (n,), in the order of ranks and then of entries."""
    xp = module_of(owner)
    order = xp.argsort(owner, kind="stable").astype(np.int32)
    ends = to_host(xp.searchsorted(owner[order], xp.arange(comm.size), side="right"))
    counts = np.diff(ends, prepend=0)
    send = {int(q): order[ends[q] - counts[q] : ends[q]] for q in np.flatnonzero(counts)}
    return Delivery.known_by(comm, send, send, xp.empty(0, np.int32), phase, space)[0]


def _joined(xp: Any, indices: list[Array]) -> Array:
    return xp.concatenate([xp.asarray(a) for a in indices]).astype(np.int32) if indices else xp.empty(0, np.int32)


def _ranges(ranks: list[int], counts: list[int]) -> Ranges:
    ends = np.cumsum([0, *counts]).tolist()
    return {rank: slice(first, end) for rank, first, end in zip(ranks, ends, ends[1:], strict=False)}


class Nothing:
    """Placed steps of a rank that has none: see `parki.engine.steps.Placed`."""

    arrays: tuple[Any, ...] = ()
    replays: tuple[Any, ...] = ()
    unmade = 0

    @property
    def memory_of(self) -> Nothing:
        """Return the object itself, as the memory of no steps."""
        return self


NOTHING = Nothing()
