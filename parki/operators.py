"""Sums as linear operators of flattened arrays."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from parki.arrays import Array

Columns = Callable[[Array], Array]


def linear(
    shape: tuple[int, int], dtype: np.dtype, forward: Columns, backward: Columns, correction: Any, on_gpu: bool
) -> Any:
    """Return a ``LinearOperator``, SciPy's or, on a GPU, CuPy's.

    Parameters
    ----------
    shape : tuple of two ints
    dtype : dtype
    forward, backward : function
        From real columns ``(shape[1], k)`` to ``(shape[0], k)``, and the transpose.
    correction : sparse matrix, LinearOperator or None
        Added, of the same shape.
    on_gpu : bool

    Raises
    ------
    ValueError
        For a correction of another shape.
    TypeError
        For a correction that is none of these.
    """
    _check(correction, shape)

    def matmat(x: Array) -> Array:
        found = _complex(forward, x)
        return found if correction is None else found + correction @ x

    def rmatmat(w: Array) -> Array:
        found = _complex(backward, w)
        return found if correction is None else found + _adjoint(correction) @ w

    def matvec(x: Array) -> Array:
        return matmat(x.reshape(-1, 1))[:, 0]

    def rmatvec(w: Array) -> Array:
        return rmatmat(w.reshape(-1, 1))[:, 0]

    library = importlib.import_module("cupyx.scipy.sparse.linalg" if on_gpu else "scipy.sparse.linalg")
    return library.LinearOperator(shape, matvec=matvec, rmatvec=rmatvec, matmat=matmat, rmatmat=rmatmat, dtype=dtype)


def _check(correction: Any, shape: tuple[int, int]) -> None:
    """Refuse what cannot be added to an operator of this shape."""
    if correction is None:
        return
    matrix = hasattr(correction, "shape") and hasattr(correction, "__matmul__")
    if not matrix or getattr(getattr(correction, "dtype", None), "kind", "f") not in "biufc":
        found = f"{type(correction).__name__}"
        raise TypeError(f"correction is a {found}; expected a sparse matrix or a LinearOperator of numbers, or None.")
    if tuple(correction.shape) != shape:
        raise ValueError(f"correction has shape {correction.shape}; expected {shape}.")


def _adjoint(matrix: Any) -> Any:
    """The conjugate transpose of a matrix, or of a LinearOperator, which conjugates only with its transpose."""
    return matrix.conj().T if hasattr(matrix, "conj") else matrix.H


def _complex(function: Columns, x: Array) -> Array:
    """A real function of columns that may be complex."""
    return function(x.real) + 1j * function(x.imag) if x.dtype.kind == "c" else function(x)
