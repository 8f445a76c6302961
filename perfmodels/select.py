"""The balance of near and far field: which cutoff, window width and grid are predicted to be fastest.

A small rc makes few pairs and a fine grid (pairs ∝ rc³, grid points ∝ (σc/rc)³), a wide window allows a coarser grid.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from parki.perfmodels.machine import Costs

#: Components spread and gathered.
COMPONENTS = {"laplace": (1, 1), "stokes_sl": (3, 3), "stokes_comb": (4, 3)}
#: From this many particles on, a selection keeps to a budget of bytes a particle, of which the grids get what the
#: particles' own sorted copies leave.
BUDGET_FROM, BUDGET, PARTICLE_BYTES = 100_000, 1900.0, 350.0


@dataclass(frozen=True)
class Choice:
    """A selection: the index of the cutoff and of the window, and the grid."""

    cutoff: int
    window: int
    grid: tuple[int, int, int]
    seconds: float


def grid_bytes(kernel: str, points: NDArray | float, itemsize: int) -> NDArray | float:
    """Return the bytes of the grids: components in and out, real and as half spectra, and one more for the transform.

    With doubles 48 a point for laplace, 112 for stokes_sl, 128 for stokes_comb.
    """
    return 2.0 * itemsize * (sum(COMPONENTS[kernel]) + 1) * points


def seconds(
    kernel: str,
    n_targets: int,
    n_sources: int,
    volume: float,
    rc: NDArray | float,
    points: NDArray | float,
    P: NDArray | int,
    itemsize: int = 8,
    costs: Costs | None = None,
) -> NDArray | float:
    """Predict the time of one sum.

    Parameters
    ----------
    kernel
        ``"laplace"``, ``"stokes_sl"`` or ``"stokes_comb"``.
    n_targets, n_sources, volume, rc
        Numbers of points, volume of the box, cutoff: they give the near pairs.
    points, P
        Grid points and window width.
    itemsize
        Bytes of a real number.
    costs
        Calibrated costs.
    """
    costs = costs or Costs()
    inward, outward = COMPONENTS[kernel]
    crowd = n_sources * rc**3 / volume
    near = costs.near_pair(kernel, crowd) * (4 * np.pi / 3) * crowd * n_targets
    grid = costs.fft * (inward + outward) * points
    window = np.square(P, dtype=np.float64) * (costs.spread * inward * n_sources + costs.gather * outward * n_targets)
    return (near + grid + window) * (costs.single if itemsize == 4 else 1.0)


@lru_cache(maxsize=1)
def even_sizes() -> NDArray[np.int64]:
    """Return the even numbers up to 2¹⁷ without prime factors above 7: good FFT lengths."""
    sizes = {1}
    for prime in (2, 3, 5, 7):
        grown = set(sizes)
        for size in sizes:
            while (size := size * prime) <= 2**16:
                grown.add(size)
        sizes = grown
    return 2 * np.array(sorted(sizes))


def grids(spacing: NDArray[np.float64], box: tuple[float, float, float], P: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the good grids (3, …) whose spacing is below `spacing` on every axis and that hold P nodes."""
    sizes = even_sizes()
    shape = np.broadcast_shapes(np.shape(spacing), np.shape(P))
    need = [np.broadcast_to(np.maximum(length / spacing * (1 + 1e-12), P), shape) for length in box]
    index = np.searchsorted(sizes, need)
    if np.any(index == len(sizes)):
        raise ValueError(
            f"box: found {box}, expected sides below {sizes[-1]} spacings of {np.min(spacing):.3g}: larger rc"
        )
    return sizes[index]


def balance(
    kernel: str,
    n_targets: int,
    n_sources: int,
    box: tuple[float, float, float],
    rc: NDArray[np.float64],
    kmax: NDArray[np.float64],
    P: NDArray[np.int64],
    sigma: NDArray[np.float64],
    itemsize: int = 8,
    costs: Costs | None = None,
) -> Choice:
    """Choose among cutoffs (each with its kmax) and windows (each with its σ: spacing π/(σ kmax)).

    The fastest within the budget of memory, or the smallest if none is within it.
    """
    volume = float(np.prod(box))
    shape = grids(np.pi / np.multiply.outer(kmax, sigma), box, P)
    points = np.prod(shape, axis=0, dtype=np.float64)
    time = seconds(kernel, n_targets, n_sources, volume, rc[:, None], points, P, itemsize, costs)
    particles = max(n_targets, n_sources)
    if particles >= BUDGET_FROM:
        room = (BUDGET - PARTICLE_BYTES) * particles
        excess = np.maximum(grid_bytes(kernel, points, itemsize) / room, 1.0)
        rank = np.where(excess > 1.0, excess * 1e30, time)
    else:
        rank = time
    i, j = np.unravel_index(np.argmin(rank), rank.shape)
    return Choice(int(i), int(j), tuple(int(m) for m in shape[:, i, j]), float(time[i, j]))
