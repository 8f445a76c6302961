"""Dual tree traversal: pairs of clusters, one of targets and one of sources, that are far from or near each other.

Source: L. Wilson, N. Vaughn, R. Krasny, Comput. Phys. Commun. 265 (2021) 108017, section 2.6 and algorithm 2.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parki import memory
from parki.arrays import spread
from parki.trees.cluster import ClusterNodes

ASK = 1 << 20  # pairs between checks of free memory; each may become eight
ADVICE = "A larger theta, leaf_size and batch_size take less."
BLOCK = 1 << 15  # pairs of a block: intermediate arrays stay in the second-level cache

Nodes = NDArray[np.int32]


@dataclass(frozen=True)
class Pairs:
    """Pairs of nodes, of a tree of targets and one of sources, int32: each pair of points is in one pair of nodes.

    Each further tree of sources has an object of its own: see `bysource.ListsBySource`.

    Attributes
    ----------
    far_t, far_s : arrays (F,)
        Well separated pairs.
    near_t, near_s : arrays (P,)
        Other pairs, whose points meet one by one.
    """

    far_t: Nodes
    far_s: Nodes
    near_t: Nodes
    near_s: Nodes

    def swapped(self) -> "Pairs":
        """Return the pairs with targets and sources exchanged."""
        return Pairs(self.far_s, self.far_t, self.near_s, self.near_t)


def traverse(
    targets: ClusterNodes, sources: ClusterNodes, theta: float, *, separation: float = 0.0, cubes: bool = False
) -> Pairs:
    """Pair the nodes of two trees, from the pair of their roots.

    A pair of radii r_t and r_s at a distance R of centres is well separated if r_t + r_s < theta R and
    R − r_t − r_s ≥ `separation`: then it is far.  If it is not far, and both nodes are leaves, the pair is near.  Else
    the node with the larger radius (the source if they are equal), or the only inner node, is replaced by its children.

    Parameters
    ----------
    targets, sources : ClusterNodes
        Trees, which may be the same.
    theta : float
        Multipole acceptance parameter.
    separation : float
        Least distance between points of a far pair, bounded by that of the balls around their boxes.
    cubes : bool
        Take the radii of cubes around the boxes, so that errors of long and thin boxes do not exceed those of cubes.
    """
    frontier, pairs = _root_pair(targets, sources), GrowingPairs()
    t_geometry, s_geometry = NodeBalls.of(targets, sources, cubes=cubes)
    t_children, s_children = Children(targets), Children(sources)
    while len(frontier[0]):
        next_pairs = []
        for block in blocks(len(frontier[0])):
            t, s = frontier[0][block], frontier[1][block]
            far = is_far(t_geometry.take(t), s_geometry.take(s), theta, separation * t_geometry.scale)
            pairs.far(t[far], s[far])
            t, s = t[~far], s[~far]
            t_leaf, s_leaf = t_children.none[t], s_children.none[s]
            near = t_leaf & s_leaf
            pairs.near(t[near], s[near])
            split_t = ~t_leaf & (s_leaf | (t_geometry.radius[t] > s_geometry.radius[s]))
            split_s = ~(split_t | near)
            next_pairs.append(t_children.instead(t[split_t], s[split_t]))
            next_pairs.append(s_children.instead(s[split_s], t[split_s])[::-1])
        frontier = joined(next_pairs)
    return pairs.pairs()


def _root_pair(targets: ClusterNodes, sources: ClusterNodes) -> tuple[Nodes, Nodes]:
    """Return the pair of the roots; none if one of the trees has no points."""
    count = min(targets.n_points, sources.n_points, 1)
    return np.zeros(count, np.int32), np.zeros(count, np.int32)


def blocks(n: int) -> Iterator[slice]:
    """Yield slices of n pairs; raise MemoryError if memory for the resulting pairs is not free."""
    for i in range(0, n, BLOCK):
        if i and i % ASK == 0:
            memory.require(8 * 2 * 4 * ASK, f"a list of more than {n} pairs of clusters", ADVICE)
        yield slice(i, i + BLOCK)


def joined(parts: list[tuple[Nodes, Nodes]]) -> tuple[Nodes, Nodes]:
    """Join pairs of arrays to one pair."""
    if not parts:
        return np.empty(0, np.int32), np.empty(0, np.int32)
    pairs = sum(len(t) for t, _ in parts)
    if pairs > ASK:
        memory.require(2 * 4 * pairs, f"a list of {pairs} pairs of clusters", ADVICE)
    return np.concatenate([t for t, _ in parts]), np.concatenate([s for _, s in parts])


class GrowingPairs:
    """Far and near pairs, collected block by block."""

    def __init__(self) -> None:
        self._far: list[tuple[Nodes, Nodes]] = []
        self._near: list[tuple[Nodes, Nodes]] = []

    def far(self, t: Nodes, s: Nodes) -> None:
        """Add far pairs."""
        self._far.append((t, s))

    def near(self, t: Nodes, s: Nodes) -> None:
        """Add near pairs."""
        self._near.append((t, s))

    def pairs(self) -> Pairs:
        """Return all pairs."""
        return Pairs(*joined(self._far), *joined(self._near))


@dataclass(frozen=True)
class NodeBalls:
    """Centres and radii of nodes times `scale`, a power of 2 that keeps squares of distances in range."""

    balls: NDArray[np.float64]  # (M, 4): centre and radius
    radius: NDArray[np.float64]
    scale: float

    @classmethod
    def of(cls, *trees: ClusterNodes, cubes: bool = False) -> "list[NodeBalls]":
        """Return the balls of each tree, in one scale; with `cubes` radii are those of cubes around boxes."""
        largest = max(float(np.abs(a).max(initial=0.0)) for tree in trees for a in (tree.low[:1], tree.high[:1]))
        scale = 2.0 ** -np.clip(np.frexp(largest)[1], -1000, 1000)
        radii = [math.sqrt(3) * tree.half.max(axis=1) if cubes else tree.radius for tree in trees]
        balls = [np.column_stack([tree.centre, r]) * scale for tree, r in zip(trees, radii, strict=True)]
        return [cls(ball, np.ascontiguousarray(ball[:, 3]), float(scale)) for ball in balls]

    def take(self, node: Nodes) -> NDArray[np.float64]:
        """Return the centres and radii of nodes, (4, nodes)."""
        return np.take(self.balls, node, axis=0).T


def is_far(t: NDArray[np.float64], s: NDArray[np.float64], theta: float, separation: float) -> NDArray[np.bool_]:
    """Return whether balls (4, K) are well separated."""
    difference = t - s
    distance = np.sqrt(difference[0] * difference[0] + difference[1] * difference[1] + difference[2] * difference[2])
    radii = t[3] + s[3]
    far = radii < theta * distance
    if separation > 0 or theta > 1:
        far &= distance - radii >= separation
    return far


class Children:
    """Children that replace a node during traversal."""

    def __init__(self, tree: ClusterNodes) -> None:
        self._first, self._count, self.none = tree.first_child, tree.n_children, tree.is_leaf

    def instead(self, node: Nodes, partner: Nodes) -> tuple[Nodes, Nodes]:
        """Return every child of each node, paired with the node's partner."""
        count = self._count[node]
        return spread(self._first[node], count).astype(np.int32), np.repeat(partner, count)
