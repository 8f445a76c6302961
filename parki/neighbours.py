"""Pairs of near points, with their distances, as a sparse matrix."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from parki import lattice, scaling
from parki.lattice import FREE, STRAIGHT, Sides, Skew

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Largest coordinate or side, in radii, whose square the search can compute.
MOST_RADII = 2.0**500
#: Factor of the search radius: the search compares squares, whose rounding must lose no pair at the radius.
WIDER = 1 + 1e-14


def near_pairs(
    targets: NDArray[Any], sources: NDArray[Any], radius: float, sides: Sides | None = None, skew: Skew | None = None
) -> csr_array:
    """Return the distances of all targets and sources that are at most `radius` apart.

    Parameters
    ----------
    targets, sources : array (3, Nt) and (3, Ns)
        Points on the host, float32 or float64, inside the box or outside of it.
    radius : float
        The longest distance, in the unit of the points.
    sides : three lengths, optional
        Sides of the box, infinite for directions that are not periodic; without them none is.  Of the images of a
        source the nearest one counts.
    skew : three lengths, optional
        t01, t02 and t12 of a triclinic cell with the lattice vectors (l0, t01, t02), (0, l1, t12), (0, 0, l2).

    Returns
    -------
    csr_array (Nt, Ns), float64
        One stored entry for each pair, an explicit 0 for points that coincide; column indices of a row ascend.

    Raises
    ------
    ValueError
        For points, sides, tilts or a radius that are not as above; for a radius above half the shortest height of the
        cell, within which two images of one source could be; and for a radius too small to be squared beside the
        coordinates.
    """
    from scipy.sparse import csr_array  # takes long to import

    box, tilts = _cell(sides, skew)
    clouds = _points("targets", targets), _points("sources", sources)
    radius = _radius(radius, box, tilts)
    shape = clouds[0].shape[1], clouds[1].shape[1]
    if not all(shape):
        return csr_array(shape)
    largest = max(float(np.abs(x).max()) for x in clouds)
    if all(map(math.isinf, box)):
        radius = min(radius, 4 * largest or radius)  # no pair is further apart
    largest = max(largest, *(0.0 if math.isinf(side) else side for side in box))
    if largest / MOST_RADII > radius:
        raise ValueError(
            f"radius is {radius:g}; expected at least {largest / MOST_RADII:.3g} with coordinates and sides up to "
            f"{largest:.3g}."
        )
    power = scaling.exponent(radius)
    box, tilts = (tuple(math.ldexp(length, power) for length in lengths) for lengths in (box, tilts))
    target, source, distance = _search(
        *(scaling.times(x, power) for x in clouds), math.ldexp(radius, power), box, tilts
    )
    starts = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=shape[0]))])
    return csr_array((scaling.times(distance, -power), source, starts), shape=shape)


def _search(
    targets: NDArray[np.float64], sources: NDArray[np.float64], radius: float, box: Sides, tilts: Skew
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return indices of targets and sources, and distances, of all pairs within the radius, ordered by the indices."""
    from scipy.spatial import cKDTree

    targets, sources = (lattice.wrapped(x, box, tilts) for x in (targets, sources))
    brick = not any(tilts) and not any(map(math.isinf, box))
    if brick:
        trees = [cKDTree(x.T, boxsize=box) for x in (targets, sources)]
        index = np.arange(sources.shape[1])
    else:
        copies, index = lattice.images(sources, box, tilts, radius)
        trees = [cKDTree(targets.T), cKDTree(copies.T)]
    pairs = trees[0].sparse_distance_matrix(trees[1], WIDER * radius, output_type="ndarray")
    pairs = pairs[pairs["v"] <= radius]
    target, source, distance = pairs["i"], index[pairs["j"]], pairs["v"]
    order = np.lexsort((distance, source, target))
    target, source, distance = target[order], source[order], distance[order]
    # Two images of one source may be at half a height: the nearer one, or the first, counts.
    first = np.ones(len(order), bool)
    first[1:] = (np.diff(target) != 0) | (np.diff(source) != 0)
    return target[first], source[first], distance[first]


def _points(name: str, x: NDArray[Any]) -> NDArray[np.float64]:
    """Return the points as float64.

    Raises
    ------
    ValueError
        Naming the argument, for another shape or dtype, and for coordinates that are not finite.
    """
    if not isinstance(x, np.ndarray) or x.dtype not in (np.float32, np.float64):
        kind = x.dtype if isinstance(x, np.ndarray) else type(x).__name__
        raise ValueError(f"{name} is {kind}; expected a NumPy array of float32 or float64.")
    if x.ndim != 2 or x.shape[0] != 3:
        raise ValueError(f"{name} has shape {x.shape}; expected (3, N).")
    if not np.isfinite(x).all():
        raise ValueError(f"{name} has coordinates that are not finite; expected finite ones.")
    return x.astype(np.float64)


def _cell(sides: Sides | None, skew: Skew | None) -> tuple[Sides, Skew]:
    """Return sides and tilts as floats.

    Raises
    ------
    ValueError
        For sides or tilts that no cell has.
    """
    box = FREE if sides is None else tuple(map(float, sides))
    tilts = STRAIGHT if skew is None else tuple(map(float, skew))
    if len(box) != 3 or not all(side > 0 for side in box):
        raise ValueError(f"sides is {sides!r}; expected three positive lengths, or infinity where not periodic.")
    if len(tilts) != 3 or not all(map(math.isfinite, tilts)):
        raise ValueError(f"skew is {skew!r}; expected three finite lengths.")
    if any(tilts) and any(map(math.isinf, box)):
        raise ValueError(f"skew is {skew!r} with sides {sides!r}; expected three finite sides with a skew cell.")
    return box, tilts


def _radius(radius: float, box: Sides, tilts: Skew) -> float:
    """Return the radius as a float.

    Raises
    ------
    ValueError
        For a radius that is not positive and finite, or above half the shortest height of the cell.
    """
    number = isinstance(radius, int | float | np.integer | np.floating) and not isinstance(radius, bool)
    if not number or not 0 < radius < math.inf:
        raise ValueError(f"radius is {radius!r}; expected a positive finite number.")
    limit = 0.5 * lattice.shortest_height(box, tilts)
    if radius > limit:
        raise ValueError(
            f"radius is {float(radius)!r}; expected at most {limit!r}, half the shortest height of the cell: "
            "beyond it two images of one source could both be near."
        )
    return float(radius)
