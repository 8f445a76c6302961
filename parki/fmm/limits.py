"""Sizes of work items and of scratch, which differ between hosts and devices."""

import math
from dataclasses import dataclass, replace

from parki.engine import Space
from parki.tasks.sizes import TaskSizes


@dataclass(frozen=True)
class TeamLimits:
    """Limits of a team's work.

    Attributes
    ----------
    scratch : float
        Bytes of scratch of a team.
    blocks : int
        Blocks of target octets in a work item of translations.
    tasks : TaskSizes, optional
        Sizes of tasks, for sums that are cut into tasks.
    block : int
        Bytes of scratch to which translations may take the spectra of a block's sources; 0 for none.
    """

    scratch: float
    blocks: int
    tasks: TaskSizes | None = None
    block: int = 0


HOST = TeamLimits(math.inf, 32)  # no limit of scratch; spectra of 32 blocks stay in a second-level cache
DEVICE = TeamLimits(40960, 16)  # bytes of scratch that a team has on any device; a thread for each block


def of(space: Space) -> TeamLimits:
    """Return the limits of a space."""
    return space.pick(HOST, replace(DEVICE, block=space.scratch))
