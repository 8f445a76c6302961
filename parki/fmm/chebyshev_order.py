"""Points per direction for a tolerance, from the measured interpolation error of a pair's own kernel.

For boxes of every size in a tree, the error of two boxes that are as near as a list V allows is measured, between
random points.  Errors of all sizes add up as squares, each pair of particles weighted by the square of its field.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from parki.fmm import representations
from parki.fmm.chebyshev_tables import Floats, grid, points
from parki.fmm.params import MOST_ORDER
from parki.pairs import Pair
from parki.trees.octlists import OctLists
from parki.trees.octree import MAX_LEVEL, OctNodes

SAMPLE_POINTS = 64  # points of a box for measuring errors
CHARGE_SETS = 8  # sets of random charges
NEAREST = ((2, 0, 0), (2, 1, 1))  # offsets with the largest errors
ERROR_SHARE = 0.4  # aim for measured errors, relative to the tolerance: sums err less, as most boxes are further apart
ERROR_SHARE_OF_LENGTHS = (
    0.06  # the same for pairs with a length of their own, whose fields may cancel or fall off over it
)
#: Distances, in half sides, between particles of boxes that translations join, and the share of pairs that are so near.
FAR_DISTANCES = ((4.0, 1.0), (2.3, 0.02))
FAR, NEAR = (3.5, 7.0), (0.5, 2.0)  # half sides between particles of far boxes, and of near ones
FAINT_SHARE = 1e-6  # share of the square of the whole field below which a level is ignored
ONE_SIDE = 2.0  # square of the error allowed to the interpolation of targets alone, over that of both sides
ORDERS = range(2, MOST_ORDER + 1)  # points per direction
ROUNDING_SHARE = 1e-6  # share of fields below which sums are only rounding


@dataclass(frozen=True, eq=False)
class Met:
    """Numbers of pairs of particles that meet through boxes.

    Attributes
    ----------
    width : float
        Side of the root.
    far, near : array (MAX_LEVEL + 1,) of float64
        By the level of the boxes through which they meet, and by the level of leaves that are near each other.
    """

    width: float
    far: Floats
    near: Floats

    @classmethod
    def of(cls, nodes: OctNodes, lists: OctLists) -> "Met":
        """Count the pairs of a tree's lists."""
        n_t, n_s = nodes.targets.count.astype(float), nodes.sources.count.astype(float)
        above_t, above_s = nodes.octet_parent[lists.v_t], nodes.octet_parent[lists.v_s]
        count = [
            (nodes.level[above_t] + 1, n_t[above_t] * n_s[above_s]),
            (nodes.level[lists.w_s], n_t[lists.w_t] * n_s[lists.w_s]),
            (nodes.level[lists.x_t], n_t[lists.x_t] * n_s[lists.x_s]),
        ]
        far = np.bincount(*(np.concatenate(parts) for parts in zip(*count, strict=True)), minlength=MAX_LEVEL + 1)
        near = np.bincount(nodes.level[lists.u_t], n_t[lists.u_t] * n_s[lists.u_s], minlength=MAX_LEVEL + 1)
        return cls(nodes.width, far, near)

    def by_half(self) -> tuple[dict[float, float], dict[float, float]]:
        """Return the numbers by half side of the boxes, far and near, where there are any."""
        numbers = (
            {float(np.ldexp(self.width, -(k + 1))): float(n) for k, n in enumerate(counts) if n}
            for counts in (self.far, self.near)
        )
        return tuple(numbers)


def order(pair: Pair, tolerance: float, counts: Met, bound: int = MOST_ORDER) -> int:
    """Return the least number of points per direction whose error is below the tolerance.

    Parameters
    ----------
    pair : Pair
        Linear in the strengths of sources.
    tolerance : float
        Relative error of a sum in the 2-norm; compression adds at most a tenth of it.
    counts : Met
        Numbers of pairs of the sum: boxes of all sizes count for pairs that have a length of their own.
    bound : int
        Points per direction, at most.

    Raises
    ------
    ValueError
        If more than `bound` points are needed: the kernel varies too much over the largest boxes.
    """
    if representations.exponents(pair) is not None:
        # One size stands for all, and near fields are left out: beside them any error of far ones would pass.
        aim, weights, total = ERROR_SHARE * tolerance, {1.0: 1.0}, 1.0
    else:
        far, near = counts.by_half()
        aim = ERROR_SHARE_OF_LENGTHS * tolerance
        weights = {h: n * max(share * field(pair, r * h) ** 2 for r, share in FAR_DISTANCES) for h, n in far.items()}
        total = _variation(*_fields(pair, far, near))
    terms = {h: w for h, w in weights.items() if w > FAINT_SHARE * aim**2 * total}

    def square(m: int, sides: int) -> float:
        return sum(w * measured(pair, m, h, sides) ** 2 for h, w in terms.items())

    allowed = aim**2 * total
    for m in range(ORDERS.start, bound + 1):
        # the work of interpolating both sides grows as m⁶, that of one side as m³
        if square(m, sides=1) <= ONE_SIDE * allowed and square(m, sides=2) <= allowed:
            return m
    raise ValueError(
        f"tolerance is {tolerance:g}, for which {pair} takes more than {bound} points per direction over these "
        "points; expected a larger one, or parki.treecode."
    )


def left(pair: Pair, counts: Met) -> float:
    """Return the size of sums of charges that add up to 0, relative to fields that do not cancel: 1 or less.

    For kernels that are nearly constant over all points it is small, and errors must be small, too.
    """
    if representations.exponents(pair) is not None:
        return 1.0
    n, f = _fields(pair, *counts.by_half())
    total = float(n @ f**2)
    return float(np.sqrt(max(_variation(n, f), ROUNDING_SHARE**2 * total) / total)) if total > 0 else 1.0


def _fields(pair: Pair, far: dict[float, float], near: dict[float, float]) -> tuple[Floats, Floats]:
    """Return numbers of pairs of particles, and their fields."""
    groups = ((far, FAR), (near, NEAR))
    n, f = np.array([(n / 2, field(pair, r * h)) for pairs, radii in groups for h, n in pairs.items() for r in radii]).T
    return n, f


def _variation(n: Floats, f: Floats) -> float:
    """Return the sum over all pairs of the square of the field's difference from its mean."""
    return float(n @ np.square(f - (n @ f) / n.sum()))


@lru_cache(maxsize=1024)
def field(pair: Pair, distance: float) -> float:
    """Return the root mean square of the result for unit charges at a distance."""
    r = np.random.default_rng(0).standard_normal((16, 3))
    r *= distance / np.linalg.norm(r, axis=1)[:, None]
    return float(np.sqrt(np.square(representations.block(pair, r)).sum(axis=(1, 2)).mean()))


@lru_cache(maxsize=1024)
def measured(pair: Pair, m: int, half: float, sides: int = 2) -> float:
    """Return the worst relative error between two boxes of half side `half` at `NEAREST`, `m` points per direction.

    Targets are interpolated and, for two sides, sources.  Components of the result are taken one by one, as a potential
    and its gradient have different units.
    """
    rng = np.random.default_rng(1)
    y, x = rng.uniform(-1, 1, (2, SAMPLE_POINTS, 3))
    charges = rng.uniform(-1, 1, (SAMPLE_POINTS, pair.dens * CHARGE_SETS))
    target_weights, proxies = polynomials(x, m), grid(m)
    places, strengths = (proxies, polynomials(y, m).T @ charges) if sides == 2 else (y, charges)
    worst = 0.0
    for offset in NEAREST:
        shift = 2.0 * np.array(offset)
        exact = _sums(pair, half * (x + shift), half * y, charges)
        interpolation = np.tensordot(target_weights, _sums(pair, half * (proxies + shift), half * places, strengths), 1)
        size = np.linalg.norm(exact, axis=(0, 2))
        mask = size > FAINT_SHARE * size.max()
        errors = np.linalg.norm(interpolation - exact, axis=(0, 2))[mask] / size[mask]
        worst = max(worst, float(np.sqrt(np.mean(errors**2))) if len(errors) else 0.0)
    return worst


def _sums(pair: Pair, x: Floats, y: Floats, charges: Floats) -> Floats:
    """Return direct sums (n, result, CHARGE_SETS) of charges (m, dens × CHARGE_SETS), for some targets at a time."""
    rows, charges = max(1, (1 << 18) // len(y)), charges.reshape(-1, CHARGE_SETS)
    parts = []
    for first in range(0, len(x), rows):
        r = (x[first : first + rows, None] - y).reshape(-1, 3)
        k = representations.block(pair, r).reshape(-1, len(y), pair.result, pair.dens)
        parts.append(
            (k.transpose(0, 2, 1, 3).reshape(-1, len(charges)) @ charges).reshape(-1, pair.result, CHARGE_SETS)
        )
    return np.concatenate(parts)


def polynomials(x: Floats, m: int) -> Floats:
    """Return the products of Lagrange polynomials (n, m³) at x (n, 3): Σ_k T_k(x) T_k(x_i) along each axis."""
    nodes = points()[0][m - 1, :m]
    k = np.arange(m)
    node_values = np.cos(k[:, None] * np.arccos(nodes))
    factors = [(2 * np.cos(np.arccos(np.clip(x[:, d, None], -1, 1)) * k) @ node_values - 1) / m for d in range(3)]
    return np.einsum("ni,nj,nk->nijk", *factors).reshape(len(x), -1)
