"""Sums as linear operators of flattened arrays, with their transposes by sums of other kernels (`parki.adjoints`).

`Operable` is the part of a plan that offers them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from parki import error, ranks
from parki.arguments import Arguments, deprecated
from parki.arrays import AnyArray, Array
from parki.checks import check_share
from parki.method import Method
from parki.queries import Queries

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator

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


class Operable(Queries):
    """Part of `parki.plan.Plan` that makes related plans, and linear operators from them."""

    _related: dict[Hashable, Any]

    def related(self, key: Hashable, make: Callable[[], Self]) -> Self:
        """Return a plan that serves this one, made when first asked for; it moves with this plan or is dropped."""
        with self._whole(at_door=True):
            with ranks.together(self.comm, "a related plan", call=str(key)):
                self._present()
            if key not in self._related:
                self._related[key] = make()
            return self._related[key]

    def transposed(self, kernel: str | None = None) -> Self:
        """Return the plan from the targets to the sources, made when it is first asked for.

        Its sum is the transposed sum only if the kernel is its own adjoint; `operator` has the other transposes.

        Parameters
        ----------
        kernel : str, optional
            Name of another kernel of the same method; by default that of the plan.

        Returns
        -------
        Plan
            A plan with the same parameters, whose targets are the sources of this one.

        Examples
        --------
        >>> import numpy as np, parki
        >>> x, y = np.array([[0.0], [0.0], [0.0]]), np.array([[2.0, 4.0], [0.0, 0.0], [0.0, 0.0]])
        >>> back = parki.direct.plan("coulomb", x, y).transposed()
        >>> print(back(np.array([1.0])))
        [0.5  0.25]
        """
        name = self.kernel.name if kernel is None else kernel

        def make() -> Self:
            pairs = None if self.exclusions is None else self.exclusions.transposed()
            return type(self)(*self.method.transposed(self.full(), self.chosen, name), exclusions=pairs)

        return self.related(name, make)

    def turned(self, kernel: Any = None) -> Self:
        """Return `transposed` by its old name."""
        deprecated("turned is now transposed")
        return self.transposed(getattr(kernel, "name", kernel))

    def operator(
        self, normals: AnyArray | None = None, correction: Any = None, *, tolerance: float | None = None
    ) -> LinearOperator:
        """Return the sum as a linear operator on flattened densities, for iterative solvers.

        Of shape (components of the result · Nt, components of the density · Ns); a vector is a flattened
        ``(components, N)`` array, with ``layout="nd"`` ``(N, components)``.  Several vectors go through as right-hand
        sides of one call.  The transposed operator is the sum of the kernel's adjoint from targets to sources, by
        plans made when they are first asked for: exact to rounding for Ewald sums of kernels that are their own
        adjoints, to the tolerance for others.

        Parameters
        ----------
        normals : array (3, Ns), optional
            Normals of the double layer, as in a call; they are not copied.
        correction : sparse matrix or LinearOperator, optional
            A matrix of the operator's shape, added to it: corrections of a quadrature, for instance.
        tolerance : float, optional
            Relative residual that a solver will be asked for.  Products are off by the plan's tolerance, and no solver
            sees that error: a smaller residual is not that of the exact sum.

        Returns
        -------
        scipy.sparse.linalg.LinearOperator
            The operator; for points on a GPU that of cupyx.scipy.sparse.linalg.

        Raises
        ------
        ValueError
            If normals are missing or surplus, for a correction of another shape, and for a plan with
            ``gradient=True``.
        NotImplementedError
            When the transpose is asked for, and the kernel's adjoint is not known.

        Warns
        -----
        PrecisionWarning
            Where a solver's `tolerance` is below that of the plan.

        Examples
        --------
        >>> import numpy as np, parki
        >>> x = np.array([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
        >>> plan = parki.ewald.plan("laplace", x, x, periodicity=0, tolerance=1e-9)
        >>> print((plan.operator() @ np.eye(2)).round(6) + 0.0)
        [[0.  0.5]
         [0.5 0. ]]
        """
        shape = (self.kernel.result * self.n_targets, self.kernel.dens * self.n_sources)
        if correction is None and not self.kernel.normals and getattr(normals, "shape", None) == shape:
            deprecated("operator takes a correction by keyword")  # old order of arguments of treecodes and FMM
            normals, correction = None, normals
        if tolerance is not None:
            self._warn_of_solver(tolerance)
        return of(self, normals, correction)

    def _warn_of_solver(self, tolerance: float) -> None:
        """Warn of a residual below the error of this plan's products."""
        check_share("tolerance", tolerance)
        accuracy = self.method.expected(self.chosen)
        if tolerance < accuracy:
            error.warn(
                f"tolerance is {tolerance:g}, and products of this plan are off by about {accuracy:.0e}; expected a "
                f"plan with tolerance={0.1 * tolerance:.0e}, or a solver that stops at {accuracy:.0e}",
                error.PrecisionWarning,
            )


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
    """Return sums ``(rhs, components, Nt)`` of a density ``(rhs, components, Ns)``, for plans of any layout."""
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
    rule = plan.method.adjoint()
    if rule is None:
        raise NotImplementedError(f"the transpose of {plan.kernel} is not known; expected a kernel of parki's own.")
    return rule(lambda name, w, normals=None: apply(plan.transposed(name), w, normals), w, normals)


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
        product = _complex(forward, x)
        return product if correction is None else product + correction @ x

    def rmatmat(w: Array) -> Array:
        product = _complex(backward, w)
        return product if correction is None else product + _adjoint(correction) @ w

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
        kind = f"{type(correction).__name__}"
        raise TypeError(f"correction is a {kind}; expected a sparse matrix or a LinearOperator of numbers, or None.")
    if tuple(correction.shape) != shape:
        raise ValueError(f"correction has shape {correction.shape}; expected {shape}.")


def _adjoint(matrix: Any) -> Any:
    """Return the conjugate transpose of a matrix, or of a LinearOperator, which conjugates only with its transpose."""
    return matrix.conj().T if hasattr(matrix, "conj") else matrix.H


def _complex(function: Columns, x: Array) -> Array:
    """Apply a real function to columns that may be complex."""
    return function(x.real) + 1j * function(x.imag) if x.dtype.kind == "c" else function(x)
