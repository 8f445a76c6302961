"""Sizes of tasks, and runs of entries of about equal work."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

PARTS = 8  # tasks of a kind per worker
RUNS = 8, 64  # octets of a run on cores, least and most
RUNS_BESIDE = 32, 256  # octets of a run beside a device, least and most: each run is several launches
MOST = 64  # tasks of a kind per unit of a node with devices, at most, to limit launches


@dataclass(frozen=True)
class TaskSizes:
    """Sizes of tasks: a core needs about a millisecond for each.

    Attributes
    ----------
    threads : int
        Number of workers, each of which should have several tasks of a kind.
    octets : int
        Octets of a run: their values fit in a second-level cache.  Runs of different levels wait for each other, so
        runs are longer for few workers.
    boxes : int
        Boxes of a run.
    pairs : float
        Pairs of particles, or of proxy points, per task.
    products : float
        Products of spectra of octets, for one frequency and one pair of components, per task.
    most : float
        Tasks of a kind per worker, at most.
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
        low, high = RUNS_BESIDE if devices else RUNS
        run = min(max(octets // (PARTS * cores), low), high)
        return cls(cores + devices, run, most=MOST if devices else math.inf)

    def parts(self, work: float, size: float, minimum: int) -> int:
        """Return the number of tasks that divide `work` into parts of `size`: `minimum` to `most` per worker."""
        return int(max(min(math.ceil(work / size), self.most * self.threads), minimum * self.threads))


def divided(count: NDArray[Any], parts: int) -> NDArray[np.int64]:
    """Return the bounds of at most `parts` runs of entries with about equal sums; no run is empty."""
    ends = np.cumsum(count, dtype=np.float64)
    goals = np.arange(1, parts) * (ends[-1] / parts if len(ends) else 0.0)
    return np.unique(np.concatenate([[0], np.searchsorted(ends, goals) + 1, [len(ends)]]).clip(0, len(ends)))


def cumulated(values: NDArray[Any], begin: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the sum of each list of values; list i is values[begin[i]:begin[i + 1]]."""
    ends = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    return ends[begin[1:]] - ends[begin[:-1]]
