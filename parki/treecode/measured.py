"""Fields of kernels and errors of their interpolation between clusters, measured by sums of a few particles.

Measuring works for a caller's own kernel as well as for the built-in ones.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from parki import all_pairs, proxies
from parki.engine import Space
from parki.pairs import PAIRS, Pair

COULOMB = PAIRS["coulomb"]
SAMPLE = 48  # particles of a cluster
DIRECTIONS = 16  # directions of one cluster from another
FEW_PAIRS, SERIAL = 1 << 17, Space("Serial")  # pairs below which the start of threads takes longer than their sum


@lru_cache(maxsize=64)
def fields(pair: Pair, radii: tuple[float, ...], space: Space | None) -> NDArray[np.float64]:
    """Return root mean squares of the result for unit charges in random directions."""
    rng = np.random.default_rng(0)
    direction = rng.standard_normal((3, 16))
    direction /= np.linalg.norm(direction, axis=0)
    targets = np.concatenate([r * direction for r in radii], axis=1)
    total = np.zeros(targets.shape[1])
    for k in range(pair.dens):
        dens = np.eye(pair.dens)[:, k : k + 1]
        total += np.square(_sum(pair, targets, np.zeros((3, 1)), dens, space)).sum(axis=0)
    return np.sqrt(total.reshape(len(radii), -1).mean(axis=1))


def ratio(pair: Pair, theta: float, points: int, scale: float, space: Space | None) -> float:
    """Return the error of the field of a kernel relative to that of 1/r."""
    return error(pair, theta, points, scale, space) / error(COULOMB, theta, points, 1.0, space)


@lru_cache(maxsize=1024)
def error(pair: Pair, theta: float, points: int, scale: float, space: Space | None = None) -> float:
    """Return the relative error of the field between two cubes of half side `scale` at the limit, both interpolated.

    The error is a root mean square over directions from one to the other.  Points and charges are random, but the sum
    of charges is as large as expected: the field of nearly neutral ones would be too small.
    """
    rng = np.random.default_rng(1)
    y, x = scale * rng.uniform(-1, 1, (2, 3, SAMPLE))
    charges = rng.uniform(-1, 1, (pair.dens, SAMPLE))
    charges -= charges.mean(axis=1, keepdims=True)
    charges += np.sqrt(np.square(charges).sum(axis=1, keepdims=True) / (SAMPLE * (SAMPLE - 1)))
    nodes = proxies.tables()[0][points - 1, :points]
    grid = scale * np.stack(np.meshgrid(nodes, nodes, nodes, indexing="ij")).reshape(3, -1)
    source_weights, target_weights = _polynomials(y / scale, points), _polynomials(x / scale, points)
    distance = 2 * math.sqrt(3) * scale / theta

    def result(targets: NDArray[np.float64], *sources: NDArray[np.float64]) -> NDArray[np.float64]:
        images = distance * _directions()[:, :, None] + targets[:, None]
        u = _sum(pair, images.reshape(3, -1), *sources, space)
        return u.reshape(pair.result, DIRECTIONS, -1)

    exact = result(x, y, charges)
    # The errors of both sides are independent, so that none of these sums is over two grids.
    of_sources = result(x, grid, charges @ source_weights) - exact
    of_targets = result(grid, y, charges) @ target_weights.T - exact
    size = np.linalg.norm(exact)
    return float(np.hypot(np.linalg.norm(of_sources), np.linalg.norm(of_targets)) / size) if size > 0 else 0.0


@lru_cache(maxsize=1)
def _directions() -> NDArray[np.float64]:
    """Return unit vectors (3, DIRECTIONS), even among x ≥ y ≥ z ≥ 0: the other directions are their mirror images."""
    k = np.arange(48 * DIRECTIONS)
    z = 1 - (2 * k + 1) / len(k)
    angle = math.pi * (1 + math.sqrt(5)) * k
    sphere = np.stack([np.sqrt(1 - z * z) * np.cos(angle), np.sqrt(1 - z * z) * np.sin(angle), z])
    wedge = np.sort(np.abs(sphere), axis=0)[::-1]
    return np.ascontiguousarray(wedge[:, np.argsort(wedge[0], kind="stable")[24::48]])


def _sum(
    pair: Pair, targets: NDArray[np.float64], sources: NDArray[np.float64], charges: NDArray[np.float64],
    space: Space | None,
) -> NDArray[np.float64]:  # fmt: skip
    """Return the direct sum of charges (NC, Ns) as (NU, Nt)."""
    dens = charges[0] if pair.dens == 1 else np.ascontiguousarray(charges)
    points = np.ascontiguousarray(targets), np.ascontiguousarray(sources)
    if targets.shape[1] * sources.shape[1] < FEW_PAIRS and (space is None or space.native):
        space = SERIAL
    return all_pairs.direct_sum(pair, *points, dens, execution_space=space).reshape(pair.result, -1)


def _polynomials(x: NDArray[np.float64], points: int) -> NDArray[np.float64]:
    """Return all products of Lagrange polynomials (N, points³) at x (3, N) in [−1, 1]."""
    nodes, factors = (table[points - 1, :points] for table in proxies.tables())
    difference = x[:, :, None] - nodes  # (3, N, points)
    terms = np.where(np.eye(points, dtype=bool), 1.0, difference[:, :, None, :])
    value = factors * terms.prod(axis=-1)
    return np.einsum("ni,nj,nk->nijk", *value).reshape(x.shape[1], -1)
