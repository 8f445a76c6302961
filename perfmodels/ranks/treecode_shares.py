"""Shares of ranks in a treecode sum: work by phase, remote clusters and ghost particles, for all ranks at once.

Charges of a cluster travel once for each number of proxy points per direction that a rank's lists have of the cluster.
Particles in a rank's lists travel once.  Clusters of targets with points of several ranks are done by each of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from parki.distributed.treecode.method import EVEN
from parki.perfmodels.ranks import shares
from parki.perfmodels.ranks.shares import Cuts, RankTraffic, Values
from parki.treecode.interactions import InteractionLists, Interactions
from parki.trees.cluster import ClusterNodes
from parki.trees.dual import spread

PARTICLES = 8  # bytes of a component of a particle's charges
Ints = NDArray[np.integer]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Meetings:
    """Sources of one kind in lists: each row is a target node and a source, with evaluations of the kernel.

    Attributes
    ----------
    target : array (K,)
    source : array (K,) or (K, 2)
        Source nodes, or ranges of source particles.
    pairs : array (K,)
        Evaluations.
    """

    target: Ints
    source: Ints
    pairs: Floats

    @classmethod
    def of(cls, lists: InteractionLists, m: int = 0) -> Meetings:
        """Return the rows of lists whose sources are particles, or clusters of m points per direction."""
        items = lists.items.astype(np.int64)
        count = items[:, 5] - items[:, 4]
        source = lists.sources[spread(items[:, 4], count)]
        sizes = np.full(len(source), float(m**3)) if m else (source[:, 1] - source[:, 0]).astype(float)
        return cls(np.repeat(items[:, 0], count), source, np.repeat(items[:, 2], count) * sizes)


@dataclass(frozen=True)
class ListRows:
    """Rows of the lists of a sum by kind: sources that are particles, and clusters by points per direction."""

    pp: Meetings
    cp: Meetings
    pc: dict[int, Meetings]
    cc: dict[int, Meetings]

    @classmethod
    def of(cls, interaction_lists: Interactions) -> ListRows:
        """Return the rows of chosen interactions.

        Raises
        ------
        ValueError
            If many sources are in one place: these are summed before they meet targets.
        """
        if len(interaction_lists.lumps):
            raise ValueError(
                f"points are {len(interaction_lists.lumps)} times crowded in one place; expected others over ranks."
            )
        pc, cc = (
            {m: Meetings.of(rows, m) for m, rows in table.items()}
            for table in (interaction_lists.pc, interaction_lists.cc)
        )
        return cls(Meetings.of(interaction_lists.pp), Meetings.of(interaction_lists.cp), pc, cc)

    def each(self) -> list[tuple[str, int, Meetings]]:
        """Return the phase, points per direction of sources (0: particles), and rows of all lists."""
        clusters = [(name, m, rows) for name in ("pc", "cc") for m, rows in getattr(self, name).items()]
        return [("pp", 0, self.pp), ("cp", 0, self.cp), *clusters]


@dataclass(frozen=True)
class TreecodeShares:
    """Shares of the ranks of one sum.

    Attributes
    ----------
    targets, sources : ClusterNodes
        Nodes of both trees, which may be the same.
    lists : ListRows
    target_cuts, source_cuts : Cuts
        Cuts of the places of targets and of sources: the same if the points are.
    components, itemsize : int
        Numbers of a source's charges, of 8 bytes each; bytes of a number of a cluster's charges.
    imbalance : float
        Largest over mean work of a rank, by the work of leaves.
    """

    targets: ClusterNodes
    sources: ClusterNodes
    lists: ListRows
    target_cuts: Cuts
    source_cuts: Cuts
    components: int = 1
    itemsize: int = 8
    imbalance: float = 1.0

    @cached_property
    def contributors(self) -> tuple[Ints, Ints]:
        """Return the first rank, and one more than the last, with points of each node of the targets."""
        return self.target_cuts.contributors(self.targets.begin, self.targets.end)

    def _rows(self, rows: Meetings) -> tuple[Ints, Ints]:
        """Return each rank that does a row, and the row."""
        low, high = self.contributors
        return self.target_cuts.runs(low[rows.target], high[rows.target])

    @cached_property
    def evaluations(self) -> dict[str, Floats]:
        """Return the evaluations of each rank (P,) by phase; ``"own"``: of PP, with sources of its own."""
        ranks = self.target_cuts.ranks
        result = {name: np.zeros(ranks) for name in ("pp", "pc", "cp", "cc", "own")}
        for name, _, rows in self.lists.each():
            rank, place = self._rows(rows)
            result[name] += np.bincount(rank, rows.pairs[place], ranks)
            if name == "pp":
                begin, end = rows.source[place].T
                first, last = (self.source_cuts.first[rank + k] for k in (0, 1))
                overlap = np.maximum(np.minimum(end, last) - np.maximum(begin, first), 0)
                result["own"] += np.bincount(rank, rows.pairs[place] * overlap / np.maximum(end - begin, 1), ranks)
        return result

    @cached_property
    def rows(self) -> Floats:
        """Return the number of rows of all lists that each rank does (P,)."""
        counts = [
            np.bincount(self._rows(rows)[0], minlength=self.target_cuts.ranks) for _, _, rows in self.lists.each()
        ]
        return np.sum(counts, axis=0).astype(float)

    def nodes_of(self, nodes: ClusterNodes, cuts: Cuts) -> Floats:
        """Return the number of nodes that each rank has points of (P,)."""
        rank, _ = cuts.runs(*cuts.contributors(nodes.begin, nodes.end))
        return np.bincount(rank, minlength=cuts.ranks).astype(float)

    @cached_property
    def clusters(self) -> list[Values]:
        """Return the users of charges of clusters, for each number of points per direction."""
        result = []
        for m in sorted({*self.lists.pc, *self.lists.cc}):
            users = [self._users(table[m]) for table in (self.lists.pc, self.lists.cc) if m in table]
            users_joined = tuple(np.concatenate(column) for column in zip(*users, strict=True))
            spans = self.sources.begin, self.sources.end
            result.append(
                Values.used(self.source_cuts, spans, users_joined, float(m**3 * self.components * self.itemsize))
            )
        return result

    def _users(self, rows: Meetings) -> tuple[Ints, Ints]:
        """Return ranks and the clusters in their lists, each pair once."""
        rank, place = self._rows(rows)
        key = shares.distinct(rank * self.sources.n + rows.source[place])
        return key // self.sources.n, key % self.sources.n

    @cached_property
    def wanted(self) -> Floats:
        """Return the remote clusters of each rank (P,), each once for each number of points per direction."""
        ranks = self.source_cuts.ranks
        return sum((np.bincount(values.rank, minlength=ranks) for values in self.clusters), np.zeros(ranks))

    @cached_property
    def ghosts(self) -> RankTraffic:
        """Return the messages of charges of particles in lists PP and CP that ranks do not own."""
        parts = [
            (rank, rows.source[place]) for rows in (self.lists.pp, self.lists.cp) for rank, place in [self._rows(rows)]
        ]
        rank, source = (np.concatenate(column) for column in zip(*parts, strict=True))
        return shares.ghosts(self.source_cuts, rank, source[:, 0], source[:, 1], PARTICLES * self.components)

    @cached_property
    def exchange(self) -> tuple[RankTraffic, RankTraffic]:
        """Return the messages of parts to owners, and of all data to users, one for each pair of ranks."""
        parts, messages = None, self.ghosts
        for values in self.clusters:
            part, exchange_part = shares.owners(values)
            parts, messages = part if parts is None else parts + part, messages + exchange_part
        no_keys = np.empty(0, np.int64)
        return parts or RankTraffic(self.source_cuts.ranks, no_keys, no_keys.astype(float)), messages

    def skeleton(self) -> Floats:
        """Return the remote nodes that each rank's lists are made from (P,): nodes in its lists, and all above."""
        nodes, cuts = self.sources, self.source_cuts
        low, high = cuts.contributors(nodes.begin, nodes.end)
        leaf_begin = nodes.begin[nodes.leaves]
        keys = [np.empty(0, np.int64)]
        for _, m, rows in self.lists.each():
            rank, place = self._rows(rows)
            node = (
                rows.source[place]
                if m
                else nodes.leaves[np.searchsorted(leaf_begin, rows.source[place, 0], "right") - 1]
            )
            keys.append(shares.distinct(rank * nodes.n + node))
        key = shares.distinct(np.concatenate(keys))
        levels = [key]
        while len(key):
            rank, parent = key // nodes.n, nodes.parent[key % nodes.n]
            key = shares.distinct((rank * nodes.n + parent)[parent >= 0])
            levels.append(key)
        key = shares.distinct(np.concatenate(levels))
        rank, node = key // nodes.n, key % nodes.n
        is_remote = (low[node] != rank) | (high[node] != rank + 1)
        return np.bincount(rank[is_remote], minlength=cuts.ranks).astype(float)


def work_of_leaves(targets: ClusterNodes, lists: ListRows, grid: float) -> Floats:
    """Return the work of each leaf of targets, in evaluations with a particle as the source.

    Parameters
    ----------
    targets : ClusterNodes
    lists : ListRows
    grid : float
        Time of an evaluation with a proxy point as the source, over that with a particle.
    """
    work = np.zeros(targets.n)
    for _, m, rows in lists.each():
        work += (grid if m else 1.0) * np.bincount(rows.target, rows.pairs, targets.n)
    per = work / np.maximum(targets.count, 1)
    for first, end in zip(targets.level_begin[1:-1], targets.level_begin[2:], strict=True):
        per[first:end] += per[targets.parent[first:end]]
    return per[targets.leaves] * targets.count[targets.leaves]


def by_points(nodes: ClusterNodes, ranks: int) -> Cuts:
    """Cut a tree between equal numbers of points."""
    count = nodes.count[nodes.leaves].astype(float)
    return Cuts.by_work(nodes.begin[nodes.leaves], count, nodes.n_points, ranks)


def share(
    nodes: ClusterNodes, lists: ListRows, ranks: int, grid: float, components: int, itemsize: int
) -> TreecodeShares:
    """Cut a tree, whose points are targets and sources, as plans do: by points, or by work if that is then uneven."""
    begin, work = nodes.begin[nodes.leaves], work_of_leaves(nodes, lists, grid)
    cuts = by_points(nodes, ranks)
    if cuts.imbalance(begin, work) > EVEN:
        cuts = Cuts.by_work(begin, work, nodes.n_points, ranks)
    return TreecodeShares(nodes, nodes, lists, cuts, cuts, components, itemsize, cuts.imbalance(begin, work))
