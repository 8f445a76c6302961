"""The near field: tables of the far part of each kernel in r², and the error of cutting at rc.

The far part of every kernel is band-limited, so it is an entire even function of r: one short polynomial in r².  The
near field is the free kernel minus that polynomial; with w = 1/r (0 at a coincident pair, where the tables alone give
the self term), τ = r² and r = target − source:

    laplace     u += (w − F) q
    stokes_sl   u += (w − D − τE) f + (w³ + E) (r·f) r
    stokes_comb the same, and  C [q (r·n) + r (q·n) + n (r·q)] + (4G − 6w⁵) (r·q)(r·n) r,   C = −(3E + 2τG)

    F = (2/π) ∫ Φ j₀(kr) dk            E = −(4/π) ∫ Φs k² j₂(kr)/(kr)² dk = D'(τ)
    D = (8/π) ∫ Φs j₁(kr)/(kr) dk      G = (2/π) ∫ Φs k⁴ j₃(kr)/(kr)³ dk = E'(τ)

with spherical Bessel functions jₙ.  For a Gaussian these are the erf and exp kernels of Ewald and Hasimoto.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import roots_legendre

from parki.ewald import profiles, series

if TYPE_CHECKING:
    from parki.ewald.params import Parameters

#: Rows of the table of each kernel, as columns of `far_parts`.
ROWS = {"laplace": (0,), "stokes_sl": (1, 2), "stokes_comb": (1, 2, 3)}

# ln of the near field of the prolate beyond rc (see `truncation`) plus c, as combinations of 1, ln c, 1/c, 1/c²;
# fitted to `tail_integral` on 3 <= c <= 24, 27, 36 with errors below 0.5 %.
_PROLATE_TAIL = {
    "laplace": (1.22709225, -0.43302799, 1.47783474, -3.41173375),
    "stokes_sl": (1.59742622, 1.03955506, -0.69034805, 1.16075614),
    "stokes_dl": (0.51516654, 3.0181837, -2.07648842, 7.58332316),
}
_LEAST_C = 3.0
# The same for the Gaussian: factor and power of ξ rc before exp(−(ξ rc)²).
_GAUSSIAN_TAIL = {"laplace": (1.0, -2), "stokes_sl": (np.sqrt(8 / 3), 0), "stokes_dl": (np.sqrt(112 / 9), 2)}


def _bessel(n: int, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """jₙ(x)/xⁿ for n <= 3: the power series below 3, closed forms above."""
    step = -0.5 * np.square(np.minimum(x, 3.0))
    term = np.full_like(x, 1.0 / np.prod(np.arange(1.0, 2 * n + 2, 2.0)))
    series = term.copy()
    for m in range(1, 22):
        term = term * step / (m * (2 * n + 2 * m + 1))
        series += term
    y = np.maximum(x, 3.0)
    before, now = np.cos(y) / y, np.sin(y) / y
    for i in range(n):
        before, now = now, (2 * i + 1) / y * now - before
    return np.where(x < 3.0, series, now / y**n)


def far_parts(split: profiles.Prolate | profiles.Gaussian, r: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return F, D, E, G at the radii `r` (N,) by Gauss–Legendre quadrature; shape (4, N)."""
    nodes, weights = roots_legendre(int(0.5 * split.kmax * np.max(r, initial=0.0)) + 24)
    k, weights = 0.5 * split.kmax * (nodes + 1.0), 0.5 * split.kmax * weights
    x = np.outer(r, k)
    stokes = weights * split.phi_stokes(k)
    return np.array(
        [
            _bessel(0, x) @ (2 / np.pi * weights * split.phi(k)),
            _bessel(1, x) @ (8 / np.pi * stokes),
            _bessel(2, x) @ (-4 / np.pi * stokes * k**2),
            _bessel(3, x) @ (2 / np.pi * stokes * k**4),
        ]
    )


@lru_cache(maxsize=128)
def _series(split: str, c: float, xi: float) -> NDArray[np.float64]:
    """Chebyshev coefficients (4, n) in t = 2r² − 1 of F, D, E, G with rc = 1; `xi` is that of the Gaussian."""
    t = series.points(int(0.4 * c) + 24)
    return series.coefficients(far_parts(profiles.profile(split, c, 1.0, xi), np.sqrt(0.5 * (t + 1.0))))


def degree(kernel: str, split: str, c: float, xi: float, level: float) -> int:
    """Return the least degree at which the tables' RMS error is `level`, which is relative as in `truncation`.

    The coefficients left out are added up, then halved for the mean over the ball.
    """
    rest = np.cumsum(np.abs(_series(split, c, xi))[:, ::-1], axis=1)[:, ::-1]
    f, d, e, g = rest[:, 1:]
    if kernel == "laplace":
        error = np.sqrt(4 * np.pi / 3) * f
    elif kernel == "stokes_sl":
        error = np.sqrt(4 * np.pi / 3) * (d + 1.5 * e)
    else:
        error = np.sqrt(4 * np.pi / 5) * (1.8 * (3 * e + 2 * g) + 4 / 3 * g)
    return int(np.count_nonzero(0.5 * error > level))


def tables(p: "Parameters") -> NDArray:
    """Return the near-field tables of a sum.

    Parameters
    ----------
    p
        Parameters of the sum.

    Returns
    -------
    array (NF, p.radial_degree + 1)
        Coefficients in t = 2r²/rc² − 1 on [−1, 1], highest power first, in `p.dtype`.  Rows: F for laplace; D, E for
        stokes_sl; D, E, G for stokes_comb.
    """
    rows = list(ROWS[p.kernel])
    scale = np.array([p.rc**-1, p.rc**-1, p.rc**-3, p.rc**-5])
    found = _series(p.split, p.c, p.xi * p.rc)[rows, : p.radial_degree + 1]
    return np.ascontiguousarray(series.powers(found) * scale[rows, None], dtype=p.dtype)


def truncation(kernel: str, split: str, c: ArrayLike, xi: ArrayLike) -> NDArray[np.float64]:
    """Return the RMS of the near field dropped beyond rc, for random strengths at random points.

    It is relative to √(Q rc/V) for ``"laplace"`` and ``"stokes_sl"``, to √(Q/(V rc)) for ``"stokes_dl"``, with Q the
    sum of |q|², |f|², |q|²|n|²: the root of `tail_integral`.  For the prolate a fit; for the Gaussian the leading term.
    """
    c, xi = np.asarray(c, np.float64), np.asarray(xi, np.float64)
    if split == "prolate":
        fit = _PROLATE_TAIL[kernel]
        return np.exp(fit[0] + fit[1] * np.log(c) + fit[2] / c + fit[3] / c**2 - c)
    return _GAUSSIAN_TAIL[kernel][0] * xi ** _GAUSSIAN_TAIL[kernel][1] * np.exp(-(xi**2))


def bandwidth(kernel: str, split: str, level: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return c and ξ rc (0 for the prolate) at which `truncation` is `level`, an array.

    For the Gaussian the modes dropped beyond kmax add half of `level`.
    """
    log = np.log(level)
    if split == "prolate":
        fit = _PROLATE_TAIL[kernel]
        c = np.full_like(log, 12.0)
        for _ in range(6):
            value = fit[0] + fit[1] * np.log(c) + fit[2] / c + fit[3] / c**2 - c - log
            c = np.maximum(c - value / (fit[1] / c - fit[2] / c**2 - 2 * fit[3] / c**3 - 1.0), _LEAST_C)
        return c, np.zeros_like(c)
    xi = np.full_like(log, 3.0)
    lead, power = _GAUSSIAN_TAIL[kernel]
    for _ in range(12):
        xi = np.sqrt(np.maximum(np.log(lead) + power * np.log(xi) - log, 1.0))
    ratio = np.full_like(log, 3.0)  # kmax / 2ξ
    for _ in range(12):
        modes = np.sqrt(0.75 / (xi * ratio**5))
        if kernel == "stokes_sl":
            modes = modes * np.sqrt(8 / 3) * (1 + ratio**2)
        if kernel == "stokes_dl":
            modes = modes * np.sqrt(28 / 9) * 2 * xi * ratio * (1 + ratio**2)
        ratio = np.sqrt(np.maximum(np.log(2 * modes) - log, 1.0))
    return 2 * xi * ratio, xi


def tail_integral(kernel: str, split: profiles.Prolate | profiles.Gaussian, rc: float) -> float:
    """Return 4π ∫ |K_near|² r² dr from `rc` to 6 `rc`, averaged over the directions of the strengths."""
    nodes, weights = roots_legendre(300)
    r, weights = rc * (3.5 + 2.5 * nodes), 2.5 * rc * weights
    F, D, E, G = far_parts(split, r)
    if kernel == "laplace":
        square = (1 / r - F) ** 2
    elif kernel == "stokes_sl":
        a, b = 1 / r - D - r**2 * E, 1 / r + r**2 * E
        square = a**2 + (2 * a * b + b**2) / 3
    else:
        side = -(3 * E + 2 * r**2 * G) * r
        along = 3 * side + (4 * G - 6 / r**5) * r**3
        square = along**2 / 9 + 2 * side**2 / 3
    return float(4 * np.pi * np.sum(weights * r**2 * square))
