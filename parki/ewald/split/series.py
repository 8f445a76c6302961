"""Chebyshev interpolation on [−1, 1], and the same polynomial in powers for Horner's rule."""

from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray
from scipy.fft import dct


def points(order: int) -> NDArray[np.float64]:
    """Return the `order` Chebyshev points, from +1 towards −1."""
    return np.cos(np.pi * (np.arange(order) + 0.5) / order)


def coefficients(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Chebyshev coefficients (…, n) of the interpolant of `values` (…, n) at the n points.

    Coefficients below rounding are set to 0, so that the degree that a function needs can be read off.
    """
    series = dct(values, axis=-1) / values.shape[-1]
    series[..., 0] *= 0.5
    series[np.abs(series) < 1e-15 * np.abs(series).max(axis=-1, keepdims=True)] = 0.0
    return series


def degree(series: NDArray[np.float64], level: float) -> int:
    """Return the least degree at which the coefficients (n,) left out sum to at most `level`."""
    rest = np.cumsum(np.abs(series[::-1]))[::-1]
    return int(np.count_nonzero(rest[1:] > level))


def powers(coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the same polynomials in powers of the variable, highest first; same shape (…, n)."""
    return (coefficients @ _matrix(coefficients.shape[-1]))[..., ::-1]


@lru_cache(maxsize=64)
def _matrix(order: int) -> NDArray[np.float64]:
    """Return the powers of T_n, lowest first, in row n."""
    matrix = np.zeros((order, order))
    for n in range(order):
        matrix[n, : n + 1] = chebyshev.cheb2poly(np.eye(order)[n])[: n + 1]
    return matrix
