"""The near field: tables of the far part of each kernel in r², and the error of cutting at rc.

The far part of every kernel is band-limited, so it is an entire even function of r: one short polynomial in r².  The
near field is the free kernel minus that polynomial; with w = 1/r (0 at a coincident pair, where the tables alone give
the self term), τ = r² and r = target − source:

    laplace         u += (w − F) q
    laplace_grad    u −= (w³ + 2H) q r                 laplace_dipole, stokes_pressure  the same along −d, −2f
    stokes_sl       u += (w − D − τE) f + (w³ + E) (r·f) r
    stokes_dl       u += C [q (r·n) + r (q·n) + n (r·q)] + (4G − 6w⁵) (r·q)(r·n) r,   C = −(3E + 2τG)
    stokes_grad     ∂ⱼuᵢ += A fᵢ rⱼ + (w³ + E) [rᵢ fⱼ + (r·f) δᵢⱼ] + (2G − 3w⁵) (r·f) rᵢ rⱼ,   A = −(w³ + 4E + 2τG)
    yukawa          u += (exp(−κr) w − Y) q

    F = (2/π) ∫ Φ j₀(kr) dk            E = −(4/π) ∫ Φs k² j₂(kr)/(kr)² dk = D'(τ)
    D = (8/π) ∫ Φs j₁(kr)/(kr) dk      G = (2/π) ∫ Φs k⁴ j₃(kr)/(kr)³ dk = E'(τ)
    H = −(1/π) ∫ Φ k² j₁(kr)/(kr) dk = F'(τ)      Y = (2/π) ∫ Φ/Φ(iκ) k²/(k² + κ²) j₀(kr) dk

with spherical Bessel functions jₙ.  For a Gaussian these are the erf and exp kernels of Ewald and Hasimoto.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import roots_legendre

from parki.ewald import profiles, series

if TYPE_CHECKING:
    from parki.ewald.kernels import Kernel
    from parki.ewald.params import Parameters

Split = profiles.Prolate | profiles.Gaussian


@dataclass(frozen=True)
class Part:
    """A far part: `factor` times ∫ Φ k^`power` jₙ(kr)/(kr)ⁿ dk, n = `order`, with the profile of this name.

    With ``"yukawa"``, the integrand has the factor k²/(k² + κ²) too.
    """

    order: int
    factor: float
    power: int = 0
    profile: str = "phi"


#: The radial functions that a kernel may name, see the module.
FAR = {
    "F": Part(0, 2 / np.pi),
    "D": Part(1, 8 / np.pi, 0, "stokes"),
    "E": Part(2, -4 / np.pi, 2, "stokes"),
    "G": Part(3, 2 / np.pi, 4, "stokes"),
    "H": Part(1, -1 / np.pi, 2),
    "Y": Part(0, 2 / np.pi, 0, "yukawa"),
}

# ln of the near field of the prolate beyond rc (see `truncation`) plus c, as combinations of 1, ln c, 1/c, 1/c²;
# fitted to `tail_integral` on 3 <= c <= 24, 27, 36 with errors below 0.5 %.
_PROLATE_TAIL = {
    "laplace": (1.22709225, -0.43302799, 1.47783474, -3.41173375),
    "laplace_grad": (1.90735336, 0.49866589, -0.13066828, -0.04657372),
    "stokes_sl": (1.59742622, 1.03955506, -0.69034805, 1.16075614),
    "stokes_dl": (0.51516654, 3.0181837, -2.07648842, 7.58332316),
    "stokes_grad": (0.41753103, 3.02364259, -2.01462036, 7.1919357),
}
_LEAST_C = 3.0
# The same for the Gaussian: factor and power of ξ rc before exp(−(ξ rc)²).
_GAUSSIAN_TAIL = {
    "laplace": (1.0, -2),
    "laplace_grad": (2.0, 0),
    "stokes_sl": (np.sqrt(8 / 3), 0),
    "stokes_dl": (np.sqrt(112 / 9), 2),
    "stokes_grad": (np.sqrt(32 / 3), 2),
}
#: Layers of kernels that fall as 1/r², and the mean square of r² times the kernel over directions, times 22.8: the
#: closest pairs dominate, and 4π ∫ r⁻² dr from the mean distance of the closest source is 22.8/d.
STEEP = {"laplace_grad": 22.8, "stokes_dl": 91.0, "stokes_grad": 76.0}


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


def kernel_profile(kernel: "Kernel", split: Split, k: ArrayLike) -> NDArray[np.float64]:
    """Return what multiplies the modes `k` of a kernel: `profiles.values`."""
    return profiles.values(kernel.profile, split, k, kernel.kappa)


def far_part(name: str, split: Split, r: NDArray[np.float64], kappa: float = 0.0) -> NDArray[np.float64]:
    """Return one of `FAR` at the radii `r` (N,) by Gauss–Legendre quadrature; `kappa` is that of Yukawa kernels."""
    part = FAR[name]
    half = 0.5 * split.kmax * np.max(r, initial=0.0)
    if part.profile == "yukawa":
        # The integrand has poles at ±iκ, which may be as close to 0 as they like: k = kmax s³.
        nodes, weights = roots_legendre(int(3 * half) + 120)
        s = 0.5 * (nodes + 1.0)
        k, weights = split.kmax * s**3, 1.5 * split.kmax * s**2 * weights
        weights = weights * k**2 / (k**2 + kappa**2)
    else:
        nodes, weights = roots_legendre(int(half) + 24)
        k, weights = 0.5 * split.kmax * (nodes + 1.0), 0.5 * split.kmax * weights
    phi = profiles.values(part.profile, split, k, kappa)
    return _bessel(part.order, np.outer(r, k)) @ (part.factor * weights * k**part.power * phi)


def far_parts(split: Split, r: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return F, D, E, G at the radii `r` (N,); shape (4, N)."""
    return np.array([far_part(name, split, r) for name in "FDEG"])


@lru_cache(maxsize=512)
def _series(name: str, split: str, c: float, xi: float, kappa: float) -> NDArray[np.float64]:
    """Chebyshev coefficients in t = 2r² − 1 of a far part with rc = 1; `xi` is that of the Gaussian."""
    t = series.points(int(0.4 * c) + 24)
    return series.coefficients(far_part(name, profiles.profile(split, c, 1.0, xi), np.sqrt(0.5 * (t + 1.0)), kappa))


def degree(layer: str, split: str, c: float, xi: float, level: float) -> int:
    """Return the least degree at which the tables' RMS error is `level`, which is relative as in `truncation`.

    The coefficients left out are added up, then halved for the mean over the ball.
    """

    def rest(name: str) -> NDArray[np.float64]:
        """What is left out, by degree."""
        found = _series(name, split, c, xi if split == "gaussian" else 0.0, 0.0)
        return np.cumsum(np.abs(found)[::-1])[::-1][1:]

    if layer == "laplace":
        error = np.sqrt(4 * np.pi / 3) * rest("F")
    elif layer == "laplace_grad":
        error = np.sqrt(4 * np.pi / 5) * 2 * rest("H")
    elif layer == "stokes_sl":
        error = np.sqrt(4 * np.pi / 3) * (rest("D") + 1.5 * rest("E"))
    elif layer == "stokes_grad":
        error = np.sqrt(4 * np.pi / 5) * (5.7 * rest("E") + 3.2 * rest("G"))
    else:
        error = np.sqrt(4 * np.pi / 5) * (1.8 * (3 * rest("E") + 2 * rest("G")) + 4 / 3 * rest("G"))
    return int(np.count_nonzero(0.5 * error > level))


def tables(p: "Parameters") -> NDArray:
    """Return the near-field tables of a sum.

    Parameters
    ----------
    p
        Parameters of the sum; the first parameter of its kernel, if it has any, is κ.

    Returns
    -------
    array (NF, p.radial_degree + 1)
        Coefficients in t = 2r²/rc² − 1 on [−1, 1], highest power first, in `p.dtype`; a row for each of the kernel's
        far parts.
    """
    xi = p.xi * p.rc if p.split == "gaussian" else 0.0
    kappa = p.rc * p.kernel.kappa
    rows = [
        _series(name, p.split, p.c, xi, kappa)[: p.radial_degree + 1] * p.rc ** -(1.0 + FAR[name].power)
        for name in p.kernel.far
    ]
    return np.ascontiguousarray(series.powers(np.array(rows)), dtype=p.dtype)


def truncation(layer: str, split: str, c: ArrayLike, xi: ArrayLike) -> NDArray[np.float64]:
    """Return the RMS of the near field dropped beyond rc, for random strengths at random points.

    It is relative to √(Q rc/V) for ``"laplace"`` and ``"stokes_sl"``, to √(Q/(V rc)) for the others, with Q the sum of
    |q|², |f|² or, for ``"stokes_dl"``, |q|²|n|²: the root of `tail_integral`.  For the prolate a fit; for the Gaussian
    the leading term.  Dipoles and the pressure have 1/√3 and 2/√3 of ``"laplace_grad"``, and so has their size U.
    """
    c, xi = np.asarray(c, np.float64), np.asarray(xi, np.float64)
    if split == "prolate":
        fit = _PROLATE_TAIL[layer]
        return np.exp(fit[0] + fit[1] * np.log(c) + fit[2] / c + fit[3] / c**2 - c)
    return _GAUSSIAN_TAIL[layer][0] * xi ** _GAUSSIAN_TAIL[layer][1] * np.exp(-(xi**2))


def bandwidth(layer: str, split: str, level: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return c and ξ rc (0 for the prolate) at which `truncation` is `level`, an array.

    For the Gaussian the modes dropped beyond kmax add half of `level`.
    """
    log = np.log(level)
    if split == "prolate":
        fit = _PROLATE_TAIL[layer]
        c = np.full_like(log, 12.0)
        for _ in range(6):
            value = fit[0] + fit[1] * np.log(c) + fit[2] / c + fit[3] / c**2 - c - log
            c = np.maximum(c - value / (fit[1] / c - fit[2] / c**2 - 2 * fit[3] / c**3 - 1.0), _LEAST_C)
        return c, np.zeros_like(c)
    xi = np.full_like(log, 3.0)
    lead, power = _GAUSSIAN_TAIL[layer]
    for _ in range(12):
        xi = np.sqrt(np.maximum(np.log(lead) + power * np.log(xi) - log, 1.0))
    ratio = np.full_like(log, 3.0)  # kmax / 2ξ
    for _ in range(12):
        modes = np.sqrt(0.75 / (xi * ratio**5))
        if layer.startswith("stokes"):
            modes = modes * (1 + ratio**2) * np.sqrt(28 / 9 if layer == "stokes_dl" else 8 / 3)
        if layer in STEEP:
            modes = modes * 2 * xi * ratio
        ratio = np.sqrt(np.maximum(np.log(2 * modes) - log, 1.0))
    return 2 * xi * ratio, xi


def tail_integral(layer: str, split: Split, rc: float, kappa: float | None = None) -> float:
    """Return 4π ∫ |K_near|² r² dr from `rc` to 6 `rc`, averaged over the directions of the strengths.

    For ``"laplace"`` the kernel is that of Yukawa where `kappa` is given.
    """
    nodes, weights = roots_legendre(300)
    r, weights = rc * (3.5 + 2.5 * nodes), 2.5 * rc * weights
    if layer == "laplace":
        near = 1 / r - far_part("F", split, r)
        if kappa is not None:
            near = np.exp(-kappa * r) / r - far_part("Y", split, r, kappa)
        square = near**2
    elif layer == "laplace_grad":
        square = (1 / r**2 + 2 * r * far_part("H", split, r)) ** 2
    else:
        _, D, E, G = far_parts(split, r)
        if layer == "stokes_sl":
            a, b = 1 / r - D - r**2 * E, 1 / r + r**2 * E
            square = a**2 + (2 * a * b + b**2) / 3
        elif layer == "stokes_grad":
            a, b, c = -(r**-2 + 4 * r * E + 2 * r**3 * G), r**-2 + r * E, 2 * r**3 * G - 3 / r**2
            square = a**2 + (8 * b**2 + c**2 + 4 * a * b + 2 * a * c + 4 * b * c) / 3
        else:
            side = -(3 * E + 2 * r**2 * G) * r
            along = 3 * side + (4 * G - 6 / r**5) * r**3
            square = along**2 / 9 + 2 * side**2 / 3
    return float(4 * np.pi * np.sum(weights * r**2 * square))


def units(
    layer: str, rc: NDArray | float, length: float, n: int, same: bool, kappa: float = 0.0
) -> tuple[NDArray | float, NDArray | float]:
    """Return the units of `truncation` and of the second estimate of `window.alias`, over the predicted size U.

    U is √Q/l for laplace and 1.7 √Q/l for the single layer, for n random sources in a box of mean side l; Yukawa
    kernels see only some of them, and U is √(2πQ/(κV)) if that is less.  For the double layer and gradients it is
    √(S Q/(V d)), d = l/n^(1/3) and S = 91, 22.8 (laplace), 76 (Stokes), where the closest pairs dominate, and √(S Q)/l²
    far from all sources; if targets are the sources (`same`) the former, else the geometric mean.

    Parameters
    ----------
    layer
        As in `truncation`.
    rc
        Cutoffs.
    length, n, same
        l, the number of sources, and whether they are the targets.
    kappa
        κ of a Yukawa kernel.
    """
    n = max(n, 1)
    if layer in STEEP:
        crowding = n ** (1 / 6 if same else 1 / 12)
        size = np.sqrt(STEEP[layer]) * crowding
        return np.sqrt(length / rc) / size, (length / rc) ** 2 / (np.sqrt(n) * size)
    size = 1.7 if layer == "stokes_sl" else min(1.0, np.sqrt(2 * np.pi / max(kappa * length, 1e-9)))
    return np.sqrt(rc / length) / size, length / (rc * np.sqrt(n)) / size


def near_mean(kernel: "Kernel", split: Split, rc: float) -> float:
    """Return ∫ K_near dV over the ball of radius `rc`, for one component of the result; 0 for a kernel without mean.

    Up to the dropped tail it is −2πΦ''(0) for laplace, 0 for the Stokes kernels, and 4π/κ² (1 − 1/Φ(iκ)) for Yukawa.
    """
    if not kernel.mean:
        return 0.0
    if kernel.profile == "yukawa":
        return 4 * np.pi / kernel.kappa**2 - beyond_mean(kernel.kappa, split, rc)
    nodes, weights = roots_legendre(48)
    r = 0.5 * rc * (nodes + 1.0)
    if kernel.profile == "stokes":
        _, D, E, _ = far_parts(split, r)
        mean = 1 / r - D - r**2 * E + (1 / r + r**2 * E) / 3
    else:
        mean = 1 / r - far_part("F", split, r)
    return float(2 * np.pi * rc * np.sum(weights * r**2 * mean))


def beyond_mean(kappa: float, split: Split, rc: float) -> float:
    """Return the integral over space of exp(−κr)/r beyond rc and of its far part within: what the near field lacks."""
    nodes, weights = roots_legendre(48)
    r, x = 0.5 * rc * (nodes + 1.0), kappa * rc
    far = 2 * np.pi * rc * float(np.sum(weights * r**2 * far_part("Y", split, r, kappa)))
    return far + 4 * np.pi * math.exp(-x) * (1 + x) / kappa**2
