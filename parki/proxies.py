"""Proxy points of clusters and boxes: their places in one direction, and the kernels that particles and they share.

A cluster of m points per direction has m³ proxy points.  Treecodes and the black-box FMM make charges at them from
particles, sum over them, and interpolate potentials back.

Source: J.-P. Berrut and L. N. Trefethen, "Barycentric Lagrange interpolation", SIAM Review 46 (2004).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki import engine
from parki.engine import Workunit
from parki.pairs import Pair

FEW = 3  # particles of a leaf that share others where fields have several numbers: registers hold no more
AT_ONCE = "jam_6"  # hint on loops over particles: sources whose roots are taken at once
MOST_POINTS = 24  # points per direction, at most
THREADS = (128, 1)  # shape of a team on a device whose threads take a target each
WARPS = (4, 32)  # shape of a team on a device whose threads have lanes


@lru_cache(maxsize=1)
def tables() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Chebyshev points of the second kind and the weights of their Lagrange polynomials.

    The first m places of row m − 1 hold the values for m points, for every m up to `MOST_POINTS`.

    Returns
    -------
    nodes : array (MOST_POINTS, MOST_POINTS)
        cos(πk/(m − 1)), k = 0 … m − 1, in [−1, 1]; a single point stands at 0.
    weights : array (MOST_POINTS, MOST_POINTS)
        w_k = 1/∏_{j≠k}(s_k − s_j): with p = ∏_j (x − s_j), L_k(x) = w_k p/(x − s_k).
    """
    nodes, weights = np.zeros((MOST_POINTS, MOST_POINTS)), np.zeros((MOST_POINTS, MOST_POINTS))
    weights[0, 0] = 1.0
    for m in range(2, MOST_POINTS + 1):
        k = np.arange(m)
        nodes[m - 1, :m] = np.sin(0.5 * np.pi * (m - 1 - 2 * k) / (m - 1))  # cos, but exactly odd about the middle
        ends = np.where((k == 0) | (k == m - 1), 0.5, 1.0)
        weights[m - 1, :m] = (-1.0) ** k * ends * 2.0 ** (m - 2) / (m - 1)
    return nodes, weights


def meets_once(pair: Pair) -> bool:
    """Return whether charges are numbers, with which two opposite pairs take less time together than apart."""
    return pair.dens == 1 and not pair.normals and pair.ours


@dataclass(frozen=True)
class ProxyKernels:
    """Workunits of one pair between particles and proxy points.

    Attributes
    ----------
    linear : Pair
        The pair, linear in the charges of sources.
    real, far : dtype
        Types of points and their sums, and of sums over proxy points.
    points : int
        Proxy points per direction, at most.
    short : tuple of str
        Hints on the digits of roots and exponentials that are enough.
    """

    linear: Pair
    real: np.dtype
    far: np.dtype
    points: int
    short: tuple[str, ...] = ()

    @property
    def charges(self) -> int:
        """Number of charges of a source."""
        return self.linear.dens

    @property
    def _constants(self) -> dict[str, int]:
        return {"NP": len(self.linear.parameters)}

    def _pair(self, hint: str = "") -> dict[str, Any]:
        hints = {*self.linear.hints, *self.short} - {hint}
        return {"pair": self.linear.pair, "hints": hints, **dict(self.linear.slots)}

    def ranges(self) -> Workunit:
        """Return the sum over source particles."""
        pair = self._pair()
        pair["hints"] |= {AT_ONCE}
        return engine.kernel("clusters", "ranges", real=self.real, **self._constants, **pair)

    def mutual(self) -> Workunit:
        """Return the sum over pairs of particles of different leaves, both fields of each."""
        lanes = max(4, engine.target().vector_bytes // self.real.itemsize)
        slots = {"LANES": lanes, **self._constants}
        if self.linear.result > 1:
            slots["GROUP"] = FEW
        return engine.kernel("mutual", "mutual", real=self.real, **slots, **self._pair())

    def grids(self, m: int) -> Workunit:
        """Return the sum over source clusters of m points per direction."""
        # A row of points is a long block: mixing its instructions would take more registers than there are.
        return engine.kernel(
            "clusters", "grids", real=self.far, N1=m, **self._constants, **self._pair(hint="long_blocks")
        )

    def particles_to_charges(self) -> Workunit:
        """Return the interpolation of particles to proxy charges of leaves."""
        block = 128 if self.points <= 10 else 64  # scratch of devices is small
        return engine.kernel("proxy", "charges", real=self.real, N1=self.points, NC=self.charges, BLOCK=block)

    def potentials_to_particles(self) -> Workunit:
        """Return the interpolation of potentials of leaves at their particles."""
        return engine.kernel("proxy", "potentials", real=self.real, N1=self.points, NU=self.linear.result, BLOCK=64)

    def transfer(self, upward: bool) -> Workunit:
        """Return the interpolation between clusters, or numbers of points: of charges (up) or of potentials."""
        components = self.charges if upward else self.linear.result
        return engine.kernel("proxy", "transfer", real=self.real, ANTERPOLATE=upward, NC=components)

    def source_rows(self) -> Workunit:
        """Return the gather of points, charges and constants to rows of sources in the order of the tree."""
        return engine.kernel("rows", "source_rows", real=self.real, NC=self.charges, **self._constants)

    def crowd_sums(self) -> Workunit:
        """Return the sum of charges over pieces of crowds."""
        return engine.kernel("rows", "crowd_sums", real=self.real, NC=self.charges, SUMS=8 if self.charges == 1 else 1)

    def crowd_rows(self) -> Workunit:
        """Return the row of one source for each crowd."""
        return engine.kernel("rows", "crowd_rows", real=self.real, NC=self.charges, **self._constants)
