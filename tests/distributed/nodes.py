"""Random nodes with values that some ranks make and others use."""

from dataclasses import dataclass

import numpy as np

from parki.distributed.exchange.census import Parts, Wishes
from parki.distributed.exchange.parcels import Shelf

SHELVES = (Shelf(5, np.dtype("float32")), Shelf(1, np.dtype("float64")), Shelf(3, np.dtype("complex128")))


@dataclass
class Node:
    """A node with its makers and users, and the row of its value on each of these ranks."""

    name: int
    shelf: int
    makers: list
    users: list
    rows: dict


class Nodes:
    """Random nodes, with ranks that make parts of their values or use them.

    Parameters
    ----------
    size, seed : int
    kinds : list of (makers, users), optional
        Ranks of each node; by default makers are a run of ranks, some left out, and users are any ranks.
    whole : bool
        Make values whole numbers, whose sums are exact.
    """

    def __init__(self, size, seed, kinds=None, whole=True):
        rng = np.random.default_rng([size, seed])
        self.size, self.seed, self.whole = size, seed, whole
        kinds = [self._random(rng) for _ in range(40 + 2 * size)] if kinds is None else kinds
        names = rng.permutation(2**40 + np.arange(10 * len(kinds)) * 2**20)[: len(kinds)]
        free = [[list(rng.permutation(3 * len(kinds))) for _ in SHELVES] for _ in range(size)]
        self.every = []
        for name, (makers, users) in zip(names.tolist(), kinds, strict=True):
            makers, users, shelf = sorted(makers), sorted(users), int(rng.integers(len(SHELVES)))
            users = [rank for rank in users if makers != [rank]]
            rows = {rank: free[rank][shelf].pop() for rank in {*makers, *users}}
            self.every.append(Node(name, shelf, makers, users, rows))

    def _random(self, rng):
        begin = int(rng.integers(self.size))
        end = begin + 1 if rng.random() < 0.5 else int(rng.integers(begin, self.size)) + 1
        makers = [q for q in range(begin, end) if q in (begin, end - 1) or rng.random() < 0.8]
        share = rng.choice([0, 0.05, 0.2, 0.9])
        return makers, np.flatnonzero(rng.random(self.size) < share).tolist()

    def of(self, rank):
        """Return the parts and the wishes of a rank, in no particular order."""
        made = [(n.name, n.shelf, n.rows[rank], n.makers[0], n.makers[-1] + 1) for n in self.every if rank in n.makers]
        used = [(n.name, n.shelf, n.rows[rank], n.makers[0]) for n in self.every if rank in n.users]
        return Parts(*np.array(made, int).reshape(-1, 5).T), Wishes(*np.array(used, int).reshape(-1, 4).T)

    def part(self, node, rank, call):
        """Return the part that a rank adds to the value of a node."""
        kind = SHELVES[node.shelf]
        rng = np.random.default_rng([self.seed, node.name, rank, call])
        values = rng.integers(-99, 100, kind.width) if self.whole else rng.random(kind.width)
        return values.astype(kind.dtype)

    def shelves(self, rank, call):
        """Return the arrays of a rank before a call: its parts, and -1 elsewhere."""
        arrays = [np.full((3 * len(self.every), kind.width), -1, kind.dtype) for kind in SHELVES]
        for node in self.every:
            if rank in node.makers:
                arrays[node.shelf][node.rows[rank]] = self.part(node, rank, call)
        return arrays

    def check(self, rank, call, found, rtol=0.0):
        """Compare arrays with the sums of all parts in rows that the rank uses; other rows must not have changed."""
        expected = self.shelves(rank, call)
        for node in self.every:
            row = node.rows.get(rank)
            if rank in node.users:
                expected[node.shelf][row] = sum(self.part(node, maker, call) for maker in node.makers)
            elif rank in node.makers and len(node.makers) > 1:
                expected[node.shelf][row] = found[node.shelf][row]  # may be a sum of some parts
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=rtol)
