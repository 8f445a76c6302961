"""The queries of a plan of an Ewald sum: operator, error, cost, memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parki.arrays import AnyArray
from parki.checks import refuse_half_moved
from parki.error import ErrorEstimate
from parki.ewald import error, operator
from parki.ewald.choice import predict
from parki.prediction import Prediction

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator


class Queries:
    """The part of `parki.ewald.plan.Plan` that changes nothing."""

    def operator(self, normals: AnyArray | None = None, correction: Any = None) -> LinearOperator:
        """Return the sum as a linear operator on flattened densities, for iterative solvers.

        Of shape (components of the result · Nt, components of the density · Ns); a vector is a flattened
        ``(components, N)`` array, with ``layout="nd"`` ``(N, components)``.  Several vectors go through as right-hand
        sides of one pass.  The transposed operator is the sum of the kernel's adjoint from targets to sources, by a
        plan made when it is first asked for: exact to rounding for kernels that are their own adjoints, to the
        tolerance for others.

        Parameters
        ----------
        normals : array (3, Ns), optional
            As in a call; they are not copied.
        correction : sparse matrix, optional
            Of the operator's shape, added to it: corrections of a quadrature, for instance.

        Returns
        -------
        scipy.sparse.linalg.LinearOperator, or that of cupyx.scipy.sparse.linalg for points on a GPU

        Raises
        ------
        ValueError
            If normals are missing or surplus, or for a correction of another shape.
        NotImplementedError
            When the transpose of a kernel of one's own is asked for.

        Examples
        --------
        >>> import numpy as np, parki
        >>> x = np.array([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
        >>> plan = parki.ewald.plan("laplace", x, x, periodicity=0, tolerance=1e-9)
        >>> print((plan.operator() @ np.eye(2)).round(6) + 0.0)
        [[0.  0.5]
         [0.5 0. ]]
        """
        return operator.make(self, normals, correction)

    def error(
        self, n: int = 100, seed: int = 0, *, dens: AnyArray | None = None,
        normals: AnyArray | None = None, u: AnyArray | None = None,
    ) -> ErrorEstimate:  # fmt: skip
        """Return the relative RMS error, measured at `n` random targets: see `parki.ewald.error`.

        Parameters
        ----------
        n, seed : int
            Number of targets, and the seed by which they are drawn.
        dens, normals : array, optional
            Strengths; without them those of the last call, which the plan has not copied: they must not have changed.
        u : array, optional
            Their sum, if it is at hand.

        Raises
        ------
        ValueError
            If there has been no call, or there are no points, or if the sum is zero at all sampled targets.

        Examples
        --------
        >>> import numpy as np, parki
        >>> x = np.random.default_rng(1).random((3, 200))
        >>> plan = parki.ewald.plan("laplace", x, x, box=(1, 1, 1), tolerance=1e-4)
        >>> u = plan(np.where(x[0] < 0.5, 1.0, -1.0))
        >>> found = plan.error(n=50)
        >>> found.n, found.low <= found.value <= found.high < 1e-4
        (50, True)
        """
        with self._lock:
            refuse_half_moved(self._moving)
            if dens is None:
                if self._last is None:
                    raise ValueError("dens is missing: this plan has not been called; call it, or pass dens.")
                dens, normals = self._last
            return error.measure(self, dens, normals, u, n, seed)

    def predict(self) -> Prediction:
        """Return the predicted time of a call by its phases, and the bytes that the plan holds.

        Examples
        --------
        >>> import numpy as np, parki
        >>> x = np.random.default_rng(1).random((3, 1000))
        >>> found = parki.ewald.plan("laplace", x, x, box=(1, 1, 1), tolerance=1e-4).predict()
        >>> found.seconds == found.near + found.transform + found.spread + found.gather > 0
        True
        """
        return predict.predict(
            self.chosen, self.n_targets, self.n_sources, self.space, self.memory, self.question.crowding
        )

    @property
    def memory(self) -> int:
        """Return the bytes of all arrays that the plan holds: sorted points, packed sources, grid, tables, fields."""
        return predict.held(self)

    def __str__(self) -> str:
        return "\n".join([predict.describe(self), *([str(self.tuned)] if self.tuned else [])])

    def __repr__(self) -> str:
        return f"<Plan: {self.kernel}, {self.n_targets} targets, {self.n_sources} sources, {self.space.name}>"
