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
    before, after = totals[comm.rank], totals[comm.rank + 1]
    wanted = totals[-1] * np.arange(1, comm.size) / comm.size
    mine = np.flatnonzero((wanted > before) & (wanted <= after))
    upto = before + np.append(0.0, np.cumsum(work))
    leaf = nearest(upto, wanted[mine])
    found = comm.allgather((mine, edges[leaf], edges[[0, -1]] if len(work) else None))
    cuts = np.zeros((comm.size + 1, edges.shape[1]), np.int64)
    cuts[0] = next(ends[0] for *_, ends in found if ends is not None)
    cuts[-1] = next(ends[1] for *_, ends in reversed(found) if ends is not None)
    for which, places, _ in found:
        cuts[which + 1] = places
    return cuts


def nearest(edges: Numbers | Places, wanted: Numbers) -> NDArray[np.intp]:
    """Return the numbers of the ascending edges that are nearest to given values."""
    after = np.clip(np.searchsorted(edges, wanted), 1, len(edges) - 1)
    return after - (wanted - edges[after - 1] <= edges[after] - wanted)


def imbalance(comm: Comm, work: float) -> float:
    """Return the largest over the mean work of all ranks; collective."""
    every = np.array(comm.allgather(work))
    return float(every.max() / max(every.mean(), 1e-300))
