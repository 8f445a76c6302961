"""Periodic cells: points wrapped into them, heights, and images of points around them.

The lattice vectors of a cell are (l0, t01, t02), (0, l1, t12), (0, 0, l2): translations of the brick l0 × l1 × l2 tile
space in skew layers.  A direction that is not periodic has an infinite side.
"""

import math

import numpy as np
from numpy.typing import NDArray

from parki.arrays import Array, module_of

Sides = tuple[float, float, float]
Skew = tuple[float, float, float]
FREE: Sides = (math.inf,) * 3
STRAIGHT: Skew = (0.0, 0.0, 0.0)
ROUNDING = 1e-12  # share of a side that is added to the reach of images: rounding must lose no image


def wrapped(x: Array, sides: tuple[float, ...], skew: Skew) -> Array:
    """Wrap points ``(3, N)`` into ``[0, side)`` along the first axes that `sides` has, and return a new array."""
    xp, x = module_of(x), x.copy()
    t01, t02, t12 = skew
    for axis, (side, tilts) in enumerate(zip(sides, ((t01, t02), (t12,), ()), strict=False)):
        if math.isinf(side):
            continue
        # Points inside keep all their digits.
        is_outside = (x[axis] < 0) | (x[axis] >= side)
        cells = xp.where(is_outside, xp.floor(x[axis] / side), 0).astype(x.dtype)
        x[axis] -= cells * x.dtype.type(side)
        # Rounding may leave a point just below the lower face, or on the upper one: that is the next cell's lower face.
        overflow = x[axis] >= side
        cells += overflow
        x[axis] = xp.where((x[axis] < 0) | overflow, 0, x[axis])
        for axis_of_tilt, tilt in enumerate(tilts, axis + 1):
            if tilt:
                x[axis_of_tilt] -= cells * x.dtype.type(tilt)
    return x


def vectors(sides: Sides, skew: Skew) -> NDArray[np.float64]:
    """Return the lattice vectors as rows."""
    t01, t02, t12 = skew
    return np.array([[sides[0], t01, t02], [0.0, sides[1], t12], [0.0, 0.0, sides[2]]])


def shortest_height(sides: Sides, skew: Skew) -> float:
    """Return the shortest distance of opposite faces of the cell; infinite where no direction is periodic."""
    if not any(skew):
        return min(sides)
    cell = vectors(sides, skew)
    return float(1 / np.linalg.norm(np.linalg.inv(cell / max(sides)), axis=0).max() * max(sides))


def images(
    x: NDArray[np.float64], sides: Sides, skew: Skew, reach: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return all images (3, M) of points of the brick within `reach` of it along each axis, and the points' indices."""
    index = np.arange(x.shape[1])
    for axis, (side, vector) in enumerate(zip(sides, vectors(sides, skew), strict=True)):
        if math.isinf(side):
            continue
        margin = reach + ROUNDING * side
        first = np.ceil((-margin - x[axis]) / side)
        counts = (np.floor((side + margin - x[axis]) / side) - first + 1).astype(np.int64)
        point = np.repeat(np.arange(len(index)), counts)
        shifts = first[point] + np.arange(len(point)) - np.repeat(np.cumsum(counts) - counts, counts)
        x, index = x[:, point], index[point]
        for dimension in np.flatnonzero(vector):
            x[dimension] += shifts * vector[dimension]
    return x, index
