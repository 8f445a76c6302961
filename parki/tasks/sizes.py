"""Sizes of tasks, and runs of entries of about equal work."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

PARTS = 8  # tasks of a kind for each worker
RUNS = 8, 64  # octets of a run on cores, least and most
RUNS_BESIDE = 32, 256  # the same beside a device, where each run is several launches
MOST = 64  # tasks of a kind for each unit of a node with devices: more of them would be more launches


@dataclass(frozen=True)
class TaskSizes:
    """Sizes of tasks: a core works on one for about a millisecond.

    Attributes
    ----------
    threads : int
        Workers, which should have several tasks of a kind each.
    octets : int
        Octets of a run: their values stay in a second-level cache.  Runs of levels wait for each other, so that few
        workers take longer ones.
    boxes : int
        Boxes of a run.
    pairs : float
        Pairs of particles, or of proxy points, of a task.
    products : float
        Products of spectra of octets, for one frequency and one pair of components, of a task.
    most : float
        Tasks of a kind for each worker, at most.
    """

    threads: int
    octets: int = 64
    boxes: int = 256
    pairs: float = 4e6
    products: float = 1e5
    most: float = math.inf

    @classmethod
    def of(cls, cores: int, octets: int, devices: int = 0) -> "TaskSizes":
        """Return sizes for a node.

        Parameters
        ----------
        cores, devices : int
        octets : int
            Octets of the tree.
        """
        few, many = RUNS_BESIDE if devices else RUNS
        run = min(max(octets // (PARTS * cores), few), many)
        return cls(cores + devices, run, most=MOST if devices else math.inf)

    def parts(self, work: float, each: float, many: int) -> int:
        """Return the number of tasks for work of which one should do `each`: `many` to `most` for each worker."""
        return int(max(min(math.ceil(work / each), self.most * self.threads), many * self.threads))


def divided(count: NDArray[Any], parts: int) -> NDArray[np.int64]:
    """Return the bounds of at most `parts` runs of entries of about equal sums, by entry; none is empty."""
    ends = np.cumsum(count, dtype=np.float64)
    goals = np.arange(1, parts) * (ends[-1] / parts if len(ends) else 0.0)
    return np.unique(np.concatenate([[0], np.searchsorted(ends, goals) + 1, [len(ends)]]).clip(0, len(ends)))


def cumulated(values: NDArray[Any], begin: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the sum of the values of each list, which has those from its `begin` up to the next one."""
    ends = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    return ends[begin[1:]] - ends[begin[:-1]]
