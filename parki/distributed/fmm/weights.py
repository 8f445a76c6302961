"""Work of a rank's leaves, in seconds of the models, by which a tree is cut."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parki.distributed.fmm.boxes import SOURCES, TARGETS, RankBoxes
from parki.distributed.trees.tables import Places
from parki.fmm.balance import FmmCosts
from parki.trees.nodes import Ints

Numbers = NDArray[np.float64]


def of_leaves(boxes: RankBoxes, costs: FmmCosts, points: int) -> tuple[Places, Numbers]:
    """Return places between a rank's leaves, for `cuts.by_work`, and the work of each leaf.

    Work of boxes above leaves is divided among the leaves below, in proportion to their targets, or to all their points
    where nothing is summed at targets.

    Parameters
    ----------
    boxes : RankBoxes
    costs : FmmCosts
    points : int
        Points of a box's values, for W and X pairs.
    """
    tree, nodes, lists = boxes.tree, boxes.nodes, boxes.lists
    n_trg, n_src = nodes.targets.count.astype(float), nodes.sources.count.astype(float)

    def summed(box: Ints, work: Numbers | float) -> Numbers:
        return np.bincount(box, np.broadcast_to(work, box.shape), minlength=nodes.n)

    pairs = summed(lists.u_t, n_trg[lists.u_t] * n_src[lists.u_s])
    n_lone = summed(lists.w_t, n_trg[lists.w_t]) + summed(lists.x_t, n_src[lists.x_s])  # each particle meets a surface
    octets = summed(nodes.octet_parent[lists.v_t], costs.octet_pair)
    target_work = costs.pair * pairs + costs.particle * n_lone + octets
    inner = summed(nodes.octet_parent, costs.octet)
    table = boxes.essential.table
    number = table["number"].astype(float)
    total = number.sum(axis=1) if len(tree.points) > 1 else number[:, TARGETS]
    leaves = tree.leaves
    leaf_work = np.zeros(len(leaves))
    for work, size, part in (
        (target_work, number[:, TARGETS], leaves["number"][:, TARGETS]),
        (inner, total, leaves["count"]),
    ):
        share = np.divide(work, size, out=np.zeros(nodes.n), where=size > 0)
        leaf_work += _down(boxes, share) * part
    leaf_work += costs.particle * leaves["number"].sum(axis=1)
    return _edges(boxes), leaf_work


def _down(boxes: RankBoxes, share: Numbers) -> Numbers:
    """Return the sum of shares of each own leaf and all boxes above it."""
    nodes = boxes.nodes
    for level in range(1, nodes.depth + 1):
        level_nodes = slice(*nodes.level_begin[level : level + 2])
        share[level_nodes] += share[nodes.parent[level_nodes]]
    table = boxes.essential.table
    first, end = boxes.tree.mine
    leaves = np.flatnonzero(table["leaf"] & (table["begin"] >= first) & (table["begin"] < end))
    return share[leaves[np.argsort(table["begin"][leaves])]]


def _edges(boxes: RankBoxes) -> Places:
    """Return the places where leaves begin, and where the last one ends: among all, and among each set."""
    tree, leaves = boxes.tree, boxes.tree.leaves
    columns = [leaves["begin"], *(leaves["first"][:, k] for k in (SOURCES, TARGETS)[: len(tree.points)])]
    ends = [tree.mine[1], *(tree.own(k)[1] for k in range(len(tree.points)))]
    return np.stack([np.append(column, end) for column, end in zip(columns, ends, strict=True)], axis=1)
