"""Kinds of pairs of clusters (PP, PC, CP or CC) and their numbers of proxy points, as lists to launch.

A cluster that is far for its size needs fewer proxy points per direction for the same error than one at the limit of
the acceptance criterion: interpolation at m points converges as g^−m, where g grows with the distance in half sides.

Source: L. Wilson, N. Vaughn, R. Krasny, Comput. Phys. Commun. 265 (2021) 108017, sections 2.4 and 2.6; fewer points
for further pairs are this library's own.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parki.arrays import index32
from parki.trees import lists
from parki.trees.bysource import ListsBySource
from parki.trees.cluster import ClusterNodes
from parki.trees.dual import Nodes, Pairs, blocks

PP, PC, CP, CC = range(4)
FEWER = "Take larger leaf_size and batch_size, or a lower degree."
CROWD_SOURCES = 64  # sources in one place above which they are summed before they meet targets
SCALE_STEPS = 2**32  # steps to which the mantissa of an allowed error is rounded
EVEN = 10  # number of points above which it is made even, as each number is a kernel to compile
Ints = NDArray[np.int32]

RadialFunction = Callable[[NDArray[np.float64]], NDArray[np.float64]]  # a quantity by lengths


@dataclass(frozen=True)
class FarPairRule:
    """Choice of the approximation of far pairs.

    Attributes
    ----------
    points : int
        Proxy points per direction, degree + 1, of a pair at the limit of the acceptance parameter.
    vary : bool
        Whether pairs further apart take fewer points.
    kinds : tuple of int
        Kinds of pairs that are allowed, of PP, PC, CP and CC.
    grid : float
        Time of a pair with a proxy grid as sources, relative to a pair of particles.
    error : float
        Relative error of the whole sum for which fewer points are chosen.
    field_size, difficulty : function
        Field of a unit charge, by distance; error of interpolation relative to that of 1/r, by a cluster's half side.
    """

    points: int
    vary: bool
    kinds: tuple[int, ...]
    grid: float
    error: float
    field_size: RadialFunction
    difficulty: RadialFunction


@dataclass(frozen=True)
class InteractionLists:
    """Items of launches: (target node, first target, number of targets, m, begin, end) in int32.

    Attributes
    ----------
    items : array (I, 6)
        m is the number of proxy points per direction if these are the targets; the first target is then counted
        among all nodes with m.  It is 0 for particles.  Places begin … end − 1 of `sources` are the item's.
    sources : array (K,) or (K, 2)
        Source nodes, or ranges (begin, end) of source particles.
    """

    items: Ints
    sources: Ints

    @property
    def pairs(self) -> int:
        """Return the number of pairs of a target and a source range or node."""
        return int((self.items[:, 5] - self.items[:, 4]).sum())


@dataclass(frozen=True)
class Interactions:
    """Lists of targets with one source.

    Attributes
    ----------
    pp, cp : InteractionLists
        With source particles.
    pc, cc : dict of InteractionLists
        With source clusters, by their number of proxy points per direction.
    pairs : tuple of float
        Evaluations of the kernel by kind: PP, PC, CP, CC.
    clusters : int
        Number of pairs of clusters of the traversal.
    lumps : array of int32
        Source nodes with a crowd in one place: near targets see a crowd as one source, the k-th at place n + k behind
        the source's n points.
    """

    pp: InteractionLists
    pc: dict[int, InteractionLists]
    cp: InteractionLists
    cc: dict[int, InteractionLists]
    pairs: tuple[float, float, float, float]
    clusters: int
    lumps: Ints


def growth(ratio: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Return the convergence rate g for a singularity at `ratio` half sides from the middle (Bernstein's ellipse)."""
    z = np.maximum(ratio, 1.0)
    return z + np.sqrt(z * z - 1.0)


def limit(theta: float) -> float:
    """Return the least g of two equal cubes that are far by theta."""
    return float(growth(np.sqrt(3.0) * max(2.0 / theta - 1.0, 0.0)))


class FarPairs:
    """Far pairs with one source, in blocks: numbers of proxy points of each side, and the cheapest kind."""

    def __init__(self, targets: ClusterNodes, sources: ClusterNodes, pairs: Pairs, rule: FarPairRule) -> None:
        self.targets, self.sources, self.far_t, self.far_s, self.rule = targets, sources, pairs.far_t, pairs.far_s, rule
        self.half = targets.half.max(axis=1), sources.half.max(axis=1)
        self.m = np.empty((2, len(self.far_t)), np.int8)
        self.kind = np.empty(len(self.far_t), np.int8)
        self.pairs = np.zeros(4)
        self.cost = np.empty(len(self.far_t))  # cost in pairs of particles

    def choose(self, scale: float) -> None:
        """Set the numbers of proxy points and the kinds of all pairs, for an error of `scale` (see `allowed_error`)."""
        for block in blocks(len(self.kind)):
            t, s = self.far_t[block], self.far_s[block]
            self.m[:, block] = self._points(t, s, scale)
            self._choose(block, self.targets.count[t].astype(float), self.sources.count[s].astype(float))

    def only(self, index: NDArray[np.intp]) -> "FarPairs":
        """Return some of the pairs, with their chosen kinds."""
        pairs = Pairs(self.far_t[index], self.far_s[index], *np.empty((2, 0), np.int32))
        selection = FarPairs(self.targets, self.sources, pairs, self.rule)
        selection.m, selection.kind, selection.cost = self.m[:, index], self.kind[index], self.cost[index]
        n_trg, n_src = (
            self.targets.count[selection.far_t].astype(float),
            self.sources.count[selection.far_s].astype(float),
        )
        selection._count(selection.kind, _evaluations(n_trg, n_src, *selection.m))
        return selection

    def weights_and_work(self, mask: NDArray[np.bool_] | None = None) -> Iterator[tuple[float, float]]:
        """Yield the sums of weight and work over the pairs of each block, of targets in `mask` if given."""
        for block in blocks(len(self.kind)):
            t, s = self.far_t[block], self.far_s[block]
            if mask is not None:
                t, s = t[mask[t]], s[mask[t]]
            yield self._weight(t, s, self._apart(t, s)).sum(), self._work(t, s).sum()

    def _apart(self, t: Nodes, s: Nodes) -> NDArray[np.float64]:
        return np.sqrt(((self.targets.centre[t] - self.sources.centre[s]) ** 2).sum(axis=1))

    def _weight(self, t: Nodes, s: Nodes, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum over targets of the square of the field that the sources of each pair make there."""
        return self.targets.count[t].astype(float) * self.sources.count[s] * self.rule.field_size(distance) ** 2

    def _work(self, t: Nodes, s: Nodes) -> NDArray[np.float64]:
        proxies = float(self.rule.points**3)
        return np.minimum(self.targets.count[t], proxies) * np.minimum(self.sources.count[s], proxies)

    def _points(self, t: Nodes, s: Nodes, scale: float) -> tuple[Ints, Ints]:
        """Return proxy points per direction of targets and sources; a cluster without extent needs one."""
        half, m_max = (self.half[0][t], self.half[1][s]), self.rule.points
        if not self.rule.vary:
            return tuple(np.where(h > 0, m_max, 1) for h in half)
        distance = self._apart(t, s)
        with np.errstate(divide="ignore", invalid="ignore"):
            digits = -np.log(scale * np.sqrt(self._work(t, s) / self._weight(t, s, distance)))
            radii = self.sources.radius[s], self.targets.radius[t]
            estimates = [
                np.ceil((digits + np.log(self.rule.difficulty(h))) / np.log(growth((distance - r) / h)))
                for r, h in zip(radii, half, strict=True)
            ]
        m = [np.clip(np.nan_to_num(n), 2, m_max) for n in estimates]
        m = [np.where(n > EVEN, np.minimum(n + n % 2, m_max), n) for n in m]
        return tuple(np.where(h > 0, n, 1) for h, n in zip(half, m, strict=True))

    def _choose(self, block: slice, nt: NDArray[np.float64], ns: NDArray[np.float64]) -> None:
        """Choose the cheapest kind of each pair of a block."""
        pairs = _evaluations(nt, ns, *self.m[:, block])
        cost = np.full((4, len(nt)), np.inf)
        for kind in self.rule.kinds:
            # Interpolation, upward or downward, has a cost, too: at equal numbers particles are exact.
            factor = (self.rule.grid if kind in (PC, CC) else 1.0) * (1.0 if kind == PP else 1.02)
            cost[kind] = factor * pairs[kind]
        self.kind[block] = np.argmin(cost, axis=0)
        self.cost[block] = cost.min(axis=0)
        self._count(self.kind[block], pairs)

    def _count(self, kinds: NDArray[np.int8], pairs: list[NDArray[np.float64]]) -> None:
        """Add the evaluations of the chosen kinds."""
        for kind in self.rule.kinds:
            self.pairs[kind] += pairs[kind][kinds == kind].sum()


def _evaluations(
    nt: NDArray[np.float64], ns: NDArray[np.float64], mt: Ints, ms: Ints
) -> list[NDArray[np.float64]]:  # fmt: skip
    """Return the evaluations of pairs by kind, by numbers of particles and of proxy points per direction."""
    pt, ps = mt.astype(float) ** 3, ms.astype(float) ** 3
    return [nt * ns, nt * ps, pt * ns, pt * ps]


def allowed_error(weights: float, work: float, rule: FarPairRule) -> float:
    """Return the allowed error of a pair times √(weight / work), the same for all pairs with all sources.

    With charges of random signs the squares of fields add up, and so do the squares of errors.  Each pair gets a
    share of the square of the whole error like its share of the work: then the whole costs least.  Near pairs, whose
    fields add to the whole, are left out: a few close points would allow all others any error.

    Digits that depend on the order of sums are rounded away, so that any number of processes finds the same value.
    """
    mantissa, exponent = math.frexp(rule.error * math.sqrt(weights / work) if work else 0.0)
    return math.ldexp(round(mantissa * SCALE_STEPS) / SCALE_STEPS, exponent)


def _sums(far: Sequence[FarPairs]) -> tuple[float, float]:
    """Return the sums of weight and work over all pairs."""
    blocks = [block for source in far for block in source.weights_and_work()]
    return sum(weight for weight, _ in blocks), sum(work for _, work in blocks)


def build(
    pairs: ListsBySource[ClusterNodes, ClusterNodes, Pairs], rule: FarPairRule
) -> ListsBySource[ClusterNodes, ClusterNodes, Interactions]:
    """Choose the cheapest kind for every far pair, and sort all into lists, for each source."""
    sources = list(zip(pairs.sources, pairs.lists, strict=True))
    far = [FarPairs(pairs.targets, nodes, source_pairs, rule) for nodes, source_pairs in sources]
    scale = allowed_error(*_sums(far), rule) if rule.vary else 0.0
    for far_pairs in far:
        far_pairs.choose(scale)
    return pairs.replaced([sorted_lists(f, p) for f, p in zip(far, pairs.lists, strict=True)])


def as_rows(sources: ClusterNodes, rank: NDArray[np.integer] | None = None) -> tuple[Ints, Ints, Ints]:
    """Return crowds in one place, and for each node its first and end row; a crowd has the row of its sum.

    With ranks of nodes, crowds are in the order of ranks, and crowds of rank 2 are left out.
    """
    lumps = np.flatnonzero((sources.half == 0).all(axis=1) & (sources.count > CROWD_SOURCES)).astype(np.int32)
    if rank is not None:
        lumps = lumps[np.argsort(rank[lumps], kind="stable")]
        lumps = lumps[rank[lumps] < 2]
    begin, end = sources.begin.copy(), sources.end.copy()
    begin[lumps] = sources.n_points + np.arange(len(lumps), dtype=np.int32)
    end[lumps] = begin[lumps] + 1
    return lumps, begin, end


def sorted_lists(far: FarPairs, pairs: Pairs, rank: NDArray[np.integer] | None = None) -> Interactions:
    """Sort the pairs with one source into lists."""
    targets, sources = far.targets, far.sources
    members = [np.flatnonzero(far.kind == kind) for kind in range(4)]
    evaluations = far.pairs
    lumps, begin, end = as_rows(sources, rank)
    evaluations[PP] += targets.count.astype(np.int64)[pairs.near_t] @ (end - begin)[pairs.near_s]

    def of(index: NDArray[np.intp]) -> tuple[Nodes, Nodes]:
        return pairs.far_t[index], pairs.far_s[index]

    t, s = (np.concatenate(parts) for parts in zip((pairs.near_t, pairs.near_s), of(members[PP]), strict=True))
    return Interactions(
        _particles(targets, t, s, begin, end),
        {m: _to_particles(targets, *of(index)) for m, index in _each(far.m[1], members[PC])},
        _from_particles(targets, sources, *of(members[CP]), far.m[0][members[CP]]),
        {m: _to_proxies(*of(index), far.m[0][index]) for m, index in _each(far.m[1], members[CC])},
        tuple(float(n) for n in evaluations),
        len(pairs.far_t) + len(pairs.near_t),
        lumps,
    )


def _each(m: NDArray[np.int8], index: NDArray[np.intp]) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Yield each value of m among the chosen pairs, largest first, with the places of its pairs."""
    m_values = m[index]
    return ((int(value), index[m_values == value]) for value in np.unique(m_values)[::-1])


def _rows(key: NDArray[np.int64]) -> tuple[NDArray[np.int64], Ints]:
    """Return the distinct keys in order, and the row of each entry."""
    rows, inverse = np.unique(key, return_inverse=True)
    return rows, inverse.astype(np.int32)


def _items(node: Ints, first: NDArray, count: Ints, m: Ints | int, starts: Ints) -> Ints:
    items = np.empty((len(node), 6), np.int64)
    items[:, 0], items[:, 1], items[:, 2], items[:, 3] = node, first, count, m
    items[:, 4], items[:, 5] = starts[:-1], starts[1:]
    return index32("the number of proxy points", items, FEWER)


def _leaf_items(tree: ClusterNodes, starts: Ints) -> Ints:
    """Return items whose targets are the particles of leaves; row k belongs to the k-th leaf."""
    leaves = tree.leaves
    items = _items(leaves, tree.begin[leaves], tree.count[leaves], 0, starts)
    return np.ascontiguousarray(items[starts[1:] > starts[:-1]])


def _row_of_leaf(tree: ClusterNodes) -> Ints:
    row = np.zeros(len(tree.begin), np.int32)
    row[tree.leaves] = np.arange(len(tree.leaves))
    return row


def _particles(targets: ClusterNodes, t: Nodes, s: Nodes, begin: Ints, end: Ints) -> InteractionLists:
    leaf, s = lists.to_leaves(targets, t, s)
    starts, ranges = lists.joined_ranges(_row_of_leaf(targets)[leaf], s, begin, end, len(targets.leaves))
    return InteractionLists(_leaf_items(targets, starts), ranges)


def _to_particles(targets: ClusterNodes, t: Nodes, s: Nodes) -> InteractionLists:
    leaf, s = lists.to_leaves(targets, t, s)
    starts, s = lists.csr(_row_of_leaf(targets)[leaf], s, len(targets.leaves))
    return InteractionLists(_leaf_items(targets, starts), s)


def _from_particles(targets: ClusterNodes, sources: ClusterNodes, t: Nodes, s: Nodes, m: Ints) -> InteractionLists:
    keys, row = _rows((m.astype(np.int64) << 32) + t)
    starts, ranges = lists.joined_ranges(row, s, sources.begin, sources.end, len(keys))
    return InteractionLists(_proxy_items(keys, starts), ranges)


def _to_proxies(t: Nodes, s: Nodes, m: Ints) -> InteractionLists:
    keys, row = _rows((m.astype(np.int64) << 32) + t)
    starts, s = lists.csr(row, s, len(keys))
    return InteractionLists(_proxy_items(keys, starts), s)


def _proxy_items(keys: NDArray[np.int64], starts: Ints) -> Ints:
    node, m = (keys & 0xFFFFFFFF).astype(np.int32), (keys >> 32).astype(np.int32)
    return _items(node, node.astype(np.int64) * m**3, m**3, m, starts)
