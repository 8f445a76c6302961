"""Lengths and units: sums run where the box and the largest strength are of order one.

Lengths are multiplied by a power of two, strengths by others, and results by the powers that undo both.  No digit
changes on the way, and no number on the way is too large or too small for the floating type.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from parki.arrays import Array, along_rows, module_of, to_host
from parki.dimensions import Dimensions

Ints = NDArray[np.int64]
SOME_TARGETS, SOME_SOURCES = 500, 4000  # points of the samples that show how close points lie
DENSE = 0.1  # share of the targets, those closest to sources, which have most of the field


def exponent(size: float) -> int:
    """Return the e with 1 ≤ size · 2^e < 2; 0 for a size of 0."""
    return 1 - math.frexp(size)[1] if size else 0


def times(x: Array, power: int) -> Array:
    """Return x · 2^power, in as many steps as the floating type needs; x itself where the power is 0."""
    for factor in _factors(x.dtype, power):
        x = x * factor
    return x


def _factors(dtype: np.dtype, power: int) -> list:
    """Return factors of the type whose product is 2^power; none for 0."""
    limit = np.finfo(dtype).maxexp - 2
    steps, sign = divmod(abs(power), limit), 1 if power > 0 else -1
    powers = [sign * limit] * steps[0] + ([sign * steps[1]] if steps[1] else [])
    return [dtype.type(math.ldexp(1.0, p)) for p in powers]


def multiply(x: Array, powers: Ints) -> None:
    """Multiply every row of x (rows, …) by 2 to its power, in place."""
    equal = (powers == powers[0]).all()
    for row, power in [(..., powers[0])] if equal else enumerate(powers):
        for factor in _factors(x.dtype, int(power)):
            x[row] *= factor


def multiplied(x: Array, powers: Ints) -> Array:
    """Return x (rows, …) with every row times 2 to its power; x itself where all powers are 0."""
    if not powers.any():
        return x
    if (powers == powers[0]).all():
        return times(x, int(powers[0]))
    x = x.copy()
    multiply(x, powers)
    return x


@lru_cache(maxsize=256)
def pairs_of_factors(powers: tuple[int, ...], dtype: str) -> NDArray:
    """Return two factors (n, 2) of the type for each power, with the product 2^power.

    The second is 1 unless the power is beyond the type's range; powers beyond its square are cut.
    """
    limit = np.finfo(dtype).maxexp - 2
    first = np.clip(powers, -limit, limit)
    return np.ldexp(1.0, np.stack([first, np.clip(powers - first, -limit, limit)], axis=-1)).astype(dtype)


def extent(*clouds: Array) -> float:
    """Return half the longest side of the box around all points (3, N); 0 without points."""
    return longest(*corners(*clouds))


def corners(*clouds: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lowest and highest coordinates of all points (3, N); without points infinity and minus infinity."""
    distinct = [x for i, x in enumerate(clouds) if x.shape[1] and not any(x is y for y in clouds[:i])]
    if not distinct:
        return np.full(3, np.inf), np.full(3, -np.inf)
    ends = [to_host(module_of(x).stack([x.min(axis=1), x.max(axis=1)])).astype(float) for x in distinct]
    return np.min(ends, axis=0)[0], np.max(ends, axis=0)[1]


def longest(low: NDArray[np.float64], high: NDArray[np.float64]) -> float:
    """Return half the longest side of a box; 0 of one around no points."""
    return float(np.max(0.5 * high - 0.5 * low)) if (low <= high).all() else 0.0


def nearest(targets: Array, sources: Array, length: int) -> float:
    """Estimate the distance to the nearest source within which the closest tenth of the targets lies.

    Parameters
    ----------
    targets, sources : array (3, n)
    length : int
        The power of two by which points are multiplied.

    Some hundreds of targets and some thousands of sources are searched, as if the others lay between them.
    """
    thinned = [x[:, :: -(-x.shape[1] // limit)] for x, limit in ((targets, SOME_TARGETS), (sources, SOME_SOURCES))]
    return nearest_of_some(
        *(times(to_host(x).astype(np.float64), length) for x in thinned), sources.shape[1], targets is sources
    )


def nearest_of_some(x: NDArray[np.float64], y: NDArray[np.float64], n: int, same: bool) -> float:
    """Estimate `nearest` from some targets x and some of n sources y; `same` if these are the targets."""
    from scipy.spatial import cKDTree  # takes a quarter of a second to import

    distances = cKDTree(y.T).query(x.T, k=2 if same and y.shape[1] > 1 else 1)[0].reshape(x.shape[1], -1)
    separations = np.where(distances[:, 0] > 0, distances[:, 0], distances[:, -1])
    separations = separations[separations > 0]
    if not len(separations):
        return 0.0
    return float(np.quantile(separations, DENSE) * (y.shape[1] / n) ** (1 / 3))


def largest(x: Array) -> NDArray[np.float64]:
    """Return the largest modulus along the last axis, on the host; NaN or infinity where there is one, 0 if empty."""
    if x.shape[-1] == 0:
        return np.zeros(x.shape[:-1])
    if isinstance(x, np.ndarray):
        return np.maximum(x.max(axis=-1), -x.min(axis=-1)).astype(np.float64)
    most, least = along_rows("max", x), along_rows("min", x)
    return to_host(module_of(x).stack([most, -least])).max(axis=0).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Powers:
    """Powers of two of one call, by which strengths are multiplied before the sum, and results after the sum.

    Attributes
    ----------
    dens : array (rhs, components)
    normals : int
    result : array (rhs, components of the result)
    """

    dens: Ints
    normals: int
    result: Ints

    @classmethod
    def of(cls, law: Dimensions | None, length: int, dens: Array, normals: Array | None, result: int) -> "Powers":
        """Choose the powers of a call whose lengths are multiplied by 2^length.

        Parameters
        ----------
        law : Dimensions or None
            Powers of length of the kernel; if None, `length` is 0.
        length : int
        dens : array (rhs, components, N)
            The last three components are multiplied by the normals, if there are any.
        normals : array (3, N), optional
        result : int
            Components of the result.
        """
        return cls.of_largest(law, length, largest(dens), None if normals is None else largest(normals).max(), result)

    @classmethod
    def of_largest(
        cls, law: Dimensions | None, length: int, dens: NDArray[np.float64], normals: float | None, result: int
    ) -> "Powers":
        """Choose the powers of a call by the largest moduli of densities (rhs, components) and of normals."""
        sizes = tuple(tuple(map(_size, row)) for row in dens.tolist())
        axes = None if normals is None else _size(float(normals))
        return _powers(law or Dimensions(), length, sizes, axes, result)


def _size(value: float) -> int | None:
    """Return the exponent of the largest power of two up to a value, None for 0."""
    return math.frexp(value)[1] - 1 if value else None


@lru_cache(maxsize=256)
def _powers(
    law: Dimensions, length: int, sizes: tuple[tuple[int | None, ...], ...], axes: int | None, result: int
) -> Powers:
    """Return the powers for strengths and normals of these sizes."""
    shifts = np.broadcast_to(-length * np.array(law.dens, np.int64), len(sizes[0])).copy()
    shifts[-3:] += axes or 0
    tops = [
        [size + power for size, power in zip(row, shifts.tolist(), strict=True) if size is not None] for row in sizes
    ]
    shift = -np.array([max(row, default=0) for row in tops], np.int64)[:, None]
    result_shifts = np.broadcast_to(-length * np.array(law.result, np.int64), result)
    return Powers(shifts + shift, -(axes or 0), result_shifts - shift)
