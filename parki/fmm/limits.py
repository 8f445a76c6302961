"""Sizes of work items and of scratch, which differ between hosts and devices."""

import math
from dataclasses import dataclass, replace

from parki import engine
from parki.engine import Space, workers
from parki.perfmodels.machine import Machine
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
    spectra : int
        Bytes of spectra up to which planes of frequencies are processed together.
    tasks : TaskSizes, optional
        Sizes of tasks, for sums that are cut into tasks.
    block : int
        Bytes of scratch to which translations may take the spectra of a block's sources; 0 for none.
    parts : int
        Parts of particles, two of which meet each other once; 0 where each target meets its sources.
    gauss : bool
        Whether complex products in double precision take three real ones: faster where registers hold the translations
        of a direction and the sums of their parts.  In single precision that loses too many digits.
    """

    scratch: float
    blocks: int
    spectra: int
    tasks: TaskSizes | None = None
    block: int = 0
    parts: int = 0
    gauss: bool = False


GAUSS_BYTES = 64  # bytes of the vectors of processors that have 32 of them
PARTS = 24  # of particles, whatever the number of threads
# No limit of scratch; spectra of 32 blocks stay in a second-level cache, and those of all are little new memory, whose
# first use takes longer than transforms.
HOST = TeamLimits(math.inf, 32, 32 << 20)
# Bytes of scratch that a team has on any device; a thread for each block; few launches.
DEVICE = TeamLimits(40960, 16, 256 << 20)


def has_gauss(machine: Machine, far: str) -> bool:
    """Return whether complex products of spectra of a type take three real ones on a machine: `TeamLimits.gauss`."""
    return far == "float64" and not machine.is_gpu and 8 * machine.lanes[far] == GAUSS_BYTES


def of(space: Space) -> TeamLimits:
    """Return the limits of a space.  As many threads as half of the parts have about equal work."""
    parts = PARTS if workers(space) <= PARTS // 2 else 0
    host = replace(HOST, parts=parts, gauss=engine.target().vector_bytes == GAUSS_BYTES)
    return space.pick(host, replace(DEVICE, block=space.scratch))
