"""Lists of a rank's targets with sources here and elsewhere, the same as one process would make."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from parki.distributed.agreement import agreed
from parki.distributed.treecode import skeleton
from parki.distributed.treecode.outline import Opening
from parki.distributed.trees import kinds, tables
from parki.distributed.trees.shared import SharedTree
from parki.distributed.trees.tables import Places, Table
from parki.treecode import parts
from parki.treecode.interactions import CP, PP, FarPairRule, FarPairs, InteractionLists, Interactions
from parki.treecode.method import traverse
from parki.treecode.params import Parameters
from parki.treecode.parts import SharedPairs
from parki.trees.cluster import ClusterNodes
from parki.trees.dual import Pairs
from parki.trees.nodes import Ints

#: Work of a particle to and from proxy points, per proxy point, in pairs of particles.
PER_PROXY = 0.25


@dataclass(frozen=True, eq=False)
class RankLists:
    """Lists of a rank's targets, in places of all ranks.

    Attributes
    ----------
    targets, sources : ClusterNodes
        Nodes of this rank's targets, and the skeleton of all sources.
    table : Table
        The skeleton as it travelled.
    pairs : Pairs
    far : FarPairs
        Far pairs with the chosen kinds.
    elsewhere : array of bool
        Source nodes that do not belong to this rank alone.
    groups : int
        Number of groups in the outlines of all ranks.
    """

    targets: ClusterNodes
    sources: ClusterNodes
    table: Table
    pairs: Pairs
    far: FarPairs
    elsewhere: NDArray[np.bool_]
    groups: int

    @classmethod
    def of(
        cls, targets: SharedTree, sources: SharedTree, p: Parameters, rule: FarPairRule, separation: float
    ) -> RankLists:  # fmt: skip
        """Return the lists of a rank's targets with all sources; collective.

        Raises
        ------
        MemoryError
            On all ranks, where the pairs of a rank would take more memory of its host than is free.
        RuntimeError
            On all ranks, where a node must be opened whose children are not there.
        """
        comm = targets.comm
        opening = Opening(p.method, p.theta, separation, p.tolerance is not None)
        t_nodes = kinds.cluster_nodes(targets.table, targets.mine)
        table, groups = skeleton.exchanged(comm, sources, t_nodes, opening)
        n = int(table["count"][0])
        s_nodes = kinds.cluster_nodes(table, (0, n))
        no_pairs = np.empty((4, 0), np.int32)
        with agreed(comm, "pairing clusters"):
            pairs = traverse(t_nodes, s_nodes, p, separation) if len(t_nodes.leaves) else Pairs(*no_pairs)
            if not table["leaf"][pairs.near_s].all():
                raise RuntimeError("a cluster of sources was to be opened whose children are not on this rank.")
        own_range, far = sources.mine, FarPairs(t_nodes, s_nodes, pairs, rule)
        mask = tables.contributors(targets.table, targets.cuts)[0] == comm.rank
        remote_mask = (table["begin"] < own_range[0]) | (table["begin"] + table["count"] > own_range[1])

        def total(weight: float, work: float) -> tuple[float, float]:
            return tuple(comm.allreduce(np.array([weight, work])).tolist())

        parts.choose(far, mask, total)
        return cls(t_nodes, s_nodes, table, pairs, far, remote_mask, groups)

    @cached_property
    def found(self) -> SharedPairs:
        """Return the pairs sorted into lists."""
        return SharedPairs.of(self.far, self.pairs, self.elsewhere)

    def work(self, places: Places) -> NDArray[np.float64]:
        """Return the work of leaves, in pairs of particles, by the places where they begin and the last one ends."""
        nodes, count = self.targets, np.diff(places)
        density = parts.work(self.far, self.pairs) / np.maximum(nodes.count, 1)
        first, end = (np.searchsorted(places[:-1], a) for a in (nodes.begin, nodes.end))
        change = np.bincount(first, density, len(count) + 1) - np.bincount(end, density, len(count) + 1)
        return count * (np.cumsum(change)[: len(count)] + PER_PROXY * self.far.rule.points**3)

    @property
    def particles(self) -> Ints:
        """Return the source nodes elsewhere whose particles are in lists."""
        far = self.far.far_s[(self.far.kind == PP) | (self.far.kind == CP)]
        node = np.unique(np.concatenate([self.pairs.near_s, far]))
        return node[self.elsewhere[node]]

    @property
    def proxies(self) -> tuple[NDArray[np.integer], NDArray[np.intp]]:
        """Return points per direction, and nodes, of the proxy charges from elsewhere that are in lists."""
        grids = self.found.others.pc, self.found.others.cc
        nodes_by_m = {
            m: np.unique(np.concatenate([by_m[m].sources for by_m in grids if m in by_m]))
            for m in {*grids[0], *grids[1]}
        }
        points = [np.full(len(nodes), m) for m, nodes in nodes_by_m.items()]
        if not nodes_by_m:
            return np.empty(0, np.intp), np.empty(0, np.intp)
        return np.concatenate(points), np.concatenate(list(nodes_by_m.values()))


def placed(lists: Interactions, target: int, point_ranges: skeleton.Wanted) -> Interactions:
    """Return lists with targets counted from this rank's first, and with sources by their places here."""

    def particles(entries: InteractionLists) -> InteractionLists:
        return InteractionLists(entries.items, point_ranges.located(entries.sources).reshape(-1, 2))

    def moved(entries: InteractionLists) -> InteractionLists:
        items = entries.items.copy()
        items[:, 1] -= target
        return InteractionLists(items, entries.sources)

    return Interactions(
        moved(particles(lists.pp)), {m: moved(entries) for m, entries in lists.pc.items()}, particles(lists.cp),
        lists.cc, lists.pairs, lists.clusters, lists.lumps,
    )  # fmt: skip
