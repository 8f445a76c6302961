"""Radii of spheres that a caller gives, one number or one for each sphere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki import arrays

WITHOUT = 1e-9  # radius of no spheres, in the points' unit of length


@dataclass(frozen=True, eq=False)
class Radii:
    """Radii of targets (Nt,) and of sources (Ns,), in the caller's unit of length and float64.

    Targets may have the radius 0: they are points of the fluid, and of the spheres that they are in.

    Attributes
    ----------
    targets, sources : array
        One array if one was given.
    """

    targets: NDArray[np.float64]
    sources: NDArray[np.float64]

    @classmethod
    def of(cls, radius: Any) -> Radii | None:
        """Return the radii of an array, or of a tuple of two; None for a number or None.

        Raises
        ------
        ValueError
            For radii that are not finite, negative, or those of sources 0.
        """
        if radius is None or isinstance(radius, str | bytes):
            return None
        if isinstance(radius, tuple):
            if len(radius) != 2:
                raise ValueError(f"radius is a tuple of {len(radius)}; expected two arrays, of targets and of sources.")
            targets, sources = (_checked(f"radius[{i}]", values, bool(i)) for i, values in enumerate(radius))
            return cls(targets, sources)
        if np.ndim(_on_host(radius)) == 0:
            return None
        one = _checked("radius", radius, True)
        return cls(one, one)

    @property
    def largest(self) -> float:
        """Return the largest radius, a small one without spheres."""
        return float(max(self.targets.max(initial=0.0), self.sources.max(initial=0.0))) or WITHOUT

    def check(self, n_targets: int, n_sources: int, same: bool) -> None:
        """Raise ValueError unless there is a radius for each sphere."""
        if self.targets is self.sources and not same:
            raise ValueError("radius is one array and targets are not sources; expected a tuple, of both.")
        for name, values, n in (("targets", self.targets, n_targets), ("sources", self.sources, n_sources)):
            if len(values) != n:
                raise ValueError(f"radius has {len(values)} numbers for {n} {name}; expected one for each.")

    def turned(self) -> Radii:
        """Return the radii with targets and sources exchanged."""
        return Radii(self.sources, self.targets)


def _on_host(radius: Any) -> Any:
    """Return a CuPy array as one of NumPy, others as they are."""
    return arrays.to_host(radius) if hasattr(radius, "get") else radius


def _checked(name: str, radius: Any, positive: bool) -> NDArray[np.float64]:
    """Return a caller's radii as float64."""
    try:
        values = np.array(_on_host(radius), np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {radius!r}; expected an array of numbers.") from None
    if values.ndim != 1:
        raise ValueError(f"{name} has shape {values.shape}; expected (N,), one number for each sphere.")
    lowest, highest = values.min(initial=np.inf), values.max(initial=-np.inf)
    if not np.isfinite(values).all() or lowest < 0 or (positive and lowest == 0):
        bound = "positive finite numbers" if positive else "finite numbers of at least 0"
        raise ValueError(f"{name} has numbers from {lowest:g} to {highest:g}; expected {bound}.")
    return values
