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
        away = [self.elsewhere.points, *self.rounds.arrays]
        return [*self.problem.arrays, *self.parts[0].arrays, *self.parts[1].arrays, *away]

    def originals(self) -> tuple[Array, Array]:
        """Return the caller's targets and sources of this rank, one array if they are the same."""
        return self.problem.targets, self.problem.sources


def structure(
    kernels: ProxyKernels, parts: tuple[SharedTree, SharedTree], lists: RankLists, tiny: float,
    problem: FreeProblem, space: Space,
) -> SharedStructure:  # fmt: skip
    """Return a rank's part of a sum: points of other ranks come, and charges are asked for; collective."""
    targets, sources = parts
    comm, own = sources.comm, sources.mine
    with agreed(comm, "sorting lists"):
        found = lists.found
    wanted = Wanted.of(lists.sources, lists.particles, own)
    points, asked = wanted.delivered(comm, sources, space)
    served, parts_of, wishes = _values(lists, sources, asked, wanted)
    shelves = [Shelf(kernels.charges, kernels.real)]
    shelves += [Shelf(m**3 * kernels.charges, kernels.far) for m in served]
    rounds = choice.chosen(comm, None, parts_of, wishes, shelves, "exchange", "owners")
    t_first, t_nodes, s_nodes = targets.mine[0], lists.targets, lists.sources
    here = (s_nodes.begin >= own[0]) & (s_nodes.end <= own[1])
    leaves = s_nodes.leaves[here[s_nodes.leaves]]
    s_nodes = _moved(s_nodes, wanted.located(s_nodes.begin), wanted.located(s_nodes.end), leaves)
    inside = [np.clip(a, *targets.mine) - t_first for a in (t_nodes.begin, t_nodes.end)]
    t_nodes = _moved(t_nodes, *inside, t_nodes.leaves)
    makes = tables.within(lists.table, *own)
    away = Elsewhere(
        placed(found.others, t_first, wanted), found.lumps, points, wanted.here, makes, served,
        Exchange(rounds, "exchange", space),
    )  # fmt: skip
    trees = [
        ClusterTree(nodes, Sorted(part.points[0], part.orders[0]))
        for nodes, part in zip((t_nodes, s_nodes), parts, strict=True)
    ]
    pairs = np.add(found.own.pairs, found.others.pairs)
    own_lists = replace(placed(found.own, t_first, wanted), pairs=tuple(pairs.tolist()))
    each = {id(part): part for part in parts}.values()
    own_points = sum(one.points[0].shape[1] for one in each)
    met = len(lists.pairs.far_t) + len(lists.pairs.near_t) + len(lists.table) + points.shape[1]
    handled = sum(one.repeated for one in each) + lists.groups, own_points * (s_nodes.depth + 1) + met
    more = handled, tables.names(lists.table)
    return SharedStructure(kernels, *trees, own_lists, tiny, problem.same, away, parts, problem, rounds, *more)


def _moved(nodes: ClusterNodes, begin: Any, end: Any, leaves: Any) -> ClusterNodes:
    """Return nodes with other places and leaves."""
    return replace(nodes, begin=begin.astype(np.int32), end=end.astype(np.int32), leaves=leaves)


def _values(
    lists: RankLists, sources: SharedTree, asked: Places, wanted: Wanted
) -> tuple[dict[int, NDArray[np.int32]], Parts, Wishes]:
    """Return nodes whose charges ranks exchange, by points per direction, and names of all values; collective."""
    comm, table, cuts = sources.comm, lists.table, sources.cuts
    points, node = lists.proxies
    lo, hi = tables.contributors(table, cuts)
    name = (points.astype(np.int64) << POINTS_SHIFT) + tables.names(table)[node]
    served = _served(comm, table, cuts, name, lo[node])
    kinds = np.zeros(64, np.int64)
    kinds[points], kinds[served >> POINTS_SHIFT] = 1, 1
    kinds = np.flatnonzero(comm.allreduce(kinds, "max"))
    s_points, s_node = served >> POINTS_SHIFT, tables.find(table, served & ((1 << POINTS_SHIFT) - 1))
    by_points = {int(m): s_node[s_points == m].astype(np.int32) for m in kinds}
    rows = _Rows(lists, by_points)
    first, here = sources.mine[0], wanted.here
    ghosts, theirs = wanted.places, np.searchsorted(cuts[1:-1], wanted.places, side="right")
    given = np.append(np.arange(here.start), np.arange(here.stop, here.stop + len(ghosts) - here.start))
    owner = np.full(len(asked), comm.rank)
    parts = Parts(
        np.append(asked, served), np.append(0 * asked, np.searchsorted(kinds, s_points) + 1),
        np.append(here.start + asked - first, rows.of(s_points, s_node)),
        np.append(owner, lo[s_node]), np.append(owner + 1, hi[s_node]),
    )  # fmt: skip
    wishes = Wishes(
        np.append(ghosts, name), np.append(0 * ghosts, np.searchsorted(kinds, points) + 1),
        np.append(given, rows.of(points, node)), np.append(theirs, lo[node]),
    )  # fmt: skip
    return by_points, parts, wishes


class _Rows:
    """Rows of proxy charges: see `parki.treecode.upward.proxy_charges`."""

    def __init__(self, lists: RankLists, served: dict[int, NDArray[np.int32]]) -> None:
        found, self._most = lists.found, lists.far.rule.points
        used = [of for one in (found.own, found.others) for of in (one.pc, one.cc)]
        self._nodes = {
            m: np.unique(np.concatenate([nodes, *(of[m].sources for of in used if m in of)]))
            for m, nodes in served.items()
        }

    def of(self, points: NDArray[np.integer], node: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the rows of nodes by their points per direction."""
        row = node.astype(np.int64)
        for m, nodes in self._nodes.items():
            if m != self._most:
                at = points == m
                row[at] = np.searchsorted(nodes, node[at])
        return row


def _served(comm: Comm, table: tables.Table, cuts: Places, name: Values, owner: NDArray[np.intp]) -> Values:
    """Return the names of values that others use and that this rank makes a part of; collective."""
    asked = _told(comm, name, owner)
    node = tables.find(table, asked & ((1 << POINTS_SHIFT) - 1))
    lo, hi = tables.contributors(table[node], cuts)
    others = [(asked[(lo < q) & (q < hi)], q) for q in range(comm.rank + 1, int(hi.max(initial=0)))]
    names = np.concatenate([np.empty(0, np.int64), *(some for some, _ in others)])
    ranks = np.concatenate([np.empty(0, np.intp), *(np.full(len(some), q) for some, q in others)])
    return np.union1d(asked, _told(comm, names, ranks))


def _told(comm: Comm, name: Values, rank: NDArray[np.intp]) -> Values:
    """Tell each rank its names; return the different names that other ranks tell this one."""
    give = {q: name[at] for q, at in by_rank(rank).items()}
    come = comm.exchange_unknown(give, np.empty(0, np.int64), "tree")
    return np.unique(np.concatenate([np.empty(0, np.int64), *come.values()]))
