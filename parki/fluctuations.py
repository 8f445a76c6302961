"""Random displacements of particles whose mobility is a sum: the part of a plan for Brownian motion."""

from __future__ import annotations

from typing import Any

import numpy as np

from parki import lanczos
from parki.arrays import AnyArray
from parki.checks import check_share
from parki.energies import Energetic
from parki.pairs import Pair

#: Pair functions, and slots of radial ones, whose Fourier transform is nowhere negative, with a value at r = 0.
POSITIVE = {
    "pair/rpy", "pair/regularised_stokeslet", "radial/gaussian", "radial/inverse_quadratic",
    "radial/regularised_coulomb", "radial/regularised_yukawa",
}  # fmt: skip
MOST_PRODUCTS = 200  # with the matrix, for a square root


def positive(pair: Pair) -> bool:
    """Tell whether the matrix of any points that are targets and sources is known to be positive definite."""
    radial = dict(pair.slots).get("radial") if pair.pair == "pair/radial" and pair.result == 1 else None
    return pair.pair in POSITIVE or radial in POSITIVE


class Fluctuating(Energetic):
    """Part of `parki.plan.Plan` that multiplies by the square root of the sum's matrix."""

    def sqrt(self, z: AnyArray, *, tolerance: float | None = None) -> Any:
        """Return M^½ z, where M is the matrix of the sum: for z of the unit normal distribution, noise of covariance M.

        Products with M are calls of the plan; Lanczos' method takes a few to some tens of them.

        Parameters
        ----------
        z : array
            Vectors of the shape of a density, several with an axis in front: these share their products.
        tolerance : float, optional
            Relative error in the 2-norm at which to stop, by default that of the plan.

        Returns
        -------
        array
            The products, of the shape of `z`.

        Raises
        ------
        ValueError
            For a kernel whose matrix is not known to be positive definite, for one or two periodic directions, for a
            plan whose targets are not its sources, and as a call.
        ArithmeticError
            If 200 products do not meet the tolerance.
        NotImplementedError
            For a plan over ranks, and one that leaves out pairs.

        References
        ----------
        Chow and Saad, SIAM J. Sci. Comput. 36 (2014); Ando, Chow, Saad and Skolnick, J. Chem. Phys. 137 (2012).

        Examples
        --------
        The square root twice is the matrix:

        >>> import numpy as np, parki
        >>> rng = np.random.default_rng(0)
        >>> x, z = rng.random((3, 50)), rng.standard_normal((3, 50))
        >>> plan = parki.ewald.plan("rpy", x, x, radius=0.05, box=(1, 1, 1), tolerance=1e-8)
        >>> np.allclose(plan.sqrt(plan.sqrt(z)), plan(z), rtol=1e-6)
        True
        """
        self._check_root()
        check_share("tolerance", tolerance)
        vectors, is_nd = self.arguments.density(z), self.arguments.layout == "nd"
        values = vectors.values.swapaxes(1, 2) if is_nd else vectors.values
        matrix, shape = self.operator(), values.shape if vectors.many else values.shape[1:]
        limit = self.method.options.tolerance if tolerance is None else tolerance
        columns = self.xp.ascontiguousarray(values.reshape(len(values), -1).T)
        root = lanczos.square_root(matrix.matmat, columns, limit, MOST_PRODUCTS, self.xp).values.T
        shape = shape if self.kernel.dens > 1 else (*shape[:-2], self.n_sources)
        return self.arguments.home(root.reshape(shape), z)

    def _check_root(self) -> None:
        """Raise unless the matrix of the sum is known to be positive."""
        if not positive(self.kernel):
            raise ValueError(f"the kernel is {self.kernel}; expected one of a positive matrix, such as 'rpy'.")
        self._check_same()
        cell = self.problem.cell
        count = 3 if cell is None else int(np.isfinite(cell.sides).sum())
        if count in (1, 2):
            raise ValueError(
                f"periodicity is {count}, where the flow of a net force grows without bound, and the matrix is not "
                "positive; expected 0 or 3."
            )
        if self.comm is not None or self.exclusions is not None:
            raise NotImplementedError("a square root is of one process, and of all pairs; expected a plan of these.")
