"""Counts of values of boxes that both exchanges send, from the makers and users in the lists of one process.

Makers of a box are the ranks that hold its sources: a run of ranks.  Users are the ranks with targets in boxes that
meet the box in V and W lists.
"""

import numpy as np

from parki.trees import octlists, octree


def octet_pairs(nodes, lists, most=20_000):
    """Return V pairs of boxes that have targets and sources."""
    found = [(np.empty(0, np.int32),) * 2]
    steps = octlists.DIRECTIONS[np.arange(27) != octlists.CENTRE]
    for first in range(0, len(lists.v_t), most):
        v_t, v_s, direction = (a[first : first + most] for a in (lists.v_t, lists.v_s, lists.v_direction))
        d = steps[direction]
        apart = (np.abs(2 * d[:, None, None] + octree.OCTANTS - octree.OCTANTS[:, None]) > 1).any(axis=-1)
        t, s = (nodes.child[nodes.octet_parent[octet]] for octet in (v_t, v_s))
        apart &= ((t >= 0) & (nodes.targets.count > 0)[t])[:, :, None]
        apart &= ((s >= 0) & (nodes.sources.count > 0)[s])[:, None]
        k, i, j = np.nonzero(apart)
        found.append((t[k, i], s[k, j]))
    return tuple(np.concatenate(column) for column in zip(*found, strict=True))


def runs(spans, cuts):
    """Return lo and hi of the ranks lo … hi − 1 that have points of each box, if every rank has points."""
    return np.searchsorted(cuts, spans.begin, side="right") - 1, np.searchsorted(cuts, spans.end)


def spread(lo, hi, box):
    """Return arrays rank and box: each box with all ranks lo … hi − 1 of its run."""
    count = hi - lo
    ahead = np.repeat(np.cumsum(count) - count, count)
    return np.repeat(lo, count) + np.arange(count.sum()) - ahead, np.repeat(box, count)


def users(nodes, lists, firsts):
    """Return arrays rank and box: each rank with each box that it uses and does not make alone, each pair once."""
    lo, hi = runs(nodes.targets, firsts[-1])
    t, s = (np.concatenate(both) for both in zip(octet_pairs(nodes, lists), (lists.w_t, lists.w_s), strict=True))
    rank, box = spread(lo[t], hi[t], s)
    rank, box = np.divmod(np.unique(rank.astype(np.int64) * nodes.n + box), nodes.n)
    lo, hi = runs(nodes.sources, firsts[0])
    away = (lo[box] != rank) | (hi[box] != rank + 1)
    return rank[away], box[away]


def owners_send(nodes, lists, firsts):
    """Return the number of values that each rank sends: parts to owners, complete values to users."""
    ranks = len(firsts[0]) - 1
    rank, box = users(nodes, lists, firsts)
    lo, hi = runs(nodes.sources, firsts[0])
    some = np.unique(box)
    maker, _ = spread(lo[some] + 1, hi[some], some)
    return np.bincount(lo[box], lo[box] != rank, ranks) + np.bincount(maker, minlength=ranks)


def hypercube_sends(nodes, lists, firsts):
    """Return the number of values that each of 2^d ranks sends by algorithm 3 of SC09."""
    ranks = len(firsts[0]) - 1
    rank, box = users(nodes, lists, firsts)
    lo, hi = runs(nodes.sources, firsts[0])
    some = np.unique(box)
    holder, held = spread(lo[some], hi[some], some)
    sent = np.zeros(ranks)
    while ranks > 1:  # wants: halves of a range that use a box; holds: ranks that have parts of it
        half = ranks // 2
        wants = {(int(b), int(q) // half) for q, b in zip(rank, box, strict=True)}
        holds = {(int(b), int(q)) for q, b in zip(holder, held, strict=True)}
        going = {(b, q) for b, q in holds if (b, q // half ^ 1) in wants}
        for _, q in going:
            sent[q] += 1
        holds |= {(b, (q // half ^ 1) * half + q % half) for b, q in going}
        held, holder = (np.array(column) for column in zip(*holds, strict=True))
        ranks = half
    return sent


def ghosts(nodes, lists, firsts):
    """Return the number of sources of other ranks that each rank meets in U lists and X lists."""
    ranks = len(firsts[0]) - 1
    lo, hi = runs(nodes.targets, firsts[-1])
    t, s = np.append(lists.u_t, lists.x_t), np.append(lists.u_s, lists.x_s)
    rank, leaf = spread(lo[t], hi[t], s)
    rank, leaf = np.divmod(np.unique(rank.astype(np.int64) * nodes.n + leaf), nodes.n)
    owner = runs(nodes.sources, firsts[0])[0]
    away = owner[leaf] != rank
    return np.bincount(rank[away], nodes.sources.count[leaf[away]], ranks)
