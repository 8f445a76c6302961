"""Meetings of particles with particles and with points of boxes: sizes of list items, for models of time."""

import numpy as np
from numpy.typing import NDArray

from parki.fmm.expansion import TOP_LEVEL
from parki.perfmodels.counts.clusters import Lists
from parki.trees import octlists
from parki.trees.lists import csr, joined_ranges
from parki.trees.octlists import OctLists
from parki.trees.octree import Octree


def meetings(tree: Octree, lists: OctLists, points: int, far: bool) -> dict[str, Lists]:
    """Return the sizes of items by step: numbers of targets, of places in their lists, and of sources in these.

    Parameters
    ----------
    tree : Octree
    lists : OctLists
    points : int
        Points of a box.
    far : bool
        Whether boxes have expansions: else only particles meet particles.

    Returns
    -------
    dict
        Those of ``"p2m"``, ``"l2p"``, ``"p2l"``, ``"m2p"`` and ``"p2p"`` that have items.
    """
    nodes, result = tree.nodes, {}
    if far:
        leaf = nodes.is_leaf & (nodes.level >= TOP_LEVEL)
        src, trg = (count[leaf & (count > 0)] for count in (nodes.own.count, nodes.targets.count))
        result["p2m"] = _lists(np.full(len(src), points), np.ones(len(src)), src, tree.sources.n)
        result["l2p"] = _lists(trg, np.ones(len(trg)), np.full(len(trg), points), points * len(trg))
        if len(lists.x_t):
            starts, spans = joined_ranges(lists.x_t, lists.x_s, nodes.sources.begin, nodes.sources.end, nodes.n)
            counts = np.diff(starts)
            box, row = np.flatnonzero(counts), np.repeat(np.arange(nodes.n), counts)
            n_sources = np.bincount(row, spans[:, 1] - spans[:, 0], nodes.n)[box]
            result["p2l"] = _lists(np.full(len(box), points), counts[box], n_sources, tree.sources.n)
        if len(lists.w_t):
            counts = np.diff(csr(lists.w_t, lists.w_s, nodes.n)[0])
            box = np.flatnonzero(counts)
            distinct = points * len(np.unique(lists.w_s))
            result["m2p"] = _lists(nodes.targets.count[box], counts[box], points * counts[box], distinct)
    if len(lists.u_t):
        items, ranges = octlists.near(nodes, nodes.sources, lists)
        total = np.append(0, np.cumsum(ranges[:, 1] - ranges[:, 0], dtype=np.int64))
        n_sources = total[items[:, 3]] - total[items[:, 2]]
        result["p2p"] = _lists(items[:, 1] - items[:, 0], items[:, 3] - items[:, 2], n_sources, tree.sources.n)
    return {name: sizes for name, sizes in result.items() if len(sizes.targets)}


def _lists(targets: NDArray, places: NDArray, n_sources: NDArray, distinct: float) -> Lists:
    return Lists(targets.astype(np.int64), places.astype(np.int64), n_sources.astype(float), 0.0, float(distinct))
