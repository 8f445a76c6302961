"""How the pairs of clusters of a traversal interact: PP, PC, CP or CC, with how many proxy points, as lists to launch.

A cluster that is far for its size needs fewer proxy points per direction for the same error than one at the limit of
the acceptance criterion: interpolation at m points converges as g^−m, where g grows with the distance in half sides.

Source: L. Wilson, N. Vaughn, R. Krasny, Comput. Phys. Commun. 265 (2021) 108017, sections 2.4 and 2.6; the fewer points
are this library's own.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parki.trees import lists
from parki.trees.cluster import ClusterTree
from parki.trees.dual import Nodes, Pairs

PP, PC, CP, CC = range(4)
EVEN = 10  # numbers of points above are even, as each is a kernel to compile
Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Rule:
    """How far pairs are approximated.

    Attributes
    ----------
    theta : float
        Acceptance parameter: the radii of two clusters are less than theta times their distance.
    points : int
        Proxy points per direction, degree + 1, of a pair at that limit.
    vary : bool
        Whether pairs further apart take fewer.
    kinds : tuple of int
        Which of PP, PC, CP and CC there are.
    grid : float
        Time of a pair with a proxy grid as sources, over that of a pair of particles.
    error : float
        Relative error of the whole sum that the fewer points are chosen for.
    strength : function
        The field of a unit charge, of arrays of distances.
    """

    theta: float
    points: int
    vary: bool
    kinds: tuple[int, ...]
    grid: float
    error: float
    strength: Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True)
class Lists:
    """What is to be launched.  An item is (target node, first target, their number, m, begin, end) in int32.

    Attributes
    ----------
    items : array (I, 6)
        m is the number of proxy points per direction where these are the targets, of which the first one is then that
        of the node among all of m; 0 where particles are.  Places begin … end − 1 of `sources` are the item's.
    sources : array (K,) or (K, 2)
        Source nodes, or ranges (begin, end) of source particles.
    """

    items: Ints
    sources: Ints

    @property
    def pairs(self) -> int:
        """Pairs of a target and a source range or node."""
        return int((self.items[:, 5] - self.items[:, 4]).sum())


@dataclass(frozen=True)
class Interactions:
    """All lists: of particles with particles, and by the proxy points per direction of the source for PC and CC.

    `pairs` counts evaluations of the kernel by kind, PP PC CP CC.
    """

    pp: Lists
    pc: dict[int, Lists]
    cp: Lists
    cc: dict[int, Lists]
    pairs: tuple[float, float, float, float]


def growth(ratio: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Rate g of convergence for a singularity at `ratio` half sides of the middle: half axes of Bernstein's ellipse."""
    z = np.maximum(ratio, 1.0)
    return z + np.sqrt(z * z - 1.0)


def limit(theta: float) -> float:
    """Least g of two equal cubes that are far by theta."""
    return float(growth(np.sqrt(3.0) * max(2.0 / theta - 1.0, 0.0)))


def points_needed(tree: ClusterTree, node: Nodes, other: NDArray[np.float64], apart: NDArray[np.float64],
                  allowed: NDArray[np.float64], rule: Rule) -> Ints:  # fmt: skip
    """Proxy points per direction for nodes of a tree and partners of radius `other` with centres at distance `apart`.

    Their interpolation errs by `allowed` or less, relative to the field of the pair; a node without extent needs one
    point.
    """
    half = tree.half.max(axis=1)[node]
    if not rule.vary:
        return np.where(half > 0, rule.points, 1).astype(np.int32)
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.ceil(-np.log(allowed) / np.log(growth((apart - other) / half)))
    m = np.clip(needed, 2, rule.points)
    return np.where(half > 0, np.where(m > EVEN, np.minimum(m + m % 2, rule.points), m), 1).astype(np.int32)


def allowances(targets: ClusterTree, sources: ClusterTree, found: Pairs, apart: NDArray[np.float64], rule: Rule
               ) -> NDArray[np.float64]:  # fmt: skip
    """Relative error that each far pair may have.

    With charges of random signs, squares of fields add up, and so do squares of errors.  Of the square of the whole
    error each pair has a share like that of its work: this is the cheapest way to keep the whole.
    """

    def weight(t: Nodes, s: Nodes, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        return targets.count[t].astype(float) * sources.count[s] * rule.strength(distance) ** 2

    t, s = found.near_t, found.near_s
    squares = ((targets.centre[t] - sources.centre[s]) ** 2).sum(axis=1)
    near = weight(t, s, np.sqrt(squares + targets.radius[t] ** 2 + sources.radius[s] ** 2)).sum()
    t, s = found.far_t, found.far_s
    far = weight(t, s, apart)
    proxies = float(rule.points**3)
    work = np.minimum(targets.count[t], proxies) * np.minimum(sources.count[s], proxies)
    with np.errstate(divide="ignore"):
        return rule.error * np.sqrt((near + far.sum()) / far * (work / work.sum()))


def build(targets: ClusterTree, sources: ClusterTree, found: Pairs, rule: Rule) -> Interactions:
    """Choose the cheapest kind for every far pair, and sort all into lists."""
    t, s = found.far_t, found.far_s
    apart = np.sqrt(((targets.centre[t] - sources.centre[s]) ** 2).sum(axis=1))
    allowed = allowances(targets, sources, found, apart, rule)
    mt = points_needed(targets, t, sources.radius[s], apart, allowed, rule)
    ms = points_needed(sources, s, targets.radius[t], apart, allowed, rule)
    kind, pairs = _kinds(targets.count[t], sources.count[s], mt, ms, rule)
    at = [kind == k for k in range(4)]
    near = targets.count[found.near_t].astype(float) @ sources.count[found.near_s]
    counts = [float(pairs[k][at[k]].sum()) for k in range(4)]
    direct = np.concatenate([found.near_t, t[at[PP]]]), np.concatenate([found.near_s, s[at[PP]]])
    return Interactions(
        _particles(targets, sources, *direct),
        {int(m): _to_particles(targets, t[one], s[one]) for m, one in _each(ms, at[PC])},
        _from_particles(targets, sources, t[at[CP]], s[at[CP]], mt[at[CP]]),
        {int(m): _to_proxies(targets, t[one], s[one], mt[one]) for m, one in _each(ms, at[CC])},
        (counts[PP] + float(near), *counts[1:]),
    )  # fmt: skip


def _kinds(nt: Ints, ns: Ints, mt: Ints, ms: Ints, rule: Rule) -> tuple[NDArray[np.intp], list[NDArray[np.float64]]]:
    """The cheapest kind of each pair, and the evaluations of each kind."""
    nt, ns, pt, ps = (a.astype(float) for a in (nt, ns, mt.astype(float) ** 3, ms.astype(float) ** 3))
    pairs = [nt * ns, nt * ps, pt * ns, pt * ps]
    cost = [np.full(len(nt), np.inf)] * 4
    for kind in rule.kinds:
        cost[kind] = pairs[kind] * (rule.grid if kind in (PC, CC) else 1.0)
        # Interpolation, upward or downward, costs as well: at equal numbers particles are exact.
        cost[kind] = cost[kind] * (1.0 if kind == PP else 1.02)
    return np.argmin(cost, axis=0) if len(nt) else np.empty(0, np.intp), pairs


def _each(m: Ints, chosen: NDArray[np.bool_]) -> Iterator[tuple[int, NDArray[np.bool_]]]:
    """Each value of m among the chosen pairs, largest first, with the mask of its pairs."""
    for value in np.unique(m[chosen])[::-1]:
        yield value, chosen & (m == value)


def _rows(key: NDArray[np.int64]) -> tuple[NDArray[np.int64], Ints]:
    """The distinct keys in order, and the row of each entry."""
    rows, inverse = np.unique(key, return_inverse=True)
    return rows, inverse.astype(np.int32)


def _items(node: Ints, first: Ints, count: Ints, m: Ints | int, starts: Ints) -> Ints:
    items = np.empty((len(node), 6), np.int32)
    items[:, 0], items[:, 1], items[:, 2], items[:, 3] = node, first, count, m
    items[:, 4], items[:, 5] = starts[:-1], starts[1:]
    return items


def _leaf_items(tree: ClusterTree, row: Ints, starts: Ints) -> Ints:
    """Items whose targets are the particles of leaves, the k-th leaf having row k."""
    leaves = tree.leaves
    items = _items(leaves, tree.begin[leaves], tree.count[leaves], 0, starts)
    return np.ascontiguousarray(items[starts[1:] > starts[:-1]])


def _row_of_leaf(tree: ClusterTree) -> Ints:
    row = np.zeros(len(tree.begin), np.int32)
    row[tree.leaves] = np.arange(len(tree.leaves))
    return row


def _particles(targets: ClusterTree, sources: ClusterTree, t: Nodes, s: Nodes) -> Lists:
    leaf, s = lists.to_leaves(targets, t, s)
    row = _row_of_leaf(targets)[leaf]
    row, begin, end = lists.merge_ranges(row, sources.begin[s], sources.end[s])
    starts = np.searchsorted(row, np.arange(len(targets.leaves) + 1)).astype(np.int32)
    return Lists(_leaf_items(targets, row, starts), np.column_stack([begin, end]).astype(np.int32))


def _to_particles(targets: ClusterTree, t: Nodes, s: Nodes) -> Lists:
    leaf, s = lists.to_leaves(targets, t, s)
    row = _row_of_leaf(targets)[leaf]
    starts, s = lists.csr(row, s, len(targets.leaves))
    return Lists(_leaf_items(targets, row, starts), s)


def _from_particles(targets: ClusterTree, sources: ClusterTree, t: Nodes, s: Nodes, m: Ints) -> Lists:
    keys, row = _rows((m.astype(np.int64) << 32) + t)
    row, begin, end = lists.merge_ranges(row, sources.begin[s], sources.end[s])
    starts = np.searchsorted(row, np.arange(len(keys) + 1)).astype(np.int32)
    return Lists(_proxy_items(keys, starts), np.column_stack([begin, end]).astype(np.int32))


def _to_proxies(targets: ClusterTree, t: Nodes, s: Nodes, m: Ints) -> Lists:
    keys, row = _rows((m.astype(np.int64) << 32) + t)
    starts, s = lists.csr(row, s, len(keys))
    return Lists(_proxy_items(keys, starts), s)


def _proxy_items(keys: NDArray[np.int64], starts: Ints) -> Ints:
    node, m = (keys & 0xFFFFFFFF).astype(np.int32), (keys >> 32).astype(np.int32)
    return _items(node, node * m**3, m**3, m, starts)
