"""Seeded random points and charges: the distributions on which fast sums are tried.

Every function returns the same float64 array for the same arguments; points are (3, n).  Two functions with one seed
draw independent numbers.

References
----------
Wilson, Vaughn and Krasny, A GPU-accelerated fast summation method based on barycentric Lagrange interpolation and dual
tree traversal (2021), sections 4.3 and 4.4, for the distributions and geometries.  Plummer, On the problem of
distribution in globular star clusters, Mon. Not. R. Astr. Soc. 71 (1911).
"""

import math
import numbers
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki import memory

__all__ = ["box", "charges", "gaussian", "plummer", "sphere", "uniform"]

Points = NDArray[np.float64]


def __dir__() -> list[str]:
    return sorted(__all__)


def uniform(n: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> Points:
    """Points uniform in the cube [`low`, `high`)³.

    Raises
    ------
    ValueError
        For a negative `n` or `seed`, and unless `low` < `high`.
    """
    if not (_number(low) and _number(high) and -math.inf < low < high < math.inf):
        raise ValueError(f"low is {low!r} and high is {high!r}; expected finite numbers, low below high.")
    return low + (high - low) * _generator("uniform", n, seed).random((3, n))


def gaussian(n: int, seed: int = 0, variance: float = 3.0) -> Points:
    """Points with the density (2π s)^(−3/2) exp(−r²/2s), s = `variance` that of each coordinate.

    Raises
    ------
    ValueError
        For a negative `n` or `seed`, and a variance that is not positive.
    """
    _positive("variance", variance)
    return math.sqrt(variance) * _generator("gaussian", n, seed).standard_normal((3, n))


def plummer(n: int, seed: int = 0, cutoff: float = 100.0) -> Points:
    """Points with the density 3/4π (1 + r²)^(−5/2) where all coordinates are within ±`cutoff`, and none elsewhere.

    Without the cutoff, the share of points within r would be r³ (1 + r²)^(−3/2).

    Raises
    ------
    ValueError
        For a negative `n` or `seed`, and a cutoff that is not positive.
    """
    _positive("cutoff", cutoff)
    rng = _generator("plummer", n, seed)
    within = (1 + 1 / (3 * cutoff**2)) ** -1.5  # the share in the ball around the cube
    inside = np.empty((3, 0))
    while inside.shape[1] < n:
        m = int(1.1 * (n - inside.shape[1])) + 16
        share = within * (1 - rng.random(m))
        with np.errstate(divide="ignore"):  # a share that rounds to 1 is at infinity, and dropped
            r = 1 / np.sqrt(share ** (-2 / 3) - 1)
        directions = _directions(rng, m)
        kept = np.abs(directions).max(axis=0) * r <= cutoff
        inside = np.concatenate([inside, r[kept] * directions[:, kept]], axis=1)
    return np.ascontiguousarray(inside[:, :n])


def box(n: int, seed: int = 0, sides: Sequence[float] = (1.0, 10.0, 10.0)) -> Points:
    """Points uniform in a box around the origin: a slab by default, a rod with sides (1, 1, 10).

    Raises
    ------
    ValueError
        For a negative `n` or `seed`, and sides that are not three positive numbers.
    """
    if np.shape(sides) != (3,):
        raise ValueError(f"sides is {sides!r}; expected three positive numbers.")
    for side in sides:
        _positive("sides", side)
    return np.array(sides, float)[:, None] * (_generator("box", n, seed).random((3, n)) - 0.5)


def sphere(n: int, seed: int = 0, radius: float = 1.0) -> Points:
    """Points uniform on the surface of a sphere around the origin.

    Raises
    ------
    ValueError
        For a negative `n` or `seed`, and a radius that is not positive.
    """
    _positive("radius", radius)
    return radius * _directions(_generator("sphere", n, seed), n)


def charges(n: int, seed: int = 0) -> NDArray[np.float64]:
    """Charges (n,) uniform in [−1, 1).

    Raises
    ------
    ValueError
        For a negative `n` or `seed`.
    """
    return 2 * _generator("charges", n, seed).random(n) - 1


def _generator(name: str, n: int, seed: int) -> np.random.Generator:
    """A generator of its own for each function and seed; `n` is only checked."""
    for what, value in (("n", n), ("seed", seed)):
        try:
            good = operator.index(value) >= 0
        except TypeError:
            good = False
        if not good:
            raise ValueError(f"{what} is {value!r}; expected an integer, 0 or more.")
    memory.require(8 * operator.index(n), f"a sample with n = {n}", "A smaller n takes less.")
    return np.random.default_rng([*name.encode(), operator.index(seed)])


def _positive(name: str, value: float) -> None:
    if not (_number(value) and 0 < value < math.inf):
        raise ValueError(f"{name} is {value!r}; expected a positive number.")


def _number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _directions(rng: np.random.Generator, n: int) -> Points:
    """Unit vectors: z uniform in [−1, 1), by Archimedes, and the angle around it."""
    z = 2 * rng.random(n) - 1
    angle = 2 * math.pi * rng.random(n)
    rho = np.sqrt((1 - z) * (1 + z))
    return np.stack([rho * np.cos(angle), rho * np.sin(angle), z])
