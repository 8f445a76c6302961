"""Far part of each kernel's near field, a band-limited function of r² that pair functions subtract.

The far part of every kernel is band-limited, so it is an entire even function of r: one short polynomial in r².  The
near field is the free kernel minus that polynomial; with w = 1/r (0 at a coincident pair, where the tables alone give
the self term), τ = r² and r = target − source:

    laplace         u += (w − F) q
    laplace_grad    u −= (w³ + 2H) q r                 laplace_dipole, stokes_pressure  the same along −d, −2f
    stokes_sl       u += (w − D − τE) f + (w³ + E) (r·f) r
    stokes_dl       u += C [q (r·n) + r (q·n) + n (r·q)] + (4G − 6w⁵) (r·q)(r·n) r,   C = −(3E + 2τG)
    stokes_grad     ∂ⱼuᵢ += A fᵢ rⱼ + (w³ + E) [rᵢ fⱼ + (r·f) δᵢⱼ] + (2G − 3w⁵) (r·f) rᵢ rⱼ,   A = −(w³ + 4E + 2τG)
    stokes_dipole   u −= A D r + (w³ + E) [Dᵀ r + (tr D) r] + (2G − 3w⁵) (r·D r) r with the A of stokes_grad
    rotlet          u += (w³ + 2H) t × r
    rpy             u += (A − D − τE) f + (B + E) (r·f) r with A and B of spheres, and D and E of their profile
    rpy_rotation    the same for f, and besides u += (C + 2H) t × r
                    ω += (C + 2H) f × r + (P + 2H + 2τK) t + (Q − 2K) (r·t) r with H and K of their profile
    faxen           u += (w − D − τE) f + (w³ + E) (r·f) r + (2w³ − 8H − 8τK) g + (8K − 6w⁵) (r·g) r,
                    its Laplacian  (2w³ − 8H − 8τK) f + (8K − 6w⁵) (r·f) r with H and K of Φs
    regularised_stokeslet
                    u += (2/s − τ/s³ − D − τE) f + (1/s³ + E) (r·f) r with D and E of stokes_sl at s = √(τ + ε²)
    regularised_dipole
                    u += ((2ε² − τ)/s⁵ + 4H + 4τK) d + (3/s⁵ − 4K) (r·d) r with H and K of laplace at s = √(τ + ε²)
    yukawa          u += (exp(−κr) w − Y) q           its gradient  −(exp(−κr) (w + κ) w² + 2Z) q r

    F = (2/π) ∫ Φ j₀(kr) dk            E = −(4/π) ∫ Φs k² j₂(kr)/(kr)² dk = D'(τ)
    D = (8/π) ∫ Φs j₁(kr)/(kr) dk      G = (2/π) ∫ Φs k⁴ j₃(kr)/(kr)³ dk = E'(τ)
    H = −(1/π) ∫ Φ k² j₁(kr)/(kr) dk = F'(τ)      K = (1/2π) ∫ Φ k⁴ j₂(kr)/(kr)² dk = H'(τ)
    Y = (2/π) ∫ Φ/Φ(iκ) k²/(k² + κ²) j₀(kr) dk,  Z = Y'(τ)

with spherical Bessel functions jₙ.  For a Gaussian these are the erf and exp kernels of Ewald and Hasimoto.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gamma, roots_legendre

from parki.ewald.split import profiles, series
from parki.ewald.split.profiles import Profile, Split


@dataclass(frozen=True)
class FarPart:
    """Radial function of a far part: `factor` times ∫ Φ k^`power` jₙ(kr)/(kr)ⁿ dk with n = `order`.

    Attributes
    ----------
    order, factor, power
        As above.
    profile
        Φ of the kernel, a function of `profiles`.
    screened
        True to multiply the integrand by k²/(k² + κ²), where κ is the kernel's first parameter.
    edge
        True to take the integrand at kmax, times kmax, in place of the integral.
    softened
        True to take the function at √(r² + ε²), where ε is the kernel's first parameter.
    """

    order: int
    factor: float
    power: int = 0
    profile: Profile = profiles.phi
    screened: bool = False
    edge: bool = False
    softened: bool = False

    def whole(self, r: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the function at the radii `r` for Φ = 1: that of the kernel."""
        n, power = self.order, self.power - self.order
        integral = math.sqrt(math.pi) * 2.0 ** (power - 1) * gamma(0.5 * (n + power + 1)) / gamma(0.5 * (n - power) + 1)
        return self.factor * float(integral) / r ** (self.power + 1)


F = FarPart(0, 2 / np.pi)
D = FarPart(1, 8 / np.pi, 0, profiles.phi_stokes)
E = FarPart(2, -4 / np.pi, 2, profiles.phi_stokes)
G = FarPart(3, 2 / np.pi, 4, profiles.phi_stokes)
H = FarPart(1, -1 / np.pi, 2)
K = FarPart(2, 0.5 / np.pi, 4)
H_STOKES, K_STOKES = (replace(part, profile=profiles.phi_stokes) for part in (H, K))
D_SPHERES, E_SPHERES, H_SPHERES, K_SPHERES = (replace(part, profile=profiles.phi_spheres) for part in (D, E, H, K))
D_SOFTENED, E_SOFTENED, H_SOFTENED, K_SOFTENED = (replace(part, softened=True) for part in (D, E, H, K))
Y = FarPart(0, 2 / np.pi, 0, profiles.phi_screened, screened=True)
Z = FarPart(1, -1 / np.pi, 2, profiles.phi_screened, screened=True)


def edges(part: FarPart) -> tuple[FarPart, FarPart]:
    """Return a and b of the difference a δ + b r r of the modes' virial from r times the derivative of a far part.

    The modes end at kmax, so a = −(2/π) kmax Φ j₁(x)/x and b = (2/π) kmax³ Φ j₂(x)/x² with x = kmax r.
    """
    return replace(part, order=1, factor=-2 / np.pi, edge=True), replace(part, order=2, power=2, edge=True)


def _bessel(n: int, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return jₙ(x)/xⁿ for n <= 3: the power series below 3, closed forms above."""
    step = -0.5 * np.square(np.minimum(x, 3.0))
    term = np.full_like(x, 1.0 / np.prod(np.arange(1.0, 2 * n + 2, 2.0)))
    total = term.copy()
    for m in range(1, 22):
        term = term * step / (m * (2 * n + 2 * m + 1))
        total += term
    y = np.maximum(x, 3.0)
    j_low, j_high = np.cos(y) / y, np.sin(y) / y
    for i in range(n):
        j_low, j_high = j_high, (2 * i + 1) / y * j_high - j_low
    return np.where(x < 3.0, total, j_high / y**n)


def values(part: FarPart, split: Split, r: NDArray[np.float64], parameter: float = 0.0) -> NDArray[np.float64]:
    """Return a far part at the radii `r` (N,) by Gauss–Legendre quadrature; `parameter` is the kernel's first one."""
    if part.softened:
        s = np.hypot(r, parameter)
        plain = replace(part, softened=False)
        # Beyond all near fields the far part is that of the kernel, in closed form for any ε.
        return np.where(s > split.reach, plain.whole(s), values(plain, split, np.minimum(s, split.reach)))
    half = 0.5 * split.kmax * np.max(r, initial=0.0)
    if part.edge:
        k, weights = np.array([split.kmax]), np.array([split.kmax])
        weights = weights * k**2 / (k**2 + parameter**2) if part.screened else weights
    elif part.screened:
        # The integrand has poles at ±iκ, which may be very close to 0: k = kmax s³.
        nodes, weights = roots_legendre(int(3 * half) + 120)
        s = 0.5 * (nodes + 1.0)
        k, weights = split.kmax * s**3, 1.5 * split.kmax * s**2 * weights
        weights = weights * k**2 / (k**2 + parameter**2)
    else:
        nodes, weights = roots_legendre(int(half) + 24)
        k, weights = 0.5 * split.kmax * (nodes + 1.0), 0.5 * split.kmax * weights
    phi = part.profile(split, k, parameter)
    return _bessel(part.order, np.outer(r, k)) @ (part.factor * weights * k**part.power * phi)


@lru_cache(maxsize=512)
def coefficients(part: FarPart, split: str, c: float, xi: float, parameter: float) -> NDArray[np.float64]:
    """Return the Chebyshev coefficients in t = 2r² − 1 of a far part with rc = 1; `xi` is that of the Gaussian."""
    t = series.points(int(0.4 * c) + 24)
    return series.coefficients(values(part, profiles.profile(split, c, 1.0, xi), np.sqrt(0.5 * (t + 1.0)), parameter))
