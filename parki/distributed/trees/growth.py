"""Growth of one tree over ranks: top levels by counts summed over ranks, then each rank below its own nodes.

On the top levels, every rank counts its caller's points in all nodes of a level, and the counts are summed.  The
nodes that are small enough are cut in depth-first order into runs, one for each rank, and points go to the ranks of
their nodes.  Below, trees grow as in one process.

Source: I. Lashuk et al., "A massively parallel adaptive fast-multipole method on heterogeneous architectures", SC09,
section III.A.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from parki.arrays import Array
from parki.distributed.comm import Comm
from parki.distributed.delivery import Delivery
from parki.distributed.trees import cuts, tables
from parki.distributed.trees.tables import Places, Table
from parki.engine import Space, spaces
from parki.trees import levels
from parki.trees.levels import Level, SplittingRule
from parki.trees.nodes import Ints
from parki.trees.passes import Bounds, Counted, Passes

PER_RANK = 32  # nodes into which top levels cut the points of a rank, at least

Rows = Callable[[Level, list[Places], Places, NDArray[np.bool_]], Table]  # of a level, places of sets, begin, leaf


class SummedPasses:
    """Points of this rank that answer with the counts and boxes of all ranks: see `parki.trees.levels.PointSet`."""

    def __init__(self, comm: Comm, points: Passes) -> None:
        self._comm, self.points, self.n = comm, points, points.n
        self.n_all = int(comm.allreduce(np.array(points.n, np.int64)))

    def _box(self, bounds: Bounds) -> Bounds:
        low, high = self._comm.allreduce(np.stack([bounds[0], -bounds[1]]), "min")
        return low, -high

    def bounds(self, begin: Ints, end: Ints) -> Bounds:
        """Return the minimal boxes of nodes."""
        return self._box(self.points.bounds(begin, end))

    def count(self, begin: Ints, end: Ints, middle: Array) -> Counted:
        """Count the points of each octant of nodes."""
        own_counts = self.points.count(begin, end, middle)
        return replace(own_counts, total=self._comm.allreduce(own_counts.total.astype(np.int64)))

    def place(self, counts: Counted, *, bounds: bool) -> Bounds | None:
        """Sort this rank's points of counted nodes by octant; return the octants' minimal boxes."""
        box = self.points.place(counts, bounds=bounds)
        return None if box is None else self._box(box)

    def finish(self, begin: Ints, end: Ints) -> None:
        """Record leaves."""
        self.points.finish(begin, end)


class _Top:
    """Rule that leaves small nodes to their ranks."""

    def __init__(self, rule: SplittingRule, limit: float) -> None:
        self._rule, self._most, self.bounds = rule, limit, rule.bounds
        self.root, self.middles, self.divided, self.children = rule.root, rule.middles, rule.divided, rule.children

    def splits(self, level: Level) -> NDArray[np.bool_]:
        """Return whether nodes are to be split and have more than `most` points of all sets."""
        return self._rule.splits(level) & (sum(level.count) > self._most)


@dataclass(frozen=True, eq=False, kw_only=True)
class PlacedPoints:
    """Points of a tree, of which every rank has a run.

    Attributes
    ----------
    cuts : array (P + 1,)
        Rank r has the places cuts[r] … cuts[r + 1] − 1.
    firsts : list of arrays (P + 1,)
        The same for each set of points, in places among that set alone.
    deliveries : list of Delivery
        Deliveries of each set of points, from the callers' ranks to the ranks of the places.
    orders : list of arrays of int32
        Indices of the delivered arrays, in the order of the tree.
    points : list of arrays (3, n)
        Points in the order of the tree.
    repeated : int
        Number of nodes of the top levels, which all ranks have counted.
    """

    cuts: Places
    firsts: list[Places]
    deliveries: list[Delivery]
    orders: list[Array]
    points: list[Array]
    repeated: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Grown(PlacedPoints):
    """Tree over ranks, with points on the ranks of their nodes.

    Attributes
    ----------
    top : Table
        Inner nodes above the nodes that went to ranks: the same on all ranks.
    own : Table
        The nodes of this rank, all of whose points are here.
    """

    top: Table
    own: Table


def grow(
    comm: Comm, sets: Sequence[Array], rule: Callable[[list[SummedPasses]], SplittingRule], rows: Rows, space: Space,
    shares: NDArray[np.float64] | None = None,
) -> Grown:  # fmt: skip
    """Grow the tree of all ranks' points; collective.

    Parameters
    ----------
    comm : Comm
    sets : sequence of arrays (3, n)
        This rank's points of each set.
    rule : function
        Returns the rule of the tree for points summed over all ranks.
    rows : function
        Returns the table of a level's nodes, from places among each set and among all, and whether they are leaves.
    space : Space
    shares : array (P + 1,), optional
        Shares 0 … 1 of all places at which ranks begin and end, about; by default equal parts.

    Raises
    ------
    ValueError
        If there are more points than places.
    """
    passes = [Passes(x, space) for x in sets]
    summed_passes = [SummedPasses(comm, item) for item in passes]
    n_all = sum(item.n_all for item in summed_passes)
    if n_all > tables.MOST_PLACES:
        raise ValueError(f"points are {n_all} on all ranks; expected at most {tables.MOST_PLACES}.")
    splitting = rule(summed_passes)
    top_levels = levels.grow(summed_passes, _Top(splitting, n_all / (PER_RANK * comm.size)))
    shares = np.linspace(0, 1, comm.size + 1) if shares is None else shares
    top = _TopNodes(top_levels, rows)
    places, node_cuts = _cut(top, shares * n_all)
    deliveries, arrivals, starts = [], [], []
    for k, (own_passes, x) in enumerate(zip(passes, sets, strict=True)):
        ends = np.append(top.local[k][0], own_passes.n)[node_cuts]
        counts = top.local[k][1] - top.local[k][0]
        delivery, order, start = _sent(comm, own_passes.result()[1], counts, (node_cuts, ends), space)
        points = delivery.there(x)
        deliveries.append(delivery)
        arrivals.append((order, spaces.array_module(space).ascontiguousarray(points[:, order])))
        starts.append(start)
    own_nodes = slice(int(node_cuts[comm.rank]), int(node_cuts[comm.rank + 1]))
    lower_passes = [Passes(x, space) for _, x in arrivals]
    bases = [begin[own_nodes.start] if own_nodes.start < len(begin) else 0 for begin in top.begins]
    table = _below(lower_passes, splitting, rows, top.level(own_nodes, starts), (bases, int(places[comm.rank])))
    firsts = [np.append(begin, item.n_all)[node_cuts] for begin, item in zip(top.begins, summed_passes, strict=True)]
    orders, points = [], []
    for (order, _), own_passes in zip(arrivals, lower_passes, strict=True):
        sorted_points, inner_order = own_passes.result()
        points.append(sorted_points)
        orders.append(order[inner_order])
    n_repeated = sum(len(level.parent) for level in top_levels)
    arrays = {"cuts": places, "firsts": firsts, "deliveries": deliveries, "orders": orders, "points": points}
    return Grown(top=top.inner, own=table, repeated=n_repeated, **arrays)


class _TopNodes:
    """Nodes of the top levels: inner ones, and in depth-first order those without children.

    Attributes
    ----------
    inner : Table
    begin, count : arrays
        Places of nodes without children.
    begins : list of arrays
        The same among each set of points.
    local : list of (begin, end)
        Places in this rank's points of each set.
    """

    def __init__(self, top_levels: list[Level], rows: Rows) -> None:
        topology = levels.topology(top_levels)
        last = topology["n_children"] == 0
        places = [_places(top_levels, k) for k in range(len(top_levels[0].begin))]
        begin = sum(first for first, _ in places)
        ends = np.cumsum([len(level.parent) for level in top_levels])
        parts = zip(top_levels, np.split(np.arange(len(begin)), ends[:-1]), strict=True)
        inner = [rows(level, [first[part] for first, _ in places], begin[part], last[part]) for level, part in parts]
        self.inner = np.concatenate(inner)[~last]
        order = np.flatnonzero(last)
        order = order[np.argsort(begin[order], kind="stable")]
        self.begin, self.count = begin[order], sum(count for _, count in places)[order]
        self.begins = [first[order] for first, _ in places]
        spans = [levels.spans(top_levels, k) for k in range(len(places))]
        self.local = [(span.begin[order], span.end[order]) for span in spans]
        self._columns = [column[order] for column in levels.columns(top_levels)]
        self._counts = [count[order] for _, count in places]
        self._depth = topology["level"][order]

    def level(self, nodes: slice, starts: list[Ints]) -> Level:
        """Return a level of nodes without children to grow from; points of each set begin at `starts`."""
        count = [numbers[nodes].astype(np.int32) for numbers in self._counts]
        end = [first + n for first, n in zip(starts, count, strict=True)]
        n = len(self._depth[nodes])
        parent, zero = np.full(n, -1, np.int32), np.zeros(n, np.int32)
        return Level(self._depth[nodes], 0, starts, end, count, parent, zero, tuple(a[nodes] for a in self._columns))


def _places(top_levels: list[Level], k: int) -> tuple[Places, Places]:
    """Return the first places of all nodes among the points of a set, and their numbers of points."""
    begins, counts = [np.zeros(1, np.int64)], [top_levels[0].count[k].astype(np.int64)]
    for upper, level in itertools.pairwise(top_levels):
        count, parent = level.count[k].astype(np.int64), level.parent - upper.first
        offset = np.cumsum(count) - count
        first = np.flatnonzero(np.diff(parent, prepend=-1))
        offset -= np.repeat(offset[first], np.diff(np.append(first, len(parent))))
        begins.append(begins[-1][parent] + offset)
        counts.append(count)
    return np.concatenate(begins), np.concatenate(counts)


def _cut(top: _TopNodes, goals: NDArray[np.float64]) -> tuple[Places, NDArray[np.intp]]:
    """Return the places nearest to those wanted at which nodes begin, and these nodes' numbers."""
    edges = np.append(top.begin, top.begin[-1] + top.count[-1])
    node = cuts.nearest(edges, goals)
    node[0], node[-1] = 0, len(edges) - 1
    return edges[node], node


def _sent(
    comm: Comm, order: Array, counts: Ints, cuts: tuple[NDArray[np.intp], Ints], space: Space
) -> tuple[Delivery, Array, Ints]:  # fmt: skip
    """Return the delivery of points to the ranks of their nodes, the order of nodes there, and the start of each node.

    Parameters
    ----------
    comm : Comm
    order : array
        This rank's points in the order of nodes.
    counts : array
        Points of this rank in each node.
    cuts : (array, array)
        First node of each rank, and first of this rank's points that belongs to it.
    space : Space
    """
    nodes, ends = cuts
    send = {q: order[ends[q] : ends[q + 1]] for q in range(comm.size) if ends[q] < ends[q + 1]}
    sizes = {q: counts[nodes[q] : nodes[q + 1]].astype(np.int32) for q in send}
    messages = comm.exchange_unknown(sizes, np.empty(0, np.int32), "sort")
    delivery = Delivery(comm, send, {q: int(n.sum()) for q, n in messages.items()}, "sort", space)
    n_own = int(nodes[comm.rank + 1] - nodes[comm.rank])
    parts = [np.repeat(np.arange(n_own, dtype=np.int32), messages[q]) for q in sorted(messages)]
    node = np.concatenate(parts) if parts else np.empty(0, np.int32)
    place = np.argsort(node, kind="stable").astype(np.int32)  # stable: points of one node stay in the order of ranks
    starts = np.searchsorted(node[place], np.arange(n_own)).astype(np.int32)
    return delivery, spaces.array_module(space).asarray(place), starts


def _below(
    sets: list[Passes], rule: SplittingRule, rows: Rows, level: Level, bases: tuple[list[int], int]
) -> Table:  # fmt: skip
    """Grow the tree below this rank's nodes; return the table of the nodes."""
    if not len(level.parent):
        return rows(level, [np.empty(0, np.int64) for _ in sets], np.empty(0, np.int64), np.empty(0, bool))
    tree_levels = levels.grow(sets, rule, level)
    last = np.ones(sum(len(tree_level.parent) for tree_level in tree_levels), bool)
    for tree_level in tree_levels[1:]:
        last[tree_level.parent] = False
    tables, row = [], 0
    for tree_level in tree_levels:
        firsts = [base + begin.astype(np.int64) for base, begin in zip(bases[0], tree_level.begin, strict=True)]
        tables.append(rows(tree_level, firsts, sum(firsts), last[row : row + len(tree_level.parent)]))
        row += len(tree_level.parent)
    return np.concatenate(tables)
