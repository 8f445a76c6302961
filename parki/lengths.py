"""Lengths that a caller gives, one number or one for each particle: radii of spheres, softening of masses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from parki import arrays
from parki.arguments import Arguments
from parki.engine import Space
from parki.method import Problem


@dataclass(frozen=True, eq=False)
class Lengths:
    """Lengths of targets (Nt,) and of sources (Ns,), in the caller's unit of length and float64.

    Those of targets may be 0 if they are given apart.

    Attributes
    ----------
    targets, sources : array
        One array if one was given.
    name, item : str
        Name of the parameter, and noun of a particle, for messages.
    """

    targets: NDArray[np.float64]
    sources: NDArray[np.float64]
    name: ClassVar[str] = "length"
    item: ClassVar[str] = "particle"

    @classmethod
    def of(cls, given: Any) -> Self | None:
        """Return the lengths of an array, or of a tuple of two; None for a number or None.

        Raises
        ------
        ValueError
            For lengths that are not finite, negative, or those of sources 0.
        """
        if given is None or isinstance(given, str | bytes):
            return None
        if isinstance(given, tuple):
            if len(given) != 2:
                raise ValueError(
                    f"{cls.name} is a tuple of {len(given)}; expected two arrays, of targets and of sources."
                )
            targets, sources = (cls._checked(f"{cls.name}[{i}]", values, bool(i)) for i, values in enumerate(given))
            return cls(targets, sources)
        if np.ndim(_on_host(given)) == 0:
            return None
        one = cls._checked(cls.name, given, True)
        return cls(one, one)

    def check(self, n_targets: int, n_sources: int, same: bool) -> None:
        """Raise ValueError unless there is a length for each particle."""
        if self.targets is self.sources and not same:
            raise ValueError(f"{self.name} is one array and targets are not sources; expected a tuple, of both.")
        for name, values, n in (("targets", self.targets, n_targets), ("sources", self.sources, n_sources)):
            if len(values) != n:
                raise ValueError(f"{self.name} has {len(values)} numbers for {n} {name}; expected one for each.")

    def turned(self) -> Self:
        """Return the lengths with targets and sources exchanged."""
        return type(self)(self.sources, self.targets)

    @classmethod
    def _checked(cls, name: str, given: Any, positive: bool) -> NDArray[np.float64]:
        """Return a caller's lengths as float64."""
        try:
            values = np.array(_on_host(given), np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{name} is {given!r}; expected an array of numbers.") from None
        if values.ndim != 1:
            raise ValueError(f"{name} has shape {values.shape}; expected (N,), one number for each {cls.item}.")
        lowest, highest = values.min(initial=np.inf), values.max(initial=-np.inf)
        if not np.isfinite(values).all() or lowest < 0 or (positive and lowest == 0):
            bound = "positive finite numbers" if positive else "finite numbers of at least 0"
            raise ValueError(f"{name} has numbers from {lowest:g} to {highest:g}; expected {bound}.")
        return values


def _on_host(given: Any) -> Any:
    """Return a CuPy array as one of NumPy, others as they are."""
    return arrays.to_host(given) if hasattr(given, "get") else given


@dataclass(frozen=True, eq=False)
class OfLengths:
    """Method for particles of several lengths over one of the largest, which answers all questions not answered here.

    Attributes
    ----------
    method : Method
    lengths : Lengths
    """

    method: Any
    lengths: Any

    excludes = False

    def __getattr__(self, name: str) -> Any:
        if name == "method" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.method, name)

    def in_space(self, space: Space) -> Self:
        """Return the method in a space."""
        return replace(self, method=self.method.in_space(space))

    def problem(self, targets: Any, sources: Any) -> Any:
        """Check a caller's points, and the number of their lengths."""
        return self._checked(self.method.problem(targets, sources))

    def _checked(self, problem: Problem) -> Any:
        self.lengths.check(problem.n_targets, problem.n_sources, problem.same)
        return problem

    def moved(
        self, arguments: Arguments, old: Any, full: Callable[[], Any], points: tuple[Any, Any], box: Any
    ) -> tuple[Self, Any]:
        """Check points that a plan moves to, as many as there are lengths."""
        method, problem = self.method.moved(arguments, old, full, points, box)
        return self if method is self.method else replace(self, method=method), self._checked(problem)
