"""Bounds of a loop's turn: the cycles that its instructions hold each pipe of one scheduler of a multiprocessor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from parki.perfmodels.machinecode.instructions import Instruction, Pipe, by_pipe

Limit = Literal["double", "single", "integer", "special", "memory", "scratch", "scalar", "issue"]


@dataclass(frozen=True)
class Scheduler:
    """One of the schedulers of a multiprocessor (AMD: of the SIMDs of a compute unit).

    Attributes
    ----------
    lanes : int
        Threads of a warp or wave.
    cycles : dict
        Cycles for which an instruction holds a pipe, as this scheduler sees it where several share the pipe.
    issue : dict
        Cycles for which an instruction of a pipe keeps all others of the same way of issue out.
    """

    lanes: int
    cycles: Mapping[Pipe, float]
    issue: Mapping[Pipe, float]


SCHEDULERS = 4  # of a multiprocessor, on all architectures below
# NVIDIA: CUDA C++ programming guide, throughput of arithmetic instructions.  Loads, stores and atomic additions share
# one pipe of the multiprocessor, which takes at best one such instruction a cycle: four cycles as each of four
# schedulers sees it, more where lanes read apart.  A scheduler issues one instruction a cycle.
_ANY: Mapping[Pipe, float] = dict.fromkeys(("double", "single", "integer", "special", "memory", "atomic", "other"), 1)
_NVIDIA: Mapping[Pipe, float] = {"double": 2, "single": 1, "integer": 2, "special": 8, "memory": 4, "atomic": 4}
# AMD: CDNA 2 and 3 whitepapers and instruction set guides.  A SIMD takes four cycles for 64 lanes of any vector
# instruction, sixteen for those of a quarter of the rate; vector instructions keep each other out, and no others.
# A compute unit's four SIMDs share its memory pipe (16 lanes a cycle), its scratch (128 bytes a cycle: 32 numbers of 4
# bytes) and its scalar unit (one instruction a cycle).
_VECTOR: Mapping[Pipe, float] = {"double": 4, "single": 4, "integer": 4, "special": 16, "other": 4}
_AMD = Scheduler(64, _VECTOR | {"memory": 16, "atomic": 16, "scratch": 8, "scalar": 4}, _VECTOR)
ARCHITECTURES: Mapping[str, Scheduler] = {
    "sm_80": Scheduler(32, _NVIDIA | {"double": 4, "single": 2}, _ANY),
    "sm_89": Scheduler(32, _NVIDIA | {"double": 64}, _ANY),
    "sm_90": Scheduler(32, _NVIDIA, _ANY),
    "sm_100": Scheduler(32, _NVIDIA, _ANY),
    "gfx90a": _AMD,
    "gfx942": _AMD,
}


@dataclass(frozen=True)
class TurnBound:
    """Cycles of a scheduler for a turn of a loop, at least, and the limit that sets them.

    Attributes
    ----------
    cycles : float
        The largest of `limits`.
    by : Limit
        The limit with most cycles; "issue" is that of all instructions that are issued the same way.
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
        For an architecture that `ARCHITECTURES` does not have.
    """
    if arch not in ARCHITECTURES:
        raise ValueError(f"arch is {arch!r}; expected one of {', '.join(ARCHITECTURES)}.")
    scheduler, counts = ARCHITECTURES[arch], by_pipe(turn)
    limits: dict[Limit, float] = {
        pipe: cycles * counts[pipe] for pipe, cycles in scheduler.cycles.items() if pipe != "atomic"
    }
    limits["memory"] += scheduler.cycles["atomic"] * counts["atomic"]
    limits["issue"] = float(sum(cycles * counts[pipe] for pipe, cycles in scheduler.issue.items()))
    limit = max(limits, key=limits.__getitem__)
    return TurnBound(limits[limit], limit, limits)
