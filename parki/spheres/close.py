"""Pairs of spheres closer than two of the largest radius, and their velocities beyond those of `pair/faxen`."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from parki import arrays, engine, lattice, neighbours
from parki.arrays import Array
from parki.engine import RangePolicy, Space, Workunit, spaces
from parki.method import Cell, Place
from parki.spheres import mobility
from parki.spheres.radii import Radii

SKIN = 0.2  # reach of the list of pairs beyond the distance of close ones, over this distance
Places = NDArray[np.float64]


class Listed(NamedTuple):
    """Pairs within a reach, of points on the host at the time of listing.

    Attributes
    ----------
    target, source : array (pairs,)
        Indices, ordered by target.
    x, y : array (3, Nt), (3, Ns)
        Places of targets and sources, one array if they are the same.
    slack : float
        Way that two points may come closer before other pairs are close.
    """

    target: NDArray[np.int64]
    source: NDArray[np.int64]
    x: Places
    y: Places
    slack: float

    @classmethod
    def of(cls, x: Places, y: Places, cell: Cell | None, distance: float) -> Self:
        """Return the pairs up to `distance` apart, and some more where the cell allows it."""
        sides, skew = (lattice.FREE, lattice.STRAIGHT) if cell is None else cell
        reach = min((1 + SKIN) * distance, max(distance, 0.5 * lattice.shortest_height(sides, skew)))
        matrix = neighbours.near_pairs(x, y, reach, sides, skew)
        target = np.repeat(np.arange(len(matrix.indptr) - 1), np.diff(matrix.indptr))
        return cls(target, matrix.indices, x, y, reach - distance)

    def serves(self, x: Places, y: Places, place: Place) -> bool:
        """Tell whether all close pairs of moved points are listed."""
        moves = [y - self.y, *([] if x is y else [x - self.x])]
        ways = [np.max(_nearest(d, place)[0], initial=0.0) for d in moves]
        return ways[0] + ways[-1] <= self.slack


@dataclass(frozen=True, eq=False)
class ClosePairs:
    """Sparse matrix of the velocities of close spheres: for each target the partners, and A, B and n of each.

    Attributes
    ----------
    listed : Listed
    radii : Radii
    largest : float
        Radius, of which close pairs are closer than two.
    begin : array (Nt + 1,) of int32
    partner : array (pairs,) of int32
    mobility : array (5, pairs)
        Zeros for pairs that are not close.
    space : Space
    """

    listed: Listed
    radii: Radii
    largest: float
    begin: Array
    partner: Array
    mobility: Array
    space: Space

    @classmethod
    def of(
        cls, place: Place, cell: Cell | None, radii: Radii, largest: float, dtype: Any, space: Space
    ) -> ClosePairs:  # fmt: skip
        """Return the close pairs of points in the caller's unit of length, nearest images in a periodic cell."""
        x, y = _on_host(place)
        listed, xp = Listed.of(x, y, cell, 2 * largest), spaces.array_module(space)
        starts = np.concatenate([[0], np.cumsum(np.bincount(listed.target, minlength=x.shape[1]))])
        begin, partner = (xp.asarray(a.astype(np.int32)) for a in (starts, listed.source))
        pairs = cls(listed, radii, largest, begin, partner, xp.empty((5, 0), dtype), space)
        return pairs._at(x, y, place)

    def moved(self, place: Place, cell: Cell | None) -> ClosePairs:
        """Return the close pairs of moved points in the same cell; those listed before, as long as they suffice."""
        x, y = _on_host(place)
        if self.listed.serves(x, y, place):
            return self._at(x, y, place)
        return ClosePairs.of(place, cell, self.radii, self.largest, self.mobility.dtype, self.space)

    def _at(self, x: Places, y: Places, place: Place) -> ClosePairs:
        """Return the same pairs with the mobilities of their distances now."""
        target, source = self.listed.target, self.listed.source
        r, n = _nearest(x[:, target] - y[:, source], place)
        a, b = self.radii.targets[target], self.radii.sources[source]
        terms = zip(mobility.exact(r, a, b), mobility.flow(r, a, b, self.largest), strict=True)
        close = r < 2 * self.largest
        rows = np.concatenate([[np.where(close, pair - flow, 0.0) for pair, flow in terms], n])
        xp = spaces.array_module(self.space)
        return replace(self, mobility=xp.asarray(rows.astype(self.mobility.dtype)))

    @property
    def arrays(self) -> list[Array]:
        """Return every array of the space."""
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
    return cell.times(-power)


def _on_host(place: Place) -> tuple[Places, Places]:
    """Return targets and sources as float64 on the host, one array if they are the same."""
    y = arrays.to_host(place.sources).astype(np.float64)
    return y if place.targets is place.sources else arrays.to_host(place.targets).astype(np.float64), y


def _nearest(d: Places, place: Place) -> tuple[NDArray[np.float64], Places]:
    """Return lengths and unit vectors, in the caller's axes, of the nearest images of distances d (3, pairs).

    The vector of the length 0 is 0.
    """
    if place.vectors is not None:
        fractions = np.linalg.pinv(place.vectors).T @ d
        d = d - place.vectors.T @ np.rint(fractions)
    if place.frame is not None:
        d = place.frame.T @ d
    largest = np.abs(d).max(axis=0, initial=0.0)  # squares stay in range
    d = d / np.where(largest > 0, largest, 1.0)
    length = np.sqrt((d * d).sum(axis=0))
    return largest * length, d / np.where(length > 0, length, 1.0)
