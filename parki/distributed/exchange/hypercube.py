"""Values from contributors to users by halves of the ranks, summed on their way.

I. Lashuk et al., "A massively parallel adaptive fast-multipole method on heterogeneous architectures", SC09, algorithm
3: in each round the ranks of a range send to the other half of it the parts of values that are used there.  Then each
half has, spread over its ranks, all parts that its users need.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parki.arrays import Array, module_of
from parki.distributed.exchange.census import Census, places
from parki.distributed.exchange.parcels import Parcels, Shelf, by_rank, by_shelf, gathered
from parki.distributed.exchange.rounds import Rounds

# Columns of rows with a node's name, its shelf and a rank that uses the node.
NAME, SHELF, USER = range(3)


class Hypercube(Rounds):
    """Exchange of values by halves; construction is collective.

    Any number of ranks works: in a range with an odd number, the lower half has one rank more, which sends to the
    partner of the rank before.  Calls repeat bit for bit, but each user may get sums of parts in another order.

    Parameters
    ----------
    census : Census
    shelves : sequence of Shelf

    Attributes
    ----------
    room : list of int
        Rows of each shelf that hold sums on their way.
    """

    def __init__(self, census: Census, shelves: Sequence[Shelf]) -> None:
        comm, parts, wishes = census.comm, census.parts, census.wishes
        self._kinds = tuple(shelves)
        self._kept: dict[str, tuple[list[Array], list[list[Array]]]] = {}  # rooms and rows, by an array's module
        table = _Room(len(shelves))
        pairs = _known(census)
        index = places(parts.name, np.unique(pairs[:, NAME]))
        table.put(pairs)
        self._parts = by_shelf(parts.shelf[index], parts.row[index], len(shelves))
        rounds = []
        for target, sources, half in halves(comm.rank, comm.size):
            mask = ~np.isin(pairs[:, USER], half)
            send = {target: pairs[mask]} if mask.any() else {}
            messages = comm.exchange_unknown(send, pairs[:0], census.phase)
            if not messages.keys() <= set(sources):
                raise RuntimeError(f"rank {comm.rank} gets pairs of {sorted(messages)}; expected some of {sources}.")
            pairs = _merged([pairs[~mask], *messages.values()])
            table.put(pairs)
            out, incoming = ({rank: table.rows(rows) for rank, rows in side.items()} for side in (send, messages))
            rounds.append((Parcels(comm, out, incoming, shelves, census.phase), True))
        self._values = table.rows(np.stack([wishes.name, wishes.shelf, wishes.owner], axis=1))
        self._users = by_shelf(wishes.shelf, wishes.row, len(shelves))
        self.room = table.counts
        super().__init__(rounds)

    def _before(self, shelves: Sequence[Array]) -> Sequence[Array]:
        """Return rooms that hold this rank's parts, and zeros for the parts of others."""
        rooms, (parts, *_) = self._memory(shelves)
        for a, room, rows in zip(shelves, rooms, parts, strict=True):
            if len(rows):
                gathered(a, rows, room[: len(rows)])
            if len(rows) < len(room):
                room[len(rows) :] = 0
        return rooms

    def _after(self, shelves: Sequence[Array]) -> None:
        """Write complete values."""
        rooms, (_, values, users) = self._memory(shelves)
        for a, room, value, row in zip(shelves, rooms, values, users, strict=True):
            if len(row):
                a[row] = room[value]

    def _memory(self, shelves: Sequence[Array]) -> tuple[list[Array], list[list[Array]]]:
        """Return rooms, and rows of parts, values and users, in the arrays' module."""
        xp = module_of(shelves[0]) if shelves else np
        if xp.__name__ not in self._kept:
            kinds = zip(self._kinds, self.room, strict=True)
            rooms = [xp.empty((rows, kind.width), kind.dtype) for kind, rows in kinds]
            rows = [[xp.asarray(row) for row in lists] for lists in (self._parts, self._values, self._users)]
            self._kept = {xp.__name__: (rooms, rows)}
        return self._kept[xp.__name__]

    @property
    def arrays(self) -> list[Array]:
        """Return every array that is kept."""
        memory = [a for rooms, rows in self._kept.values() for group in (rooms, *rows) for a in group]
        return [*super().arrays, *self._parts, *self._values, *self._users, *memory]


class _Room:
    """Rows of nodes in rooms, one room for each shelf."""

    def __init__(self, shelves: int) -> None:
        self.counts = [0] * shelves
        self._names, self._rows = np.empty(0, np.int64), np.empty(0, np.int64)

    def put(self, pairs: np.ndarray) -> None:
        """Give rows to nodes that have none, in the order of names."""
        names, first = np.unique(pairs[:, NAME], return_index=True)
        new = places(self._names, names) < 0
        names, shelf = names[new], pairs[first[new], SHELF]
        rows = np.empty(len(names), np.int64)
        for k, count in enumerate(self.counts):
            index = np.flatnonzero(shelf == k)
            rows[index] = count + np.arange(len(index))
            self.counts[k] += len(index)
        names, rows = np.concatenate([self._names, names]), np.concatenate([self._rows, rows])
        order = np.argsort(names)
        self._names, self._rows = names[order], rows[order]

    def rows(self, pairs: np.ndarray) -> list[np.ndarray]:
        """Return the rows of nodes, by shelf, in the order of names."""
        names, first = np.unique(pairs[:, NAME], return_index=True)
        return by_shelf(pairs[first, SHELF], self._rows[places(self._names, names)], len(self.counts))


def halves(rank: int, size: int) -> list[tuple[int, list[int], range]]:
    """Return per round the rank that this one sends to, the ranks that it receives from, and the ranks of its half."""
    rounds, ranks = [], range(size)
    for _ in range((size - 1).bit_length()):
        middle = (len(ranks) + 1) // 2
        lower, upper = ranks[:middle], ranks[middle:]
        own_half, other_half = (lower, upper) if rank in lower else (upper, lower)
        place = own_half.index(rank)
        sources = [q for j, q in enumerate(other_half) if min(j, len(own_half) - 1) == place]
        rounds.append((other_half[min(place, len(other_half) - 1)] if other_half else rank, sources, own_half))
        ranks = own_half
    return rounds


def _known(census: Census) -> np.ndarray:
    """Return users of nodes of which this rank makes a part, as owners tell contributors; collective."""
    comm, parts = census.comm, census.parts
    order = np.argsort(census.used, kind="stable")
    counts = np.bincount(census.used, minlength=len(parts.name))
    first = np.cumsum(counts) - counts

    def pairs(index: np.ndarray) -> np.ndarray:
        n = counts[index]
        entry = order[np.repeat(first[index] - (np.cumsum(n) - n), n) + np.arange(n.sum())]
        node = census.used[entry]
        return np.stack([parts.name[node], parts.shelf[node], census.user[entry]], axis=1)

    send = {rank: pairs(census.made[index]) for rank, index in by_rank(census.maker).items()}
    send = {rank: rows for rank, rows in send.items() if len(rows)}
    own_pairs = pairs(np.flatnonzero(census.wanted))
    return _merged([own_pairs, *comm.exchange_unknown(send, own_pairs[:0], census.phase).values()])


def _merged(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Return all different pairs of nodes and users, in the order of names and users."""
    pairs = np.concatenate(rows)
    pairs = pairs[np.lexsort((pairs[:, USER], pairs[:, NAME]))]
    mask = (np.diff(pairs[:, NAME]) != 0) | (np.diff(pairs[:, USER]) != 0)
    return pairs[np.concatenate([np.ones(min(1, len(pairs)), bool), mask])]
