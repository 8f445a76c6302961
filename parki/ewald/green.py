"""Green's functions in Fourier space, and what truncating them in free directions asks for.

A mode that varies along a periodic direction decays along the free ones, and takes the Green's function as it is.  One
that does not, k = 0 in all periodic directions, takes that of the free directions cut at a radius R, beyond all pairs:
then a finite period is exact.  The cut ones are shifted by constants, which makes them continuous at R, and which
`constants` undoes.

Sources: Vico, Greengard, Ferrando 2016 (truncation); af Klinteberg, Shamshirgar, Tornberg 2017 (free-space Stokes);
Shamshirgar, Bagge, Tornberg 2021 (one and two periodic directions).
"""

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import j0, j1

from parki.ewald import profiles, radial, series

if TYPE_CHECKING:
    from parki.ewald.params import Parameters

Values = NDArray[np.float64]


def whole(p: "Parameters", k2: Values) -> Values:
    """The Green's function at squares of wave numbers, 0 at 0 if it has no limit there.

    4π/k² for ``"harmonic"``, 8π/k² = k² 8π/k⁴ for ``"biharmonic"``, 4π/(k² + κ²) for ``"yukawa"``, but 0 at 0, where
    `constants` has its exact value: on the grid the rounding of a neutral sum would count 4π/κ² times.
    """
    if p.kernel.green == "yukawa":
        return np.where(k2 > 0, 4 * np.pi / (k2 + p.kernel.kappa**2), 0.0)
    safe = np.where(k2 > 0, k2, 1.0)
    return np.where(k2 > 0, (8 if p.kernel.green == "biharmonic" else 4) * np.pi / safe, 0.0)


def truncated(p: "Parameters", k2: Values, R: float, period: float) -> Values:
    """The same, cut at the radius R in the free directions, for modes without a periodic part.

    `period` is that of the free direction of a sum with two periodic ones, whose value at k = 0 has a free constant:
    this one makes the mean over all pairs of points in the box about zero.
    """
    found = _TRUNCATED[p.kernel.green, p.periodicity](k2, R, p)
    if p.periodicity == 2:
        at_zero = 2 * np.pi * R**2 - 2 * np.pi * (R - p.box[2] / 3) * period
        found = np.where(k2 > 0, found, at_zero * (2 if p.kernel.green == "biharmonic" else 1))
    return found


def _split(k2: Values, R: float, small: float) -> tuple[Values, Values, Values]:
    """Wave numbers with 1 for those near 0, kR of both, and which are not near 0."""
    x = np.sqrt(k2) * R
    far = x >= small
    return np.where(far, k2, 1.0), np.where(far, x, 1.0), far


def _harmonic0(k2: Values, R: float, p: "Parameters") -> Values:
    """1/r − 1/R."""
    safe, x, far = _split(k2, R, 1e-3)
    series_0 = 4 * np.pi * R**2 * (1 / 6 - k2 * R**2 / 120)
    return np.where(far, 4 * np.pi / safe * (1 - np.sin(x) / x), series_0)


def _harmonic1(k2: Values, R: float, p: "Parameters") -> Values:
    """−2 ln(ρ/R)."""
    safe, x, far = _split(k2, R, 1e-3)
    return np.where(far, 4 * np.pi / safe * (1 - j0(x)), np.pi * R**2 * (1 - k2 * R**2 / 16))


def _harmonic2(k2: Values, R: float, p: "Parameters") -> Values:
    """−2π|z|; no value at 0."""
    safe, x, far = _split(k2, R, 1e-9)
    return np.where(far, 4 * np.pi / safe * (1 - np.cos(x)), 0.0)


def _biharmonic0(k2: Values, R: float, p: "Parameters") -> Values:
    """k² times the transform of r − R/2 − r²/2R."""
    safe, x, far = _split(k2, R, 0.05)
    near = k2 * 4 * np.pi * R**4 * (1 / 60 - k2 * R**2 / 1260)
    return np.where(far, 4 * np.pi / safe * (2 + np.cos(x) - 3 * np.sin(x) / x), near)


def _biharmonic1(k2: Values, R: float, p: "Parameters") -> Values:
    """k² times the transform of −ρ² ln ρ shifted by a constant and a quadratic."""
    safe, x, far = _split(k2, R, 0.05)
    near = k2 * 8 * np.pi * R**4 * (1 / 64 - k2 * R**2 / 1152)
    return np.where(far, 8 * np.pi / safe * (1 - j0(x) - 0.5 * x * j1(x)), near)


def _biharmonic2(k2: Values, R: float, p: "Parameters") -> Values:
    """Twice the harmonic one: across z only the Laplacian of the biharmonic function is left."""
    return 2 * _harmonic2(k2, R, p)


def _yukawa0(k2: Values, R: float, p: "Parameters") -> Values:
    """exp(−κr)/r − exp(−κR)/R."""
    kappa = p.kernel.kappa
    _, x, far = _split(k2, R, 1e-2)
    cut = np.exp(-kappa * R)
    ball = np.where(far, 3 * (np.sin(x) - x * np.cos(x)) / x**3, 1 - k2 * R**2 / 10)
    sinc = np.where(far, np.sin(x) / x, 1 - k2 * R**2 / 6)
    cosine = np.where(far, np.cos(x), 1 - k2 * R**2 / 2)
    safe = np.where(k2 > 0, k2, 1.0)
    whole_space = 4 * np.pi / (safe + kappa**2) * (1 - cut * (cosine + kappa * R * sinc))
    whole_space = np.where(k2 > 0, whole_space, 4 * np.pi * R**2 * _ball(kappa * R))
    return whole_space - 4 * np.pi / 3 * R**2 * cut * ball


def _ball(x: float) -> float:
    """(1 − (1 + x) exp(−x))/x², the integral of r exp(−x r) from 0 to 1."""
    if x > 0.5:
        return (1 - (1 + x) * math.exp(-x)) / x**2
    return sum((-x) ** n / (math.factorial(n) * (n + 2)) for n in range(16))


_TRUNCATED = {
    ("harmonic", 0): _harmonic0,
    ("harmonic", 1): _harmonic1,
    ("harmonic", 2): _harmonic2,
    ("biharmonic", 0): _biharmonic0,
    ("biharmonic", 1): _biharmonic1,
    ("biharmonic", 2): _biharmonic2,
    ("yukawa", 0): _yukawa0,
}


def radius(p: "Parameters") -> float:
    """Return R: the diagonal of the box across its free directions, and rc, by which the split smears."""
    return math.hypot(*p.box[p.periodicity :]) + p.rc


@lru_cache(maxsize=32)
def profile(p: "Parameters") -> Values:
    """Return the split's profile as a polynomial in t = 2k²/kmax² − 1 on [−1, 1], highest power first.

    It is good to a hundredth of the tolerance or to rounding.
    """
    split = profiles.profile(p.split, p.c, p.rc, p.xi)
    k = split.kmax * np.sqrt(0.5 * (series.points(int(0.4 * p.c) + 24) + 1.0))
    found = series.coefficients(radial.kernel_profile(p.kernel, split, k))
    needed = series.degree(found, max(0.01 * p.tolerance, float(np.finfo(p.far).eps)))
    return np.ascontiguousarray(series.powers(found[: needed + 1]))


def constants(p: "Parameters", power: int = 0) -> Values:
    """Return, for each component of the result, the factor of the net density that is added to it.

    With one periodic direction logarithms take lengths in the caller's unit, of which those of `p` are 2^power.

    Free directions: what the truncated kernels were shifted by.  None: what makes the mean over the box of near and far
    field the kernel's, exactly as the near field is cut at rc: with equal strengths the tail is coherent, and this
    removes it.  It is zero for harmonic (a uniform neutralising background) and Stokes kernels (no mean flow).
    """
    result = np.zeros(p.kernel.result)
    if not p.kernel.mean:
        return result
    R, (l0, l1, l2) = radius(p), p.box
    logarithm = math.log(R) - power * math.log(2)
    stokes = p.kernel.green == "biharmonic"
    match p.periodicity:
        case 0 if p.kernel.green == "yukawa":
            # The split's profile is not 1 at k = 0, and multiplies the shift too.
            growth = profiles.profile(p.split, p.c, p.rc, p.xi).growth(p.kernel.kappa)
            result[:] = math.exp(-p.kernel.kappa * R) / (R * growth)
        case 0:
            result[:] = (2 if stokes else 1) / R
        case 1 if stokes:
            result[:] = -(2 * logarithm + 1) / l0
            result[0] = -(4 * logarithm + 2) / l0
        case 1:
            result[:] = -2 * logarithm / l0
        case 2 if stokes:
            result[:2] = -4 * np.pi * l2 / 3 / (l0 * l1)
        case 2:
            result[:] = -2 * np.pi * l2 / 3 / (l0 * l1)
        case _:
            split = profiles.profile(p.split, p.c, p.rc, p.xi)
            if p.kernel.green == "yukawa":
                mean = radial.beyond_mean(p.kernel.kappa, split, p.rc)
            else:
                mean = -radial.near_mean(p.kernel, split, p.rc)
            result[:] = mean / math.prod(p.box)
    return p.kernel.scale * result
