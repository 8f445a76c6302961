"""Least time of counted work on a machine, and the resource that sets this time.

Operations of all classes share the arithmetic pipes, so their times add up; the levels of memory and the atomics work
beside them and beside each other, so the longest of these times counts.  Launches come on top.

    seconds = max(compute, level of memory by level, atomics) / share + launches × launch

Integers have pipes of their own beside those of double precision where 32 lanes are a warp (64 lanes a clock each, of
128 that are issued), and on hosts, where they are indices: compilers turn them into addresses with constant offsets,
and into few scalar instructions in slots that vectors do not take.  The longer of the two times counts as compute.

`units` cores work at once and share the work evenly: each brings its own rates, but all of them together get at most
the machine's `dram_all`.  Idle lanes of vectors take as long as active ones: operations and loads of cores
grow by 1/fill; bytes from memory, where each is counted once, do not.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from parki.perfmodels.counts.totals import Counts
from parki.perfmodels.machine import Machine

PER_LANE = ("l1", "shared")  # levels of memory whose traffic idle lanes add to


@dataclass(frozen=True)
class Bound:
    """A predicted time.

    Attributes
    ----------
    seconds
        Predicted seconds in all.
    by
        Limiting resource: ``"compute"``, a level of memory, ``"atomics"`` or ``"launch"``.
    parts
        Seconds that each of these takes by itself, at the machine's full rates.
    """

    seconds: float
    by: str
    parts: Mapping[str, float]


@dataclass(frozen=True)
class Phase:
    """A phase: its work, its time at the share of its roofline that is reached, and this share."""

    counts: Counts
    bound: Bound
    share: float


def time(counts: Counts, machine: Machine, dtype: str = "float64", units: int = 1, share: float = 1.0) -> Bound:
    """Return the time of counted work, and the resource that sets this time.

    Parameters
    ----------
    counts
        The counted work.
    machine
        Machine that does the work.
    dtype
        ``"float64"`` or ``"float32"``, for counts without a type.
    units
        Cores at work; a GPU is one unit.
    share
        Share of the limit that is reached.

    Raises
    ------
    ValueError
        If the machine has no rate for an operation or a level of memory, or the share or units are not positive.
    """
    if not (share > 0 and units > 0):
        raise ValueError(f"share, units: found {share}, {units}, expected positive numbers")
    parts = {"compute": _compute(counts, machine, counts.dtype or dtype) / units}
    for level, count in counts.bytes.items():
        if count:
            fill = counts.fill if level in PER_LANE else 1.0
            parts[level] = count / fill / bandwidth(machine, level, units)
    if counts.atomics:
        parts["atomics"] = counts.atomics / (machine.atomics * units)
    bottleneck = max(parts, key=parts.get)
    body = parts[bottleneck] / share
    parts["launch"] = counts.launches * machine.launch
    return Bound(body + parts["launch"], bottleneck if body >= parts["launch"] else "launch", parts)


def bandwidth(machine: Machine, level: str, units: int = 1) -> float:
    """Return the bytes a second that some units together get from a level of memory.

    Raises
    ------
    ValueError
        If the machine has no such level.
    """
    rates = machine.bandwidth
    if level not in rates:
        raise ValueError(f"bytes: found level {level!r}, expected one of {', '.join(rates)} on {machine.name}")
    rate = rates[level] * units
    return min(rate, rates.get("dram_all", rate)) if level == "dram" else rate


def _compute(counts: Counts, machine: Machine, dtype: str) -> float:
    """Return the seconds of one unit for all operations."""
    rates, seconds = machine.operations[dtype], {}
    for name, count in counts.operations.items():
        if count:
            rate = machine.fft[dtype] if name == "fft" else rates.get(name)
            if rate is None:
                raise ValueError(f"operations: found {name!r}, expected one of {', '.join(rates)} on {machine.name}")
            seconds[name] = count / counts.fill / rate
    is_separate = machine.kind == "host" or (dtype == "float64" and machine.lanes[dtype] == 32)
    integer_seconds = seconds.pop("integer", 0.0) if is_separate else 0.0
    return max(sum(seconds.values()), integer_seconds)
