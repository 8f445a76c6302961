"""Reflection classes: even and odd combinations of surface values, in which operators fall into 8 blocks.

A reflection is a number g of three bits, x 4, y 2, z 1: each set bit reverses its axis.  Under g the grid of a surface
maps onto itself, child o of a box to child o ^ g, and component k of a value changes sign as often as g and its mask
have bits in common: the mask is 0 for a scalar, 4, 2, 1 for a vector, 3, 5, 6 for a torque.  Values that change sign as
often as g and c have bits in common are of class c.  An operator that commutes with reflections maps each class to
itself.  Where there is no such symmetry, the group has one member and all values are of one class.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parki.fmm import surfaces

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Masks = tuple[tuple[int, ...], tuple[int, ...]]  # of check values, of equivalents

#: Signs of reflection g in class c.
SIGNS = np.array([[(-1.0) ** (g & c).bit_count() for g in range(8)] for c in range(8)])
GENERIC = np.array([[0.37, 0.91, 1.43], [-1.21, 0.53, 0.29], [0.67, -1.87, 1.13]])
SCALES = 10.0 ** np.arange(-9, 10, 3)  # scales at which kernels are evaluated: their lengths may be anything
SAME = 1e-11  # share of the largest value up to which differences are rounding


def parities(values: Callable[[Floats], Floats]) -> Masks | None:
    """Return masks of the components of a kernel's result and density, or None if reflections do not fit them.

    Parameters
    ----------
    values : callable
        Takes r (n, 3) and returns K(r) (n, result, dens).
    """
    r = np.concatenate([scale * GENERIC for scale in SCALES])
    matrix = values(r)
    size = SAME * np.abs(matrix).max(axis=(1, 2), keepdims=True)
    odd = np.zeros(matrix.shape[1:], np.int64)  # mask of the component of the result ^ that of the density
    mask = (np.abs(matrix) > size).any(axis=0)
    for bit in (4, 2, 1):
        image = values(r * np.where([bit & 4, bit & 2, bit & 1], -1.0, 1.0))
        equality, sign_change = ((np.abs(image - s * matrix) <= size).all(axis=0) for s in (1, -1))
        if not (equality | sign_change)[mask].all():
            return None
        odd[~equality & mask] |= bit
    rows, columns = np.full(matrix.shape[1], -1), np.full(matrix.shape[2], -1)
    for first in range(len(rows)):
        if rows[first] < 0:
            joined_rows, joined_columns = _join(first, odd, mask, rows, columns)
            _least(rows, columns, joined_rows, joined_columns)
    columns[columns < 0] = 0
    if ((rows[:, None] ^ columns) != odd)[mask].any():
        return None
    return tuple(rows.tolist()), tuple(columns.tolist())


def _join(
    first: int, odd: NDArray[np.int64], mask: NDArray[np.bool_], rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> tuple[list[int], list[int]]:
    """Set the masks of components that kernel entries connect to component `first` of the result, whose mask is 0."""
    rows[first] = 0
    row_list, column_list, queue = [first], [], [first]
    while queue:
        i = queue.pop()
        for j in np.flatnonzero(mask[i] & (columns < 0)):
            columns[j] = rows[i] ^ odd[i, j]
            column_list.append(j)
            for k in np.flatnonzero(mask[:, j] & (rows < 0)):
                rows[k] = columns[j] ^ odd[k, j]
                row_list.append(k)
                queue.append(k)
    return row_list, column_list


def _least(rows: NDArray[np.int64], columns: NDArray[np.int64], row_group: list[int], column_group: list[int]) -> None:
    """Shift joined masks, which have a common free offset, so that each has few bits: vectors are 4, 2, 1."""
    bits = np.bitwise_count(np.concatenate([rows[row_group], columns[column_group]])[:, None] ^ np.arange(8))
    shift = np.argmin((bits.astype(int) ** 2).sum(axis=0))
    rows[row_group] ^= shift
    columns[column_group] ^= shift


@functools.lru_cache(maxsize=32)
def images(p: int, group: int) -> Ints:
    """Return the image of surface point i under reflection g as images[g][i]; (group, points)."""
    g = surfaces.grid(p)
    number = np.zeros((p, p, p), np.int32)
    number[tuple(g.T)] = np.arange(len(g))
    grids = [np.where([h & 4, h & 2, h & 1], p - 1 - g, g) for h in range(group)]
    return np.stack([number[tuple(t.T)] for t in grids])


@dataclass(frozen=True)
class Classes:
    """Values of several components at surface points, as classes and back.

    Attributes
    ----------
    p : int
        Points per edge.
    masks : tuple of int, or None
        Masks of the components; None: no symmetry, all values are of one class.
    components : int
    """

    p: int
    masks: tuple[int, ...] | None
    components: int

    @property
    def group(self) -> int:
        """Return the number of reflections, 8 or 1, which is also the number of classes."""
        return 1 if self.masks is None else 8

    @property
    def signed(self) -> tuple[int, ...]:
        """Return a mask for each component."""
        return self.masks or (0,) * self.components

    @property
    def points(self) -> int:
        """Return the number of surface points."""
        return surfaces.count(self.p)

    @functools.cached_property
    def orbits(self) -> Ints:
        """Return the images of one point of each orbit, (orbits, group); smaller orbits repeat some images."""
        image = images(self.p, self.group)
        return np.ascontiguousarray(image[:, image.min(axis=0) == np.arange(self.points)].T)

    @functools.cached_property
    def first(self) -> NDArray[np.bool_]:
        """Return whether each image (orbits, group) is the first of its point."""
        return np.array([[v not in row[:g] for g, v in enumerate(row)] for row in self.orbits.tolist()])

    @functools.cached_property
    def size(self) -> NDArray[np.int64]:
        """Return the number of points of each orbit."""
        return self.first.sum(axis=1)

    @functools.cached_property
    def present(self) -> NDArray[np.bool_]:
        """Return whether each orbit has values of a scalar's class, (orbits, group).

        An orbit has none if a reflection that leaves its points alone would change their sign.
        """
        fixed_points = self.orbits == self.orbits[:, :1]
        signs = SIGNS[: self.group, : self.group]
        return np.array([[(signs[c][f] > 0).all() for c in range(self.group)] for f in fixed_points])

    @functools.cached_property
    def begin(self) -> Ints:
        """Return the first row of each class, and the number of all rows."""
        rows = self.present.sum(axis=0)
        counts = [sum(rows[c ^ mask] for mask in self.signed) for c in range(self.group)]
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)

    @functools.cached_property
    def row(self) -> Ints:
        """Return the row of class values for (component, orbit, scalar's class), −1 if there is none.

        A component of mask k has in class c the values that a scalar has in class c ^ k.
        """
        row = np.full((self.components, len(self.orbits), self.group), -1, np.int32)
        for c in range(self.group):
            index = int(self.begin[c])
            for k, mask in enumerate(self.signed):
                orbits = np.flatnonzero(self.present[:, c ^ mask])
                row[k, orbits, c ^ mask] = np.arange(index, index + len(orbits))
                index += len(orbits)
        return row

    def octet_rows(self) -> Ints:
        """Return the first row of 8 children's values for (component, scalar's class or child); its points follow.

        Each class, or the only one, has 8 x components x points / group values.
        """
        k, g = np.arange(self.components)[:, None], np.arange(8)
        if self.group == 1:
            return ((k * 8 + g) * self.points).astype(np.int32)
        cls = g ^ np.array(self.signed)[:, None]
        return ((cls * self.components + k) * self.points).astype(np.int32)

    def fold(self, values: Floats) -> Floats:
        """Return class values (rows, n) of values (components x points, n): coefficients of an orthonormal basis."""
        v = values.reshape(self.components, self.points, -1)[:, self.orbits]
        v = np.einsum("cg,kogn->kocn", SIGNS[: self.group, : self.group], v)
        v *= (np.sqrt(self.size) / self.group)[:, None, None]
        class_values = np.empty((self.begin[-1], v.shape[-1]))
        class_values[self.row[self.row >= 0]] = v[self.row >= 0]
        return class_values

    def unfold(self, class_values: Floats) -> Floats:
        """Return values (components x points, n) of class values (rows, n)."""
        v = np.where((self.row >= 0)[..., None], class_values[self.row], 0.0)
        v = np.einsum("cg,kocn->kogn", SIGNS[: self.group, : self.group], v) / np.sqrt(self.size)[:, None, None]
        values = np.empty((self.components, self.points, class_values.shape[1]))
        values[:, self.orbits] = v
        return values.reshape(-1, class_values.shape[1])
