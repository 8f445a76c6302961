"""Parcels: rows of several arrays in one message from a rank to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple

import numpy as np

from parki.arrays import Array, module_of
from parki.distributed.comm import Comm, Pending

ALIGNED = 64  # bytes; every message begins at a multiple of this in memory
Rows = Sequence[np.ndarray]  # numbers of rows of each shelf


class Shelf(NamedTuple):
    """Kind of an array ``(rows, width)`` whose rows travel."""

    width: int
    dtype: np.dtype

    @classmethod
    def of(cls, a: Array) -> Shelf:
        """Return the kind of an array."""
        return cls(a.shape[1], a.dtype)

    @property
    def nbytes(self) -> int:
        """Return the bytes of a row."""
        return self.width * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Volume:
    """Messages of one side of an exchange, and their bytes."""

    messages: int
    nbytes: int


class Parcels:
    """Rows of arrays ("shelves") that go to and come from each rank, in one message per partner.

    Parameters
    ----------
    comm : Comm
    send, receive : dict of sequences of arrays of int
        Rows of each shelf that go to or come from each rank; there may be none.  Rows that come from one rank
        are different ones.
    shelves : sequence of Shelf
        Kinds of the arrays, equal on all ranks.
    phase : str
        Phase under which messages are counted.

    Attributes
    ----------
    sent, received : Volume
        Messages of one exchange, as counted for the models, without those of a rank to itself.
    partners : set of int
        Ranks that this one sends rows to.
    """

    def __init__(
        self, comm: Comm, send: Mapping[int, Rows], receive: Mapping[int, Rows], shelves: Sequence[Shelf], phase: str
    ) -> None:
        self._comm, self._phase = comm, phase
        self._out, self._come = _Load(send, shelves), _Load(receive, shelves)
        self._least = [max(pair) for pair in zip(self._out.least, self._come.least, strict=True)]
        self.sent, self.received = self._out.volume(comm.rank), self._come.volume(comm.rank)
        self.partners = {rank for rank, nbytes in self._out.nbytes.items() if nbytes and rank != comm.rank}

    def start(self, shelves: Sequence[Array], add: bool = False) -> Arriving:
        """Begin to send rows.

        Parameters
        ----------
        shelves : sequence of arrays (rows, width)
            Contiguous, all of NumPy or all of CuPy.  Rows to be sent may change at once; rows that come must not be
            used before the end.
        add : bool
            Whether rows that come are added to present values, rank after rank, or replace them.

        Raises
        ------
        IndexError
            For a shelf with too few rows.
        """
        for k, (a, n_rows) in enumerate(zip(shelves, self._least, strict=True)):
            if len(a) < n_rows:
                raise IndexError(f"shelf {k} has {len(a)} rows; expected at least {n_rows}.")
        xp = module_of(shelves[0]) if shelves else np
        out, incoming = self._out.held(xp), self._come.held(xp)
        for k, rows, part in out.parts:
            gathered(shelves[k], rows, part)
        return Arriving(self._comm.exchange(out.messages, incoming.messages, self._phase), incoming, shelves, add)

    @property
    def arrays(self) -> list[Array]:
        """Return every array that is kept."""
        return self._out.arrays + self._come.arrays


class Arriving:
    """Rows under way: see `parki.distributed.comm.Pending`."""

    def __init__(self, messages: Pending, incoming: _Held, shelves: Sequence[Array], add: bool) -> None:
        self._pending, self._come, self._shelves, self._add = messages, incoming, shelves, add

    def test(self) -> bool:
        """Let messages progress, and tell whether all have come and gone."""
        return self._pending.test()

    def finish(self) -> None:
        """Wait for all messages, and write their rows, in the order of ranks."""
        self._pending.finish()
        for k, rows, part in self._come.parts:
            if self._add:
                self._shelves[k][rows] += part
            else:
                self._shelves[k][rows] = part


class _Load:
    """Messages of one side: the rows of each in an order of shelves that leaves no gaps.

    Shelves of longer numbers come first: then each part begins at a multiple of the bytes of its own numbers.
    """

    def __init__(self, rows: Mapping[int, Rows], shelves: Sequence[Shelf]) -> None:
        self._kinds: list[tuple[int, slice, slice, Shelf]] = []  # shelf, its part of index and memory
        self._slices: dict[int, slice] = {}
        self._kept: dict[str, _Held] = {}
        order = sorted(range(len(shelves)), key=lambda k: -np.dtype(shelves[k].dtype).itemsize)
        index, first, place = [np.empty(0, np.int64)], 0, 0
        self.least = [0] * len(shelves)
        for rank in sorted(rows):
            begin = place
            for k in order:
                count = len(rows[rank][k])
                if not count:
                    continue
                nbytes = count * shelves[k].nbytes
                self._kinds.append((k, slice(first, first + count), slice(place, place + nbytes), shelves[k]))
                index.append(np.asarray(rows[rank][k], np.int64))
                self.least[k] = max(self.least[k], int(index[-1].max()) + 1)
                first, place = first + count, place + nbytes
            if place > begin:
                self._slices[rank] = slice(begin, place)
            place += -place % ALIGNED
        self._index, self._size = np.concatenate(index), place
        self.nbytes = {rank: part.stop - part.start for rank, part in self._slices.items()}

    def volume(self, own_rank: int) -> Volume:
        """Return the messages of other ranks."""
        sizes = [nbytes for rank, nbytes in self.nbytes.items() if rank != own_rank]
        return Volume(len(sizes), sum(sizes))

    def held(self, xp: ModuleType) -> _Held:
        """Return the memory of messages in a module's arrays; the first call for a module allocates it."""
        if xp.__name__ not in self._kept:
            memory, index = xp.empty(self._size, np.uint8), xp.asarray(self._index)
            parts = [
                (k, index[rows], memory[part].view(kind.dtype).reshape(rows.stop - rows.start, kind.width))
                for k, rows, part, kind in self._kinds
            ]
            messages = {rank: memory[part] for rank, part in self._slices.items()}
            self._kept = {xp.__name__: _Held(memory, index, parts, messages)}
        return self._kept[xp.__name__]

    @property
    def arrays(self) -> list[Array]:
        return [self._index, *(a for room in self._kept.values() for a in (room.memory, room.index))]


@dataclass(frozen=True, eq=False)
class _Held:
    """Memory of messages, and the places of shelves' rows in it."""

    memory: Array
    index: Array
    parts: list[tuple[int, Array, Array]]  # shelf, rows, their numbers in a message
    messages: dict[int, Array]


def gathered(a: Array, rows: Array, out: Array) -> None:
    """Set ``out[j] = a[rows[j]]``."""
    if isinstance(a, np.ndarray):
        np.take(a, rows, axis=0, out=out, mode="clip")  # other modes take a copy
    else:
        out[...] = a[rows]


def by_rank(ranks: np.ndarray) -> dict[int, np.ndarray]:
    """Return the entries of each rank, in their order."""
    order = np.argsort(ranks, kind="stable")
    values, first = np.unique(ranks[order], return_index=True)
    parts = np.split(order, first[1:]) if len(values) else []
    return dict(zip(values.tolist(), parts, strict=True))


def by_shelf(shelf: np.ndarray, row: np.ndarray, count: int) -> list[np.ndarray]:
    """Return the rows of each of `count` shelves, in their order."""
    return [row[shelf == k] for k in range(count)]
