"""Balance of near and far field: choice of the cutoff, window width and grid that are predicted to be fastest.

A small rc makes few pairs and a fine grid (pairs ∝ rc³, grid points ∝ (σc/rc)³); a wide window allows a coarser grid.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from parki.perfmodels.machine import Costs
from parki.perfmodels.window_rows import WARP

#: Particles from which on a selection keeps to a budget; the budget in bytes a particle; and bytes a particle that the
#: particles' own sorted copies take of the budget: the grids get the rest.
BUDGET_FROM, BUDGET, PARTICLE_BYTES = 100_000, 1900.0, 350.0
DIGIT = 0.036  # share of a pair's time that each digit beyond 1e-7 adds for each far part, a polynomial
LARGER = 0.1  # power of a grid's points that its predicted time is multiplied by, on hosts
#: Time of interpolation over that of values alone, by the numbers that targets take from the grid.
GATHER = {"values": 1.0, "both": 2.05, "slopes": 2.05}
SIGMA, CIRCLE = 1.2, math.pi / 4  # typical σ; share of a square of modes that a circle takes


class ModelledKernel(Protocol):
    """Attributes of a kernel that models need (`parki.ewald.kernel.Kernel`)."""

    spread: int
    slopes: bool
    result: int
    fields: int
    gather: str
    components: int
    near: float
    common: float
    far: tuple[str, ...]


@dataclass(frozen=True)
class Choice:
    """A selection: the index of the cutoff and of the window, the grid, and the predicted seconds."""

    cutoff: int
    window: int
    grid: tuple[int, int, int]
    seconds: float


@dataclass(frozen=True)
class Domain:
    """Domain of a sum: the sides of the box, the first `periodicity` of them periodic, and the tolerance.

    `edges` are the lengths of lattice vectors, which differ from the sides in a triclinic cell only.  `crowding` is the
    ratio of sources near a target to evenly spread ones, in cubes of sides l/2, l/4, …, l = V^(1/3).
    """

    box: tuple[float, float, float]
    periodicity: int = 3
    tolerance: float = 1e-6
    edges: tuple[float, float, float] | None = None
    crowding: tuple[float, ...] = ()

    def denser(self, rc: NDArray | float) -> NDArray | float:
        """Return the ratio of sources within `rc` of a target to evenly spread ones."""
        side = (4 * math.pi / 3 * np.maximum(rc, 1e-9) ** 3 / math.prod(self.box)) ** (1 / 3)
        return 2 ** np.interp(-np.log2(side), range(len(self.crowding) + 1), np.log2((1.0, *self.crowding)))

    def crowd(self, n: int, rc: NDArray | float) -> NDArray | float:
        """Return the number of `n` points in a cube of side rc near others; fewer are in reach if the box is thin."""
        shares = [
            rc / side if axis < self.periodicity else np.minimum(rc / side, 0.62) for axis, side in enumerate(self.box)
        ]
        return n * math.prod(shares) * self.denser(rc)

    def work(self, h: NDArray | float, grid: NDArray, P: NDArray | int, rc: NDArray | float) -> tuple[NDArray, NDArray]:
        """Return points of the transforms, as points of a periodic grid that takes as long, and points held.

        Transforms are along all lines in x; in planes with |kx| < kmax along lines in z, and along the lines in y that
        are within the circle of kmax.
        """
        e = grid + P
        if self.periodicity == 3:
            points = np.prod(grid, axis=0, dtype=np.float64)
            return points, np.prod(e, axis=0, dtype=np.float64)
        diagonal = math.hypot(*self.box[self.periodicity :]) + 2 * rc  # between images of a truncated kernel
        reach = math.log(1 / self.tolerance) + 3
        flat = [np.maximum((side + diagonal) / h, m) for side, m in zip(self.box, e, strict=True)]
        if self.periodicity == 0:
            length, planes = flat[0], flat[0] / SIGMA
            lines_across, area = planes * flat[2], planes * flat[1] * flat[2]
            rows = e[1]
        else:
            length, planes = grid[0] * 1.0, grid[0] / (2 * SIGMA)
            harmonic = np.log(np.maximum(planes, 1.0)) + 0.58
            a = reach * self.box[0] / (2 * np.pi) / h
            l1, l2 = self.box[1] / h, self.box[2] / h
            lines_across = 2 * (planes * l2 + a * harmonic + flat[2])
            if self.periodicity == 1:
                area = 2 * (planes * l1 * l2 + (l1 + l2) * a * harmonic + 1.64 * a * a + flat[1] * flat[2])
                rows = e[1]
            else:
                area, rows = lines_across * grid[1], grid[1]
        lines = length * e[1] * e[2] + rows * lines_across + CIRCLE / SIGMA * area
        return lines / (1 + 1 / SIGMA + CIRCLE / SIGMA**2), length * e[1] * e[2] + 0.25 * area


@dataclass(frozen=True)
class ModelledSum:
    """Description of a sum for the models.

    Attributes
    ----------
    kernel
        Kernel of the sum.
    n_targets, n_sources, domain
        Numbers of points, and their domain.
    itemsizes
        Bytes of a real number, and of one of the far field.
    """

    kernel: ModelledKernel
    n_targets: int
    n_sources: int
    domain: Domain
    itemsizes: tuple[int, int] = (8, 8)


def relative(kernel: ModelledKernel, tolerance: float, costs: Costs) -> float:
    """Return the time of a near-field pair over one of laplace at 1e-7."""
    return (1.0 + costs.differ * (kernel.near - 1.0)) * (1.0 + DIGIT * len(kernel.far) * math.log10(1e-7 / tolerance))


def grid_bytes(kernel: ModelledKernel, points: NDArray | float, itemsize: int) -> NDArray | float:
    """Return the bytes of the grid, which holds its own transforms, and of the table of multipliers."""
    return itemsize * (kernel.components + 0.25) * points


def seconds(
    question: ModelledSum,
    rc: NDArray | float,
    points: NDArray | float,
    P: NDArray | int,
    costs: Costs | None = None,
) -> NDArray | float:
    """Predict the time of one sum.

    Parameters
    ----------
    question
        The sum.
    rc
        Cutoff, which gives the near pairs.
    points, P
        Points of the transforms (`Domain.work`) and window width.
    costs
        Calibrated costs.
    """
    return sum(phases(question, rc, points, P, costs).values())


def phases(
    question: ModelledSum,
    rc: NDArray | float,
    points: NDArray | float,
    P: NDArray | int,
    costs: Costs | None = None,
) -> dict[str, NDArray | float]:
    """Predict `seconds` by phase: ``"near"``, ``"transform"``, ``"spread"`` and ``"gather"``."""
    kernel, domain, itemsizes = question.kernel, question.domain, question.itemsizes
    n_targets, n_sources = question.n_targets, question.n_sources
    costs = costs or Costs()
    rhs = costs.rhs
    transform = costs.single_fft if itemsizes[1] == 4 else 1.0
    crowd = domain.crowd(n_sources, rc)
    n = np.maximum(n_sources, 1)
    touched_points = points / max(1.0, float(domain.denser(0.0)))
    points_each = touched_points / n if domain.periodicity == 3 else touched_points / (4 * n)
    spread, gather = (costs.rows(phase, P, points_each, itemsizes[1]) for phase in ("spread", "gather"))
    return {
        "near": near(question, crowd, costs) * n_targets,
        "transform": rhs * transform * costs.fft * (kernel.spread + kernel.fields) * points,
        "spread": rhs * spread * costs.spread * (costs.slopes if kernel.slopes else 1.0) * kernel.spread * n_sources,
        "gather": rhs * gather * costs.gather * GATHER[kernel.gather] * kernel.fields * n_targets,
    }


def near(question: ModelledSum, crowd: ArrayLike, costs: Costs) -> ArrayLike:
    """Predict the time of the near field of a target, where `crowd` sources lie in a cube of side rc."""
    kernel = question.kernel
    pairs = (4 * np.pi / 3) * crowd * (kernel.common + (1 - kernel.common) * costs.rhs)
    pair = costs.near_pair(relative(kernel, question.domain.tolerance, costs), crowd) * pairs
    return (costs.single if question.itemsizes[0] == 4 else 1.0) * (pair + costs.near_target(crowd))


@lru_cache(maxsize=1)
def even_sizes() -> NDArray[np.int64]:
    """Return the even numbers up to 2¹⁷ without prime factors above 7: good FFT lengths."""
    sizes = {1}
    for prime in (2, 3, 5, 7):
        multiples = set(sizes)
        for size in sizes:
            while (size := size * prime) <= 2**16:
                multiples.add(size)
        sizes = multiples
    return 2 * np.array(sorted(sizes))


def grids(
    spacing: NDArray[np.float64], box: tuple[float, float, float], P: NDArray[np.int64], periodicity: int = 3
) -> NDArray[np.int64]:
    """Return grids (3, …) with at most this spacing, of good sizes of at least P points on periodic axes."""
    sizes = even_sizes()
    shape = np.broadcast_shapes(np.shape(spacing), np.shape(P))
    need = [np.broadcast_to(length / spacing * (1 + 1e-12), shape) for length in box]
    need = [np.maximum(n, P) if axis < periodicity else np.ceil(n) for axis, n in enumerate(need)]
    if max(np.max(n) for n in need) > sizes[-1]:
        raise ValueError(
            f"the box {box} has sides longer than {sizes[-1]} spacings of the grid, {np.min(spacing):.3g}; "
            "expected a larger rc (cell_size) or tolerance, or a shorter box."
        )
    return np.array(
        [sizes[np.searchsorted(sizes, n)] if axis < periodicity else n.astype(np.int64) for axis, n in enumerate(need)]
    )


def balance(
    question: ModelledSum,
    rc: NDArray[np.float64],
    kmax: NDArray[np.float64],
    P: NDArray[np.int64],
    sigma: NDArray[np.float64],
    costs: Costs | None = None,
) -> Choice:
    """Choose among cutoffs (each with its kmax) and windows (each with its σ: spacing π/(σ kmax)).

    The choice is the fastest within the budget of memory, or the smallest if none is within the budget.  On a host,
    where larger grids do not fit caches, a grid twice as large must be faster by a few percent.
    """
    domain = question.domain
    spacing = np.pi / np.multiply.outer(kmax, sigma)
    shape = grids(spacing, domain.edges or domain.box, P, domain.periodicity)
    points, padded_points = domain.work(spacing, shape, P, rc[:, None])
    time = seconds(question, rc[:, None], points, P, costs)
    weighted_time = time * padded_points**LARGER if (costs or Costs()).lanes < WARP else time
    particles = max(question.n_targets, question.n_sources)
    if particles >= BUDGET_FROM:
        room = (BUDGET - PARTICLE_BYTES) * particles
        excess = np.maximum(grid_bytes(question.kernel, padded_points, question.itemsizes[1]) / room, 1.0)
        rank = np.where(excess > 1.0, excess * 1e30, weighted_time)
    else:
        rank = weighted_time
    i, j = np.unravel_index(np.argmin(rank), rank.shape)
    return Choice(int(i), int(j), tuple(int(m) for m in shape[:, i, j]), float(time[i, j]))
