"""Pairs of spheres closer than two of the largest radius, and their velocities beyond those of `pair/faxen`."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki import arrays, engine, lattice, neighbours
from parki.arrays import Array
from parki.engine import RangePolicy, Space, Workunit, spaces
from parki.method import Cell, Place
from parki.spheres import mobility
from parki.spheres.radii import Radii


@dataclass(frozen=True, eq=False)
class ClosePairs:
    """Sparse matrix of the velocities of close spheres: for each target the partners, and A, B and n of each.

    Attributes
    ----------
    begin : array (Nt + 1,) of int32
    partner : array (pairs,) of int32
    mobility : array (5, pairs)
    space : Space
    """

    begin: Array
    partner: Array
    mobility: Array
    space: Space

    @classmethod
    def of(cls, place: Place, cell: Cell | None, radii: Radii, largest: float, dtype: Any, space: Space) -> ClosePairs:
        """Return the pairs closer than two `largest` radii in the caller's unit, nearest images in a periodic cell."""
        x, y = (arrays.to_host(a).astype(np.float64) for a in (place.targets, place.sources))
        sides, skew = (lattice.FREE, lattice.STRAIGHT) if cell is None else cell
        matrix = neighbours.near_pairs(x, y, 2 * largest, sides, skew)
        target, source = np.repeat(np.arange(len(matrix.indptr) - 1), np.diff(matrix.indptr)), matrix.indices
        r, a, b = matrix.data, radii.targets[target], radii.sources[source]
        terms = zip(mobility.exact(r, a, b), mobility.flow(r, a, b, largest), strict=True)
        coefficients = [pair - flow for pair, flow in terms]
        n = _directions(x[:, target] - y[:, source], place)
        xp = spaces.array_module(space)
        rows = xp.asarray(np.concatenate([coefficients, n]).astype(dtype))
        return cls(xp.asarray(matrix.indptr.astype(np.int32)), xp.asarray(source.astype(np.int32)), rows, space)

    @property
    def arrays(self) -> list[Array]:
        """Return every array."""
        return [self.begin, self.partner, self.mobility]

    def add(self, forces: Array, velocities: Array) -> None:
        """Add the velocities due to forces (3, Ns) to velocities (3, Nt), arrays in memory order."""
        unit = workunit(self.mobility.dtype.name)
        args = {"begin": self.begin, "partner": self.partner, "mobility": self.mobility}
        policy = RangePolicy(self.space, velocities.shape[1])
        engine.parallel_for(policy, unit, **args, f=forces, u=velocities)


@functools.lru_cache(maxsize=2)
def workunit(real: str) -> Workunit:
    """Return the kernel of a type of reals."""
    return engine.kernel("close_pairs", "close_pairs", real=real)


def check(radii: Radii, cell: Cell | None) -> None:
    """Raise ValueError for spheres of which one could touch two images of another."""
    if cell is None:
        return
    limit = 0.25 * lattice.shortest_height(cell.sides, cell.skew)
    if radii.largest > limit:
        raise ValueError(
            f"radius is up to {radii.largest:g}; expected at most {limit:g}, a quarter of the cell's shortest height."
        )


def cell_of(cell: Cell | None, power: int) -> Cell | None:
    """Return a cell in the caller's unit of length; None without periodic directions."""
    if cell is None or all(map(math.isinf, cell.sides)):
        return None
    return Cell(*([math.ldexp(v, -power) for v in lengths] for lengths in cell))


def _directions(d: NDArray[np.float64], place: Place) -> NDArray[np.float64]:
    """Return unit vectors along the nearest images of distances (3, pairs), in the caller's axes; 0 at distance 0."""
    if place.vectors is not None:
        fractions = np.linalg.pinv(place.vectors).T @ d
        d = d - place.vectors.T @ np.rint(fractions)
    if place.frame is not None:
        d = place.frame.T @ d
    largest = np.abs(d).max(axis=0, initial=0.0)
    d = d / np.where(largest > 0, largest, 1.0)
    length = np.sqrt((d * d).sum(axis=0))
    return d / np.where(length > 0, length, 1.0)
