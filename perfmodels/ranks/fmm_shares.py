"""Shares of ranks in a fast multipole sum: work by step, expansions and ghost particles, for all ranks at once.

Lists V are lists of octets.  A table gives the boxes of a source octet that a rank uses, by the direction to the octet
and by the boxes that the rank has targets in, so pairs of boxes are never written down.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parki.perfmodels.ranks import shares
from parki.perfmodels.ranks.shares import Cuts, RankTraffic, Values
from parki.trees.dual import spread
from parki.trees.octlists import DIRECTIONS, OctLists
from parki.trees.octree import OCTANTS, OctNodes

TOP_LEVEL = 2  # level of the largest boxes that have expansions
CHUNK = 1 << 21  # pairs of octets at once, to bound memory
PARTICLES = 8  # bytes of a component of a particle's charges
Ints = NDArray[np.integer]
Floats = NDArray[np.float64]


class Units(NamedTuple):
    """Units of work of each rank (P,), or of a box (M,), by step.

    Pairs of particles; pairs of octets; octets that are transformed, dense octets; particles of leaves; particles
    that meet boxes.
    """

    pairs: Floats
    octet_pairs: Floats
    transforms: Floats
    octets: Floats
    particles: Floats
    uneven: Floats

    def seconds(self, costs: Units) -> Floats:
        """Return the seconds at a cost of each unit."""
        return sum(amount * cost for amount, cost in zip(self, costs, strict=True))


@lru_cache(maxsize=1)
def reached() -> NDArray[np.uint8]:
    """Return the octants of a source octet that octants of a target octet meet, by direction and the latter (26, 256).

    A set of octants is a mask of 8 bits.  Boxes meet if they do not touch.
    """
    offset = 2 * DIRECTIONS[np.arange(27) != 13]
    offsets = offset[:, None, None] + OCTANTS[None, None] - OCTANTS[None, :, None]  # direction, target, source
    meeting_mask = ((np.abs(offsets) > 1).any(axis=-1) << np.arange(8)).sum(axis=-1)
    table = np.zeros((26, 256), np.int64)
    for octant in range(8):
        with_it = (np.arange(256) >> octant & 1).astype(bool)
        table[:, with_it] |= meeting_mask[:, octant, None]
    return table.astype(np.uint8)


@dataclass(frozen=True)
class OctetParts:
    """Parts of octets that ranks have, in order of octets, then of ranks.

    Attributes
    ----------
    octet, rank : arrays (E,)
    some, whole : arrays (E,) of uint8
        Masks of octants whose boxes the rank has points of, and all points of.
    """

    octet: Ints
    rank: Ints
    some: NDArray[np.uint8]
    whole: NDArray[np.uint8]

    @classmethod
    def of(cls, nodes: OctNodes, cuts: Cuts, low: Ints, high: Ints) -> OctetParts:
        """Return the parts of all octets."""
        rank, box = cuts.runs(low[1:], high[1:])
        box += 1  # all but the root are in octets
        key = (nodes.slot[box] >> 3).astype(np.int64) * cuts.ranks + rank
        if len(key) > 1 and (key[1:] < key[:-1]).any():
            order = np.argsort(key, kind="stable")
            key, rank, box = key[order], rank[order], box[order]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        bit = (1 << nodes.octant[box]).astype(np.uint8)
        sole_bit = np.where(high[box] - low[box] == 1, bit, 0).astype(np.uint8)
        masks = (np.bitwise_or.reduceat(a, first) if len(first) else a for a in (bit, sole_bit))
        return cls(key[first] // cuts.ranks, key[first] % cuts.ranks, *masks)


@dataclass(frozen=True)
class FmmShares:
    """Shares of the ranks of one sum whose targets are its sources.

    Attributes
    ----------
    nodes : OctNodes
    lists : OctLists
    cuts : Cuts
    imbalance : float
        Largest over mean work of a rank, by the work that the tree was cut by.
    """

    nodes: OctNodes
    lists: OctLists
    cuts: Cuts
    imbalance: float = 1.0

    @cached_property
    def contributors(self) -> tuple[Ints, Ints]:
        """Return the first rank, and one more than the last, with points of each box."""
        return self.cuts.contributors(self.nodes.sources.begin, self.nodes.sources.end)

    @cached_property
    def parts(self) -> OctetParts:
        """Return the parts of octets."""
        return OctetParts.of(self.nodes, self.cuts, *self.contributors)

    @cached_property
    def translations(self) -> tuple[Ints, Ints, NDArray[np.uint8], Floats]:
        """Return ranks, source octets and octants used of these, each pair once; and octet pairs of ranks (P,)."""
        lists, parts, octet_count = self.lists, self.parts, self.nodes.octet_parent.size
        t = lists.v_t
        if len(t) and (t[1:] < t[:-1]).any():
            raise ValueError("lists.v_t is not sorted; expected pairs of octets in the order of their targets.")
        first = np.searchsorted(t, parts.octet)
        count = np.searchsorted(t, parts.octet, "right") - first
        pairs = np.bincount(parts.rank, count, self.cuts.ranks)
        keys, masks, table = [], [], reached()
        ends = np.append(0, np.cumsum(count))
        for a in _chunks(ends):
            place = spread(first[a], count[a])
            part = np.repeat(np.arange(a.start, a.stop), count[a])
            key = parts.rank[part].astype(np.int64) * octet_count + lists.v_s[place]
            chunk = _united(key, table[lists.v_direction[place], parts.some[part]])
            keys.append(chunk[0])
            masks.append(chunk[1])
        keys, masks = [np.empty(0, np.int64), *keys], [np.empty(0, np.uint8), *masks]
        key, mask = _united(np.concatenate(keys), np.concatenate(masks))
        children = ((self.nodes.child[self.nodes.octet_parent] >= 0) << np.arange(8)).sum(axis=1).astype(np.uint8)
        octet = key % octet_count
        mask &= children[octet]
        return key // octet_count, octet, mask, pairs

    @cached_property
    def units(self) -> Units:
        """Return the work of each rank; shared octets are done by each rank that has points in them."""
        nodes, lists, cuts, parts = self.nodes, self.lists, self.cuts, self.parts
        (low, _), n = self.contributors, nodes.sources.count.astype(float)
        rank, _, mask, octet_pairs = self.translations
        sources = np.bincount(rank[mask > 0], minlength=cuts.ranks)
        below_top = nodes.level[nodes.octet_parent[parts.octet]] + 1 >= TOP_LEVEL
        octet_counts = np.bincount(parts.rank[below_top], minlength=cuts.ranks).astype(float)
        pairs = np.bincount(low[lists.u_t], n[lists.u_t] * n[lists.u_s], cuts.ranks)
        x_rank, x = cuts.runs(*(ends[lists.x_t] for ends in self.contributors))
        leaf_points = np.bincount(low[lists.w_t], n[lists.w_t], cuts.ranks)
        leaf_points += np.bincount(x_rank, n[lists.x_s[x]], cuts.ranks)
        return Units(pairs, octet_pairs, sources + octet_counts, octet_counts, cuts.own.astype(float), leaf_points)

    def expansions(self, nbytes: float) -> Values:
        """Return the users of expansions, of `nbytes` bytes each, of boxes in lists V and W."""
        rank, octet, mask, _ = self.translations
        ranks = self.cuts.ranks
        place = np.searchsorted(_key(self.parts.octet, self.parts.rank, ranks), _key(octet, rank, ranks))
        last = np.minimum(place, len(self.parts.octet) - 1)
        is_own = (self.parts.octet[last] == octet) & (self.parts.rank[last] == rank)
        mask = mask & ~np.where(is_own, self.parts.whole[last], 0).astype(np.uint8)
        row, octant = np.nonzero(np.unpackbits(mask[:, None], axis=1, bitorder="little"))
        box = self.nodes.child[self.nodes.octet_parent[octet[row]], octant]
        low = self.contributors[0]
        users = np.concatenate([rank[row], low[self.lists.w_t]]), np.concatenate([box, self.lists.w_s])
        sources = self.nodes.sources
        return Values.used(self.cuts, (sources.begin, sources.end), users, nbytes)

    def ghosts(self, components: int) -> RankTraffic:
        """Return the messages of charges of particles in lists U and X that ranks do not own."""
        (low, _), lists, sources = self.contributors, self.lists, self.nodes.sources
        x_rank, x = self.cuts.runs(*(ends[lists.x_t] for ends in self.contributors))
        is_remote = low[lists.u_t] != low[lists.u_s]
        rank = np.concatenate([low[lists.u_t[is_remote]], x_rank])
        leaf = np.concatenate([lists.u_s[is_remote], lists.x_s[x]])
        key = shares.distinct(_key(rank, leaf, self.nodes.n))
        rank, leaf = key // self.nodes.n, key % self.nodes.n
        return RankTraffic.of(self.cuts.ranks, low[leaf], rank, PARTICLES * components * sources.count[leaf])


def _key(major: Ints, minor: Ints, base: int) -> NDArray[np.int64]:
    return major.astype(np.int64) * base + minor


def _chunks(ends: Ints) -> list[slice]:
    """Return slices of items that have about `CHUNK` entries each; entries of item k end at ends[k + 1]."""
    cut = np.unique(np.searchsorted(ends, np.arange(0, ends[-1] + CHUNK, CHUNK)))
    cut = np.unique(np.append(np.minimum(cut, len(ends) - 1), [0, len(ends) - 1]))
    return [slice(int(a), int(b)) for a, b in itertools.pairwise(cut)]


def _united(key: NDArray[np.int64], mask: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return distinct keys in order, and the union of the masks of each."""
    order = np.argsort(key)
    key, mask = key[order], mask[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    return key[first], np.bitwise_or.reduceat(mask, first) if len(first) else mask


def work_of_leaves(nodes: OctNodes, lists: OctLists, costs: Units) -> tuple[Ints, Floats]:
    """Return the leaves in the order of their points, and the work of each at a cost of each unit.

    The work of a box is spread over its points.
    """
    n, boxes = nodes.sources.count.astype(float), nodes.n
    work = costs.pairs * np.bincount(lists.u_t, n[lists.u_t] * n[lists.u_s], boxes)
    work += costs.uneven * np.bincount(lists.w_t, n[lists.w_t], boxes)
    work += costs.uneven * np.bincount(lists.x_t, n[lists.x_s], boxes)
    work += np.where(nodes.is_leaf, costs.particles * n, 0.0)
    of_octet = costs.octet_pairs * np.bincount(lists.v_t, minlength=nodes.octet_parent.size)
    below_top = nodes.level[nodes.octet_parent] + 1 >= TOP_LEVEL
    of_octet = of_octet + (2 * costs.transforms + costs.octets) * below_top
    work[nodes.octet_parent] += of_octet
    return on_leaves(nodes, work)


def on_leaves(nodes: OctNodes, work: Floats) -> tuple[Ints, Floats]:
    """Return the leaves in the order of their points, and the work of the boxes that they are in, point by point."""
    per = work / np.maximum(nodes.sources.count, 1)
    for first, end in zip(nodes.level_begin[1:-1], nodes.level_begin[2:], strict=True):
        per[first:end] += per[nodes.parent[first:end]]
    leaves = np.flatnonzero(nodes.is_leaf)
    leaves = leaves[np.argsort(nodes.sources.begin[leaves], kind="stable")]
    return leaves, per[leaves] * nodes.sources.count[leaves]


def share(nodes: OctNodes, lists: OctLists, ranks: int, costs: Units) -> FmmShares:
    """Cut a tree by work for a number of ranks."""
    leaves, work = work_of_leaves(nodes, lists, costs)
    begin = nodes.sources.begin[leaves]
    cuts = Cuts.by_work(begin, work, nodes.sources.n_points, ranks)
    return FmmShares(nodes, lists, cuts, cuts.imbalance(begin, work))
