"""Parameters of a treecode: from theta and degree as given, or from a tolerance.

The error of interpolation is measured for every kernel, on two clusters at the limit of theta (`measured.error`).
"""

import itertools
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from parki import all_pairs, proxies
from parki.engine import Space, Workunit
from parki.pairs import Pair
from parki.treecode import interactions, measured
from parki.treecode.interactions import CC, CP, PC, PP, FarPairRule, RadialFunction

THETA, DEGREE = 0.7, 8  # acceptance parameter and degree of the published treecodes
TOLERANT = 0.8  # theta for a tolerance: nearer pairs take more proxy points than they save
KINDS = {"dual": (PP, PC, CP, CC), "pc": (PP, PC), "cp": (PP, CP)}
# Largest error of a pair over the tolerance.  Sums of charges of both signs have up to 0.7 of the tolerance then: few
# pairs are at the limit, and errors of both sides of the dual traversal's pairs average out.
ERROR_SHARES = {"dual": 1.25, "pc": 0.5, "cp": 0.5}
LEAST_ERROR_SHARE = 0.2  # for few particles, or far ones with most of the field, which leave little to average
FEW_POINTS = 1000  # targets or sources below which they count as few
REACH = {"float64": 1e-13, "float32": 1e-6}  # least relative errors that sums reach
MOST_DEGREE = proxies.MOST_POINTS - 1
SINGLE = 3e-6  # tolerance from which the far field may be summed in single precision
MARGIN = 1  # degrees above that of an average pair at the limit, for pairs with strong fields and small partners
STEPS = 16  # to which the mantissa of an extent, 0.5 to 1, is rounded
SCALES, BELOW = 40, 8  # sizes of clusters at least, each half the one before; sizes below the distance of points
SMALLER, TURNS = 2, 4  # scales below that of the largest field at which errors are measured; rounds of measuring
FAINT_SHARE = 1e-3  # share of the square of the largest field below which smaller clusters are ignored


@dataclass(frozen=True)
class Parameters:
    """Hold the parameters of a treecode, given or chosen.

    Parameters
    ----------
    method : {"dual", "pc", "cp"}
        Dual tree traversal, or one of the variants of the treecode.
    theta : float
        Acceptance parameter.
    degree : int
        Degree of interpolation at that limit; pairs further apart have less.
    leaf_size, batch_size : int
        Points of a leaf at most: of the tree of sources (the clusters) and of targets, or of batches.
    tolerance : float or None
        Relative error asked for; None if theta and degree are given.
    error : float
        Relative error for which pairs are chosen.
    vary : bool
        Whether the degree falls with distance.
    far : {"float64", "float32"}
        Type of the far field.

    See Also
    --------
    bldtt : Return them with `return_params`.
    parki.plan.Plan.parameters : The parameters of a plan.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x = np.array([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    >>> parameters = parki.treecode.plan("coulomb", x, x, theta=0.6, degree=6).parameters
    >>> parameters.theta, parameters.degree, parameters.tolerance
    (0.6, 6, None)
    """

    method: str
    theta: float
    degree: int
    leaf_size: int
    batch_size: int
    tolerance: float | None
    error: float
    vary: bool
    far: str

    @property
    def expected(self) -> float:
        """Return the relative error of a sum: the tolerance, or the likely error of theta and degree."""
        return _expected(self.tolerance, self.error)

    def rule(self, field_size: RadialFunction, difficulty: RadialFunction, grid: float) -> FarPairRule:
        """Return the rule for `interactions.build`, with pairs of proxy grids that cost `grid`."""
        return FarPairRule(self.degree + 1, self.vary, KINDS[self.method], grid, self.error, field_size, difficulty)

    def __str__(self) -> str:
        return f"θ {self.theta:g}, degree {self.degree}, leaves {self.leaf_size}, batches {self.batch_size}"


@dataclass(frozen=True)
class TreecodeQuestion:
    """Sum for which parameters are chosen.

    Attributes
    ----------
    pair : Pair
        Linear in the strengths of sources.
    method : str
        ``"dual"``, ``"pc"`` or ``"cp"``.
    extent : float
        Half the longest side of the box around all points.
    spacing : float
        Distance of targets from sources where sources are dense (`parki.scaling.nearest`); 0 if they fill the extent.
    fewest : int
        Smaller of the numbers of targets and sources.
    same : bool
        Whether targets are the sources.
    dtype : dtype
        Type of the points.
    space : Space, optional
        Space where errors are measured, by default the host.
    """

    pair: Pair
    method: str
    extent: float
    spacing: float
    fewest: int
    same: bool
    dtype: np.dtype
    space: Space | None = None

    @cached_property
    def is_cautious(self) -> bool:
        """Tell whether errors hardly average out: few particles, or far ones with most of the field."""
        has_few = self.fewest < FEW_POINTS
        return has_few or (self.extent > 0 and _grows(self.pair, self.largest, self.space))

    @cached_property
    def largest(self) -> float:
        """Return the extent rounded up to 4 bits: most often that of moved points, so nothing is measured anew."""
        mantissa, exponent = math.frexp(self.extent)
        return math.ldexp(math.ceil(mantissa * STEPS) / STEPS, exponent)

    @cached_property
    def scales(self) -> tuple[float, ...]:
        """Return half sides of clusters, largest first, down to well below the distance of points."""
        return tuple(self.largest * 0.5**k for k in range(1, max(SCALES, self.levels + BELOW) + 1))

    @cached_property
    def levels(self) -> int:
        """Return the number of scales above the distance of points, or above `spacing`."""
        even = math.log2(max(self.fewest, 2)) / 3
        dense = math.log2(self.extent / self.spacing) - 1 if self.spacing else even  # clusters of a few points
        return max(1, math.ceil(max(even, dense) + math.log2(self.largest / self.extent)))

    def far_levels(self, leaf_size: int) -> float:
        """Return the number of scales of clusters that meet by interpolation, as far as fields of nearer ones count.

        Each target that is a source has nearer sources, whose squared fields are least on a lattice.  They do not count
        where parts of the field have several powers of length, as far ones of one part may exceed near ones of another.
        """
        law = self.pair.law
        if self.is_cautious or not self.same or law is None or len({*law.result}) * len({*law.dens}) > 1:
            return self.levels
        return max(1.0, self.levels - math.log2(max(leaf_size, 1)) / 3)

    def error(self, tolerance: float, leaf_size: int) -> float:
        """Return the relative error of fields of far clusters: that of all fields is below the tolerance then."""
        share = LEAST_ERROR_SHARE if self.is_cautious else ERROR_SHARES[self.method]
        if self.extent <= 0 or not self.pair.smooth:
            return share * tolerance
        squares = np.cumsum(_weights(self.pair, self.scales, self.space))
        far = np.interp(self.far_levels(leaf_size) - 1, np.arange(len(squares)), squares)
        return share * tolerance * (math.sqrt(squares[self.levels - 1] / far) if far > 0 else 1.0)

    def degree(self, error: float, leaf_size: int) -> int:
        """Return the degree of clusters at the limit for a relative error of their fields."""
        if self.extent <= 0:
            return 1
        if self.pair.smooth:
            return max(self._points(error, leaf_size)[1]) - 1
        return _measured_degree(self.pair, TOLERANT, self.scales, error, self.space)

    def rule(self, p: Parameters, grid: float) -> FarPairRule:
        """Return the rule of these parameters, with pairs of proxy grids that cost `grid`."""
        return p.rule(self._field_size(), self._difficulty(p), grid)

    def _field_size(self) -> RadialFunction:
        """Return the field of a unit charge as a function of distance, interpolated between measured values."""
        if self.extent <= 0:
            return np.ones_like
        radii = self.largest * 2.0 ** np.arange(-41.0, 2.0)
        sizes = np.maximum(measured.fields(self.pair, tuple(radii), self.space), 1e-150)
        sizes = np.maximum(sizes, np.maximum(np.append(sizes[1:], 0), np.append(0, sizes[:-1])))  # zeros say nothing
        return lambda r: np.exp(np.interp(np.log(np.maximum(r, radii[0])), np.log(radii), np.log(sizes)))

    def _difficulty(self, p: Parameters) -> RadialFunction:
        """Return errors relative to those of 1/r, of fields of clusters at their limit, as a function of half sides.

        They are 1 if theta and degree are given.
        """
        if p.tolerance is None or self.extent <= 0 or not p.vary:
            return np.ones_like
        factors, _ = self._points(p.error, p.leaf_size)
        sizes = np.log(self.scales[::-1])
        return lambda half: np.exp(np.interp(np.log(np.maximum(half, 1e-300)), sizes, np.log(factors[::-1])))

    def _points(self, error: float, leaf_size: int) -> tuple[tuple[float, ...], tuple[int, ...]]:
        levels = math.ceil(self.far_levels(leaf_size))
        return _points(self.pair, self.scales, levels, TOLERANT, error, self.space)


def choose(
    question: TreecodeQuestion, *, tolerance: float | None = None, theta: float | None = None,
    degree: int | None = None, leaf_size: int | None = None, batch_size: int | None = None, far: str | None = None,
) -> Parameters:  # fmt: skip
    """Choose the parameters that are not given.

    Parameters
    ----------
    question : TreecodeQuestion
    tolerance, theta, degree, leaf_size, batch_size, far
        As in `Parameters`, or None.
    """
    if tolerance is None:
        theta, degree = THETA if theta is None else theta, DEGREE if degree is None else degree
        error = _bound(theta, degree + 1)
    else:
        theta, size = TOLERANT, _leaf_size(DEGREE + 1) if leaf_size is None else leaf_size
        error = question.error(tolerance, size)
        degree = question.degree(error, size)
    if far is None:
        far = "float32" if question.dtype == np.float32 or _expected(tolerance, error) >= SINGLE else "float64"
    leaf_size = _leaf_size(degree + 1) if leaf_size is None else leaf_size
    if tolerance is not None:
        degree = min(degree + MARGIN, MOST_DEGREE)
    batch_size = leaf_size if batch_size is None else batch_size
    vary = question.pair.smooth
    return Parameters(question.method, theta, degree, leaf_size, batch_size, tolerance, error, vary, far)


def workunits(pair: Pair, tolerance: float | None) -> list[Workunit]:
    """Return the kernels that are launched to choose parameters and rules, for compiling ahead."""
    pairs = {pair} if tolerance is None else {pair, measured.COULOMB}
    return [all_pairs.workunit(p, np.dtype(np.float64)) for p in pairs]


def _expected(tolerance: float | None, error: float) -> float:
    return 0.3 * error if tolerance is None else tolerance


def _bound(theta: float, points: int) -> float:
    """Return the error of two equal cubes at the limit of theta."""
    return interactions.limit(theta) ** -points


def _grows(pair: Pair, extent: float, space: Space | None) -> bool:
    """Return whether fields grow with distance."""
    near, far = measured.fields(pair, (extent, 2 * extent), space)
    return bool(far > near)


def _weights(pair: Pair, scales: tuple[float, ...], space: Space | None) -> list[float]:
    """Return squared fields of clusters of each size at their limit, with random charges of one number density."""
    sizes = measured.fields(pair, tuple(3 * scale for scale in scales), space).tolist()
    return [scale**3 * size**2 for scale, size in zip(scales, sizes, strict=True)]


@lru_cache(maxsize=256)
def _points(
    pair: Pair, scales: tuple[float, ...], levels: int, theta: float, error: float, space: Space | None
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Return errors relative to 1/r of clusters of each size at their limit, and the points that they need.

    A pair whose field is a small share of the whole may have a larger relative error.  But if a kernel falls off within
    a cluster, interpolation converges as if it did not: with more points its error grows relative to that of 1/r.
    """
    weights = _weights(pair, scales, space)
    steps = [a / b for a, b in itertools.pairwise(weights) if b > 0]
    if steps and max(steps) < min(steps) * (1 + 1e-6):  # a power of r: all sizes are alike
        factor, m = _fixed(pair, theta, error, 1.0, space)
        return (factor,) * len(scales), (m,) * len(scales)
    peak = weights.index(max(weights[:levels]))
    last = min(peak + SMALLER, len(scales) - 1)
    factors, points = [1.0] * len(scales), [2] * len(scales)
    for k in range(last, -1, -1):
        if weights[k] > 0:
            bound = error * math.sqrt(weights[peak]) / math.sqrt(weights[k])
            factors[k], points[k] = _fixed(pair, theta, bound, scales[k], space)
        if points[k] == 2:  # too faint to matter
            factors[k] = factors[k + 1]
    factors[last:] = [factors[last]] * (len(scales) - last)
    return tuple(factors), tuple(points)


def _fixed(pair: Pair, theta: float, error: float, scale: float, space: Space | None) -> tuple[float, int]:
    """Return factor and points of one size: points follow from the factor, and the factor from the points."""
    factor, m = 1.0, 0
    for _ in range(TURNS):
        m_old, m = m, _least(theta, error / factor)
        if m == m_old:
            break
        factor = max(1.0, *(measured.ratio(pair, theta, n, scale, space) for n in range(max(m - 2, 2), m + 1)))
    return factor, m


def _least(theta: float, error: float) -> int:
    """Return the least points of two equal cubes at the limit of theta for an error of 1/r."""
    points = math.ceil(-math.log(error) / math.log(interactions.limit(theta)))
    return min(max(points, 2), proxies.MOST_POINTS)


def _measured_degree(pair: Pair, theta: float, scales: tuple[float, ...], error: float, space: Space | None) -> int:
    """Return the least degree whose measured error, over all sizes of clusters, is below `error`."""
    weights = _weights(pair, scales, space)
    # Large clusters whose field is faint have the largest errors: the field varies most within them.
    largest, peak = max(weights), weights.index(max(weights))
    terms = [
        (w, scale)
        for k, (w, scale) in enumerate(zip(weights, scales, strict=True))
        if w > largest * (FAINT_SHARE if k > peak else 0.01 * error**2)
    ]
    for points in range(2, proxies.MOST_POINTS):
        squares = sum(w * measured.error(pair, theta, points, scale, space) ** 2 for w, scale in terms)
        if squares <= error**2 * sum(weights):
            return points - 1
    return proxies.MOST_POINTS - 1


def _leaf_size(points: int) -> int:
    """Return the points of a leaf, fitted to sweeps: about a grid, but enough that pairs cost more than lists."""
    return int(np.clip(10 * points**1.6, 80, 600))
