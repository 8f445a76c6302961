"""Trees and lists of a rank's part of a treecode sum, and the exchange of charges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki.arrays import Array
from parki.distributed.agreement import agreed
from parki.distributed.comm import Comm
from parki.distributed.delivery import Delivery
from parki.distributed.exchange import choice
from parki.distributed.exchange.census import Parts, Wishes
from parki.distributed.exchange.parcels import Shelf, by_rank
from parki.distributed.exchange.rounds import Rounds
from parki.distributed.overlap import Exchange, Meanwhile
from parki.distributed.treecode.lists import RankLists, placed
from parki.distributed.treecode.skeleton import Wanted
from parki.distributed.trees import tables
from parki.distributed.trees.shared import SharedTree
from parki.distributed.trees.tables import Places
from parki.engine import Space
from parki.freespace import FreeProblem
from parki.proxies import ProxyKernels
from parki.treecode.structure import Elsewhere, TreecodeStructure
from parki.trees.cluster import ClusterNodes, ClusterTree
from parki.trees.points import Sorted

POINTS_SHIFT = 40  # low bits of a value's name, for the node; above them the points per direction, 0 for a particle
Values = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SharedStructure(TreecodeStructure):
    """A rank's part of a treecode sum.

    Attributes
    ----------
    parts : (SharedTree, SharedTree)
        Trees of targets and of sources.
    problem : FreeProblem
        Problem with the caller's points of this rank.
    rounds : Rounds
        Exchange of charges.
    handled : (int, int)
        Count that every rank handles (nodes of top levels, groups of outlines), and count of this rank alone (points,
        nodes, pairs and values).  Plans of more ranks take no less time for the former.
    names : array
        Names of the source nodes, see `parki.distributed.trees.tables.names`.
    """

    parts: tuple[SharedTree, SharedTree] | None = None
    problem: FreeProblem | None = None
    rounds: Rounds | None = None
    handled: tuple[int, int] = (0, 0)
    names: Values | None = None

    @property
    def comm(self) -> Comm:
        """Return the communicator."""
        return self.parts[0].comm

    @property
    def to_targets(self) -> Delivery:
        """Return the delivery of the caller's targets to the ranks of their places."""
        return self.parts[0].deliveries[0]

    @property
    def to_sources(self) -> Delivery:
        """Return the delivery of the caller's sources."""
        return self.parts[1].deliveries[0]

    @property
    def beside(self) -> Meanwhile | None:
        """Return the sum over particles that is done while messages are under way."""
        return self.elsewhere.messages.beside

    @property
    def arrays(self) -> list[Array]:
        """Return every array of the points."""
        remote_arrays = [self.elsewhere.points, *self.rounds.arrays]
        return [*self.problem.arrays, *self.parts[0].arrays, *self.parts[1].arrays, *remote_arrays]

    def originals(self) -> tuple[Array, Array]:
        """Return the caller's targets and sources of this rank, one array if they are the same."""
        return self.problem.targets, self.problem.sources


def structure(
    kernels: ProxyKernels, parts: tuple[SharedTree, SharedTree], lists: RankLists, tiny: float,
    problem: FreeProblem, space: Space,
) -> SharedStructure:  # fmt: skip
    """Return a rank's part of a sum: points of other ranks come, and charges are asked for; collective."""
    targets, sources = parts
    comm, own_range = sources.comm, sources.mine
    with agreed(comm, "sorting lists"):
        interaction_lists = lists.found
    point_ranges = Wanted.of(lists.sources, lists.particles, own_range)
    points, requests = point_ranges.delivered(comm, sources, space)
    nodes_by_m, parts_of, wishes = _values(lists, sources, requests, point_ranges)
    shelves = [Shelf(kernels.charges, kernels.real)]
    shelves += [Shelf(m**3 * kernels.charges, kernels.far) for m in nodes_by_m]
    rounds = choice.chosen(comm, None, parts_of, wishes, shelves, "exchange", "owners")
    t_first, t_nodes, s_nodes = targets.mine[0], lists.targets, lists.sources
    mask = (s_nodes.begin >= own_range[0]) & (s_nodes.end <= own_range[1])
    leaves = s_nodes.leaves[mask[s_nodes.leaves]]
    s_nodes = _moved(s_nodes, point_ranges.located(s_nodes.begin), point_ranges.located(s_nodes.end), leaves)
    inside = [np.clip(a, *targets.mine) - t_first for a in (t_nodes.begin, t_nodes.end)]
    t_nodes = _moved(t_nodes, *inside, t_nodes.leaves)
    makers = tables.within(lists.table, *own_range)
    exchange = Elsewhere(
        placed(interaction_lists.others, t_first, point_ranges), interaction_lists.lumps, points, point_ranges.here,
        makers, nodes_by_m, Exchange(rounds, "exchange", space),
    )  # fmt: skip
    trees = [
        ClusterTree(nodes, Sorted(part.points[0], part.orders[0]))
        for nodes, part in zip((t_nodes, s_nodes), parts, strict=True)
    ]
    pairs = np.add(interaction_lists.own.pairs, interaction_lists.others.pairs)
    own_lists = replace(placed(interaction_lists.own, t_first, point_ranges), pairs=tuple(pairs.tolist()))
    distinct_parts = {id(part): part for part in parts}.values()
    own_points = sum(part.points[0].shape[1] for part in distinct_parts)
    n_entries = len(lists.pairs.far_t) + len(lists.pairs.near_t) + len(lists.table) + points.shape[1]
    sizes = sum(part.repeated for part in distinct_parts) + lists.groups, own_points * (s_nodes.depth + 1) + n_entries
    facts = sizes, tables.names(lists.table)
    return SharedStructure(kernels, *trees, own_lists, tiny, problem.same, exchange, parts, problem, rounds, *facts)


def _moved(nodes: ClusterNodes, begin: Any, end: Any, leaves: Any) -> ClusterNodes:
    """Return nodes with other places and leaves."""
    return replace(nodes, begin=begin.astype(np.int32), end=end.astype(np.int32), leaves=leaves)


def _values(
    lists: RankLists, sources: SharedTree, requests: Places, point_ranges: Wanted
) -> tuple[dict[int, NDArray[np.int32]], Parts, Wishes]:
    """Return nodes whose charges ranks exchange, by points per direction, and names of all values; collective."""
    comm, table, cuts = sources.comm, lists.table, sources.cuts
    points, node = lists.proxies
    lo, hi = tables.contributors(table, cuts)
    name = (points.astype(np.int64) << POINTS_SHIFT) + tables.names(table)[node]
    value_names = _served(comm, table, cuts, name, lo[node])
    kinds = np.zeros(64, np.int64)
    kinds[points], kinds[value_names >> POINTS_SHIFT] = 1, 1
    kinds = np.flatnonzero(comm.allreduce(kinds, "max"))
    s_points, s_node = value_names >> POINTS_SHIFT, tables.find(table, value_names & ((1 << POINTS_SHIFT) - 1))
    nodes_by_m = {int(m): s_node[s_points == m].astype(np.int32) for m in kinds}
    rows = _Rows(lists, nodes_by_m)
    first, own_places = sources.mine[0], point_ranges.here
    ghosts, ghost_ranks = point_ranges.places, np.searchsorted(cuts[1:-1], point_ranges.places, side="right")
    own_rows = np.append(
        np.arange(own_places.start), np.arange(own_places.stop, own_places.stop + len(ghosts) - own_places.start)
    )
    owner = np.full(len(requests), comm.rank)
    parts = Parts(
        np.append(requests, value_names), np.append(0 * requests, np.searchsorted(kinds, s_points) + 1),
        np.append(own_places.start + requests - first, rows.of(s_points, s_node)),
        np.append(owner, lo[s_node]), np.append(owner + 1, hi[s_node]),
    )  # fmt: skip
    wishes = Wishes(
        np.append(ghosts, name), np.append(0 * ghosts, np.searchsorted(kinds, points) + 1),
        np.append(own_rows, rows.of(points, node)), np.append(ghost_ranks, lo[node]),
    )  # fmt: skip
    return nodes_by_m, parts, wishes


class _Rows:
    """Rows of proxy charges: see `parki.treecode.upward.proxy_charges`."""

    def __init__(self, lists: RankLists, nodes_by_m: dict[int, NDArray[np.int32]]) -> None:
        interaction_lists, self._most = lists.found, lists.far.rule.points
        grids = [
            by_m for section in (interaction_lists.own, interaction_lists.others) for by_m in (section.pc, section.cc)
        ]
        self._nodes = {
            m: np.unique(np.concatenate([nodes, *(by_m[m].sources for by_m in grids if m in by_m)]))
            for m, nodes in nodes_by_m.items()
        }

    def of(self, points: NDArray[np.integer], node: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the rows of nodes by their points per direction."""
        row = node.astype(np.int64)
        for m, nodes in self._nodes.items():
            if m != self._most:
                mask = points == m
                row[mask] = np.searchsorted(nodes, node[mask])
        return row


def _served(comm: Comm, table: tables.Table, cuts: Places, name: Values, owner: NDArray[np.intp]) -> Values:
    """Return the names of values that others use and that this rank makes a part of; collective."""
    requests = _told(comm, name, owner)
    node = tables.find(table, requests & ((1 << POINTS_SHIFT) - 1))
    lo, hi = tables.contributors(table[node], cuts)
    runs = [(requests[(lo < q) & (q < hi)], q) for q in range(comm.rank + 1, int(hi.max(initial=0)))]
    names = np.concatenate([np.empty(0, np.int64), *(run for run, _ in runs)])
    ranks = np.concatenate([np.empty(0, np.intp), *(np.full(len(run), q) for run, q in runs)])
    return np.union1d(requests, _told(comm, names, ranks))


def _told(comm: Comm, name: Values, rank: NDArray[np.intp]) -> Values:
    """Tell each rank its names; return the different names that other ranks tell this one."""
    send = {q: name[index] for q, index in by_rank(rank).items()}
    messages = comm.exchange_unknown(send, np.empty(0, np.int64), "tree")
    return np.unique(np.concatenate([np.empty(0, np.int64), *messages.values()]))
