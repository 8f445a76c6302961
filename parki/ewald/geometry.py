"""Geometry of a sum: map from a caller's box and axes to those of the stages.

The stages take boxes whose first axes are periodic, with points in [0, side), and triclinic cells whose lattice vectors
are (l0, t01, t02), (0, l1, t12), (0, 0, l2): points are then in the brick l0 × l1 × l2, whose translations tile space
in skew layers.  The caller's axes, or the cell, are rotated, and all lengths are multiplied by the power of
two that makes the longest side about one.
"""

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parki import scaling
from parki.arrays import Array, module_of, to_host
from parki.lattice import STRAIGHT, wrapped

if TYPE_CHECKING:
    from parki.ewald.choice.params import Parameters


#: Largest distance of a point, in boxes, for which its place in the box is known to a ten-thousandth of a side.
FARTHEST = {"float64": 1e12, "float32": 2e3}
#: Orders of three axes that are rotations.
TURNS = ((0, 1, 2), (1, 2, 0), (2, 0, 1))


@dataclass(frozen=True)
class Geometry:
    """Map between a caller's points, vectors and results and those of the stages.

    Attributes
    ----------
    box
        Sides of the stages' box.
    periodicity
        Number of periodic axes, which are the first ones.
    frame
        Rotation whose rows are the stages' axes; None if these are the caller's.
    origin
        Corner of the box in the caller's coordinates.
    skew
        As in `Parameters`.
    power
        Lengths of the stages are the caller's times 2^power; all other lengths here are those of the stages.
    walled
        True if points must lie in the box along its free directions, which are not the caller's axes.
    """

    box: tuple[float, float, float]
    periodicity: int
    frame: tuple[tuple[float, ...], ...] | None = None
    origin: tuple[float, float, float] | None = None
    skew: tuple[float, float, float] | None = None
    power: int = 0
    walled: bool = False

    def points(self, name: str, x: Array) -> tuple[Array, float]:
        """Return points ``(3, N)`` in the stages' box, ``[0, side)`` in each periodic direction, and their reach.

        The points are the array `x` if nothing changes.  The reach is 0 if no point was outside the box along a
        periodic direction, else the largest coordinate along these directions.

        Raises
        ------
        ValueError
            Naming the argument, for points so far away that rounding leaves their place in the box unknown.
        """
        xp, x = module_of(x), scaling.times(x, self.power)
        if self.origin is not None:
            x = x - xp.asarray(self.origin, x.dtype)[:, None]
        if self.frame is not None:
            x = _turned(np.array(self.frame), x)
        if self.walled and x.shape[1]:
            x = self._within_walls(name, x)
        if not (self.periodicity and x.shape[1]):
            return x, 0.0
        coordinates, sides = x[: self.periodicity], np.array(self.box[: self.periodicity])
        low, high = to_host(xp.stack([coordinates.min(axis=1), coordinates.max(axis=1)])).astype(float)
        if (low >= 0).all() and (high < np.array(sides, x.dtype)).all():
            return x, 0.0
        reach, limit = np.maximum(-low, high), FARTHEST[x.dtype.name]
        if (reach > limit * sides).any():
            raise ValueError(
                f"{name} has points {(reach / sides).max():.3g} boxes away; expected at most {limit:g} in {x.dtype}, "
                "beyond which rounding leaves their place in the box unknown. Wrap them into the box."
            )
        return wrapped(x, self.box[: self.periodicity], self.skew or STRAIGHT), float(reach.max())

    def _within_walls(self, name: str, x: Array) -> Array:
        """Return points (3, N) clipped to the box along free directions; raise if some are outside beyond rounding."""
        xp, axes = module_of(x), slice(self.periodicity, 3)
        sides = xp.asarray(np.array(self.box[axes], x.dtype))[:, None]
        margin = 8 * np.finfo(x.dtype).eps * max(self.box)
        mask = to_host(((x[axes] < -margin) | (x[axes] > sides + margin)).any(axis=0))
        if mask.any():
            raise ValueError(
                f"{name} has {int(mask.sum())} points outside the box, which is not periodic along "
                f"{3 - self.periodicity} of its vectors (first: index {int(mask.argmax())}). Move them into it, or "
                "take a larger box."
            )
        x = x.copy()
        x[axes] = xp.clip(x[axes], 0, sides)
        return x

    def inner(self, length: float) -> float:
        """Return a length of the caller in the stages' unit."""
        return math.ldexp(length, self.power)

    def outer(self, length: float) -> float:
        """Return a length of the stages in the caller's unit."""
        return math.ldexp(length, -self.power)


def _turned(matrix: np.ndarray, x: Array) -> Array:
    """Return the matrix times points, exactly if the matrix is a permutation."""
    if set(matrix.ravel().tolist()) <= {0.0, 1.0}:
        return module_of(x).ascontiguousarray(x[np.argmax(matrix, axis=1)])
    return (module_of(x).asarray(matrix) @ x.astype(np.float64)).astype(x.dtype)


def of_box(box: tuple[float, float, float], periodic: tuple[bool, bool, bool], scaled: bool = True) -> Geometry:
    """Return the geometry of a rectangular box, with its periodic axes first.

    Axes are turned, not mirrored, so that curls keep their sign.  Lengths keep their unit unless they may be `scaled`.
    """
    order = next(turn for turn in TURNS if not any(periodic[b] > periodic[a] for a, b in itertools.pairwise(turn)))
    power = scaling.exponent(max(box)) if scaled else 0
    sides = tuple(math.ldexp(box[axis], power) for axis in order)
    frame = None if order == TURNS[0] else tuple(tuple(float(axis == i) for i in range(3)) for axis in order)
    return Geometry(sides, sum(periodic), frame, power=power)


def of_cell(cell: np.ndarray, periodic: tuple[bool, bool, bool] = (True, True, True), scaled: bool = True) -> Geometry:
    """Return the geometry of a triclinic cell whose lattice vectors are the rows of a 3 × 3 matrix.

    Short vectors that span the same lattice replace the given ones, rotated so that the last lies along z and the
    second in the plane of y and z; tilts are at most half a side.  Rows that are not `periodic` are heights, at right
    angles to all others, and come last.  Lengths keep their unit unless they may be `scaled`.
    """
    cell, count = np.array(cell, np.float64), sum(periodic)
    power = scaling.exponent(float(np.abs(cell).max())) if scaled else 0
    rows = scaling.times(cell, power)[sorted(range(3), key=lambda axis: not periodic[axis])]
    a, b, c = *_short(rows[:count]), *rows[count:]
    z = c / np.linalg.norm(c)
    y = b - (b @ z) * z
    y /= np.linalg.norm(y)
    x = np.cross(y, z)
    a = a * np.sign(a @ x)  # periodic, so that its inverse spans the same lattice
    frame = np.array([x, y, z])
    a, b, c = (frame @ v for v in (a, b, c))
    tilts = np.round(b[2] / c[2]) if count == 3 else 0.0
    b = b - tilts * c
    a = a - np.round(a[1] / b[1]) * b * (count > 1)
    a = a - np.round(a[2] / c[2]) * c * (count == 3)
    skew = float(a[1]) * (count > 1), float(a[2]) * (count == 3), float(b[2]) * (count == 3)
    sides = (float(a[0]), float(b[1]), float(c[2]))
    rotation = None if np.allclose(frame, np.eye(3), rtol=0, atol=1e-15) else tuple(map(tuple, frame.tolist()))
    is_skewed = any(abs(t) > 1e-14 * max(sides) for t in skew)
    return Geometry(sides, count, rotation, None, skew if is_skewed else None, power, count < 3)


def _short(vectors: np.ndarray) -> np.ndarray:
    """Return short vectors of the same lattice, by subtracting multiples of one from another while this shortens it."""
    has_changed = True
    while has_changed:
        has_changed = False
        for i, j in itertools.permutations(range(len(vectors)), 2):
            times = np.round(vectors[i] @ vectors[j] / (vectors[j] @ vectors[j]) * (1 - 1e-12))
            if times:
                vectors[i] -= times * vectors[j]
                has_changed = True
    return vectors


def around(*clouds: Array, scaled: bool = True) -> Geometry:
    """Return the geometry of points in free space: a box around all of them, also around points in a plane."""
    point_sets = [x for x in clouds if x.shape[1]]
    if not point_sets:
        return Geometry((1.0, 1.0, 1.0), 0)
    power = scaling.exponent(2.0 * scaling.extent(*point_sets)) if scaled else 0
    low = scaling.times(np.min([to_host(x.min(axis=1)) for x in point_sets], axis=0).astype(float), power)
    high = scaling.times(np.max([to_host(x.max(axis=1)) for x in point_sets], axis=0).astype(float), power)
    sides = np.maximum(high - low, 1e-3 * (high - low).max())
    sides = np.where(sides > 0, sides, 1.0)
    # Rounding of points minus the corner must stay inside.
    return Geometry(tuple((sides * (1 + 1e-6)).tolist()), 0, None, tuple(low.tolist()), power=power)


def lattice(p: "Parameters", x: Array) -> Array:
    """Return points of the brick in lattice coordinates, also in ``[0, side)``; the same array in a rectangular box."""
    return x if p.skew is None else wrapped(directions(p, x), p.box, STRAIGHT)


def directions(p: "Parameters", v: Array) -> Array:
    """Return vectors ``(3, N)`` in lattice coordinates, whose derivatives are those along the lattice vectors."""
    t01, t02, t12 = (v.dtype.type(t) for t in p.skew)
    l0, l1 = (v.dtype.type(side) for side in p.box[:2])
    second = v[1] - v[0] * (t01 / l0)
    return module_of(v).stack([v[0], second, v[2] - v[0] * (t02 / l0) - second * (t12 / l1)])
