"""Green's function of a sum: its spectrum with the parameters' box, cutoff and split."""

import math
from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from parki.ewald.choice.params import Parameters
from parki.ewald.split import profiles, series
from parki.ewald.split.means import Surroundings
from parki.ewald.split.softened import softened_field

Values = NDArray[np.float64]


def whole(p: Parameters, k2: Values) -> Values:
    """Return the Green's function at squares of wave numbers, 0 at 0: see `spectra.Spectrum`."""
    return p.kernel.spectrum.whole(k2, p.kernel.kappa)


def truncated(p: Parameters, k2: Values, period: float) -> Values:
    """Return the Green's function cut in the free directions times the profile, for modes without a periodic part.

    `period` is the padded period of the free direction of a sum with two periodic ones.  Its value at k = 0 has a free
    constant, chosen here to make the mean over all pairs of points in the box about zero.
    """
    R = radius(p)
    if p.kernel.spectrum.softened:
        split = profiles.profile(p.split, p.c, p.rc, p.xi)
        field = softened_field(p.kernel.spectrum.softened, split, p.rc, p.kernel.parameter(), p.periodicity, R)
        return field.modes(k2, period, p.box[2])
    cut = p.kernel.spectrum.truncated[p.periodicity](k2, R, p.kernel.kappa)
    if p.periodicity == 2 and not p.kernel.spectrum.screened:
        at_zero = 2 * np.pi * R**2 - 2 * np.pi * (R - p.box[2] / 3) * period
        cut = np.where(k2 > 0, cut, at_zero * p.kernel.spectrum.planar)
    return cut * factor(p, k2)


def radius(p: Parameters) -> float:
    """Return R: the diagonal of the box across its free directions, plus rc, by which the split smears.

    Softened kernels are cut beyond all near pairs, where they are smooth.
    """
    diagonal = math.hypot(*p.box[p.periodicity :])
    return (max(diagonal, p.rc) if p.kernel.spectrum.softened else diagonal) + p.rc


@lru_cache(maxsize=32)
def profile(p: Parameters) -> Values:
    """Return the split's profile as a polynomial in t = 2k²/kmax² − 1 on [−1, 1], highest power first.

    That of a softened kernel is a Chebyshev series in t = 2 √(k/kmax) − 1, in which k⁴ ln k is smooth and coefficients
    of k² ln k fall with the ninth power of their number, last term first.
    The polynomial is accurate to a hundredth of the tolerance or to rounding, that of a flat Green's function, whose
    errors are alike at all wave numbers, to a hundredth of it more.
    """
    split, softened = profiles.profile(p.split, p.c, p.rc, p.xi), p.kernel.spectrum.softened
    terms = int(0.4 * p.c) + 24
    if softened:
        terms += (144 if p.kernel.spectrum.flat else 24) + int(6 * math.sqrt(p.kernel.parameter() * p.kmax))
    k = split.kmax * (0.5 * (series.points(terms) + 1.0)) ** (2.0 if softened else 0.5)
    coefficients = series.coefficients(p.kernel.profile(split, k))
    level = 1e-4 * p.pair_error if p.kernel.spectrum.flat else 0.01 * p.tolerance
    degree = series.degree(coefficients, max(level, float(np.finfo(p.far).eps)))
    first = coefficients[: degree + 1]
    return np.ascontiguousarray(first[::-1] if softened else series.powers(first))


def factor(p: Parameters, k2: Values) -> Values:
    """Return the split's profile at squares of wave numbers up to kmax²."""
    if p.kernel.spectrum.softened:
        return chebyshev.chebval(2 * np.sqrt(np.sqrt(k2 / p.kmax**2)) - 1, profile(p)[::-1])
    return polynomial(profile(p), 2 * k2 / p.kmax**2 - 1)


def polynomial(powers: Values, t: Values) -> Values:
    """Return a polynomial at t, highest power first: `numpy.polyval` in place."""
    values = np.full_like(t, powers[0])
    for power in powers[1:]:
        values *= t
        values += power
    return values


def constants(p: Parameters, power: int = 0) -> Values:
    """Return the factor of the net density for each component of the result, to which it adds: see `means`.

    Factors of derivatives are 0.

    With one periodic direction logarithms are of lengths in the caller's unit; lengths of `p` are these times 2^power.
    """
    factors = np.zeros(p.kernel.result)
    if not p.kernel.mean:
        return factors
    R, split = radius(p), profiles.profile(p.split, p.c, p.rc, p.xi)
    logarithm = math.log(R) - power * math.log(2)
    surroundings = Surroundings(p.box, p.periodicity, R, logarithm, split, p.rc, p.kernel.parameter())
    factors[: p.kernel.fields] = p.kernel.scale * p.kernel.mean(surroundings)
    return factors
