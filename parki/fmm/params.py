"""What a fast multipole sum is made with: points of a box, and sizes of leaves."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parki.arrays import Array, to_host

TOLERANCE = 1e-6  # if neither a tolerance nor an order is given
LEAST_ORDER, MOST_ORDER = 3, 16
#: Least tolerances that sums of each dtype reach.
REACH = {"float64": 1e-12, "float32": 3e-5}
# Errors of equivalents with 3, 4 … points per edge: twice the worst of potentials of points in a cube, in a Plummer
# sphere, and on a sphere, charges of both signs.
ERRORS = (
    4e-3, 7e-4, 6e-5, 7e-6, 9e-7, 1.3e-7, 1.8e-8, 3e-9, 5e-10, 8e-11, 2e-11, 4.4e-12, 8e-13, 2e-13,
)  # fmt: skip
# Points of a leaf, by points per edge: where the near field costs as much as what it saves.
LEAVES = {3: 24, 4: 30, 5: 42, 6: 54, 7: 72, 8: 94, 9: 120, 10: 135, 11: 160, 12: 180}
CHEBYSHEV_LEAVES = {3: 24, 4: 40, 5: 60, 6: 90, 7: 140, 8: 200, 9: 280, 10: 380}
SAMPLE, CELLS = 20_000, 4  # points looked at, and cells across, to tell whether points are uniform
UNEVEN = 1.6  # variance of their numbers over that of uniform points from which on they are not
SPREAD = 5.0  # standard deviations by which a box of uniform points may be over


@dataclass(frozen=True)
class Parameters:
    """Parameters of a fast multipole sum.

    Attributes
    ----------
    method
        ``"kifmm"`` or ``"chebyshev"``.
    order
        Points per edge of surfaces, or per direction of boxes.
    leaf_size
        Points of a leaf at most.
    tolerance
        What was asked for, None if an order was.
    fill
        Boxes across all points on the level of leaves, for points that are uniform; None: a power of 2.
    """

    method: str
    order: int
    leaf_size: int
    tolerance: float | None
    fill: float | None = None

    def __str__(self) -> str:
        return f"order {self.order}, leaves {self.leaf_size}"


def order(tolerance: float, harder: int = 0) -> int:
    """Points per edge of surfaces for a relative error, `harder` more than for potentials."""
    for p, error in enumerate(ERRORS, LEAST_ORDER):
        if error <= tolerance:
            return min(p + harder, MOST_ORDER)
    return MOST_ORDER


def leaf_size(method: str, points: int, components: int = 1) -> int:
    """Points of a leaf for so many points per edge, and components of the expansion."""
    table = LEAVES if method == "kifmm" else CHEBYSHEV_LEAVES
    size = table.get(points) or table[max(table)] * (points / max(table)) ** 1.7
    return round(size * math.sqrt(components))


def grid(x: Array, y: Array, wanted: int) -> tuple[int, float | None]:
    """Size of leaves, and boxes across, for about `wanted` points a leaf.

    Points that fill their box evenly get boxes of equal size, k³ of them for any k, and leaves as large as these can
    be; others get leaves of that size at most.
    """
    n = max(x.shape[1], y.shape[1])
    lengths = sides(x, y)
    if n < 8 * wanted or min(lengths) <= 0 or not (_even(x) and (x is y or _even(y))):
        return wanted, None
    longest = max(lengths)
    share = math.prod(side / longest for side in lengths)
    k = max(1, round((n / (wanted * share)) ** (1 / 3)))
    mean = n / (share * k**3)
    return math.ceil(mean + SPREAD * math.sqrt(mean)), float(k)


def sides(x: Array, y: Array) -> list[float]:
    """Sides of the box around all points."""
    both = [x] if x is y else [a for a in (x, y) if a.shape[1]]
    return [max(float(a[d].max()) for a in both) - min(float(a[d].min()) for a in both) for d in range(3)]


def _even(x: Array) -> bool:
    """Whether the numbers of points in cells are as those of points that are uniform at random, or more even."""
    some: NDArray[np.float64] = to_host(x[:, :: max(1, x.shape[1] // SAMPLE)]).astype(np.float64)
    low, high = some.min(axis=1, keepdims=True), some.max(axis=1, keepdims=True)
    cell = np.minimum((CELLS * (some - low) / (high - low)).astype(np.int64), CELLS - 1)
    count = np.bincount(cell[0] * CELLS**2 + cell[1] * CELLS + cell[2], minlength=CELLS**3)
    return float(count.var()) <= UNEVEN * float(count.mean())
