"""Shares of ranks in a sum over one tree, for all ranks at once: cuts at leaves, contributors, users, and messages.

A tree's points in depth-first order are cut at leaves into runs of equal work, one for each rank.  Contributors of a
node are the ranks that hold its points.  Its owner is the first of them, and its users are the ranks that take its
values.  Values get from contributors to users by one of two ways:

- `owners`: contributors send their parts to the owner, which adds them and sends the sum to every user;
- `hypercube`: the reduce-scatter of I. Lashuk et al., "A massively parallel adaptive fast-multipole method on
  heterogeneous architectures", SC09, algorithm 3.  In each of ⌈log₂ P⌉ steps a group of ranks is halved; each rank
  sends its part of all that the other half uses to one rank there.  If a half has a rank more, this rank sends to
  a rank that gets data of another, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from parki.perfmodels.network import Network

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]


def distinct(key: Ints) -> NDArray[np.int64]:
    """Return the distinct values of integers in order, several times faster than `numpy.unique`."""
    key = np.sort(key)
    return key[np.diff(key, prepend=key[:1] - 1) > 0]


@dataclass(frozen=True)
class Cuts:
    """Runs of places that ranks own: rank r has places first[r] … first[r + 1] − 1.

    Attributes
    ----------
    first : array (P + 1,) of int64
    """

    first: NDArray[np.int64]

    @classmethod
    def by_work(cls, begin: Ints, work: Floats, n: int, ranks: int) -> Cuts:
        """Cut leaves, in the order of their points, into runs of nearly equal work: each cut is at the nearest edge.

        Parameters
        ----------
        begin, work : arrays (L,)
            First place, and work, of each leaf.
        n, ranks : int
            Places in all, and runs.
        """
        done = np.append(0.0, np.cumsum(work))
        wanted = done[-1] * np.arange(1, ranks) / ranks
        end = np.clip(np.searchsorted(done, wanted), 1, len(begin))
        leaf = end - (wanted - done[end - 1] <= done[end] - wanted)
        return cls(np.append(begin, n).astype(np.int64)[np.concatenate([[0], leaf, [len(begin)]])])

    @property
    def ranks(self) -> int:
        """Return the number of ranks."""
        return len(self.first) - 1

    @property
    def own(self) -> NDArray[np.int64]:
        """Return the number of points of each rank (P,)."""
        return np.diff(self.first)

    def imbalance(self, begin: Ints, work: Floats) -> float:
        """Return the largest over the mean work of a rank, given the first place and the work of each leaf."""
        done = np.bincount(self.of_places(begin), work, self.ranks)
        return float(done.max() / done.mean())

    def of_places(self, place: Ints) -> NDArray[np.int64]:
        """Return the rank of each place."""
        return np.searchsorted(self.first, place, "right") - 1

    def contributors(self, begin: Ints, end: Ints) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the first rank, and one more than the last, that holds places begin … end − 1."""
        return self.of_places(begin), np.searchsorted(self.first, end, "left")

    def runs(self, low: Ints, high: Ints) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return each rank with points among low[k] … high[k] − 1, and its k."""
        if np.array_equal(high, low + 1):
            return low.astype(np.int64), np.arange(len(low))
        count = high - low
        item = np.repeat(np.arange(len(low)), count)
        rank = np.arange(len(item)) - np.repeat(np.cumsum(count) - count - low, count)
        some = self.own[rank] > 0
        return (rank, item) if some.all() else (rank[some], item[some])


@dataclass(frozen=True)
class RankTraffic:
    """Messages of all ranks, sent at once.

    Attributes
    ----------
    ranks : int
    pairs : array (K,) of int64
        Sender times `ranks` plus receiver of each message, in order.
    nbytes : array (K,)
        Bytes of each message.
    """

    ranks: int
    pairs: NDArray[np.int64]
    nbytes: Floats

    @classmethod
    def of(cls, ranks: int, sender: Ints, receiver: Ints, nbytes: Floats | float) -> RankTraffic:
        """Return messages that each hold all rows from one rank to another; rows that stay on a rank are left out."""
        away = sender != receiver
        weight = np.broadcast_to(np.asarray(nbytes, float), away.shape)[away]
        key = sender[away].astype(np.int64) * ranks + receiver[away]
        if ranks * ranks <= 1 << 26:
            total = np.bincount(key, weight, ranks * ranks)
            pairs = np.flatnonzero(total)
            return cls(ranks, pairs, total[pairs])
        order = np.argsort(key)
        pairs, first = distinct(key[order]), np.flatnonzero(np.diff(key[order], prepend=-1))
        return cls(ranks, pairs, np.add.reduceat(weight[order], first) if len(first) else weight)

    def __add__(self, other: RankTraffic) -> RankTraffic:
        """Return the messages of both exchanges, joined into one for each pair of ranks."""
        key = np.concatenate([self.pairs, other.pairs])
        return RankTraffic.of(
            self.ranks, key // self.ranks, key % self.ranks, np.concatenate([self.nbytes, other.nbytes])
        )

    def _sum(self, rank: Ints, weight: Floats | None = None) -> Floats:
        return np.bincount(rank, weight, self.ranks)

    @cached_property
    def sent(self) -> Floats:
        """Return the bytes that each rank sends (P,)."""
        return self._sum(self.pairs // self.ranks, self.nbytes)

    @cached_property
    def received(self) -> Floats:
        """Return the bytes that each rank receives (P,)."""
        return self._sum(self.pairs % self.ranks, self.nbytes)

    @cached_property
    def messages(self) -> Floats:
        """Return the messages that each rank sends, or receives if these are more (P,)."""
        return np.maximum(self._sum(self.pairs // self.ranks), self._sum(self.pairs % self.ranks))

    def seconds(self, network: Network) -> Floats:
        """Return the time of each rank (P,): messages go both ways at once."""
        return network.alpha * self.messages + np.maximum(self.sent, self.received) / network.beta


def partners(ranks: int, exchanges: Sequence[RankTraffic]) -> NDArray[np.int64]:
    """Return the number of ranks that each rank sends to or receives from in some exchanges (P,)."""
    key = distinct(np.concatenate([np.empty(0, np.int64), *(it.pairs for it in exchanges)]))
    key = distinct(np.concatenate([key, key % ranks * ranks + key // ranks]))
    return np.bincount(key // ranks, minlength=ranks)


@dataclass(frozen=True)
class Values:
    """Values of nodes: contributors low … high − 1 of each (M,), and users that need parts of other ranks.

    Attributes
    ----------
    cuts : Cuts
    low, high : arrays (M,)
    rank, node : arrays (K,)
        Users and nodes, each pair once.
    nbytes : array (M,) or float
        Bytes of the value of a node.
    """

    cuts: Cuts
    low: Ints
    high: Ints
    rank: Ints
    node: Ints
    nbytes: Floats | float

    @classmethod
    def used(cls, cuts: Cuts, spans: tuple[Ints, Ints], users: tuple[Ints, Ints], nbytes: Floats | float) -> Values:
        """Return the values that users do not make alone; pairs (rank, node) of users may occur twice."""
        (low, high), (rank, node) = cuts.contributors(*spans), users
        away = (low[node] != rank) | (high[node] != rank + 1)
        key = distinct(node[away].astype(np.int64) * cuts.ranks + rank[away])
        return cls(cuts, low, high, key % cuts.ranks, key // cuts.ranks, nbytes)

    @cached_property
    def shared(self) -> NDArray[np.int64]:
        """Return the nodes with several contributors that some rank uses."""
        node = distinct(self.node)
        return node[self.high[node] - self.low[node] > 1]

    def bytes_of(self, node: Ints) -> Floats:
        """Return the bytes of the values of nodes."""
        return np.broadcast_to(np.asarray(self.nbytes, float), len(self.low))[node]


def owners(values: Values) -> tuple[RankTraffic, RankTraffic]:
    """Return the messages of parts to owners, and of sums to users."""
    ranks, low, shared = values.cuts.ranks, values.low, values.shared
    rank, at = values.cuts.runs(low[shared], values.high[shared])
    node = shared[at]
    parts = RankTraffic.of(ranks, rank, low[node], values.bytes_of(node))
    return parts, RankTraffic.of(ranks, low[values.node], values.rank, values.bytes_of(values.node))


def hypercube(values: Values) -> list[RankTraffic]:
    """Return the messages of each step of the reduce-scatter."""
    ranks = values.cuts.ranks
    nodes = distinct(values.node)
    rank, at = values.cuts.runs(values.low[nodes], values.high[nodes])
    node = nodes[at]  # parts that ranks have, of nodes that their group uses
    begin, end, steps = np.zeros(ranks, np.int64), np.full(ranks, ranks), []
    every = np.arange(ranks)
    while (end - begin > 1).any():
        middle = (begin + end) // 2
        upper = every >= middle
        group = np.where(upper & (end - begin > 1), middle, begin)  # named by its first rank
        opposite = np.where(upper, begin, middle)
        across = np.where(upper, begin + every - middle, np.minimum(middle + every - begin, end - 1))
        across = np.where(upper, np.minimum(across, middle - 1), across)
        alone = end - begin == 1
        users = distinct(values.node.astype(np.int64) * ranks + group[values.rank])
        sent = ~alone[rank] & _is_in(node * ranks + opposite[rank], users)
        to, what = across[rank[sent]], node[sent]
        steps.append(RankTraffic.of(ranks, rank[sent], to, values.bytes_of(what)))
        kept = _is_in(node * ranks + group[rank], users)
        key = distinct(np.concatenate([node[kept] * ranks + rank[kept], what * ranks + to]))
        node, rank = key // ranks, key % ranks
        begin, end = np.where(upper & ~alone, middle, begin), np.where(upper | alone, end, middle)
    return steps


def _is_in(key: Ints, some: Ints) -> NDArray[np.bool_]:
    """Return the mask of keys that are among `some`, which are in order."""
    if not len(some):
        return np.zeros(len(key), bool)
    return some[np.minimum(np.searchsorted(some, key), len(some) - 1)] == key


def intervals(rank: Ints, begin: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the unions of the ranges begin … end − 1 of each rank, in order."""
    key = (rank.astype(np.int64) << 32) + begin
    order = np.argsort(key, kind="stable")
    first, last = key[order], ((rank.astype(np.int64) << 32) + end)[order]
    reached = np.maximum.accumulate(last)
    new = np.ones(len(first), bool)
    new[1:] = first[1:] > reached[:-1]
    at = np.flatnonzero(new)
    last = reached[np.append(at[1:], len(first)) - 1] if len(at) else reached
    return first[at] >> 32, first[at] & 0xFFFFFFFF, last & 0xFFFFFFFF


def ghosts(cuts: Cuts, rank: Ints, begin: Ints, end: Ints, nbytes: float) -> RankTraffic:
    """Return the messages of particles that ranks meet in ranges begin … end − 1 and do not own.

    Every particle goes to a rank once, however many of the ranges it is in; `nbytes` are the bytes of one particle.
    """
    rank, begin, end = intervals(rank, begin, end)
    low, high = cuts.contributors(begin, end)
    owner, at = cuts.runs(low, high)
    count = np.minimum(end[at], cuts.first[owner + 1]) - np.maximum(begin[at], cuts.first[owner])
    return RankTraffic.of(cuts.ranks, owner, rank[at], nbytes * count)


def moved(cuts: Cuts, nbytes: float) -> tuple[Floats, int]:
    """Return the bytes (P,) and the number of messages that bring each rank its points from anywhere."""
    others = cuts.ranks - 1
    return nbytes * cuts.own * (others / cuts.ranks), others
