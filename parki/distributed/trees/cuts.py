"""Cuts of a tree's places into runs of equal work, between leaves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parki.distributed.comm import Comm
from parki.distributed.trees.tables import Places

Numbers = NDArray[np.float64]


def by_work(comm: Comm, edges: Places, work: Numbers) -> Places:
    """Return the places (P + 1, columns) between leaves at which runs of equal work begin; collective.

    Parameters
    ----------
    comm : Comm
    edges : array (leaves + 1, columns)
        Places where this rank's leaves begin, and where the last one ends: among all, and among each set.
    work : array (leaves,)
    """
    totals = np.cumsum([0.0, *comm.allgather(float(work.sum()))])
    begin, end = totals[comm.rank], totals[comm.rank + 1]
    goals = totals[-1] * np.arange(1, comm.size) / comm.size
    own_index = np.flatnonzero((goals > begin) & (goals <= end))
    sums = begin + np.append(0.0, np.cumsum(work))
    leaf = nearest(sums, goals[own_index])
    parts = comm.allgather((own_index, edges[leaf], edges[[0, -1]] if len(work) else None))
    cuts = np.zeros((comm.size + 1, edges.shape[1]), np.int64)
    cuts[0] = next(ends[0] for *_, ends in parts if ends is not None)
    cuts[-1] = next(ends[1] for *_, ends in reversed(parts) if ends is not None)
    for index, places, _ in parts:
        cuts[index + 1] = places
    return cuts


def nearest(edges: Numbers | Places, goals: Numbers) -> NDArray[np.intp]:
    """Return the numbers of the ascending edges that are nearest to given values."""
    index = np.clip(np.searchsorted(edges, goals), 1, len(edges) - 1)
    return index - (goals - edges[index - 1] <= edges[index] - goals)


def imbalance(comm: Comm, work: float) -> float:
    """Return the largest over the mean work of all ranks; collective."""
    rank_work = np.array(comm.allgather(work))
    return float(rank_work.max() / max(rank_work.mean(), 1e-300))
