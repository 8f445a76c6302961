"""Where the points of a sum are: a caller's box and axes, and those that the stages compute with.

The stages take boxes whose first axes are periodic, with points in [0, side), and triclinic cells whose lattice vectors
are (l0, t01, t02), (0, l1, t12), (0, 0, l2): points are then in the brick l0 × l1 × l2, of which translations tile
space in skew layers.  A caller's axes are permuted, or his cell is rotated.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parki.arrays import Array, module_of, to_host

if TYPE_CHECKING:
    from parki.ewald.params import Parameters


@dataclass(frozen=True)
class Geometry:
    """How a caller's points, vectors and results are those of the stages.

    Attributes
    ----------
    box
        Sides of the stages' box.
    periodicity
        Of its axes so many are periodic, the first ones.
    frame
        A rotation or permutation, rows of which are the stages' axes; None where they are the caller's.
    origin
        Corner of the box in the caller's coordinates.
    skew
        As in `Parameters`.
    """

    box: tuple[float, float, float]
    periodicity: int
    frame: tuple[tuple[float, ...], ...] | None = None
    origin: tuple[float, float, float] | None = None
    skew: tuple[float, float, float] | None = None

    def points(self, x: Array) -> Array:
        """Points ``(3, N)`` in the stages' box, ``[0, side)`` in each periodic direction; those of `x` if they are."""
        xp = module_of(x)
        if self.origin is not None:
            x = x - xp.asarray(self.origin, x.dtype)[:, None]
        if self.frame is not None:
            x = _turned(np.array(self.frame), x)
        return _brick(x, self.box, self.periodicity, self.skew or (0.0, 0.0, 0.0))

    def vectors(self, v: Array) -> Array:
        """Vectors ``(…, 3 m, N)`` in the stages' axes."""
        return v if self.frame is None else self._each(np.array(self.frame), v)

    def back(self, u: Array, result: int) -> Array:
        """Results ``(…, result, N)`` in the caller's axes: numbers, vectors, or 3 × 3 matrices in rows."""
        if self.frame is None or result == 1:
            return u
        inverse = np.array(self.frame).T
        if result == 3:
            return self._each(inverse, u)
        m = module_of(u).asarray(np.kron(inverse, inverse), u.dtype)
        return m @ u

    @staticmethod
    def _each(matrix: np.ndarray, v: Array) -> Array:
        """The matrix times every three components."""
        xp, split = module_of(v), v.reshape(*v.shape[:-2], v.shape[-2] // 3, 3, v.shape[-1])
        return (xp.asarray(matrix, v.dtype) @ split).reshape(v.shape)


def _turned(matrix: np.ndarray, x: Array) -> Array:
    """The matrix times points; a permutation changes no digit."""
    if set(matrix.ravel().tolist()) <= {0.0, 1.0}:
        return module_of(x).ascontiguousarray(x[np.argmax(matrix, axis=1)])
    return (module_of(x).asarray(matrix) @ x.astype(np.float64)).astype(x.dtype)


def _brick(x: Array, box: tuple[float, ...], periodicity: int, skew: tuple[float, float, float]) -> Array:
    """The points wrapped into ``[0, side)`` along the periodic axes; a new array if any is outside."""
    xp, made = module_of(x), False
    t01, t02, t12 = skew
    for axis, (side, tilts) in enumerate(zip(box[:periodicity], ((t01, t02), (t12,), ()), strict=False)):
        out = (x[axis] < 0) | (x[axis] >= side)
        # Whether there are any costs a GPU more than not to ask.
        if xp is np and not out.any():
            continue
        if not made:
            x, made = x.copy(), True
        cells = xp.where(out, xp.floor(x[axis] / side), 0).astype(x.dtype)
        x[axis] -= cells * x.dtype.type(side)
        # Rounding may leave a point on a face, or just below the lower one.
        x[axis] = xp.where((x[axis] < 0) | (x[axis] >= side), 0, x[axis])
        for other, tilt in enumerate(tilts, axis + 1):
            if tilt:
                x[other] -= cells * x.dtype.type(tilt)
    return x


def of_box(box: tuple[float, float, float], periodic: tuple[bool, bool, bool]) -> Geometry:
    """The geometry of a rectangular box: its periodic axes come first."""
    order = sorted(range(3), key=lambda axis: not periodic[axis])
    sides = tuple(float(box[axis]) for axis in order)
    frame = None if order == [0, 1, 2] else tuple(tuple(float(axis == i) for i in range(3)) for axis in order)
    return Geometry(sides, sum(periodic), frame)


def of_cell(cell: np.ndarray) -> Geometry:
    """The geometry of a triclinic cell whose lattice vectors are the rows of a 3 × 3 matrix.

    Short vectors that span the same lattice take their place, rotated so that the last lies along z and the second in
    the plane of y and z; tilts are at most half a side.
    """
    a, b, c = _short(np.array(cell, np.float64))
    z = c / np.linalg.norm(c)
    y = b - (b @ z) * z
    y /= np.linalg.norm(y)
    x = np.cross(y, z)
    x *= np.sign(a @ x)
    frame = np.array([x, y, z])
    a, b, c = (frame @ v for v in (a, b, c))
    b = b - np.round(b[2] / c[2]) * c
    a = a - np.round(a[1] / b[1]) * b
    a = a - np.round(a[2] / c[2]) * c
    skew = (float(a[1]), float(a[2]), float(b[2]))
    sides = (float(a[0]), float(b[1]), float(c[2]))
    turned = None if np.allclose(frame, np.eye(3), rtol=0, atol=1e-15) else tuple(map(tuple, frame.tolist()))
    return Geometry(sides, 3, turned, None, skew if any(abs(t) > 1e-14 * max(sides) for t in skew) else None)


def _short(vectors: np.ndarray) -> np.ndarray:
    """Short vectors of the same lattice: multiples of one are taken off another as long as that shortens it."""
    changed = True
    while changed:
        changed = False
        for i, j in ((i, j) for i in range(3) for j in range(3) if i != j):
            times = np.round(vectors[i] @ vectors[j] / (vectors[j] @ vectors[j]) * (1 - 1e-12))
            if times:
                vectors[i] -= times * vectors[j]
                changed = True
    return vectors


def around(*clouds: Array) -> Geometry:
    """The geometry of points in free space: a box around them all, however flat they are."""
    some = [x for x in clouds if x.shape[1]]
    if not some:
        return Geometry((1.0, 1.0, 1.0), 0)
    low = np.min([to_host(x.min(axis=1)) for x in some], axis=0).astype(float)
    high = np.max([to_host(x.max(axis=1)) for x in some], axis=0).astype(float)
    sides = np.maximum(high - low, 1e-3 * (high - low).max())
    sides = np.where(sides > 0, sides, 1.0)
    # Rounding of points minus the corner must stay inside.
    return Geometry(tuple((sides * (1 + 1e-6)).tolist()), 0, None, tuple(low.tolist()))


def lattice(p: "Parameters", x: Array) -> Array:
    """Points of the brick in lattice coordinates, ``[0, side)`` too; the same array in a rectangular box."""
    return x if p.skew is None else _brick(directions(p, x), p.box, 3, (0.0, 0.0, 0.0))


def directions(p: "Parameters", v: Array) -> Array:
    """Vectors ``(3, N)`` in lattice coordinates, the derivatives by which are those along the lattice vectors."""
    t01, t02, t12 = (v.dtype.type(t) for t in p.skew)
    l0, l1 = (v.dtype.type(side) for side in p.box[:2])
    along = v[1] - v[0] * (t01 / l0)
    return module_of(v).stack([v[0], along, v[2] - v[0] * (t02 / l0) - along * (t12 / l1)])
