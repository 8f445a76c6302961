"""Several arrays that are cleared, copied and added together: parts of one memory, or each by itself."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from parki.engine.steps import glue
from parki.engine.steps.handles import Handle, alike, state, together
from parki.engine.steps.listing import Step

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class ManyArrays:
    """Arrays that are cleared, copied and added together.

    Attributes
    ----------
    arrays : sequence of Handle
    memory : Handle or None
        One memory of all; None where each array has its own.
    """

    arrays: Sequence[Handle]
    memory: Handle | None = None

    def alike(self, name: str, dtype: np.dtype) -> "ManyArrays":
        """Return arrays of the same shapes in another dtype."""
        if self.memory is None:
            return ManyArrays([state(f"{name}: {a.name}", a.shape, dtype, zero=False) for a in self.arrays])
        memory, arrays = alike(name, self.memory, self.arrays, dtype)
        return ManyArrays(arrays, memory)

    def zeros(self, phase: str) -> list[Step]:
        """Return the steps that set all values to zero."""
        return [step for a in self._pieces for step in glue.fill(phase, a)]

    def copied(self, phase: str, target: "ManyArrays") -> list[Step]:
        """Return the steps that copy all values to other arrays."""
        return [step for a, b in zip(self._pieces, target._pieces, strict=True) for step in glue.copy(phase, a, b)]

    def added(self, phase: str, target: "ManyArrays") -> list[Step]:
        """Return the steps that add all values to those of other arrays."""
        return [step for a, b in zip(self._pieces, target._pieces, strict=True) for step in glue.add(phase, a, b)]

    @property
    def _pieces(self) -> Sequence[Handle]:
        return self.arrays if self.memory is None else [self.memory]


ArraysOf = Callable[[str, Shapes, np.dtype], ManyArrays]


def whole(name: str, shapes: Shapes, dtype: np.dtype) -> ManyArrays:
    """Return parts of one memory, which one step clears."""
    memory, arrays = together(name, shapes, dtype)
    return ManyArrays(arrays, memory)


def apart(name: str, shapes: Shapes, dtype: np.dtype) -> ManyArrays:
    """Return arrays of which each has a memory of its own, so that tasks may touch their rows."""
    return ManyArrays([state(f"{name}: {part}", shape, dtype, zero=False) for part, shape in shapes.items()])
