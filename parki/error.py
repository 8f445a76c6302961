"""Error of a sum: measured at some of its targets, with bounds for that of all; warnings where it may be large."""

import math
import sys
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parki import tables
from parki.scaling import exponent, times

RESAMPLED, LEVELS = 1000, (2.5, 97.5)  # samples drawn from the sample, and percentiles of their errors
EACH = (50, 99, 100)  # percentiles of the errors of single targets


SIGNS = 1  # seed of the random signs that a sum is compared with


class PrecisionWarning(UserWarning):
    """Warn of a tolerance below the reach of the points' type; the best possible is computed."""


class NetDensityWarning(UserWarning):
    """Warn of a net charge or force in a sum that is periodic in all directions: a convention makes it converge."""


class CancellationWarning(UserWarning):
    """Warn of a sum that is so small for its parts that its relative error says little."""


def warn(text: str, category: type[Warning]) -> None:
    """Warn the first caller outside this package."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "parki":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


def signed(dens: NDArray) -> NDArray:
    """Return strengths (…, N) with random signs, the same for all components of a source."""
    return dens * np.random.default_rng(SIGNS).choice((-1.0, 1.0), dens.shape[-1])


def warn_of_cancellation(exact: NDArray[np.float64], random: NDArray[np.float64], tolerance: float) -> None:
    """Warn where a sum is below the tolerance times the sum of the same moduli with random signs."""
    sizes = []
    for values in (exact, random):
        power = exponent(float(np.abs(values).max(initial=0.0)))
        sizes.append(math.ldexp(float(np.sqrt(np.mean(np.square(times(values, power))))), -power))
    if sizes[0] < tolerance * sizes[1]:
        warn(
            f"the sum is {sizes[0] / sizes[1]:.1e} of that of the same moduli with random signs, below the tolerance "
            f"{tolerance:g}: it cancels, and a relative error says little of it",
            CancellationWarning,
        )


@dataclass(frozen=True)
class ErrorEstimate:
    """Hold a measured error and its bounds.

    Parameters
    ----------
    value : float
        Relative RMS error ``√(Σ|u − exact|² / Σ|exact|²)`` over the sampled targets, all components and right-hand
        sides.
    low, high : float
        Bounds of the 95 % confidence interval of the error at all targets; both are `value` if all were taken.
    n : int
        Number of targets.
    median, percentile_99, maximum : float
        Of the single targets' errors ``|u − exact|`` over the RMS of ``|exact|``: the median, the value that 99 % do
        not exceed, and the largest.

    See Also
    --------
    parki.plan.Plan.error : Measure the error of a plan.

    Examples
    --------
    >>> from parki.error import ErrorEstimate
    >>> measured = ErrorEstimate(2.5e-7, 2.1e-7, 2.9e-7, 100, 1.8e-7, 6.1e-7, 8e-7)
    >>> print(str(measured)[:74])
    relative RMS error 2.50e-07 (2.1e-07 to 2.9e-07 at 95 %, 100 targets; medi
    """

    value: float
    low: float
    high: float
    n: int
    median: float = math.nan
    percentile_99: float = math.nan
    maximum: float = math.nan

    def __str__(self) -> str:
        errors = f"median {self.median:.1e}, 99 % {self.percentile_99:.1e}, largest {self.maximum:.1e}"
        return f"relative RMS error {self.value:.2e} ({self._bounds} at 95 %, {self.n} targets; {errors})"

    @property
    def _bounds(self) -> str:
        return f"{self.low:.1e} to {self.high:.1e}"

    def _repr_html_(self) -> str:
        values = {"value": f"{self.value:.2e}", "95 % interval": self._bounds, "targets": str(self.n)}
        errors = {"median": self.median, "99 %": self.percentile_99, "largest": self.maximum}
        values |= {name: f"{value:.1e}" for name, value in errors.items()}
        return tables.facts(values, "relative RMS error")


def sample(n_targets: int, n: int, seed: int) -> NDArray[np.intp]:
    """Return at most `n` targets, drawn at random, in ascending order.

    Raises
    ------
    ValueError
        If `n` is not a positive whole number, or `seed` is negative or not a whole number.
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n is {n!r}; expected a positive number of targets.")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed is {seed!r}; expected a whole number, 0 or more.")
    return np.sort(np.random.default_rng(seed).permutation(n_targets)[:n])


def estimate(
    sums: NDArray[np.float64], exact: NDArray[np.float64], n_targets: int, seed: int, first: int | None = None
) -> ErrorEstimate:
    """Compare results ``(rhs, components, n)`` at sampled targets.

    The `first` components, by default all, have another unit than the others, as a potential and its gradient: the
    larger error counts.  Bounds come from resampling the targets: they show how far the error of all targets
    may be from that of the sample.  Errors that only few targets have need larger samples.

    Raises
    ------
    ValueError
        If the exact result is zero at all sampled targets.
    """
    if first is not None and first < sums.shape[1]:
        parts = [slice(0, first), slice(first, None)]
        estimates = [estimate(sums[:, part], exact[:, part], n_targets, seed) for part in parts]
        return max(estimates, key=lambda candidate: candidate.value)
    count = sums.shape[-1]
    power = exponent(float(np.abs(exact).max(initial=0.0)))  # squares must neither overflow nor vanish
    sums, exact = times(sums, power), times(exact, power)
    errors, sizes = (np.sum(a * a, axis=(0, 1)) for a in (sums - exact, exact))
    if not sizes.any():
        raise ValueError("the sum is zero at all sampled targets; it has no relative error.")
    value = low = high = float(np.sqrt(errors.sum() / sizes.sum()))
    if count < n_targets:
        resamples = np.random.default_rng(seed).integers(count, size=(RESAMPLED, count))
        total = np.maximum(sizes[resamples].sum(axis=1), np.finfo(float).tiny)
        bounds = np.percentile(np.sqrt(errors[resamples].sum(axis=1) / total), LEVELS)
        low, high = min(value, float(bounds[0])), max(value, float(bounds[1]))
    single = np.sqrt(errors * (count / sizes.sum()))
    return ErrorEstimate(value, low, high, count, *(float(v) for v in np.percentile(single, EACH)))
