"""Pairs of leaves that meet each other: each pair once, in rounds of pairs of parts that have no part in common.

Parts are about equal numbers of particles that follow each other in the order of the tree.  Two parts *meet* if leaves
of one are in lists U of the other.  Meetings of one round have no part in common, so they may run together: each adds
to sums of its own two parts.  Rounds follow each other, so additions have one order.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parki.trees.lists import csr
from parki.trees.nodes import Ints
from parki.trees.octlists import OctLists, leaves_in_order
from parki.trees.octree import OctNodes


@dataclass(frozen=True)
class MutualLists:
    """Pairs of leaves that are sources and targets, by meetings of parts.

    Attributes
    ----------
    items : array (I, 4) of int32
        A leaf's first particle and end, its first range and end of ranges, by meeting.
    ranges : array (R, 2) of int32
        First particle and end of the leaves that an item's leaf meets, behind it in the order of the tree.
    meeting : array (M + 1,) of int32
        First item of each meeting, by round, and the number of items.
    rounds : list of int
        First meeting of each round, and the number of meetings.
    """

    items: Ints
    ranges: Ints
    meeting: Ints
    rounds: list[int]


def pairs(nodes: OctNodes, lists: OctLists) -> float:
    """Return the number of pairs of particles of different leaves that meet directly."""
    count = nodes.sources.count.astype(np.float64)
    met = np.bincount(lists.u_t, count[lists.u_s], nodes.n)
    return float(met @ count - count[nodes.is_leaf] @ count[nodes.is_leaf])


def meetings(nodes: OctNodes, lists: OctLists, parts: int) -> MutualLists:
    """Return the pairs of different leaves in lists U, of points that are sources and targets, by meetings of parts."""
    begin, end, n = nodes.sources.begin, nodes.sources.end, nodes.sources.n_points
    leaves, rank = leaves_in_order(nodes)
    rows, columns = rank[lists.u_t], rank[lists.u_s]
    is_half = rows < columns
    starts, column = csr(rows[is_half], columns[is_half], len(leaves), sort=True)
    row = np.repeat(np.arange(len(leaves)), np.diff(starts))
    first, last = begin[leaves], end[leaves]
    part = (first.astype(np.int64) + last) * parts // (2 * n)
    met = part[row] * parts + part[column]
    is_item = np.ones(len(row) + 1, bool)
    is_item[1:-1] = (row[1:] != row[:-1]) | (met[1:] != met[:-1])
    is_range = is_item.copy()
    is_range[1:-1] |= first[column[1:]] != last[column[:-1]]
    ranges = np.stack([first[column[is_range[:-1]]], last[column[is_range[1:]]]], axis=1)
    number = np.append(0, np.cumsum(is_range[:-1]))[is_item]
    of_item = np.flatnonzero(is_item[:-1])
    work = np.bincount(met, (last - first)[row] * (last - first)[column].astype(np.float64), parts * parts)
    turn = _rounds(work, parts)
    order = np.lexsort((met[of_item], -work[met[of_item]], turn[met[of_item]]))
    leaf, of_meeting = row[of_item][order], met[of_item][order]
    items = np.stack([first[leaf], last[leaf], number[:-1][order], number[1:][order]], axis=1).astype(np.int32)
    head = np.flatnonzero(np.append(True, of_meeting[1:] != of_meeting[:-1]))
    turns = turn[of_meeting[head]]
    rounds = np.searchsorted(turns, np.arange(turns[-1] + 2)).tolist()
    return MutualLists(items, ranges.astype(np.int32), np.append(head, len(items)).astype(np.int32), rounds)


def _rounds(work: NDArray[np.float64], parts: int) -> NDArray[np.int64]:
    """Return a round of each meeting (parts²,), the first one that is free, for the most work first.

    Meetings within a part are round 0.
    """
    result = np.zeros(len(work), np.int64)
    busy: list[set[int]] = [set() for _ in range(parts)]
    for meeting in np.argsort(-work, kind="stable")[: np.count_nonzero(work)].tolist():
        a, b = divmod(meeting, parts)
        if a != b:
            turn = 1
            while turn in busy[a] or turn in busy[b]:
                turn += 1
            busy[a].add(turn)
            busy[b].add(turn)
            result[meeting] = turn
    return result
