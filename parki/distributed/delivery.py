"""Entries along points that go from rank to rank: to the owners of points, back, and to neighbours as ghosts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from parki import engine
from parki.arrays import Array, module_of, to_host
from parki.distributed.comm import Comm
from parki.engine import RangePolicy, spaces
from parki.engine.launch import taken
from parki.engine.spaces import Space

ROOMS = 8  # pieces of memory that are kept: there and back, of two kinds of arrays
REALS = ("float32", "float64")
Ranges = dict[int, slice]  # of entries, by rank


class Delivery:
    """Which entries of a rank's arrays go to which ranks, and how many come from which.

    Parameters
    ----------
    comm : Comm
    send : dict of arrays of int
        Entries by the rank that they go to; an entry may go to several ranks, and more than once.
    receive : dict of int
        Numbers of entries by the ranks that they come from.
    phase : str
        Under which messages are counted.
    space : Space, optional
        Where entries are packed by kernels; by the arrays' module without.

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
        ranks = sorted(rank for rank, index in send.items() if len(index))
        indices = [send[rank] for rank in ranks]
        xp = np if space is None else spaces.array_module(space)
        self._index = xp.concatenate(indices).astype(np.int32) if indices else xp.empty(0, np.int32)
        self._to = _ranges(ranks, [len(index) for index in indices])
        sources = sorted(rank for rank, n in receive.items() if n)
        self._from = _ranges(sources, [receive[rank] for rank in sources])
        self.sent, self.received = len(self._index), sum(receive[rank] for rank in sources)

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
            Of the shape and dtype of rows.
        phase : str
        space : Space, optional
        """
        given = {rank: module_of(like).ascontiguousarray(a) for rank, a in rows.items() if len(a)}
        come = comm.exchange_unknown(given, like, phase)
        found = [come[rank] for rank in sorted(come)]
        made = cls(comm, send, {rank: len(a) for rank, a in come.items()}, phase, space)
        return made, module_of(like).concatenate(found) if found else like[:0]

    def there(self, *arrays: Array, out: Array | None = None) -> Array:
        """Return the entries that come from all ranks, in their order, of arrays with entries along the last axis.

        Parameters
        ----------
        *arrays : array (…, n)
            Of one dtype; several are two-dimensional, and one below the other in the result.
        out : array (rows, received), optional
        """
        lead = arrays[0].shape[:-1] if len(arrays) == 1 else (sum(len(a) for a in arrays),)
        rows = [a.reshape(math.prod(a.shape[:-1]), a.shape[-1]) for a in arrays]
        return self._carried(rows, self._index, None, (self._to, self._from), out).reshape(*lead, self.received)

    def back(self, a: Array, out: Array | None = None) -> Array:
        """Return entries along the last axis to where they came from, each of which went to one rank only."""
        rows = [a.reshape(math.prod(a.shape[:-1]), a.shape[-1])]
        home = self._carried(rows, None, self._index, (self._from, self._to), out)
        return home.reshape(*a.shape[:-1], self.sent)

    def _carried(
        self, rows: list[Array], index: Array | None, places: Array | None, ways: tuple[Ranges, Ranges],
        out: Array | None,
    ) -> Array:  # fmt: skip
        """Send columns of rows, by index, and return those that come as columns of `out`, at their places."""
        xp, dtype, count = module_of(rows[0]), rows[0].dtype, sum(len(a) for a in rows)
        n = rows[0].shape[1] if index is None else len(index)
        m = sum(at.stop - at.start for at in ways[1].values())
        packed, come = self._room(xp, "packed", (n, count), dtype), self._room(xp, "come", (m, count), dtype)
        first = 0
        for a in rows:
            self._gather(a, index, packed, first)
            first += len(a)
        send = {rank: packed[at] for rank, at in ways[0].items()}
        receive = {rank: come[at] for rank, at in ways[1].items()}
        self._comm.exchange(send, receive, self._phase).finish()
        out = xp.empty((count, m), dtype) if out is None else out
        self._scatter(come, places, out)
        return out

    def _gather(self, a: Array, index: Array | None, packed: Array, first: int) -> None:
        """Set ``packed[j, first + k] = a[k, index[j]]``."""
        if self._space is None or a.dtype.name not in REALS or not taken(a):
            packed[:, first : first + len(a)] = (a if index is None else a[:, index]).T
            return
        order = self._everyone(len(packed)) if index is None else index
        unit = engine.kernel("glue", "gather_columns", real=a.dtype)
        args = {"a": a, "order": order, "out": packed, "first": first, "rows": len(a)}
        engine.parallel_for(RangePolicy(self._space, len(packed)), unit, **args)

    def _scatter(self, come: Array, places: Array | None, out: Array) -> None:
        """Set ``out[k, places[j]] = come[j, k]``."""
        if self._space is None or come.dtype.name not in REALS or not taken(out):
            out[:, slice(None) if places is None else places] = come.T
            return
        order = self._everyone(len(come)) if places is None else places
        unit = engine.kernel("glue", "scatter_columns", real=come.dtype)
        args = {"a": come, "order": order, "out": out, "rows": len(out)}
        engine.parallel_for(RangePolicy(self._space, len(come)), unit, **args)

    def _everyone(self, n: int) -> Array:
        key = ("everyone", n)
        if key not in self._rooms:
            self._rooms[key] = spaces.array_module(self._space).arange(n, dtype=np.int32)
        return self._rooms[key]

    def _room(self, xp: Any, name: str, shape: tuple[int, int], dtype: np.dtype) -> Array:
        """Return memory that the next delivery of as many rows has, too."""
        key = (name, shape, dtype.name)
        if key not in self._rooms:
            while len(self._rooms) >= ROOMS:
                del self._rooms[next(iter(self._rooms))]
            self._rooms[key] = xp.empty(shape, dtype)
        return self._rooms[key]

    @property
    def arrays(self) -> list[Array]:
        """Return every array that the delivery holds."""
        return [self._index, *self._rooms.values()]


def to_owners(comm: Comm, owner: Array, phase: str, space: Space | None = None) -> Delivery:
    """Return the delivery of entries to their owners, ranks (n,), in the order of ranks and then of entries."""
    xp = module_of(owner)
    order = xp.argsort(owner, kind="stable").astype(np.int32)
    ends = to_host(xp.searchsorted(owner[order], xp.arange(comm.size), side="right"))
    counts = np.diff(ends, prepend=0)
    send = {int(q): order[ends[q] - counts[q] : ends[q]] for q in np.flatnonzero(counts)}
    return Delivery.known_by(comm, send, send, xp.empty(0, np.int32), phase, space)[0]


def _ranges(ranks: list[int], counts: list[int]) -> Ranges:
    ends = np.cumsum([0, *counts]).tolist()
    return {rank: slice(first, end) for rank, first, end in zip(ranks, ends, ends[1:], strict=False)}


class Nothing:
    """The placed steps of a rank that has none: see `parki.engine.steps.Placed`."""

    arrays: tuple[Any, ...] = ()
    replays: tuple[Any, ...] = ()
    unmade = 0

    @property
    def memory_of(self) -> Nothing:
        """Return the memory of no steps."""
        return self


NOTHING = Nothing()
