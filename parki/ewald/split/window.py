"""Kaiser–Bessel window: its polynomial pieces, its transform, and its error.

The window is w(z) = I₀(β √(1 − z²)) / I₀(β) on |z| ≤ 1.  On a grid of spacing h a point at y touches P nodes per axis:
node i₀ + l, i₀ = ⌈y/h − P/2⌉, sees the argument z = −1 + (2/P)(l + t), t = i₀ − y/h + P/2 in [0, 1).

Sources: Kaiser and Kuo 1966 (the window and its transform); Barnett, Magland, af Klinteberg 2019 (polynomial pieces).
"""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.special import i0e, i1e, roots_legendre

from parki.ewald.split import profiles, series
from parki.ewald.split.layers import Layer

_NODES, _WEIGHTS = roots_legendre(18)
_NODES, _WEIGHTS = 0.5 * (_NODES + 1.0), 0.5 * _WEIGHTS
_INNER, _INNER_WEIGHTS = (0.5 + 0.5 * np.sqrt(0.6) * np.array([-1.0, 0.0, 1.0])), np.array([5.0, 8.0, 5.0]) / 18.0


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
    # A factor exp(−β) is split off sinh and I₀, so that large β does not overflow.
    grow = -np.exp(root - beta) * np.expm1(-2.0 * root) / np.maximum(2.0 * root, 1e-300)
    inside = np.where(root > 1e-6, grow, np.exp(-beta))
    outside = np.sinc(root / np.pi) * np.exp(-beta)
    return 2.0 * a * np.where(square >= 0.0, inside, outside) / i0e(beta)


def fit(P: int, beta: float, degree: int, dtype: DTypeLike = np.float64) -> tuple[NDArray, NDArray]:
    """Fit one polynomial per node to the window and one to its derivative.

    Both are functions of s = t − 1/2 in [−1/2, 1/2) and are interpolated separately at Chebyshev points.  At these
    points a part of the size of the window's aliases makes long waves exact, of which strengths of one sign have many:
    values add up to the window's mean, and slopes are 0 for a constant and the mean for a straight line.

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
    values, slopes = value(argument, beta), (-2.0 / P) * slope(argument, beta)
    mean, places = transform(P, beta, 0.0, 1.0), 0.5 * P * argument
    values *= mean / values.sum(axis=0)
    slopes -= values * (slopes.sum(axis=0) / mean)
    slopes *= mean / (places * slopes).sum(axis=0)
    values = np.concatenate([values, slopes])
    # The variable is 2s.
    powers = series.powers(series.coefficients(values)).T * 2.0 ** np.arange(degree, -1.0, -1.0)[:, None]
    powers = powers.astype(dtype)
    return np.ascontiguousarray(powers[:, :P]), np.ascontiguousarray(powers[:, P:])


@lru_cache(maxsize=256)
def _alias_weights(layer: Layer, split: str, c: float, xi: float, low: float) -> NDArray[np.float64]:
    """Return weights (4, n) at the wave numbers c·_NODES of one axis, for `alias`; lengths in units of rc.

    Rows: squared alias amplitudes, those of the window's derivative, and both amplitudes for coincident points, each
    integrated over the other two axes.  Wave numbers below `low` c carry no mode of the box.  Integrals of cubic layers
    have k² more.
    """
    top = profiles.profile(split, c, 1.0, xi)
    # Integrals from each node to 1 as sums over the pieces between nodes.
    edges = np.append(np.maximum(_NODES, low), 1.0)
    width = np.diff(edges)[:, None]
    k = edges[:-1, None] + width * _INNER
    phi = layer.profile(top, c * k, layer.width)
    weights = width * _INNER_WEIGHTS * (k**2 if layer.cubic else 1.0)
    pieces = ((weights * phi**m / k**j).sum(axis=1) for m, j in ((2, 1), (1, 1), (2, 3)))
    w0, w1, w2 = (np.cumsum(piece[::-1])[::-1] for piece in pieces)
    return np.array(layer.alias(c, w0, w1, w2)) * _WEIGHTS


def alias(
    layer: Layer, split: str, c: float, xi: float, low: float, P: ArrayLike, beta: ArrayLike, sigma: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Estimate the RMS error of a window with exact transform, on a grid of spacing h = π/(σ kmax).

    Spreading adds to the mode k the strengths' modes k + 2πm/h, times ŵ(k + 2πm/h)/ŵ(k), and gathering does the same.
    Strengths are random, and the terms m = ±1 of each axis are summed.

    Parameters
    ----------
    layer
        Layer with the weights: the double layer is spread with the derivative of the window; modes of gradients are
        multiplied by ik (dipoles and the pressure as in `layers`).
    split, c, xi
        Profile; `xi` is in units of 1/rc.
    low
        Least wave number of the box over kmax.
    P, beta, sigma
        Arrays that broadcast.

    Returns
    -------
    tuple of array
        The error from all sources, relative to √(Q rc/V) (double layer, gradients: √(Q/(V rc))), and that of a
        coincident source, relative to √(Q/N)/rc (double layer: √(Q/N)/rc²; gradients: 0).  Those of cubic layers are
        relative to √(Q/(V rc³)) and √(Q/N)/rc³.
    """
    rows = _alias_weights(layer, split, c, xi, low)
    half, beta, sigma = (np.asarray(v, np.float64)[..., None] for v in (np.multiply(0.5 * np.pi, P), beta, sigma))
    x = _NODES / sigma
    base = _log_transform(beta, half * x)
    square, coincidence = 0.0, 0.0
    for image in (2.0 - x, 2.0 + x):
        amplitude = np.exp(_log_transform(beta, half * image) - base)
        slope_amplitude = amplitude * image * sigma
        square = square + amplitude**2 @ rows[0] + slope_amplitude**2 @ rows[1]
        coincidence = coincidence + amplitude @ rows[2] + slope_amplitude @ rows[3]
    return np.sqrt(square), coincidence


def _log_transform(beta: NDArray[np.float64], kappa: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ln ŵ up to a factor of β, as a function of κ = Phk/2; where ŵ oscillates, the ln of its envelope."""
    square = beta**2 - kappa**2
    root = np.maximum(np.sqrt(np.abs(square)), 1e-3)
    inside = root + np.log(-np.expm1(-2.0 * root) / (2.0 * root))
    return np.where(square > 0.0, inside, -0.5 * np.log1p(root**2))
