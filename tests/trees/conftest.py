"""Distributions of points, and the slow versions to compare with."""

import numpy as np
import pytest

from tests.trees import by_hand as _by_hand


@pytest.fixture
def by_hand():
    return _by_hand


def plummer(rng, n):
    """Return points of the Plummer model: a dense core and points far out, in random directions."""
    r = (rng.uniform(1e-6, 1, n) ** (-2 / 3) - 1) ** -0.5
    v = rng.standard_normal((3, n))
    return r * v / np.sqrt((v**2).sum(axis=0))


def geometric(rng, n):
    """Return halves of halves: every cut separates one point."""
    return np.array([2.0 ** -np.arange(n), np.zeros(n), np.zeros(n)])


SHAPES = {
    "cube": lambda rng, n: rng.random((3, n)),
    "normal": lambda rng, n: rng.standard_normal((3, n)),
    "plummer": plummer,
    "slab": lambda rng, n: rng.random((3, n)) * [[10], [10], [1]],
    "rod": lambda rng, n: rng.random((3, n)) * [[1], [1], [10]],
    "plane": lambda rng, n: rng.random((3, n)) * [[1], [0], [1]],
    "line": lambda rng, n: np.ones((3, 1)) * rng.random(n),
    "grid": lambda rng, n: rng.integers(0, 4, (3, n)) / 4,
    "equal": lambda rng, n: np.full((3, n), 0.7),
    "two groups": lambda rng, n: rng.random((3, n)) + 1e6 * (np.arange(n) % 2),
    "two equal groups": lambda rng, n: np.ones((3, 1)) * (np.arange(n) % 2),
    "tiny": lambda rng, n: rng.random((3, n)) * 1e-38,
    "far from the origin": lambda rng, n: rng.random((3, n)) * 1e-3 + 1e4,
}


@pytest.fixture(params=SHAPES)
def shape(request):
    """Return a function of a generator and a number of points that makes the points (3, N)."""
    return SHAPES[request.param]


@pytest.fixture
def shapes():
    return {**SHAPES, "geometric": geometric}
