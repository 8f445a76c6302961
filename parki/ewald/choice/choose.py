"""Choice of the parameters of a sum for a question.

The tolerance is the relative RMS error of the result.  Three parts share the tolerance: the near field cut at rc (which
fixes c = kmax rc), the aliases of the window (which fix P, β and the spacing h = π/(σ kmax), σ > 1), and the
polynomials.  Each part is an estimate for random strengths at random points, relative to the predicted size U of the
result; measured over estimated error is 0.8–1.2 for the near part and 0.3–1.5 for the far part.
"""

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from parki import prediction
from parki.ewald.choice import params
from parki.ewald.choice.params import Parameters
from parki.ewald.choice.question import Question
from parki.ewald.choice.sizes import EASE, Size
from parki.ewald.kernel import Kernel
from parki.ewald.split import profiles, window
from parki.ewald.split.layers import Layer
from parki.perfmodels import select
from parki.perfmodels.machine import Costs
from parki.perfmodels.select import Domain, ModelledSum

#: Shares of the tolerance: near field, window, tables.  Those of crystals are `Kernel.crystal`.
SHARES = (0.27, 0.27, 0.12)
#: Shares for kernels like 1/r²: the closest pairs alone make up their size, so the estimates are large.
STEEP_SHARES = tuple(EASE * share for share in SHARES)
#: Least share of the window in the tolerance for which the far field of a double-precision sum is in single precision:
#: its rounding, a few 1e-7, is then a tenth of the share.  Rounding of a potential counts for more in its slopes: with
#: free directions it has another least share, and in a fully periodic box that of strengths of one sign, which fill a
#: part of it, is this number times the longest side over the mean distance of sources.
SINGLE, SINGLE_OF_SLOPES, SLOPE_ROUNDING = 2.4e-6, 2e-5, 2.8e-8

#: Least factor of the tolerance for the smoothing of blobs: smaller sums cancel, of which calls can warn.
LEAST_SMOOTHING = 1e-6

NEIGHBOURS = 0.2  # ln of the ratio of two cutoffs, at most, that share their windows

_LEAST_NODES, _MOST_NODES = 4, 20
_MOST_CROWDED = 4096.0  # crowding of sources, at most, by which the shortest tried rc is reduced
_LEAST_BANDWIDTH = 7.0  # least c: in free sums with few pairs beyond rc, kmax must still include some modes of the box
_SIGMAS = np.array([1.06, 1.12, 1.2, 1.3, 1.42, 1.56, 1.72, 1.9, 2.15, 2.5])
# β/P near its optimum at each σ, found by trial.
_SLOPES = (3.2 - 1.15 / _SIGMAS)[:, None] + np.linspace(-0.34, 0.34, 5)


def parameters(question: Question, costs: Costs | None = None) -> Parameters:
    """Choose the parameters that are predicted to meet a tolerance in the least time.

    Parameters
    ----------
    question : Question
    costs : Costs, optional
        Costs of the machine, by default of the question's space.

    Raises
    ------
    ValueError
        For a box too long for a grid of this cutoff and tolerance.
    """
    if costs is None:
        costs = Costs() if question.space is None else prediction.costs(question.space)
    return _choose(question.resolved(), replace(costs, rhs=question.rhs))


@lru_cache(maxsize=256)
def _choose(question: Question, costs: Costs) -> Parameters:
    kernel, domain, split, skew = question.kernel, question.domain, question.split, question.skew
    box, sides, periodicity = domain.box, domain.edges, domain.periodicity
    near, far, table = _parts(question)
    far_type = question.far or ("float32" if far >= _least_of_single(question) else "float64")
    itemsizes = np.dtype(question.dtype).itemsize, np.dtype(far_type).itemsize
    size = Size.of(question, question.sizes)
    is_fixed = question.rc is not None
    tries = np.array([question.rc]) if is_fixed else _cutoffs(domain, question.n_sources, kernel.separation())
    c, xi = _bandwidth(size, split, tries, near)
    growth = kernel.growth((c / tries) ** 2)
    middle = len(tries) // 3
    model = ModelledSum(kernel, question.n_targets, question.n_sources, domain, itemsizes)
    for _ in range(3):
        # Windows depend weakly on rc: those of one cutoff serve its neighbours.
        P, sigma = _windows(size, split, c[middle], xi[middle], tries[middle], far / growth[middle])
        choice = select.balance(model, tries, c / tries, P, sigma, costs)
        distance = abs(math.log(tries[choice.cutoff] / tries[middle]))
        if abs(c[choice.cutoff] - c[middle]) <= 1.0 and distance <= NEIGHBOURS:
            break
        middle = choice.cutoff
    width, grid = int(P[choice.window]), choice.grid
    rc, c, xi = (float(values[choice.cutoff]) for values in (tries, c, xi))
    spacing = np.pi * rc / (c * float(sigma[choice.window]))
    if not is_fixed and periodicity == 3:
        # Rounding the grid up left room: take the shortest rc that the grid allows.
        kmax = np.pi / max(side / m for m, side in zip(grid, sides, strict=True)) / float(sigma[choice.window])
        c_again, xi_again = _bandwidth(size, split, np.array([c / kmax]), near)
        if c_again[0] > c:
            c, xi = float(c_again[0]), float(xi_again[0])
        rc = min(c / kmax, rc)
    kmax = c / rc
    far, table = (level / float(kernel.growth(kmax**2)) for level in (far, table))
    while True:
        steps = [
            side / m if axis < periodicity else spacing for axis, (side, m) in enumerate(zip(sides, grid, strict=True))
        ]
        beta, error = _shape(size, split, c, xi, rc, width, tuple(float(np.pi / (kmax * step)) for step in steps))
        if error <= 1.15 * far or width >= _MOST_NODES:
            break
        width += 1
        grid = tuple(int(m) for m in select.grids(np.array(max(steps)), sides, np.array(width), periodicity))
    # Along lattice vectors that are not the box's sides, the grid's coordinate is as long as the side.
    h = tuple(float(step * side / edge) for step, side, edge in zip(steps, box, sides, strict=True))
    levels = {layer: table / float(size.units(layer, rc)[0] * size.turned(layer, kmax)) for layer in kernel.layers}
    degree = max(layer.degree(split, c, xi, level) for layer, level in levels.items())
    true_xi = (xi if split == "gaussian" else (0.5 * c) ** 0.5) / rc
    near_error = question.tolerance * size.cancelling if kernel.cubic else None
    return Parameters(
        kernel, box, question.tolerance, question.dtype, far_type, split, rc, c, kmax, true_xi, grid, h, width, beta,
        width // 2 + 2, degree, periodicity, skew, near_error,
    )  # fmt: skip


def _least_of_single(question: Question) -> float:
    """Return the least share of the window in the tolerance for a far field in single precision."""
    if question.kernel.gather == "values":
        return SINGLE
    if question.periodicity < 3:
        return SINGLE_OF_SLOPES
    distance = (math.prod(question.box) / max(1, question.n_sources)) ** (1 / 3)
    return max(SINGLE, SLOPE_ROUNDING * max(question.box) / distance)


def far_error(question: Question) -> float:
    """Return the part of the tolerance for the far field, which is smaller for sources that resemble a crystal."""
    return _parts(question.resolved())[1]


def _parts(question: Question) -> tuple[float, float, float]:
    """Return the errors to aim for: of the near field, of the window, of tables."""
    near, far, table = _shares(question.kernel, max(0.0, question.arrangement.regular))
    goal = _goal(question)
    return goal * near, goal * far, goal * table


def _goal(question: Question) -> float:
    """Return the error to aim for: the tolerance, or less if the estimates are known to be too small."""
    few_targets = max(1, min(question.n_targets, question.n_sources))
    n, box, periodicity = max(1, question.n_sources), question.box, question.periodicity
    # A few points may nearly cancel, or be so far apart that they hardly interact, and cost little: aim lower.
    count, power = (60, 1 / 3) if question.kernel.cubic else (300, 2 / 3 if question.kernel.steep else 1 / 3)
    factor = min(1.0, few_targets / count) ** power * min(1.0, n / 16) ** 3
    if periodicity:  # errors of a source's images along a side shorter than the points' distance are alike
        factor *= min(1.0, min(box[:periodicity]) / (float(np.prod(box)) / n) ** (1 / 3)) ** 2
    factor *= _smoothing(question)
    goal = max(question.tolerance * factor, question.reach)
    if question.rc is not None:
        goal *= min(1.0, _longest(question.domain) / question.rc) ** 2
    if question.split == "gaussian":
        goal *= 0.7  # its own truncation in Fourier space
    if not question.same:
        # Targets away from a nearly neutral cluster see little.
        goal *= 1.0 - 0.8 * max(0.0, -question.arrangement.regular)
    return goal


def _smoothing(question: Question) -> float:
    """Return the factor by which the width of blobs lowers a sum of forces without a mean, 1 for other kernels.

    Forces have the least mode of the box, and those of a crystal may alternate along all axes.
    """
    spectrum, epsilon = question.kernel.spectrum, question.kernel.parameter()
    if not spectrum.softened or spectrum.form is None:
        return 1.0
    sides, regular = np.array(question.box), max(0.0, question.arrangement.regular)
    waves = (2 / sides.max()) ** 2, np.sum((max(1, question.n_sources) ** (1 / 3) / sides) ** 2)
    box, crystal = spectrum.form(np.pi**2 * np.array(waves), epsilon)
    return max(float(box ** (1.0 - regular) * crystal**regular), LEAST_SMOOTHING)


def _shares(kernel: Kernel, regular: float) -> list[float]:
    """Return shares of the tolerance, between those for random points and for a crystal."""
    random = STEEP_SHARES if kernel.steep else SHARES
    return [share ** (1.0 - regular) * aim**regular for share, aim in zip(random, kernel.crystal, strict=True)]


def _cutoffs(domain: Domain, n_sources: int, shortest: float) -> NDArray[np.float64]:
    """Return the cutoffs to try, from 4 sources in rc³, but not less than `shortest`, to the longest."""
    upper = params.most_cutoff(domain.box, domain.periodicity)
    upper = max(shortest, min(upper, _longest(domain)))
    count = max(1, n_sources) * min(max((1.0, *domain.crowding)), _MOST_CROWDED)
    lower = min(upper, max(shortest, (4.0 * float(np.prod(domain.box)) / count) ** (1 / 3)))
    return np.geomspace(lower, upper, 1 + int(16 * np.log(upper / lower)))


def _longest(domain: Domain) -> float:
    """Return the longest cutoff at which errors of modes along periodic axes average out, if others are free.

    A longer one leaves so few modes that their errors, of random phases, are often three times their mean.
    """
    sides = domain.box[: domain.periodicity]
    return 0.5 * min(sides) if 0 < domain.periodicity < 3 else math.inf


def _bandwidth(
    size: Size, split: str, rc: NDArray[np.float64], level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return c and ξ rc for each rc; c has steps, so that nearby questions share their tables.

    The near field is larger by a factor of the kernel's, which depends on c.
    """
    growth, rate = 1.0, 0.0
    for _ in range(1 if size.kernel.spectrum.factor is None else 4):
        estimates = [
            _each_bandwidth(size, layer, split, rc, level / growth / size.turned(layer, rate))
            for layer in size.kernel.layers
        ]
        c, xi = (np.max(parts, axis=0) for parts in zip(*estimates, strict=True))
        rate = profiles.rate(split, c, rc, xi)
        growth = size.kernel.growth(-(rate**2))
    c = np.maximum(c, _LEAST_BANDWIDTH)
    return (np.ceil(8 * c) / 8 if split == "prolate" else c), xi


def _each_bandwidth(
    size: Size, layer: Layer, split: str, rc: NDArray[np.float64], level: NDArray | float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return c and ξ rc by the estimate of one layer.

    Few pairs beyond rc need a smaller ξ rc; the error of modes beyond kmax does not depend on pairs.
    """
    c, xi = layer.bandwidth(split, level / size.truncation(layer, rc))
    for _ in range(2):
        decay = 4 * xi**2 if split == "gaussian" else 2 * c
        c, xi = layer.bandwidth(split, level / size.truncation(layer, rc, decay))
    if split == "gaussian":
        c_all, xi_all = layer.bandwidth(split, level / size.units(layer, rc)[0])
        c = 2 * xi * np.sqrt((c_all / (2 * xi_all)) ** 2 + 0.5 * np.log(np.maximum(xi_all / xi, 1.0)))
    return c, xi


def _windows(
    size: Size, split: str, c: float, xi: float, rc: float, level: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the widths worth trying and the least σ of each."""
    layers = size.kernel.layers
    units = tuple(tuple(_round_up(u / level) for u in _units(size, x, c, rc)) for x in layers)
    layers = tuple(size.at(layer, rc) for layer in layers)
    return _window_table(layers, split, float(c), float(xi), _least_mode(size, c, rc), units)


def _units(size: Size, layer: Layer, c: float, rc: float) -> tuple[float, float]:
    """Return the units of both estimates of `window.alias` over U."""
    spread, coincidence = (float(size.turned(layer, c / rc) * unit) for unit in size.units(layer, rc))
    return spread * size.alike(layer, c / rc), coincidence


def _least_mode(size: Size, c: float, rc: float) -> float:
    """Return the least mode of `Size` over kmax."""
    return min(0.9, _round_up(size.least_mode * rc / c))


def _round_up(x: float) -> float:
    """Round up to a step of a tenth in ln x."""
    return float(np.exp(0.1 * np.ceil(10 * np.log(x))))


@lru_cache(maxsize=256)
def _window_table(
    layers: tuple[Layer, ...], split: str, c: float, xi: float, low: float, units: tuple[tuple[float, float], ...]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:  # fmt: skip
    """Return the least σ at which the estimate of `window.alias` in the given units is 1, for each width."""
    middle = 3 + int(0.39 * np.log(max(u[0] for u in units) + 1.0))
    P = np.arange(max(_LEAST_NODES, middle - 2), middle + 4)
    worst = 0.0
    for layer, (spread, coincidence) in zip(layers, units, strict=True):
        width = P[:, None, None]
        parts = window.alias(layer, split, c, xi, low, width, width * _SLOPES, _SIGMAS[:, None])
        worst = np.maximum(worst, np.hypot(spread * parts[0], coincidence * parts[1]))
    log = np.minimum.accumulate(np.log(worst.min(axis=2)), axis=1)
    good = log[:, -1] <= 0
    if not good.any():
        return P[-1:], _SIGMAS[-1:]
    sigma = [np.interp(0.0, row[::-1], _SIGMAS[::-1]) for row in log[good]]
    return P[good], np.array(sigma)


def _shape(
    size: Size, split: str, c: float, xi: float, rc: float, P: int, sigma: tuple[float, float, float]
) -> tuple[float, float]:
    """Return the best β of a grid of values, and its estimated error over U."""
    low = _least_mode(size, c, rc)
    beta = P * np.arange(1.7, 3.02, 0.03)
    worst = 0.0
    for layer in size.kernel.layers:
        parts = window.alias(size.at(layer, rc), split, c, xi, low, P, beta, np.array(sigma)[:, None])
        spread, coincidence = _units(size, layer, c, rc)
        total = np.hypot(spread * parts[0], coincidence * parts[1])
        worst = np.maximum(worst, np.sqrt(np.mean(total**2, axis=0)))
    best = int(np.argmin(worst))
    return float(beta[best]), float(worst[best])
