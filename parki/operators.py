"""Sums as linear operators of flattened arrays, with their transposes by sums of other kernels (`parki.adjoints`)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from parki.arguments import Arguments
from parki.arrays import Array
from parki.method import Method

Columns = Callable[[Array], Array]


class Summed(Protocol):
    """A plan: `parki.plan.Plan`."""

    method: Method
    kernel: Any
    arguments: Arguments
    n_targets: int
    n_sources: int
    dtype: np.dtype[Any]

    def __call__(self, density: Array, normals: Array | None = None) -> Any:
        """Return the sum at all targets."""

    def transposed(self, kernel: str | None = None) -> Summed:
        """Return the plan of a kernel from the targets to the sources."""


def of(plan: Summed, normals: Array | None, correction: Any) -> Any:
    """Return the linear operator of a plan: see `parki.plan.Plan.operator`."""
    kernel, arguments, nt, ns = plan.kernel, plan.arguments, plan.n_targets, plan.n_sources
    if arguments.gradient is True:
        raise ValueError("this plan has gradient=True; expected a plan with one result, as of gradient='only'.")
    axes = arguments.normals(normals)

    def columns(x: Array) -> Array:
        return arguments.columns(x, lambda dens: apply(plan, dens, axes), kernel.dens, ns)

    def rows(w: Array) -> Array:
        return arguments.columns(w, lambda w: adjoint(plan, w, axes), kernel.result, nt)

    return linear((kernel.result * nt, kernel.dens * ns), plan.dtype, columns, rows, correction, arguments.on_gpu)


def apply(plan: Summed, density: Array, normals: Array | None = None) -> Array:
    """Return sums ``(rhs, components, Nt)`` of a density ``(rhs, components, Ns)``, whatever the layout of the plan."""
    arguments = plan.arguments
    if normals is not None and arguments.layout == "nd":
        normals = normals.T
    return arguments.rows(plan(arguments.given(density), normals), len(density))


def adjoint(plan: Summed, w: Array, normals: Array | None) -> Array:
    """Return the transposed sums ``(rhs, components, Ns)`` of ``(rhs, components, Nt)``; normals ``(3, Ns)``.

    Raises
    ------
    NotImplementedError
        For a kernel whose adjoint is not known.
    """
    back = plan.method.adjoint()
    if back is None:
        raise NotImplementedError(f"the transpose of {plan.kernel} is not known; expected a kernel of parki's own.")
    return back(lambda name, w, normals=None: apply(plan.transposed(name), w, normals), w, normals)


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
    """Refuse a correction that cannot be added to an operator of this shape."""
    if correction is None:
        return
    matrix = hasattr(correction, "shape") and hasattr(correction, "__matmul__")
    if not matrix or getattr(getattr(correction, "dtype", None), "kind", "f") not in "biufc":
        found = f"{type(correction).__name__}"
        raise TypeError(f"correction is a {found}; expected a sparse matrix or a LinearOperator of numbers, or None.")
    if tuple(correction.shape) != shape:
        raise ValueError(f"correction has shape {correction.shape}; expected {shape}.")


def _adjoint(matrix: Any) -> Any:
    """Return the conjugate transpose of a matrix, or of a LinearOperator, which conjugates only with its transpose."""
    return matrix.conj().T if hasattr(matrix, "conj") else matrix.H


def _complex(function: Columns, x: Array) -> Array:
    """Apply a real function to columns that may be complex."""
    return function(x.real) + 1j * function(x.imag) if x.dtype.kind == "c" else function(x)
