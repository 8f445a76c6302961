"""Radii of spheres that a caller gives, one number or one for each sphere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from parki.lengths import Lengths

WITHOUT = 1e-9  # radius of no spheres, in the points' unit of length


@dataclass(frozen=True, eq=False)
class Radii(Lengths):
    """Radii of targets (Nt,) and of sources (Ns,).

    Targets may have the radius 0: they are points of the fluid, and of the spheres that they are in.
    """

    name: ClassVar[str] = "radius"
    item: ClassVar[str] = "sphere"

    @property
    def largest(self) -> float:
        """Return the largest radius, a small one without spheres."""
        return float(max(self.targets.max(initial=0.0), self.sources.max(initial=0.0))) or WITHOUT
