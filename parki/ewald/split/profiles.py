"""Split of a kernel by a radial profile Φ(k) with Φ(0) = 1, which selects the far field and ends at kmax.

Every Ewald sum multiplies the Fourier transform of its kernel by a profile: the product is summed on the grid, the
rest directly.  The Laplace kernel takes Φ, the Stokes kernels Φs(k) = Φ(k) (1 + α k²) with α = −Φ''(0)/2, so that
Φs''(0) = 0: the stokeslet derives from r, which a mollifier leaves unchanged at a distance only if its second moment
vanishes.  For a Gaussian this is Hasimoto's split (1959).  A mollifier multiplies exp(−κr)/r, which is no harmonic
function, by its transform at iκ: the Yukawa kernel takes Φ(k)/Φ(iκ).

Sources: Ewald 1921 (Gaussian); Liang, Lu, Barnett, Greengard, Jiang 2025 (prolate); Xiao, Rokhlin, Yarvin 2001 (the
series of the prolate).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh_tridiagonal
from scipy.special import j1, k1, kn, roots_legendre

from parki.ewald.split import series

SPLITS = ("prolate", "gaussian")
MOST_GROWTH = 700.0  # largest exponent without overflow; a far field divided by its exponential is zero


@lru_cache(maxsize=512)
def _prolate(c: float) -> tuple[NDArray[np.float64], float]:
    """Return the coefficients of T_2n in ψ₀(x)/ψ₀(0) at bandwidth `c`, and the eigenvalue χ₀.

    ψ₀ is the lowest eigenvector of a tridiagonal matrix in the even normalised Legendre polynomials.
    """
    size = int(0.4 * c) + 14
    k = np.arange(0.0, 2.0 * size, 2.0)
    diagonal = k * (k + 1) + (2 * k * (k + 1) - 1) / ((2 * k + 3) * (2 * k - 1)) * c * c
    j = k[:-1]
    off_diagonal = (j + 2) * (j + 1) / ((2 * j + 3) * np.sqrt((2 * j + 1) * (2 * j + 5))) * c * c
    chi, vector = eigh_tridiagonal(diagonal, off_diagonal, select="i", select_range=(0, 0))
    coefficients = series.coefficients((vector[:, 0] * np.sqrt(k + 0.5)) @ _even_legendre(size))
    return coefficients / (coefficients @ (-1.0) ** np.arange(size)), float(chi[0])


@lru_cache(maxsize=64)
def _even_legendre(size: int) -> NDArray[np.float64]:
    """Return P_2n at the points x >= 0 whose 2x² − 1 are the Chebyshev points; row n, `size` rows and columns."""
    x = np.sqrt(0.5 * (series.points(size) + 1.0))
    return legendre.legvander(x, 2 * size - 1)[:, ::2].T


@lru_cache(maxsize=512)
def _prolate_growth(c: float, x: float) -> float:
    """Return ∫ ψ₀(t) cosh(xt) dt / ∫ ψ₀(t) dt over [−1, 1]: as ψ₀ is its own transform, ψ₀(ix/c)/ψ₀(0)."""
    nodes, weights = roots_legendre(int(0.25 * (c + x)) + 24)
    t = 0.5 * (nodes + 1.0)
    psi = weights * Prolate(c, 1.0).phi(t)
    return float(psi @ np.cosh(np.minimum(x * t, MOST_GROWTH)) / psi.sum())


@dataclass(frozen=True)
class Prolate:
    """ψ₀(k/kmax)/ψ₀(0) with the order-zero prolate spheroidal function of bandwidth `c`; 0 beyond `kmax`."""

    c: float
    kmax: float

    @property
    def curvature(self) -> float:
        """Return Φ''(0), from the differential equation of ψ₀ at 0."""
        return -_prolate(self.c)[1] / self.kmax**2

    def phi(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return Φ at the wave numbers `k`."""
        x = np.abs(np.asarray(k, np.float64)) / self.kmax
        coefficients = _prolate(self.c)[0]
        # T_2n(x) = cos(2n arccos x)
        waves = np.cos(np.multiply.outer(np.arccos(np.minimum(x, 1.0)), 2.0 * np.arange(len(coefficients))))
        return np.where(x <= 1.0, waves @ coefficients, 0.0)

    def phi_stokes(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return Φs = Φ (1 − Φ''(0) k²/2) at the wave numbers `k`."""
        return self.phi(k) * (1.0 - 0.5 * self.curvature * np.square(k))

    @property
    def reach(self) -> float:
        """Return a distance beyond which the near field is zero to rounding."""
        return 1.5 * self.c / self.kmax

    def growth(self, kappa: float) -> float:
        """Return Φ(iκ)."""
        return _prolate_growth(self.c, float(kappa) * self.c / self.kmax)


@dataclass(frozen=True)
class Gaussian:
    """exp(−k²/4ξ²), cut to 0 beyond `kmax`, where it must be negligible."""

    xi: float
    kmax: float

    @property
    def curvature(self) -> float:
        """Return Φ''(0) = −1/2ξ²."""
        return -0.5 / self.xi**2

    def phi(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return Φ at the wave numbers `k`."""
        k = np.asarray(k, np.float64)
        return np.where(np.abs(k) <= self.kmax, np.exp(-((0.5 * k / self.xi) ** 2)), 0.0)

    def phi_stokes(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return Φs = Φ (1 + k²/4ξ²), Hasimoto's factor, at the wave numbers `k`."""
        return self.phi(k) * (1.0 - 0.5 * self.curvature * np.square(k))

    @property
    def reach(self) -> float:
        """Return a distance beyond which the near field is zero to rounding."""
        return 7.0 / self.xi

    def growth(self, kappa: float) -> float:
        """Return Φ(iκ) = exp(κ²/4ξ²)."""
        return float(np.exp(min((0.5 * kappa / self.xi) ** 2, MOST_GROWTH)))


Split = Prolate | Gaussian
#: Of a split, wave numbers, and the first parameter of the kernel: κ, or a radius.
Profile = Callable[[Split, ArrayLike, float], NDArray[np.float64]]


def profile(split: str, c: float, rc: float, xi: float) -> Split:
    """Return the profile of a split that ends at kmax = c/rc.

    Parameters
    ----------
    split
        ``"prolate"`` (which ignores `xi`) or ``"gaussian"``.
    c, rc, xi
        Bandwidth c = kmax rc, cutoff of the near field, splitting parameter of the Gaussian.

    Raises
    ------
    ValueError
        For another name of a split.
    """
    if split == "prolate":
        return Prolate(c, c / rc)
    if split == "gaussian":
        return Gaussian(xi, c / rc)
    raise ValueError(f"split: found {split!r}, expected one of {SPLITS}")


def phi(split: Split, k: ArrayLike, parameter: float = 0.0) -> NDArray[np.float64]:
    """Return Φ(k), which multiplies the modes of harmonic kernels."""
    return split.phi(k)


def phi_stokes(split: Split, k: ArrayLike, parameter: float = 0.0) -> NDArray[np.float64]:
    """Return Φs(k), which multiplies the modes of Stokes kernels."""
    return split.phi_stokes(k)


def spheres(k2: ArrayLike, radius: float) -> NDArray[np.float64]:
    """Return (1 − a²k²/6)² for squares of wave numbers and the radius a.

    Spheres spread forces, and average flows, over their surfaces: by 1 + a²∇²/6 beyond the surface, as the flow of a
    force is biharmonic (Faxén).
    """
    return np.square(1.0 - radius**2 * np.asarray(k2, np.float64) / 6.0)


def rate(split: str, c: ArrayLike, rc: ArrayLike, xi: ArrayLike) -> NDArray[np.float64]:
    """Return the rate at which the near field decays at `rc`: 2ξ²rc of a Gaussian, a fit for the prolate.

    Arguments are c, rc, and ξ rc.
    """
    return (0.185 * np.square(c) if split == "prolate" else 2.0 * np.square(xi)) / rc


def phi_spheres(split: Split, k: ArrayLike, radius: float) -> NDArray[np.float64]:
    """Return Φs(k) (1 − a²k²/6)², which multiplies the modes of flows of spheres of radius a."""
    return split.phi_stokes(k) * spheres(np.square(k), radius)


def phi_screened(split: Split, k: ArrayLike, kappa: float = 0.0) -> NDArray[np.float64]:
    """Return Φ(k)/Φ(iκ), which multiplies the modes of kernels that fall off as exp(−κr)."""
    return split.phi(k) / split.growth(kappa)


def phi_softened(split: Split, k: ArrayLike, epsilon: float) -> NDArray[np.float64]:
    """Return the profile Φε of kernels that derive from √(r² + ε²).

    The far part of r, a sum of waves sin(pr)/pr, is taken at √(r² + ε²), and the transform of such a wave, of p =
    k cosh θ, ends at p:

        Φε(k) = Φs(k) − ε k ∫ Φs(k cosh θ) J₁(ε k sinh θ) / cosh³θ dθ

    Near k = 0 it behaves as k⁴ ln k, as the kernel's own transform, which it is where ε is beyond all near fields.
    """
    return _at_softened(split.phi_stokes, split, k, epsilon, 3, softened)


def phi_softened_dipole(split: Split, k: ArrayLike, epsilon: float) -> NDArray[np.float64]:
    """Return the profile of kernels that derive from 1/√(r² + ε²).

    The far part of 1/r, too, is a sum of waves sin(pr)/pr, with Φ in place of Φs/p², so that the profile is that of
    `phi_softened` with Φ and cosh θ.  Near k = 0 it behaves as k² ln k.
    """
    return _at_softened(split.phi, split, k, epsilon, 1, softened_dipole)


def _at_softened(
    phi: Callable[[ArrayLike], NDArray], split: Split, k: ArrayLike, epsilon: float, power: int,
    kernel: Callable[[ArrayLike, float], NDArray],
) -> NDArray[np.float64]:  # fmt: skip
    """Return Φ(k) − ε k ∫ Φ(k cosh θ) J₁(ε k sinh θ) / (cosh θ)^power dθ; the kernel's own beyond all near fields."""
    k = np.asarray(k, np.float64)
    if epsilon > split.reach:
        return np.where(k <= split.kmax, kernel(k**2, epsilon), 0.0)
    safe = np.where((k > 0) & (k < split.kmax), k, split.kmax)
    top = np.arccosh(split.kmax / safe)
    nodes, weights = roots_legendre(int(0.25 * epsilon * split.kmax) + 64)
    theta = np.multiply.outer(top, 0.5 * (nodes + 1.0))
    waves = phi(np.minimum(safe[..., None] * np.cosh(theta), split.kmax))
    integrand = waves * j1(epsilon * safe[..., None] * np.sinh(theta)) / np.cosh(theta) ** power
    return phi(k) - epsilon * safe * 0.5 * top * (integrand @ weights)


def softened(k2: ArrayLike, epsilon: float) -> NDArray[np.float64]:
    """Return (εk)² K₂(εk)/2 for squares of wave numbers, the factor of the modes due to √(r² + ε²) in place of r."""
    x2 = epsilon**2 * np.asarray(k2, np.float64)
    return np.where(x2 > 0, 0.5 * x2 * kn(2, np.sqrt(np.where(x2 > 0, x2, 1.0))), 1.0)


def softened_dipole(k2: ArrayLike, epsilon: float) -> NDArray[np.float64]:
    """Return (εk) K₁(εk) for squares of wave numbers, the factor of the modes due to 1/√(r² + ε²) in place of 1/r."""
    x = epsilon * np.sqrt(np.asarray(k2, np.float64))
    return np.where(x > 0, x * k1(np.where(x > 0, x, 1.0)), 1.0)
