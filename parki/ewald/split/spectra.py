"""Green's functions in Fourier space, whole and truncated in free directions.

A mode that varies along a periodic direction decays along the free ones, and takes the whole Green's function.  A mode
that is constant along all periodic directions takes that of the free directions, truncated at a radius R beyond all
pairs: then a finite period is exact.  Truncated functions are shifted by constants, which make them continuous at R,
and which `means` undoes.

Sources: Vico, Greengard, Ferrando 2016 (truncation); af Klinteberg, Shamshirgar, Tornberg 2017 (free-space Stokes);
Shamshirgar, Bagge, Tornberg 2021 (one and two periodic directions).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import j0, j1, k0, k1, kn, roots_legendre

from parki.ewald.split import profiles
from parki.ewald.split.profiles import Profile
from parki.ewald.split.softened import SoftenedField
from parki.ewald.split.softened_dipole import SoftenedDipoleField

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Spectrum:
    """Scalar Green's function of the modes, and the profile of the split that multiplies it.

    Attributes
    ----------
    truncated
        Green's functions truncated at a radius in the free directions, of squares of wave numbers, the radius and κ:
        by the number of periodic directions, from 0 on.
    slope
        Derivative of `whole` by the square of the wave number, for kernels that have a virial.
    profile
        Φ, a function of `profiles`.
    factor
        Factor of the modes in `profile` beside the split's, a function of squares of wave numbers and the kernel's
        first parameter; None for 1.
    form
        Factor of the modes of the whole kernel beside the Green's function, as `factor`, for kernels whose transform
        is positive; None for others.
    planar
        Field of a plane over −2π|z|.
    growing
        True if modes decay along free directions as (1 + κ|z|) exp(−κ|z|), False if as exp(−κ|z|).
    screened
        True if the kernel falls off as exp(−κr), with its first parameter as κ.
    softened
        Far field of modes without a periodic part, in the place of `truncated`, if the kernel is a function of
        √(r² + ε²), with its first parameter as ε; None for others.  Near k = 0 its profile behaves as a power of k
        times ln k.
    flat
        True if the Green's function is the same at all wave numbers but 0.
    """

    truncated: tuple[Callable[[Values, float, float], Values], ...]
    slope: Callable[[Values, float], Values] | None = None
    profile: Profile = profiles.phi
    factor: Callable[[Values, float], Values] | None = None
    form: Callable[[Values, float], Values] | None = None
    planar: int = 1
    growing: bool = False
    screened: bool = False
    softened: type[SoftenedField] | None = None
    flat: bool = False

    @property
    def weight(self) -> float:
        """Return w of `whole`."""
        return 4 * np.pi * self.planar

    def whole(self, k2: Values, kappa: float) -> Values:
        """Return the Green's function w/(k² + κ²) of squares of wave numbers, κ = 0 unless screened; w if it is flat.

        It is 0 at 0, even if it has a limit there: on the grid the rounding of a neutral sum would be multiplied by
        4π/κ², and `means` has the exact value.
        """
        if self.flat:
            return np.where(k2 > 0, self.weight, 0.0)
        shift = kappa**2 if self.screened else 0.0
        return np.where(k2 > 0, self.weight / np.where(k2 > 0, k2 + shift, 1.0), 0.0)


def _harmonic_slope(k2: Values, kappa: float) -> Values:
    """Return −4π/k⁴."""
    return np.where(k2 > 0, -4 * np.pi / np.where(k2 > 0, k2, 1.0) ** 2, 0.0)


def _yukawa_slope(k2: Values, kappa: float) -> Values:
    """Return −4π/(k² + κ²)²."""
    return np.where(k2 > 0, -4 * np.pi / (k2 + kappa**2) ** 2, 0.0)


def _surfaces(k2: Values, radius: float) -> Values:
    """Return (sin(ka)/ka)², the form factor of two spherical surfaces of radius a."""
    return np.square(np.sinc(np.sqrt(k2) * radius / np.pi))


def _split(k2: Values, R: float, small: float) -> tuple[Values, Values, Values]:
    """Return k² and kR, replaced by 1 near 0, and a mask of wave numbers away from 0."""
    x = np.sqrt(k2) * R
    far = x >= small
    return np.where(far, k2, 1.0), np.where(far, x, 1.0), far


def _harmonic0(k2: Values, R: float, kappa: float) -> Values:
    """Return the transform of 1/r − 1/R."""
    safe, x, far = _split(k2, R, 1e-3)
    series_0 = 4 * np.pi * R**2 * (1 / 6 - k2 * R**2 / 120)
    return np.where(far, 4 * np.pi / safe * (1 - np.sin(x) / x), series_0)


def _harmonic1(k2: Values, R: float, kappa: float) -> Values:
    """Return the transform of −2 ln(ρ/R)."""
    safe, x, far = _split(k2, R, 1e-3)
    return np.where(far, 4 * np.pi / safe * (1 - j0(x)), np.pi * R**2 * (1 - k2 * R**2 / 16))


def _harmonic2(k2: Values, R: float, kappa: float) -> Values:
    """Return the transform of −2π|z|, and 0 at 0, where the transform has no value."""
    safe, x, far = _split(k2, R, 1e-9)
    return np.where(far, 4 * np.pi / safe * (1 - np.cos(x)), 0.0)


def _biharmonic0(k2: Values, R: float, kappa: float) -> Values:
    """Return k² times the transform of r − R/2 − r²/2R."""
    safe, x, far = _split(k2, R, 0.05)
    near = k2 * 4 * np.pi * R**4 * (1 / 60 - k2 * R**2 / 1260)
    return np.where(far, 4 * np.pi / safe * (2 + np.cos(x) - 3 * np.sin(x) / x), near)


def _biharmonic1(k2: Values, R: float, kappa: float) -> Values:
    """Return k² times the transform of −ρ² ln ρ shifted by a constant and a quadratic."""
    safe, x, far = _split(k2, R, 0.05)
    near = k2 * 8 * np.pi * R**4 * (1 / 64 - k2 * R**2 / 1152)
    return np.where(far, 8 * np.pi / safe * (1 - j0(x) - 0.5 * x * j1(x)), near)


def _biharmonic2(k2: Values, R: float, kappa: float) -> Values:
    """Return twice the harmonic function: across z only the Laplacian of the biharmonic function is left."""
    return 2 * _harmonic2(k2, R, kappa)


def _yukawa0(k2: Values, R: float, kappa: float) -> Values:
    """Return the transform of exp(−κr)/r − exp(−κR)/R."""
    _, x, far = _split(k2, R, 1e-2)
    ball = np.where(far, 3 * (np.sin(x) - x * np.cos(x)) / x**3, 1 - k2 * R**2 / 10)
    return _yukawa2(k2, R, kappa) - 4 * np.pi / 3 * R**2 * np.exp(-kappa * R) * ball


def _yukawa1(k2: Values, R: float, kappa: float) -> Values:
    """Return the transform of 2 K₀(κρ) − 2 K₀(κR)."""
    x, y = np.sqrt(k2) * R, kappa * R
    safe = np.where(k2 > 0, x, 1.0)
    cut = y * k1(y) * j0(x) + y**2 * k0(y) * j1(safe) / safe
    return np.where(k2 > 0, 4 * np.pi / (k2 + kappa**2) * (1 - cut), 2 * np.pi * R**2 * _disc(y))


def _yukawa2(k2: Values, R: float, kappa: float) -> Values:
    """Return the transform of (2π/κ) (exp(−κ|z|) − exp(−κR))."""
    _, x, far = _split(k2, R, 1e-2)
    sinc = np.where(far, np.sin(x) / x, 1 - k2 * R**2 / 6)
    cosine = np.where(far, np.cos(x), 1 - k2 * R**2 / 2)
    safe = np.where(k2 > 0, k2, 1.0)
    value = 4 * np.pi / (safe + kappa**2) * (1 - np.exp(-kappa * R) * (cosine + kappa * R * sinc))
    return np.where(k2 > 0, value, 4 * np.pi * R**2 * _ball(kappa * R))


def _ball(x: float) -> float:
    """Return (1 − (1 + x) exp(−x))/x², the integral of r exp(−x r) from 0 to 1."""
    if x > 0.5:
        return (1 - (1 + x) * math.exp(-x)) / x**2
    return sum((-x) ** n / (math.factorial(n) * (n + 2)) for n in range(16))


def _disc(y: float) -> float:
    """Return (2 − y² K₂(y))/y², the integral of s (ys) K₁(ys) from 0 to 1."""
    if y > 1.0:
        return float((2 - y**2 * kn(2, y)) / y**2)
    nodes, weights = roots_legendre(48)
    s = 0.5 * (nodes + 1.0)
    return float(0.5 * weights @ (s * y * s * k1(y * s)))


HARMONIC = Spectrum((_harmonic0, _harmonic1, _harmonic2), _harmonic_slope)
BIHARMONIC = Spectrum(
    (_biharmonic0, _biharmonic1, _biharmonic2), profile=profiles.phi_stokes, planar=2, growing=True
)  # fmt: skip
SPHERES = replace(BIHARMONIC, profile=profiles.phi_spheres, factor=profiles.spheres, form=_surfaces)
SOFTENED = replace(BIHARMONIC, profile=profiles.phi_softened, form=profiles.softened, softened=SoftenedField)
SOFTENED_DIPOLE = Spectrum((), profile=profiles.phi_softened_dipole, softened=SoftenedDipoleField, flat=True)
YUKAWA = Spectrum((_yukawa0, _yukawa1, _yukawa2), _yukawa_slope, profiles.phi_screened, screened=True)
