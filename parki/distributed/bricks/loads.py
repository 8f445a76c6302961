"""Sums of weights of points over rectangles of a grid's rows along y and z."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parki.ewald.choice.params import Parameters
from parki.ewald.stages import brick

MOST = 1024  # groups of rows along each axis, at most; weights are evenly spread in a group

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rows:
    """Weights of rows.

    Attributes
    ----------
    shape : tuple of int
        Numbers of rows along y and z.
    below : array
        Sums of all rows below the edges of groups along y and z.
    edges : list of two arrays
        First rows of groups, and the end of the last.
    periodic : tuple of two bools
    """

    shape: tuple[int, int]
    below: Numbers
    edges: list[Numbers]
    periodic: tuple[bool, bool]

    @classmethod
    def of(cls, p: Parameters, weights: Numbers) -> Rows:
        """Return the rows of a grid by the weights of its groups of rows: see `counts`."""
        shape = brick.rows(p)[1:]
        sums = np.pad(weights.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
        edges = [np.minimum(np.arange(m + 1) * group(n), n) for m, n in zip(weights.shape, shape, strict=True)]
        return cls(shape, sums, edges, (p.periodicity > 1, p.periodicity > 2))

    @staticmethod
    def counts(shape: tuple[int, int], y: NDArray, z: NDArray, weights: Numbers | None = None) -> Numbers:
        """Return the weights of points in groups of rows, by the rows of the points; without weights each counts 1."""
        sizes = [group(n) for n in shape]
        m1, m2 = (-(-n // size) for n, size in zip(shape, sizes, strict=True))
        cell = y // sizes[0] * m2 + z // sizes[1]
        return np.bincount(cell, weights, minlength=m1 * m2).reshape(m1, m2).astype(np.float64)

    def sums_between(self, y: NDArray[np.intp], z: NDArray[np.intp]) -> Numbers:
        """Return the weights of rectangles between neighbours among rows along y and among rows along z."""
        return np.diff(np.diff(self._below(y[:, None], z), axis=0), axis=1)

    def sums(self, y0: Numbers, y1: Numbers, z0: Numbers, z1: Numbers) -> Numbers:
        """Return the weights of rectangles; parts beyond the ends of a periodic axis belong to its images."""
        return self._far(y1, z1) - self._far(y0, z1) - self._far(y1, z0) + self._far(y0, z0)

    def _far(self, y: Numbers, z: Numbers) -> Numbers:
        """Return the sums below any places, also beyond the grid."""
        (times_y, y), (times_z, z) = (
            np.divmod(a, n) if flag else (0.0, np.clip(a, 0, n))
            for a, n, flag in zip((y, z), self.shape, self.periodic, strict=True)
        )
        n1, n2 = self.shape
        periods = times_y * self._below(n1, z) + times_z * self._below(y, n2) + times_y * times_z * self.below[-1, -1]
        return self._below(y, z) + periods

    def _below(self, y: Numbers | float, z: Numbers | float) -> Numbers:
        """Return the sums below places in the grid, between the edges by interpolation."""
        (i, s), (j, t) = (self._between(edges, a) for edges, a in zip(self.edges, (y, z), strict=True))
        b = self.below
        low, high = (b[i + k, j] * (1 - t) + b[i + k, j + 1] * t for k in (0, 1))
        return low * (1 - s) + high * s

    @staticmethod
    def _between(edges: Numbers, a: Numbers | float) -> tuple[NDArray[np.intp], Numbers]:
        i = np.clip(np.searchsorted(edges, a, side="right") - 1, 0, len(edges) - 2)
        return i, (a - edges[i]) / (edges[i + 1] - edges[i])


def group(n: int) -> int:
    """Return the number of rows in a group, of n rows in all."""
    return -(-n // MOST)
