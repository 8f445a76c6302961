"""Pairs that a plan leaves out of its sum, and parameters for the sum that remains."""

from __future__ import annotations

from typing import Any

import numpy as np

from parki import error, exclusions
from parki.arguments import Density
from parki.arrays import Array
from parki.exclusions import Exclusions
from parki.left_out import LeftOut
from parki.operators import Operable

ROUNDINGS = 4  # rounding errors of the whole sum that the remaining sum has
ALONE = "exclude is of one process; expected a plan without comm."


class Excluding(Operable):
    """Part of `parki.plan.Plan` that leaves pairs out."""

    exclusions: Exclusions | None
    _left_out: LeftOut | None
    _warned = False
    _norms: np.ndarray  # norms of the rows of a sum before pairs were left out

    def _arrange(self, problem: Any, parameters: Any = None) -> None:
        """Choose parameters, if none are given, and arrange the points."""
        raise NotImplementedError

    def exclude(self, pairs: Any = None) -> None:
        """Leave these pairs out of the sum from now on, or scale them; None takes all pairs.

        Parameters
        ----------
        pairs : array (2, M), tuple or None
            As the `exclude` of `parki.ewald.plan`.

        Raises
        ------
        ValueError, TypeError
            For pairs that do not fit; the plan is then as it was.
        NotImplementedError
            For a plan over ranks, and for one of spheres or softened charges of several lengths.

        Examples
        --------
        Charges of one molecule do not see each other:

        >>> import numpy as np, parki
        >>> x, q = np.array([[0.0, 1.0, 3.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]), np.ones(3)
        >>> plan = parki.direct.plan("coulomb", x, x, exclude=np.array([[0], [1]]))
        >>> print(plan(q).round(3))
        [0.333 0.5   0.833]
        >>> plan.exclude()
        >>> print(plan(q).round(3))
        [1.333 1.5   0.833]
        """
        if self.comm is not None:
            raise NotImplementedError(ALONE)
        if not self.method.excludes:
            raise NotImplementedError(f"exclude was given with {self.kernel} of several lengths; expected one for all.")
        with self._whole():
            problem = self.problem
            self.exclusions = exclusions.of(pairs, problem.n_targets, problem.n_sources, problem.same)
            self._related, self._left_out = {}, None

    def _excluded(self) -> LeftOut:
        """Return the sum over the pairs that are left out, made when it is first asked for."""
        if self._left_out is None:
            self._left_out = LeftOut(self.exclusions, self.kernel, self.method.outer(self.full()), self.space)
        return self._left_out

    def _refined(self, inputs: Density, rows: Array) -> bool:
        """Choose parameters anew where exclusions leave so little of a sum that its error may miss the tolerance."""
        if self.structure is None:
            return False
        self._warn_of_rounding(rows)
        refinement = self.method.refined(self.problem, self.chosen, inputs, self._norms, rows)
        if refinement is None:
            return False
        problem = self.full()
        self.method, parameters = refinement
        self._arrange(problem, parameters)
        return True

    def _warn_of_rounding(self, rows: Array) -> None:
        """Warn, once, where the sums that remain have lost more digits than the tolerance asks for."""
        if self._warned or self.comm is not None or self.structure is None:
            return
        tolerance = getattr(self.method.options, "tolerance", None)
        share = exclusions.least_share(rows, self._norms, self.method.gradient is True, floor=0.0)
        rounding = ROUNDINGS * float(np.finfo(self.dtype).eps) / max(share, 1e-300)
        if tolerance is not None and rounding > tolerance:
            self._warned = True
            terms = "exclusions leave" if self._own_terms is None else "sums without own terms are"
            text = f"{terms} {share:.1e} of the sum, which {self.dtype} holds to about {rounding:.1e} of it"
            error.warn(f"{text}; expected a larger tolerance than {tolerance:g}, or float64", error.PrecisionWarning)
