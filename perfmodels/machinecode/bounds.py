"""Bounds of a loop's turn: the cycles that its instructions hold each pipe of one scheduler of a multiprocessor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from parki.perfmodels.machinecode.instructions import Instruction, Pipe, by_pipe

Limit = Literal["double", "single", "integer", "special", "memory", "issue"]

SCHEDULERS = 4  # of a multiprocessor, on all architectures below
WARP = 32
#: Cycles for which an instruction of a warp holds a pipe of its scheduler (CUDA C++ programming guide, throughput of
#: arithmetic instructions).  Loads, stores and atomic additions share one pipe of the multiprocessor, which takes at
#: best one such instruction a cycle: four cycles as each of four schedulers sees it, more where lanes read apart.
CYCLES: Mapping[str, Mapping[Pipe, float]] = {
    "sm_80": {"double": 4, "single": 2, "integer": 2, "special": 8, "memory": 4, "atomic": 4},
    "sm_89": {"double": 64, "single": 1, "integer": 2, "special": 8, "memory": 4, "atomic": 4},
    "sm_90": {"double": 2, "single": 1, "integer": 2, "special": 8, "memory": 4, "atomic": 4},
    "sm_100": {"double": 2, "single": 1, "integer": 2, "special": 8, "memory": 4, "atomic": 4},
}


@dataclass(frozen=True)
class TurnBound:
    """Cycles of a scheduler for a turn of a loop, at least, and the limit that sets them.

    Attributes
    ----------
    cycles : float
        The largest of `limits`.
    by : Limit
        The limit with most cycles; "issue" is one instruction a cycle.
    limits : dict
        Cycles by limit.
    """

    cycles: float
    by: Limit
    limits: Mapping[Limit, float]

    def share(self, limit: Limit) -> float:
        """Return the share of the time in which a pipe is busy if the bound is met."""
        return self.limits[limit] / self.cycles


def bound(turn: Sequence[Instruction], arch: str) -> TurnBound:
    """Return the bound of a turn on an architecture.

    Raises
    ------
    ValueError
        For an architecture that `CYCLES` does not have.
    """
    if arch not in CYCLES:
        raise ValueError(f"arch is {arch!r}; expected one of {', '.join(CYCLES)}.")
    cycles, counts = CYCLES[arch], by_pipe(turn)
    limits: dict[Limit, float] = {
        "double": cycles["double"] * counts["double"],
        "single": cycles["single"] * counts["single"],
        "integer": cycles["integer"] * counts["integer"],
        "special": cycles["special"] * counts["special"],
        "memory": cycles["memory"] * counts["memory"] + cycles["atomic"] * counts["atomic"],
        "issue": float(len(turn)),
    }
    limit = max(limits, key=limits.__getitem__)
    return TurnBound(limits[limit], limit, limits)
