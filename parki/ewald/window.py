"""The Kaiser–Bessel window: its polynomial pieces, its transform, and the error that it leaves.

The window is w(z) = I₀(β √(1 − z²)) / I₀(β) on |z| ≤ 1.  On a grid of spacing h a point at y touches P nodes per axis:
node i₀ + l, i₀ = ⌈y/h − P/2⌉, sees the argument z = −1 + (2/P)(l + t), t = i₀ − y/h + P/2 in [0, 1).

Sources: Kaiser and Kuo 1966 (the window and its transform); Barnett, Magland, af Klinteberg 2019 (polynomial pieces).
"""

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.special import i0e, i1e, roots_legendre

from parki.ewald import series

_NODES, _WEIGHTS = roots_legendre(18)
_NODES, _WEIGHTS = 0.5 * (_NODES + 1.0), 0.5 * _WEIGHTS


def value(z: ArrayLike, beta: float) -> NDArray[np.float64]:
    """Return w(z), 0 outside [−1, 1]."""
    z = np.asarray(z, np.float64)
    root = np.sqrt(np.maximum((1.0 - z) * (1.0 + z), 0.0))
    return np.where(np.abs(z) <= 1.0, i0e(beta * root) * np.exp(beta * (root - 1.0)) / i0e(beta), 0.0)


def slope(z: ArrayLike, beta: float) -> NDArray[np.float64]:
    """Return w'(z), 0 outside [−1, 1]."""
    z = np.asarray(z, np.float64)
    root = np.sqrt(np.maximum((1.0 - z) * (1.0 + z), 0.0))
    safe = np.maximum(beta * root, 1e-8)
    ratio = np.where(beta * root > 1e-8, i1e(safe) / safe, 0.5 * np.exp(-safe))
    return np.where(np.abs(z) <= 1.0, -(beta**2) * z * ratio * np.exp(beta * (root - 1.0)) / i0e(beta), 0.0)


def transform(P: int, beta: float, k: ArrayLike, h: float) -> NDArray[np.float64]:
    """Return ŵ(k) = ∫ w(x/a) exp(−ikx) dx with a = Ph/2, in units of length.

    Parameters
    ----------
    P, beta
        Number of nodes and shape of the window.
    k
        Wave numbers, any shape.
    h
        Grid spacing.
    """
    a = 0.5 * P * h
    square = beta**2 - (a * np.asarray(k, np.float64)) ** 2
    root = np.sqrt(np.abs(square))
    # exp(−β) is taken out of sinh and of I₀, so large β does not overflow.
    grow = -np.exp(root - beta) * np.expm1(-2.0 * root) / np.maximum(2.0 * root, 1e-300)
    inside = np.where(root > 1e-6, grow, np.exp(-beta))
    outside = np.sinc(root / np.pi) * np.exp(-beta)
    return 2.0 * a * np.where(square >= 0.0, inside, outside) / i0e(beta)


def fit(P: int, beta: float, degree: int, dtype: DTypeLike = np.float64) -> tuple[NDArray, NDArray]:
    """Fit one polynomial per node to the window and one to its derivative.

    Both are functions of s = t − 1/2 in [−1/2, 1/2) and are interpolated separately at Chebyshev points.

    Parameters
    ----------
    P, beta
        Number of nodes and shape of the window.
    degree
        Degree of every polynomial.
    dtype
        Floating type of the result.

    Returns
    -------
    tuple of array
        Coefficients of the value and of the derivative with respect to y/h, the position of the point in units of the
        spacing; shape (degree + 1, P), highest power first.
    """
    nodes = series.points(degree + 1)
    argument = -1.0 + (2.0 / P) * (np.arange(P)[:, None] + 0.5 + 0.5 * nodes)
    both = np.concatenate([value(argument, beta), (-2.0 / P) * slope(argument, beta)])
    # The variable is 2s.
    powers = series.powers(series.coefficients(both)).T * 2.0 ** np.arange(degree, -1.0, -1.0)[:, None]
    powers = powers.astype(dtype)
    return np.ascontiguousarray(powers[:, :P]), np.ascontiguousarray(powers[:, P:])

