"""From a tolerance to the parameters of a fully periodic sum.

The tolerance is the relative RMS error of the result.  It is shared between the near field cut at rc (which fixes
c = kmax rc), the aliases of the window (which fix P, β and the spacing h = π/(σ kmax), σ > 1), and the polynomials.
Each part is an estimate for random strengths at random points, relative to the predicted size U of the result; measured
over estimated is 0.8–1.2 for the near part and 0.3–1.5 for the far part.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from parki.ewald import kernels, profiles, radial, window
from parki.ewald.kernels import Kernel
from parki.ewald.sizes import Size
from parki.perfmodels import select
from parki.perfmodels.machine import Costs
from parki.perfmodels.select import Domain

#: Shares of the tolerance: near field, window, tables.
SHARES = (0.27, 0.27, 0.12)
#: The same for kernels like 1/r²: their closest pairs, not all, make their size, so the estimates are large.
STEEP_SHARES = (0.43, 0.43, 0.19)
#: The same for the sources of a perfect crystal: whole shells err alike, and what repeats in the strengths keeps the
#: aliases from averaging.  By symmetry the double layer of a crystal may even vanish at its own points.
CRYSTAL_SHARES = {
    "laplace": (0.016, 0.035, 0.015),
    "stokes_sl": (0.016, 0.035, 0.015),
    "stokes_comb": (0.012, 0.002, 0.002),
}
#: The best relative error of each type.
REACH = {"float64": 5e-14, "float32": 1e-6}
#: The window's share of the tolerance from which the far field of a sum in double precision is in single precision: its
#: rounding, a few 1e-7, is then a hundredth of it, and solvers and gradient checks go on well below the tolerance.
SINGLE = 2e-5

_LEAST_NODES, _MOST_NODES = 4, 20
_MOST_CROWDED = 4096.0  # of sources for which shorter rc are tried
_LEAST_BANDWIDTH = 7.0  # c of free sums with few pairs beyond rc: kmax holds some modes of boxes little longer than rc
_SIGMAS = np.array([1.06, 1.12, 1.2, 1.3, 1.42, 1.56, 1.72, 1.9, 2.15, 2.5])
# β/P near its optimum at each σ, found by trial.
_SLOPES = (3.2 - 1.15 / _SIGMAS)[:, None] + np.linspace(-0.34, 0.34, 5)


@dataclass(frozen=True)
class Parameters:
    """Everything that fixes a sum, besides the points.

    Attributes
    ----------
    kernel, box, tolerance, dtype, far, split
        The question: what is summed; sides; relative RMS error; types of the sum and of its far field, ``"float64"`` or
        ``"float32"``; ``"prolate"`` or ``"gaussian"``.
    rc, c, kmax, xi
        Cutoff of the near field, c = kmax rc, largest wave number, splitting parameter of the Gaussian (of the prolate:
        of the Gaussian with equal tails, √(c/2)/rc).
    grid, h
        Grid points over the sides, and spacings; kmax < π/h.  In a free direction the grid has P points more.
    P, beta, window_degree, radial_degree
        Width and shape of the window, degrees of its polynomials and of the near-field tables.
    periodicity
        The first so many axes are periodic.
    skew
        None, or of a triclinic cell t01, t02, t12: its lattice vectors are (l0, t01, t02), (0, l1, t12), (0, 0, l2).
    """

    kernel: Kernel
    box: tuple[float, float, float]
    tolerance: float
    dtype: str
    far: str
    split: str
    rc: float
    c: float
    kmax: float
    xi: float
    grid: tuple[int, int, int]
    h: tuple[float, float, float]
    P: int
    beta: float
    window_degree: int
    radial_degree: int
    periodicity: int = 3
    skew: tuple[float, float, float] | None = None

    @property
    def itemsizes(self) -> tuple[int, int]:
        """Bytes of a real number, and of one of the far field."""
        return np.dtype(self.dtype).itemsize, np.dtype(self.far).itemsize

    @property
    def reach(self) -> float:
        """The best relative error of these types."""
        return max(REACH[self.dtype], REACH[self.far])

    def scaled(self, power: int) -> "Parameters":
        """Return the same parameters for lengths times 2^power."""
        if not power:
            return self
        times, over = ((lambda x, by=sign * power: math.ldexp(x, by)) for sign in (1, -1))
        lengths = {name: tuple(map(times, getattr(self, name))) for name in ("box", "h")}
        skew = self.skew and tuple(map(times, self.skew))
        waves = {"kmax": over(self.kmax), "xi": over(self.xi)}
        return replace(self, kernel=self.kernel.scaled(power), rc=times(self.rc), skew=skew, **lengths, **waves)

    def type_of(self, phase: str) -> str:
        """The type that a phase computes in."""
        return self.dtype if phase == "p2p" else self.far


def choose(
    kernel: str | Kernel,
    box: tuple[float, float, float],
    n_targets: int,
    n_sources: int,
    tolerance: float,
    dtype: str = "float64",
    split: str = "prolate",
    rc: float | None = None,
    cell_size: float | None = None,
    costs: Costs | None = None,
    regular: float = 0.0,
    periodicity: int = 3,
    skew: tuple[float, float, float] | None = None,
    crowding: tuple[float, ...] = (),
    same: bool | None = None,
    far: str | None = None,
) -> Parameters:
    """Choose the parameters that are predicted to meet a tolerance in the least time.

    Parameters
    ----------
    kernel, box, n_targets, n_sources
        What is summed.
    tolerance
        Relative RMS error.  Below the reach of the types (5e-14, 1e-6) the parameters are those of their reach.
    dtype, split
        Floating type and profile.
    rc
        Cutoff of the near field, at most the shortest periodic side.
    cell_size
        Instead of `rc`: the expected number of sources in a cube of side rc (at most the shortest side).
    costs
        Calibrated costs for choosing rc and the window.
    regular
        How much the sources resemble a crystal, from 0 to 1, or a cluster, to −1 (`arrangement.regularity`): both aim
        lower.
    periodicity, skew
        As in `Parameters`.
    crowding
        How many more sources are near a target than if they filled the box evenly (`arrangement.crowding`).
    same
        Whether the targets are the sources; without it, they are if there are as many.
    far
        Type of the far field, without it chosen: single where the tolerance allows.

    Raises
    ------
    ValueError
        For an unknown kernel, type or split, a box or tolerance that is not positive, negative numbers of points, a far
        field in double precision of a sum in single precision, both `rc` and `cell_size`, or an `rc` that is not
        positive or longer than a periodic side.
    """
    box, dtype = tuple(float(side) for side in box), np.dtype(dtype).name
    kernel = kernels.find(kernel)
    far = "float32" if dtype == "float32" and far is None else far
    _check(box[:periodicity], box, n_targets, n_sources, tolerance, dtype, split, rc, cell_size, far)
    if cell_size is not None:
        rc = (cell_size * float(np.prod(box)) / max(n_sources, 1)) ** (1 / 3)
    rc = None if rc is None else min(float(rc), most_cutoff(box, periodicity))
    domain = Domain(box, periodicity, max(float(tolerance), REACH[far or dtype]), edges(box, skew), crowding)
    # Rounded up, to share parameters; even a shaken lattice is closer to a perfect one than to random points.
    crystal = float(np.ceil(16 * regular**0.7)) / 16 if regular > 0 else float(np.floor(8 * regular)) / 8
    costs = costs or Costs()
    same = n_targets == n_sources if same is None else same
    types = dtype, far
    return _choose(kernel, domain, n_targets, n_sources, float(tolerance), types, split, rc, costs, crystal, skew, same)


@lru_cache(maxsize=256)
def _choose(
    kernel: Kernel,
    domain: Domain,
    n_targets: int,
    n_sources: int,
    tolerance: float,
    types: tuple[str, str | None],
    split: str,
    rc: float | None,
    costs: Costs,
    regular: float,
    skew: tuple[float, float, float] | None,
    same: bool,
) -> Parameters:
    box, sides, periodicity = domain.box, domain.edges, domain.periodicity
    dtype, far_type = types
    # A few points may nearly cancel, or be so far apart that they hardly see each other, and cost little: aim lower.
    few = min(1.0, (max(1, min(n_targets, n_sources)) / 300) ** (1 / 3)) * min(1.0, max(1, n_sources) / 16) ** 3
    if periodicity:  # images of a source along a side shorter than the points' distance err alike
        few *= min(1.0, min(box[:periodicity]) / (float(np.prod(box)) / max(1, n_sources)) ** (1 / 3)) ** 2
    goal = max(tolerance * few, REACH[far_type or dtype])
    if split == "gaussian":
        goal *= 0.7  # its own truncation in Fourier space
    if not same:
        goal *= 1.0 - 0.8 * max(0.0, -regular)  # targets away from a nearly neutral cluster see little
    near, far, table = (goal * share for share in _shares(kernel, max(0.0, regular)))
    far_type = far_type or ("float32" if far >= SINGLE else "float64")
    itemsizes = np.dtype(dtype).itemsize, np.dtype(far_type).itemsize
    size = Size(kernel, domain, n_sources, same)
    fixed = rc is not None
    tries = np.array([rc]) if fixed else _cutoffs(domain, n_sources)
    c, xi = _bandwidth(size, split, tries, near)
    middle = len(tries) // 3
    for _ in range(3):
        # The windows depend so weakly on rc that those of one cutoff serve its neighbours.
        P, sigma = _windows(size, split, c[middle], xi[middle], tries[middle], far)
        choice = select.balance(kernel, n_targets, n_sources, domain, tries, c / tries, P, sigma, itemsizes, costs)
        if abs(c[choice.cutoff] - c[middle]) <= 1.0:
            break
        middle = choice.cutoff
    width, grid = int(P[choice.window]), choice.grid
    rc, c, xi = (float(values[choice.cutoff]) for values in (tries, c, xi))
    spacing = np.pi * rc / (c * float(sigma[choice.window]))
    if not fixed and periodicity == 3:
        # Rounding the grid up left room: take the shortest rc that it allows.
        kmax = np.pi / max(side / m for m, side in zip(grid, sides, strict=True)) / float(sigma[choice.window])
        again, xi_again = _bandwidth(size, split, np.array([c / kmax]), near)
        if again[0] > c:
            c, xi = float(again[0]), float(xi_again[0])
        rc = min(c / kmax, rc)
    kmax = c / rc
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
    levels = {layer: table / float(size.units(layer, rc)[0]) for layer in kernel.layers}
    degree = max(radial.degree(layer, split, c, xi, level) for layer, level in levels.items())
    true_xi = (xi if split == "gaussian" else (0.5 * c) ** 0.5) / rc
    return Parameters(
        kernel, box, tolerance, dtype, far_type, split, rc, c, kmax, true_xi, grid, h, width, beta, width // 2 + 2,
        degree, periodicity, skew,
    )  # fmt: skip


def _shares(kernel: Kernel, regular: float) -> list[float]:
    """Shares of the tolerance, between those for random points and for a crystal."""
    random = STEEP_SHARES if radial.STEEP.keys() >= set(kernel.layers) else SHARES
    crystal = CRYSTAL_SHARES.get(kernel.name, CRYSTAL_SHARES["stokes_comb"])
    return [share ** (1.0 - regular) * aim**regular for share, aim in zip(random, crystal, strict=True)]


def edges(box: tuple[float, float, float], skew: tuple[float, float, float] | None) -> tuple[float, float, float]:
    """Return the lengths of the lattice vectors."""
    t01, t02, t12 = skew or (0.0, 0.0, 0.0)
    return float(np.hypot(np.hypot(box[0], t01), t02)), float(np.hypot(box[1], t12)), box[2]


def most_cutoff(box: tuple[float, float, float], periodicity: int) -> float:
    """Return the longest rc worth having: the shortest periodic side, or in free space the diagonal."""
    return min(box[:periodicity]) if periodicity else float(np.linalg.norm(box))


def _check(periodic, box, n_targets, n_sources, tolerance, dtype, split, rc, cell_size, far) -> None:
    """Refuse what `choose` documents."""
    if dtype not in REACH:
        raise ValueError(f"dtype: found {dtype!r}, expected one of {tuple(REACH)}")
    if far is not None and far not in REACH:
        raise ValueError(f"far: found {far!r}, expected one of {tuple(REACH)}, or None to have it chosen")
    if (dtype, far) == ("float32", "float64"):
        raise ValueError(f"far: found {far!r} with dtype {dtype!r}, expected 'float32'")
    if split not in profiles.SPLITS:
        raise ValueError(f"split: found {split!r}, expected one of {profiles.SPLITS}")
    if len(box) != 3 or not all(np.isfinite(side) and side > 0 for side in box):
        raise ValueError(f"box: found {box}, expected three positive lengths")
    if min(n_targets, n_sources) < 0:
        raise ValueError(f"n_targets, n_sources: found {n_targets}, {n_sources}, expected numbers >= 0")
    if not tolerance > 0:
        raise ValueError(f"tolerance: found {tolerance}, expected a positive number")
    if rc is not None and cell_size is not None:
        raise ValueError("rc, cell_size: found both, expected at most one")
    most = min(periodic, default=np.inf)
    if rc is not None and not 0 < rc <= most * (1 + 1e-12):
        raise ValueError(f"rc: found {rc}, expected a number in (0, {most}], the shortest periodic side")
    if cell_size is not None and not cell_size > 0:
        raise ValueError(f"cell_size: found {cell_size}, expected a positive number")


def _cutoffs(domain: Domain, n_sources: int) -> NDArray[np.float64]:
    """Cutoffs from 4 sources in rc³ to the longest."""
    most = most_cutoff(domain.box, domain.periodicity)
    crowded = max(1, n_sources) * min(max((1.0, *domain.crowding)), _MOST_CROWDED)
    least = min(most, (4.0 * float(np.prod(domain.box)) / crowded) ** (1 / 3))
    return np.geomspace(least, most, 1 + int(16 * np.log(most / least)))


def _bandwidth(
    size: Size, split: str, rc: NDArray[np.float64], level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return c and ξ rc for every rc, c in steps that let nearby questions share their tables."""
    found = [_each_bandwidth(size, layer, split, rc, level) for layer in size.kernel.layers]
    c, xi = (np.max(parts, axis=0) for parts in zip(*found, strict=True))
    c = np.maximum(c, _LEAST_BANDWIDTH)
    return (np.ceil(8 * c) / 8 if split == "prolate" else c), xi


def _each_bandwidth(
    size: Size, layer: str, split: str, rc: NDArray[np.float64], level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same for one estimate.  Few pairs beyond rc need less; the modes beyond kmax do not depend on them."""
    c, xi = radial.bandwidth(layer, split, level / size.truncation(layer, rc))
    for _ in range(2):
        decay = 4 * xi**2 if split == "gaussian" else 2 * c
        c, xi = radial.bandwidth(layer, split, level / size.truncation(layer, rc, decay))
    if split == "gaussian":
        whole, wider = radial.bandwidth(layer, split, level / size.units(layer, rc)[0])
        c = 2 * xi * np.sqrt((whole / (2 * wider)) ** 2 + 0.5 * np.log(np.maximum(wider / xi, 1.0)))
    return c, xi


def _windows(
    size: Size, split: str, c: float, xi: float, rc: float, level: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the widths worth trying and the least σ of each."""
    layers = size.kernel.layers
    units = tuple(tuple(_round_up(unit / level) for unit in size.units(x, rc)) for x in layers)
    mean = _round_up(size.mean / level) if size.mean else 0.0
    return _window_table(size.kernel, split, float(c), float(xi), _least_mode(size, c, rc), units, mean)


def _least_mode(size: Size, c: float, rc: float) -> float:
    """The same of `Size`, over kmax."""
    return min(0.9, _round_up(size.least_mode * rc / c))


def _mean_alias(P: NDArray | int, beta: NDArray) -> NDArray:
    """Estimate the error of the mode k = 0, from spreading and gathering, over √Q and its multiplier.

    Kernels with a mean multiply it by much where they see far.
    """
    inside, outside = np.maximum(beta, 1e-3), np.sqrt(np.maximum((np.pi * P) ** 2 - beta**2, 1.0))
    return math.sqrt(12.0) * inside / np.sinh(inside) / outside


def _round_up(x: float) -> float:
    """Round up to a step of a tenth in ln x."""
    return float(np.exp(0.1 * np.ceil(10 * np.log(x))))


@lru_cache(maxsize=256)
def _window_table(
    kernel: Kernel, split: str, c: float, xi: float, low: float, units: tuple[tuple[float, float], ...],
    mean: float,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:  # fmt: skip
    """Least σ at which the estimate of `window.alias` in the given units is 1, for each width."""
    middle = 3 + int(0.39 * np.log(max(u[0] for u in units) + 1.0))
    P = np.arange(max(_LEAST_NODES, middle - 2), middle + 4)
    worst = 0.0
    for layer, (spread, same) in zip(kernel.layers, units, strict=True):
        width = P[:, None, None]
        parts = window.alias(layer, split, c, xi, low, width, width * _SLOPES, _SIGMAS[:, None])
        worst = np.maximum(worst, np.hypot(spread * parts[0], same * parts[1]))
    if mean:
        worst = np.hypot(worst, mean * _mean_alias(width, width * _SLOPES))
    log = np.minimum.accumulate(np.log(worst.min(axis=2)), axis=1)
    good = log[:, -1] <= 0
    if not good.any():
        return P[-1:], _SIGMAS[-1:]
    sigma = [np.interp(0.0, row[::-1], _SIGMAS[::-1]) for row in log[good]]
    return P[good], np.array(sigma)


def _shape(
    size: Size, split: str, c: float, xi: float, rc: float, P: int, sigma: tuple[float, float, float]
) -> tuple[float, float]:
    """Return the best β on a grid, and the estimate of the error over U there."""
    low = _least_mode(size, c, rc)
    beta = P * np.arange(1.7, 3.02, 0.03)
    worst = 0.0
    for layer in size.kernel.layers:
        parts = window.alias(layer, split, c, xi, low, P, beta, np.array(sigma)[:, None])
        spread, same = size.units(layer, rc)
        total = np.hypot(spread * parts[0], same * parts[1])
        worst = np.maximum(worst, np.sqrt(np.mean(total**2, axis=0)))
    worst = np.hypot(worst, size.mean * _mean_alias(P, beta))
    best = int(np.argmin(worst))
    return float(beta[best]), float(worst[best])
