"""Counts of the work of one phase of a sum: the form that every model returns and every prediction reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

FLOPS = {"fma": 2.0, "compare": 0.0, "integer": 0.0}  # flops of one operation; 1 for all other classes


class TextTotals(Protocol):
    """Totals of a kernel's text (`parki.engine.tree.operations.Totals`)."""

    operations: Mapping[str, float]
    memory: float  # bytes of views, loaded and stored
    scratch: float  # bytes of scratch
    atomics: float


@dataclass(frozen=True)
class Counts:
    """Totals of one phase.

    Attributes
    ----------
    operations
        By class: ``"fma"``, ``"add"``, ``"mul"``, ``"div"``, mathematical functions by their names, ``"compare"``,
        ``"integer"``, and ``"fft"`` for the operations of transforms, 5 n log2 n.  A lane of a vector counts as one.
    bytes
        By level: ``"l1"`` is all loads and stores of the text, ``"shared"`` the loads and stores of scratch where it is
        apart, ``"l2"`` the traffic past the first level, ``"dram"`` the least traffic of memory.
    atomics
        Atomic updates.
    launches
        Kernels launched.
    fill
        Share of the vector lanes whose work counts.  All lanes together do 1/fill times as much.
    dtype
        Type of the numbers; None for that of the sum.
    """

    operations: Mapping[str, float] = field(default_factory=dict)
    bytes: Mapping[str, float] = field(default_factory=dict)
    atomics: float = 0.0
    launches: int = 0
    fill: float = 1.0
    dtype: str | None = None

    @property
    def flops(self) -> float:
        """Floating-point operations: two of a fused one, none of comparisons and integers, one of any other."""
        return sum(FLOPS.get(name, 1.0) * n for name, n in self.operations.items())

    @property
    def amount(self) -> float:
        """Operations of all classes."""
        return sum(self.operations.values())

    def __add__(self, other: "Counts") -> "Counts":
        """Return the counts of both, one after the other; `fill` is the average over operations.

        Counts that have a type are added to others of that type, or of none.
        """
        lanes_amount = self.amount / self.fill + other.amount / other.fill
        return Counts(
            added(self.operations, other.operations),
            added(self.bytes, other.bytes),
            self.atomics + other.atomics,
            self.launches + other.launches,
            (self.amount + other.amount) / lanes_amount if lanes_amount else min(self.fill, other.fill),
            self.dtype or other.dtype,
        )

    def scaled(self, factor: float) -> "Counts":
        """Return the counts multiplied by `factor`, in as many launches."""
        return Counts(times(self.operations, factor), times(self.bytes, factor), factor * self.atomics, self.launches,
                      self.fill, self.dtype)  # fmt: skip


def added(a: Mapping[str, float], b: Mapping[str, float]) -> dict[str, float]:
    """Return the sums by name."""
    return {name: a.get(name, 0.0) + b.get(name, 0.0) for name in {**a, **b}}


def times(a: Mapping[str, float], factor: float) -> dict[str, float]:
    """Return the multiples by name."""
    return {name: factor * n for name, n in a.items()}


def levels(text: TextTotals, l2: float, dram: float, device: bool) -> dict[str, float]:
    """Return the bytes by level: scratch is memory on hosts, and apart on GPUs."""
    if device:
        return {"l1": text.memory, "shared": text.scratch, "l2": l2, "dram": dram}
    return {"l1": text.memory + text.scratch, "l2": l2, "dram": dram}
