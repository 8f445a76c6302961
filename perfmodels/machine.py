"""What the parts of an Ewald sum cost on one core: the numbers that every selection uses."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Costs:
    """Calibrated times in seconds; the defaults are one AVX-512 core at 2.5–3 GHz, double precision.

    Only ratios matter for a selection, so more threads need no other numbers as long as all parts scale alike.
    """

    near: float = 4e-9  # a pair within rc, of laplace; `Kernel.near` times it of others
    near_overhead: float = 1.15  # all near work over that of the pairs within rc, at 224 sources in a cube of side rc
    target: float = 1.5e-7  # a target of the near field: its share of finding the columns of cells in reach
    lanes: int = 8  # targets of one vector in double precision, or of one group on a GPU
    fft: float = 16e-9  # a grid point and one real transform of one component, with its share of the scaling
    spread: float = 1.2e-9  # a row of the window (P² rows) and component, per vector that it is cut into
    gather: float = 0.9e-9
    sparse: float = 0.16  # for each grid point per particle, rows that are not in the cache cost so much more
    single: float = 0.6  # single precision over double, every part
    rhs: int = 1  # right-hand sides at once, which share what of a pair does not depend on strengths

    def near_pair(self, relative: float, crowd: ArrayLike) -> ArrayLike:
        """Return the time of one pair within rc, `relative` to laplace, where `crowd` sources lie in a cube of side rc.

        A vector of targets serves all sources within rc of its bounding cube: few sources waste most lanes.
        """
        waste = _waste(self.lanes / np.maximum(crowd, 1e-3)) / _waste(self.lanes / 224.0)
        return self.near_overhead * self.near * relative * waste

    def rows(self, P: ArrayLike, per_particle: ArrayLike = 0.0, itemsize: int = 8) -> ArrayLike:
        """Return the P² rows of a window, weighted by the vectors that one is cut into: halves of halves at its end.

        On a grid of `per_particle` points for each particle.
        """
        lanes = self.lanes * 8 // itemsize
        pieces = np.asarray(P) // lanes + sum((np.asarray(P) % lanes >> bit) & 1 for bit in range(6))
        return np.square(P, dtype=np.float64) * (0.6 + 0.9 * pieces + self.sparse * np.minimum(per_particle, 32.0))


# An NVIDIA H200 in double precision, by arithmetic and not by measurement: issue slots of the near field at half the
# peak rate, shared-memory traffic of a window row, memory traffic of the transforms.
H200 = Costs(
    near=7e-12,
    near_overhead=1.3,
    target=0.0,
    lanes=32,
    fft=14e-12,
    spread=7e-12,
    gather=6e-12,
    sparse=0.0,
    single=0.55,
)


def _waste(share: ArrayLike) -> ArrayLike:
    """Volume within 1 of a cube of volume `share`, over that of the unit ball."""
    w = np.cbrt(share)
    return (w**3 + 6 * w**2 + 3 * np.pi * w + 4 * np.pi / 3) / (4 * np.pi / 3)
