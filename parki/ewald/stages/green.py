"""Green's function of a sum: its spectrum with the parameters' box, cutoff and split."""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from parki.ewald.choice.params import Parameters
from parki.ewald.split import profiles, series
from parki.ewald.split.means import Surroundings

Values = NDArray[np.float64]


def whole(p: Parameters, k2: Values) -> Values:
    """Return the Green's function at squares of wave numbers, 0 at 0: see `spectra.Spectrum`."""
    return p.kernel.spectrum.whole(k2, p.kernel.kappa)


def truncated(p: Parameters, k2: Values, R: float, period: float) -> Values:
    """Return the Green's function cut at R in the free directions, for modes without a periodic part.

    `period` is the padded period of the free direction of a sum with two periodic ones.  Its value at k = 0 has a free
    constant, chosen here to make the mean over all pairs of points in the box about zero.
    """
    cut = p.kernel.spectrum.truncated[p.periodicity](k2, R, p.kernel.kappa)
    if p.periodicity == 2 and not p.kernel.spectrum.screened:
        at_zero = 2 * np.pi * R**2 - 2 * np.pi * (R - p.box[2] / 3) * period
        cut = np.where(k2 > 0, cut, at_zero * p.kernel.spectrum.planar)
    return cut


def radius(p: Parameters) -> float:
    """Return R: the diagonal of the box across its free directions, plus rc, by which the split smears."""
    return math.hypot(*p.box[p.periodicity :]) + p.rc


@lru_cache(maxsize=32)
def profile(p: Parameters) -> Values:
    """Return the split's profile as a polynomial in t = 2k²/kmax² − 1 on [−1, 1], highest power first.

    The polynomial is accurate to a hundredth of the tolerance or to rounding.
    """
    split = profiles.profile(p.split, p.c, p.rc, p.xi)
    k = split.kmax * np.sqrt(0.5 * (series.points(int(0.4 * p.c) + 24) + 1.0))
    coefficients = series.coefficients(p.kernel.profile(split, k))
    degree = series.degree(coefficients, max(0.01 * p.tolerance, float(np.finfo(p.far).eps)))
    return np.ascontiguousarray(series.powers(coefficients[: degree + 1]))


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
