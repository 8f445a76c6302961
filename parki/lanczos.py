"""Products of a positive matrix's square root with vectors, by products of the matrix: Lanczos' method in blocks."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from parki.arrays import Array

MOST_RATIO = 0.95  # of two changes: the estimate of slower convergence would be too uncertain
SAFETY = 2.2  # factor of the estimate, which is a third of the error where that falls as the inverse of the steps
Product = Callable[[Array], Array]


class Root(NamedTuple):
    """Hold products with a square root (n, k), the number of products with the matrix, and the error's estimate."""

    values: Array
    products: int
    error: float


def square_root(
    product: Product, z: Array, tolerance: float, most: int, xp: Any = np, negative: float = 0.0
) -> Root:  # fmt: skip
    """Return the product of M^½ with vectors.

    All vectors share one Krylov space.  The relative error is estimated from the changes a in the last quarter of the
    steps and b in the one before, as a ρ/(1 − ρ) with ρ = a/b.

    Parameters
    ----------
    product
        Function that returns the products of the symmetric matrix M with vectors (n, k).
    z
        Vectors (n, k), linearly independent or not.
    tolerance
        Relative error, in the 2-norm of all vectors together, at which to stop.
    most
        Products with M, at most.
    xp
        Module of the arrays.
    negative
        Share of the largest eigenvalue by which errors of the products may take others below zero.

    Raises
    ------
    ValueError
        Where M has an eigenvalue below zero, beyond rounding and this share.
    ArithmeticError
        Where the tolerance is not met by `most` products.

    References
    ----------
    Chow and Saad, SIAM J. Sci. Comput. 36 (2014); Ando, Chow, Saad and Skolnick, J. Chem. Phys. 137 (2012).
    """
    with threadpool_limits(1, "blas"):  # whose threads would take cores from those of the product
        return _iterated(product, z, tolerance, most, xp, negative)


def _iterated(product: Product, z: Array, tolerance: float, most: int, xp: Any, negative: float) -> Root:
    """Return the product of M^½ with vectors, as `square_root`."""
    rounding = float(np.finfo(z.dtype).eps)
    block, start = _orthonormal(z, 0.0, xp)
    if not len(start):
        return Root(xp.zeros_like(z), 0, 0.0)
    basis, diagonal, below = _Basis(block, xp), [], []
    history, error = [], np.inf
    while len(diagonal) < most:
        w, a = basis.orthogonal(product(block))
        diagonal.append(0.5 * _host(a + a.T))
        coefficients, scale = _root_of(_tridiagonal(diagonal, below), start, negative + 1e3 * rounding)
        history.append(coefficients)
        error = _remaining(history)
        if error <= tolerance:
            break
        block, step = _orthonormal(w, 64 * rounding * scale, xp)
        if not len(step):  # the space holds the vectors' products with all powers of M
            error = rounding
            break
        below.append(step)
        basis.add(block)
    if not error <= max(tolerance, 8 * rounding):
        text = f"{len(diagonal)} products give a relative error of {error:.1e}; expected {tolerance:g}"
        raise ArithmeticError(f"the square root converges slowly: {text}. Overlapping particles may be the reason.")
    return Root(basis.vectors[: len(coefficients)].T @ xp.asarray(coefficients, z.dtype), len(diagonal), float(error))


class _Basis:
    """Orthonormal vectors, the rows of one array."""

    def __init__(self, block: Array, xp: Any) -> None:
        self._xp, self._rows, self._last = xp, xp.empty((0, len(block)), block.dtype), 0
        self._count = 0
        self.add(block)

    @property
    def vectors(self) -> Array:
        """Return all vectors, one a row."""
        return self._rows[: self._count]

    def add(self, block: Array) -> None:
        """Append the columns of a block."""
        self._last, end = self._count, self._count + block.shape[1]
        if end > len(self._rows):
            rows = self._xp.empty((2 * end, len(block)), block.dtype)
            rows[: self._count] = self.vectors
            self._rows = rows
        self._rows[self._last : end] = block.T
        self._count = end

    def orthogonal(self, w: Array) -> tuple[Array, Array]:
        """Return vectors (n, k) without their parts along the basis, and their coefficients in the last block.

        Rounding would else let copies of eigenvectors return.
        """
        first = self.vectors @ w
        w = w - self.vectors.T @ first
        return w - self.vectors.T @ (self.vectors @ w), first[self._last :]


def _orthonormal(w: Array, least: float, xp: Any) -> tuple[Array, NDArray[np.float64]]:
    """Return an orthonormal basis of vectors (n, k), and their coefficients in it.

    Directions in which the vectors have at most the length `least`, or rounding, are left out.
    """
    if w.shape[1] == 1:
        size = float(xp.linalg.norm(w))
        return (w[:, :0], np.empty((0, 1))) if size <= least else (w / size, np.array([[size]]))
    q, r = xp.linalg.qr(w)
    u, sizes, v = np.linalg.svd(_host(r), full_matrices=False)
    kept = sizes > max(least, 64 * float(np.finfo(w.dtype).eps) * sizes[0])
    return xp.ascontiguousarray(q @ xp.asarray(u[:, kept], w.dtype)), sizes[kept, None] * v[kept]


def _host(a: Array) -> NDArray[np.float64]:
    """Return a small matrix on the host in double precision."""
    return np.asarray(a.get() if hasattr(a, "get") else a, np.float64)


def _tridiagonal(diagonal: list[NDArray], below: list[NDArray]) -> NDArray[np.float64]:
    """Return the symmetric matrix of diagonal blocks and of the blocks below them."""
    ends = np.cumsum([0, *(len(block) for block in diagonal)])
    places = [slice(*pair) for pair in itertools.pairwise(ends)]
    matrix = np.zeros((ends[-1], ends[-1]))
    for place, block in zip(places, diagonal, strict=True):
        matrix[place, place] = block
    for (left, right), block in zip(itertools.pairwise(places), below, strict=False):
        matrix[right, left], matrix[left, right] = block, block.T
    return matrix


def _root_of(matrix: NDArray, start: NDArray, negative: float) -> tuple[NDArray[np.float64], float]:
    """Return the product of a matrix's square root with a first block, and the matrix's largest eigenvalue.

    Eigenvalues between 0 and minus the largest one times `negative` count as 0.
    """
    values, vectors = np.linalg.eigh(matrix)
    if values[0] < -negative * values[-1]:
        raise ValueError(
            f"the matrix has an eigenvalue of about {values[0]:.2g}; expected none below zero. A smaller tolerance of "
            "the plan leaves smaller errors in it."
        )
    roots = np.sqrt(np.maximum(values, 0.0))
    return (vectors * roots) @ (vectors[: len(start)].T @ start), float(values[-1])


def _remaining(history: list[NDArray]) -> float:
    """Return the sum of the changes to come over the size, if they fall as the last ones did; infinity at first."""
    steps = max(2, len(history) // 4)
    if len(history) <= 2 * steps:
        return np.inf
    new, middle, old = history[-1], history[-1 - steps], history[-1 - 2 * steps]
    last, earlier = _distance(new, middle), _distance(middle, old)
    ratio = min(last / earlier, MOST_RATIO) if earlier else 0.0
    return SAFETY * last * ratio / (1 - ratio) / float(np.linalg.norm(new))


def _distance(new: NDArray, old: NDArray) -> float:
    """Return the norm of the difference of coefficients in an orthonormal basis, which may have grown."""
    difference = new.copy()
    difference[: len(old)] -= old
    return float(np.linalg.norm(difference))
