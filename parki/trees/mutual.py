"""Pairs of leaves that meet each other: each pair once, in blocks whose teams may run together.

Leaves below a level touch leaves that are at most half as wide as a box of that level, a *block*.  So the leaves of a
block, and those which these touch, lie within half a side of the block: blocks of one colour, which are a block apart,
have none of them in common.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parki.trees.lists import joined_ranges
from parki.trees.nodes import Ints
from parki.trees.octlists import OctLists
from parki.trees.octree import OctNodes

COLOURS = 8
FEWEST = 0.3  # share of mutual pairs of particles, at least


@dataclass(frozen=True)
class MutualLists:
    """Pairs of leaves that are sources and targets, by blocks.

    Attributes
    ----------
    items : array (I, 4) of int32
        A leaf's first particle and end, its first range and end of ranges, by block.
    ranges : array (R, 2) of int32
        First particle and end of the leaves that an item's leaf meets, behind it in the order of the tree.
    block : array (B + 1,) of int32
        First item of each block, by colour, and the number of items.
    starts : list of int
        First block of each colour, and the number of blocks.
    others : tuple of arrays (K,) of int32
        The pairs of list U that are left, target and source.
    """

    items: Ints
    ranges: Ints
    block: Ints
    starts: list[int]
    others: tuple[Ints, Ints]


def split(nodes: OctNodes, lists: OctLists, minimum: int) -> MutualLists | None:
    """Split list U of points that are sources and targets into mutual pairs and others.

    Parameters
    ----------
    nodes : OctNodes
    lists : OctLists
    minimum : int
        Blocks, at least.

    Returns
    -------
    MutualLists or None
        None if few of the pairs of particles would be mutual.
    """
    u_t, u_s = lists.u_t, lists.u_s
    level, count = nodes.level, nodes.sources.count
    coarse = np.minimum(level[u_t], level[u_s])
    meets = nodes.is_leaf[u_s] & (u_t != u_s)
    uneven = np.flatnonzero(meets & (level[u_t] != level[u_s]))  # leaves of one level that meet directly touch
    meets[uneven] = _touch(nodes, u_t[uneven], u_s[uneven])
    work = count[u_t].astype(np.float64) * count[u_s]
    work_below = np.bincount(coarse[meets], work[meets], nodes.depth + 1)[::-1].cumsum()[::-1]  # from each level on
    branches = ~nodes.is_leaf & (count > 0)
    blocks = np.bincount(level[branches], minlength=nodes.depth + 1)
    shares = np.where(blocks[:-1] >= minimum, work_below[1:], 0.0)
    if not len(shares) or shares.max() < FEWEST * work.sum():
        return None
    top = int(shares.argmax())
    meets &= coarse > top
    half = meets & (nodes.sources.begin[u_t] < nodes.sources.begin[u_s])
    items, ranges, block, starts = _by_block(nodes, u_t[half], u_s[half], top)
    return MutualLists(items, ranges, block, starts, (u_t[~meets], u_s[~meets]))


def _touch(nodes: OctNodes, a: Ints, b: Ints) -> NDArray[np.bool_]:
    """Return whether boxes a and b have a point in common."""
    size = np.left_shift(1, nodes.depth - nodes.level.astype(np.int64))  # in sides of the smallest boxes
    low, high = nodes.anchor * size[:, None], (nodes.anchor + 1) * size[:, None]
    return ((low[a] <= high[b]) & (low[b] <= high[a])).all(axis=1)


def _by_block(nodes: OctNodes, u_t: Ints, u_s: Ints, top: int) -> tuple[Ints, Ints, Ints, list[int]]:
    """Return the items, ranges, blocks and colours of pairs of leaves, in blocks that are boxes of level `top`."""
    begin, end = nodes.sources.begin, nodes.sources.end
    leaves = np.unique(u_t)
    rank = np.zeros(nodes.n, np.int32)
    corner = nodes.anchor[leaves] >> (nodes.level[leaves] - top)[:, None]
    colour = (corner & 1) @ [4, 2, 1]
    order = np.lexsort((begin[leaves], corner[:, 2], corner[:, 1], corner[:, 0], colour))
    leaves, corner, colour = leaves[order], corner[order], colour[order]
    rank[leaves] = np.arange(len(leaves))
    starts, ranges = joined_ranges(rank[u_t], u_s, begin, end, len(leaves))
    items = np.stack([begin[leaves], end[leaves], starts[:-1], starts[1:]], axis=1).astype(np.int32)
    is_first = np.append(True, (corner[1:] != corner[:-1]).any(axis=1))
    first = np.flatnonzero(is_first)
    block = np.append(first, len(leaves)).astype(np.int32)
    colours = np.searchsorted(colour[first], np.arange(COLOURS + 1)).tolist()
    return np.ascontiguousarray(items), ranges, block, colours
