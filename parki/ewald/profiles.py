"""The split of a kernel: a radial profile Φ(k) with Φ(0) = 1 that keeps the far field and ends at kmax.

Every Ewald sum multiplies the Fourier transform of its kernel by a profile; what passes is summed on the grid, the
rest directly.  The Laplace kernel takes Φ, the Stokes kernels Φs(k) = Φ(k) (1 + α k²) with α = −Φ''(0)/2, so that
Φs''(0) = 0: the stokeslet derives from r, which a mollifier leaves unchanged at a distance only if its second moment
vanishes.  For a Gaussian this is Hasimoto's split (1959).

Sources: Ewald 1921 (Gaussian); Liang, Lu, Barnett, Greengard, Jiang 2025 (prolate); Xiao, Rokhlin, Yarvin 2001 (the
series of the prolate).
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh_tridiagonal

SPLITS = ("prolate", "gaussian")


@lru_cache(maxsize=512)
def _prolate(c: float) -> tuple[NDArray[np.float64], float]:
    """Legendre coefficients of ψ₀(x)/ψ₀(0) at bandwidth `c` (even degrees), and the eigenvalue χ₀."""
    size = int(0.4 * c) + 14
    k = np.arange(0.0, 2.0 * size, 2.0)
    diagonal = k * (k + 1) + (2 * k * (k + 1) - 1) / ((2 * k + 3) * (2 * k - 1)) * c * c
    j = k[:-1]
    beside = (j + 2) * (j + 1) / ((2 * j + 3) * np.sqrt((2 * j + 1) * (2 * j + 5))) * c * c
    chi, vector = eigh_tridiagonal(diagonal, beside, select="i", select_range=(0, 0))
    a = vector[:, 0] * np.sqrt(k + 0.5)
    return a / _even_legendre(a, np.zeros(1))[0], float(chi[0])


def _even_legendre(a: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Σ a_n P_2n(x), by the recurrence from P_2n−2 and P_2n to P_2n+2 in x²."""
    y = x * x
    before, now = np.zeros_like(y), np.ones_like(y)
    total = a[0] * now
    for i, an in enumerate(a[1:]):
        n = 2.0 * i
        # (n+1)(n+2) P_{n+2} from P_n and P_{n-2}: the three-term recurrence applied twice.
        lead = (2 * n + 1) * (2 * n + 3) / ((n + 1) * (n + 2))
        shift = (2 * n + 3) / (n + 2) * ((n + 1) / (2 * n + 3) + n * n / ((n + 1) * (2 * n - 1)))
        back = (2 * n + 3) / (n + 2) * n * (n - 1) / ((2 * n - 1) * (n + 1))
        before, now = now, (lead * y - shift) * now - back * before
        total = total + an * now
    return total


@dataclass(frozen=True)
class Prolate:
    """ψ₀(k/kmax)/ψ₀(0) with the order-zero prolate spheroidal function of bandwidth `c`; 0 beyond `kmax`."""

    c: float
    kmax: float

    @property
    def curvature(self) -> float:
        """Φ''(0), from the differential equation of ψ₀ at 0."""
        return -_prolate(self.c)[1] / self.kmax**2

    def phi(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return Φ at the wave numbers `k`."""
        x = np.abs(np.asarray(k, np.float64)) / self.kmax
        return np.where(x <= 1.0, _even_legendre(_prolate(self.c)[0], np.minimum(x, 1.0)), 0.0)

    def phi_stokes(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return Φs = Φ (1 − Φ''(0) k²/2) at the wave numbers `k`."""
        return self.phi(k) * (1.0 - 0.5 * self.curvature * np.square(k))


@dataclass(frozen=True)
class Gaussian:
    """exp(−k²/4ξ²), cut to 0 beyond `kmax`, where it must be negligible."""

    xi: float
    kmax: float

    @cached_property
    def curvature(self) -> float:
        """Φ''(0) = −1/2ξ²."""
        return -0.5 / self.xi**2

    def phi(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return Φ at the wave numbers `k`."""
        k = np.asarray(k, np.float64)
        return np.where(np.abs(k) <= self.kmax, np.exp(-((0.5 * k / self.xi) ** 2)), 0.0)

    def phi_stokes(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return Φs = Φ (1 + k²/4ξ²), Hasimoto's factor, at the wave numbers `k`."""
        return self.phi(k) * (1.0 - 0.5 * self.curvature * np.square(k))


def profile(split: str, c: float, rc: float, xi: float) -> Prolate | Gaussian:
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
