"""Chebyshev points of the second kind and the weights of their Lagrange polynomials.

Source: J.-P. Berrut and L. N. Trefethen, "Barycentric Lagrange interpolation", SIAM Review 46 (2004).
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

MOST = 24  # points per direction, at most


@lru_cache(maxsize=1)
def tables() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points and weights for every number of points m up to `MOST`, in the first m places of row m − 1.

    Returns
    -------
    nodes : array (MOST, MOST)
        cos(πk/(m − 1)), k = 0 … m − 1, in [−1, 1]; one point stands at 0.
    weights : array (MOST, MOST)
        w_k = 1/∏_{j≠k}(s_k − s_j): with p = ∏_j (x − s_j), L_k(x) = w_k p/(x − s_k).
    """
    nodes, weights = np.zeros((MOST, MOST)), np.zeros((MOST, MOST))
    weights[0, 0] = 1.0
    for m in range(2, MOST + 1):
        k = np.arange(m)
        nodes[m - 1, :m] = np.sin(0.5 * np.pi * (m - 1 - 2 * k) / (m - 1))  # cos, but exactly odd about the middle
        ends = np.where((k == 0) | (k == m - 1), 0.5, 1.0)
        weights[m - 1, :m] = (-1.0) ** k * ends * 2.0 ** (m - 2) / (m - 1)
    return nodes, weights
