"""Sizes of work items and of scratch, which differ between hosts and devices."""

import math
from dataclasses import dataclass

from parki.engine.spaces import Space


@dataclass(frozen=True)
class TaskSizes:
    """Sizes of tasks: a core works on one for about a millisecond.

    Attributes
    ----------
    threads : int
        Workers, which should have several tasks of a kind each.
    octets : int
        Octets of a run: their values stay in a second-level cache.
    pairs : float
        Pairs of particles of a task.
    products : float
        Products of spectra of octets, for one frequency and one pair of components, of a task.
    """

    threads: int
    octets: int = 64
    pairs: float = 4e6
    products: float = 1e5

    def parts(self, work: float, each: float, many: int) -> int:
        """Return the number of tasks for work of which one should do `each`: `many` for each worker at least."""
        return max(math.ceil(work / each), many * self.threads)


@dataclass(frozen=True)
class TeamLimits:
    """Limits of a team's work.

    Attributes
    ----------
    scratch : float
        Bytes of scratch that a team has.
    blocks : int
        Blocks of target octets in a work item of translations.
    tasks : TaskSizes, optional
        Sizes of tasks, of sums that are cut into such.
    """

    scratch: float
    blocks: int
    tasks: TaskSizes | None = None


HOST = TeamLimits(math.inf, 32)  # spectra of 32 blocks stay in a second-level cache
DEVICE = TeamLimits(40960, 16)  # scratch that a team has on any device; a thread for each block


def of(space: Space) -> TeamLimits:
    """Return the limits of a space."""
    return space.pick(HOST, DEVICE)
