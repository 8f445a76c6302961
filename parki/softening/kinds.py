"""Kinds of particles by their softening lengths, and the sums of one length each that all pairs fall into.

A pair is softened by the larger of its two lengths, so that forces are equal and opposite.

Source: V. Springel, Mon. Not. R. Astron. Soc. 364 (2005) 1105-1134; V. Springel, R. Pakmor, O. Zier, M. Reinecke,
Mon. Not. R. Astron. Soc. 506 (2021) 2871-2949.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parki.lengths import Lengths

KINDS = 8  # different lengths, at most: each takes two more sums
WITHOUT = 1.0  # length where there are no particles


class LengthPart(NamedTuple):
    """Some targets and some sources, whose pairs all have one length; indices, one array if these are the same."""

    length: float
    targets: NDArray[np.intp]
    sources: NDArray[np.intp]

    @property
    def pairs(self) -> int:
        """Return the number of pairs."""
        return len(self.targets) * len(self.sources)


@dataclass(frozen=True, eq=False)
class Kinds(Lengths):
    """Softening lengths of targets (Nt,) and of sources (Ns,), of up to `KINDS` different values."""

    name: ClassVar[str] = "epsilon"

    def __post_init__(self) -> None:
        if len(self.values) > KINDS:
            text = f"epsilon has {len(self.values)} different numbers"
            raise ValueError(f"{text}; expected at most {KINDS}, one for each kind of particle.")

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """Return the different lengths of pairs, in ascending order."""
        lengths = np.unique(np.concatenate([self.targets, self.sources]))
        return lengths[lengths > 0]

    @property
    def largest(self) -> float:
        """Return the largest length."""
        return float(self.values[-1]) if len(self.values) else WITHOUT

    @cached_property
    def parts(self) -> tuple[LengthPart, ...]:
        """Return the parts into which all pairs fall, the largest one first."""
        parts = []
        for length in self.values.tolist():
            for targets, sources in (
                (self.targets <= length, self.sources == length), (self.targets == length, self.sources < length)
            ):  # fmt: skip
                index = np.flatnonzero(sources)
                is_same = self.targets is self.sources and np.array_equal(targets, sources)
                parts.append(LengthPart(length, index if is_same else np.flatnonzero(targets), index))
        return tuple(sorted((part for part in parts if part.pairs), key=lambda part: -part.pairs))
