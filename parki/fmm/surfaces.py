"""Surfaces that carry equivalent sources and check values: points of a regular grid on a cube.

Ying, Biros and Zorin, A kernel-independent adaptive fast multipole algorithm in two and three dimensions, J. Comput.
Phys. 196 (2004).
"""

import functools

import numpy as np
from numpy.typing import NDArray

from parki.trees.octree import OCTANTS

#: Half sides of the two surfaces of a box of half side 1: upward, equivalents are on the inner one and check values on
#: the outer one; downward the reverse.
INNER, OUTER = 1.05, 2.95
#: Centres of the 8 children of the box [−1, 1]³; child 4 x + 2 y + z.
CHILDREN = OCTANTS - 0.5


def count(p: int) -> int:
    """Return the number of points on the surface of a p × p × p grid."""
    return 6 * (p - 1) ** 2 + 2


@functools.lru_cache(maxsize=32)
def grid(p: int) -> NDArray[np.int64]:
    """Return the indices (points, 3) of the surface of a p × p × p grid, x slowest; read-only.

    Raises
    ------
    ValueError
        For p < 2.
    """
    if p < 2:
        raise ValueError(f"p is {p}; expected 2 points per edge or more.")
    g = np.stack(np.meshgrid(*[np.arange(p)] * 3, indexing="ij"), -1).reshape(-1, 3)
    g = np.ascontiguousarray(g[((g == 0) | (g == p - 1)).any(axis=1)])
    g.flags.writeable = False
    return g


def points(p: int, half: float = 1.0) -> NDArray[np.float64]:
    """Return the points (points, 3) of `grid` on the surface of the cube [−half, half]³."""
    return half * (2.0 * grid(p) / (p - 1) - 1.0)
