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
        total = np.append(0.0, np.cumsum(work))
        targets = total[-1] * np.arange(1, ranks) / ranks
        end = np.clip(np.searchsorted(total, targets), 1, len(begin))
        leaf = end - (targets - total[end - 1] <= total[end] - targets)
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
        work_of_ranks = np.bincount(self.of_places(begin), work, self.ranks)
        return float(work_of_ranks.max() / work_of_ranks.mean())

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
        has_points = self.own[rank] > 0
        return (rank, item) if has_points.all() else (rank[has_points], item[has_points])


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
        is_remote = sender != receiver
        weight = np.broadcast_to(np.asarray(nbytes, float), is_remote.shape)[is_remote]
        key = sender[is_remote].astype(np.int64) * ranks + receiver[is_remote]
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
    key = distinct(np.concatenate([np.empty(0, np.int64), *(traffic.pairs for traffic in exchanges)]))
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
        is_remote = (low[node] != rank) | (high[node] != rank + 1)
        key = distinct(node[is_remote].astype(np.int64) * cuts.ranks + rank[is_remote])
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
    rank, item = values.cuts.runs(low[shared], values.high[shared])
    node = shared[item]
    parts = RankTraffic.of(ranks, rank, low[node], values.bytes_of(node))
    return parts, RankTraffic.of(ranks, low[values.node], values.rank, values.bytes_of(values.node))


def hypercube(values: Values) -> list[RankTraffic]:
    """Return the messages of each step of the reduce-scatter."""
    ranks = values.cuts.ranks
    nodes = distinct(values.node)
    rank, item = values.cuts.runs(values.low[nodes], values.high[nodes])
    node = nodes[item]  # parts that ranks have, of nodes that their group uses
    begin, end, steps = np.zeros(ranks, np.int64), np.full(ranks, ranks), []
    rank_numbers = np.arange(ranks)
    while (end - begin > 1).any():
        middle = (begin + end) // 2
        upper = rank_numbers >= middle
        group = np.where(upper & (end - begin > 1), middle, begin)  # named by its first rank
        first_opposite = np.where(upper, begin, middle)
        partner = np.where(upper, begin + rank_numbers - middle, np.minimum(middle + rank_numbers - begin, end - 1))
        partner = np.where(upper, np.minimum(partner, middle - 1), partner)
        is_alone = end - begin == 1
        users = distinct(values.node.astype(np.int64) * ranks + group[values.rank])
        is_sent = ~is_alone[rank] & _is_in(node * ranks + first_opposite[rank], users)
        receiver, node_sent = partner[rank[is_sent]], node[is_sent]
        steps.append(RankTraffic.of(ranks, rank[is_sent], receiver, values.bytes_of(node_sent)))
        is_kept = _is_in(node * ranks + group[rank], users)
        key = distinct(np.concatenate([node[is_kept] * ranks + rank[is_kept], node_sent * ranks + receiver]))
        node, rank = key // ranks, key % ranks
        begin, end = np.where(upper & ~is_alone, middle, begin), np.where(upper | is_alone, end, middle)
    return steps


def _is_in(key: Ints, keys: Ints) -> NDArray[np.bool_]:
    """Return the mask of keys that are among `keys`, which are in order."""
    if not len(keys):
        return np.zeros(len(key), bool)
    return keys[np.minimum(np.searchsorted(keys, key), len(keys) - 1)] == key


def intervals(rank: Ints, begin: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the unions of the ranges begin … end − 1 of each rank, in order."""
    key = (rank.astype(np.int64) << 32) + begin
    order = np.argsort(key, kind="stable")
    first, last = key[order], ((rank.astype(np.int64) << 32) + end)[order]
    reach = np.maximum.accumulate(last)
    new = np.ones(len(first), bool)
    new[1:] = first[1:] > reach[:-1]
    start = np.flatnonzero(new)
    last = reach[np.append(start[1:], len(first)) - 1] if len(start) else reach
    return first[start] >> 32, first[start] & 0xFFFFFFFF, last & 0xFFFFFFFF


def ghosts(cuts: Cuts, rank: Ints, begin: Ints, end: Ints, nbytes: float) -> RankTraffic:
    """Return the messages of particles that ranks meet in ranges begin … end − 1 and do not own.

    Every particle goes to a rank once, however many of the ranges it is in; `nbytes` are the bytes of one particle.
    """
    rank, begin, end = intervals(rank, begin, end)
    low, high = cuts.contributors(begin, end)
    owner, item = cuts.runs(low, high)
    count = np.minimum(end[item], cuts.first[owner + 1]) - np.maximum(begin[item], cuts.first[owner])
    return RankTraffic.of(cuts.ranks, owner, rank[item], nbytes * count)


def moved(cuts: Cuts, nbytes: float) -> tuple[Floats, int]:
    """Return the bytes (P,) and the number of messages that bring each rank its points from anywhere."""
    peers = cuts.ranks - 1
    return nbytes * cuts.own * (peers / cuts.ranks), peers
