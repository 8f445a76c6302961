"""Seeded random points and charges: the distributions on which fast sums are tried.

Every function returns the same float64 array for the same arguments; points are (3, n).  Two functions with one seed
draw independent numbers.  Lengths have no unit.

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
from parki.docstrings import completed

SAMPLE = """
Parameters
----------
n : int
    Number of points.
seed : int, default 0
    Seed of the random numbers: equal seeds give equal points.

Returns
-------
array (3, n)
    The points, float64.

Raises
------
ValueError
    For a negative `n` or `seed`.
"""

__all__ = ["box", "charges", "gaussian", "plummer", "sphere", "uniform"]

Points = NDArray[np.float64]


def __dir__() -> list[str]:
    return sorted(__all__)


@completed(SAMPLE)
def uniform(n: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> Points:
    """Draw points uniform in the cube [`low`, `high`)³.

    Parameters
    ----------
    low, high : float, default −1, 1
        Bounds of each coordinate.

    Raises
    ------
    ValueError
        For a negative `n` or `seed`, and unless `low` < `high`.

    See Also
    --------
    box : Draw points in a box with other sides.

    Examples
    --------
    >>> import parki
    >>> x = parki.samples.uniform(1000, seed=1)
    >>> x.shape, bool(abs(x).max() <= 1)
    ((3, 1000), True)
    """
    if not (_number(low) and _number(high) and -math.inf < low < high < math.inf):
        raise ValueError(f"low is {low!r} and high is {high!r}; expected finite numbers, low below high.")
    return low + (high - low) * _generator("uniform", n, seed).random((3, n))


@completed(SAMPLE)
def gaussian(n: int, seed: int = 0, variance: float = 3.0) -> Points:
    """Draw points with the density (2π s)^(−3/2) exp(−r²/2s), s = `variance`.

    Parameters
    ----------
    variance : float, default 3
        Variance of each coordinate.

    Raises
    ------
    ValueError
        For a negative `n` or `seed`, and a variance that is not positive.

    See Also
    --------
    plummer : Draw points that are denser inside and reach further.

    Examples
    --------
    >>> import parki
    >>> print(f"{parki.samples.gaussian(100_000, seed=1).var():.1f}")
    3.0
    """
    _positive("variance", variance)
    return math.sqrt(variance) * _generator("gaussian", n, seed).standard_normal((3, n))


@completed(SAMPLE)
def plummer(n: int, seed: int = 0, cutoff: float = 100.0) -> Points:
    """Draw points with the density 3/4π (1 + r²)^(−5/2) where all coordinates are within ±`cutoff`.

    Without the cutoff, the share of points within r would be r³ (1 + r²)^(−3/2).

    Parameters
    ----------
    cutoff : float, default 100
        Largest coordinate.

    Raises
    ------
    ValueError
        For a negative `n` or `seed`, and a cutoff that is not positive.

    See Also
    --------
    gaussian : Draw points without a dense middle.

    References
    ----------
    Plummer, On the problem of distribution in globular star clusters, Mon. Not. R. Astr. Soc. 71 (1911).

    Examples
    --------
    >>> import numpy as np, parki
    >>> r = np.linalg.norm(parki.samples.plummer(100_000, seed=1), axis=0)
    >>> print(f"{np.mean(r < 1):.2f}")  # 2^(-3/2)
    0.35
    """
    _positive("cutoff", cutoff)
    rng = _generator("plummer", n, seed)
    ball_share = (1 + 1 / (3 * cutoff**2)) ** -1.5  # the share in the ball around the cube
    points = np.empty((3, 0))
    while points.shape[1] < n:
        m = int(1.1 * (n - points.shape[1])) + 16
        share = ball_share * (1 - rng.random(m))
        with np.errstate(divide="ignore"):  # a share that rounds to 1 is at infinity, and dropped
            r = 1 / np.sqrt(share ** (-2 / 3) - 1)
        directions = _directions(rng, m)
        in_cube = np.abs(directions).max(axis=0) * r <= cutoff
        points = np.concatenate([points, r[in_cube] * directions[:, in_cube]], axis=1)
    return np.ascontiguousarray(points[:, :n])


@completed(SAMPLE)
def box(n: int, seed: int = 0, sides: Sequence[float] = (1.0, 10.0, 10.0)) -> Points:
    """Draw points uniform in a box around the origin: a slab by default, a rod with sides (1, 1, 10).

    Parameters
    ----------
    sides : sequence of three floats, default (1, 10, 10)
        Side lengths.

    Raises
    ------
    ValueError
        For a negative `n` or `seed`, and sides that are not three positive numbers.

    See Also
    --------
    uniform : Draw points in a cube.

    Examples
    --------
    >>> import parki
    >>> print(abs(parki.samples.box(10_000, seed=1)).max(axis=1).round(1))
    [0.5 5.  5. ]
    """
    if np.shape(sides) != (3,):
        raise ValueError(f"sides is {sides!r}; expected three positive numbers.")
    for side in sides:
        _positive("sides", side)
    return np.array(sides, float)[:, None] * (_generator("box", n, seed).random((3, n)) - 0.5)


@completed(SAMPLE)
def sphere(n: int, seed: int = 0, radius: float = 1.0) -> Points:
    """Draw points uniform on the surface of a sphere around the origin.

    Parameters
    ----------
    radius : float, default 1
        Radius of the sphere.

    Raises
    ------
    ValueError
        For a negative `n` or `seed`, and a radius that is not positive.

    See Also
    --------
    uniform : Draw points in a cube.

    Examples
    --------
    >>> import numpy as np, parki
    >>> r = np.linalg.norm(parki.samples.sphere(1000, seed=1, radius=2), axis=0)
    >>> print(f"{r.min():.6f} {r.max():.6f}")
    2.000000 2.000000
    """
    _positive("radius", radius)
    return radius * _directions(_generator("sphere", n, seed), n)


@completed(SAMPLE)
def charges(n: int, seed: int = 0) -> NDArray[np.float64]:
    """Draw charges uniform in [−1, 1).

    Returns
    -------
    array (n,)
        The charges, float64.

    See Also
    --------
    uniform : Draw points for them.

    Examples
    --------
    >>> import parki
    >>> parki.samples.charges(5, seed=2).shape
    (5,)
    """
    return 2 * _generator("charges", n, seed).random(n) - 1


def _generator(name: str, n: int, seed: int) -> np.random.Generator:
    """Return a generator of its own for each function and seed; `n` is only checked."""
    for name_of_value, value in (("n", n), ("seed", seed)):
        try:
            valid = operator.index(value) >= 0
        except TypeError:
            valid = False
        if not valid:
            raise ValueError(f"{name_of_value} is {value!r}; expected an integer, 0 or more.")
    memory.require(8 * operator.index(n), f"a sample with n = {n}", "A smaller n takes less.")
    return np.random.default_rng([*name.encode(), operator.index(seed)])


def _positive(name: str, value: float) -> None:
    if not (_number(value) and 0 < value < math.inf):
        raise ValueError(f"{name} is {value!r}; expected a positive number.")


def _number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _directions(rng: np.random.Generator, n: int) -> Points:
    """Draw unit vectors: z uniform in [−1, 1), by Archimedes, and the angle around it."""
    z = 2 * rng.random(n) - 1
    angle = 2 * math.pi * rng.random(n)
    rho = np.sqrt((1 - z) * (1 + z))
    return np.stack([rho * np.cos(angle), rho * np.sin(angle), z])
