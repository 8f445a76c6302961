"""Random displacements of particles whose mobility is a sum: the part of a plan for Brownian motion."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from parki import lanczos, normal
from parki.arrays import AnyArray, Array
from parki.checks import check_not_negative, check_positive, check_share, check_whole
from parki.energies import Energetic
from parki.pairs import Pair

#: Pair functions, and slots of radial ones, whose Fourier transform is nowhere negative, with a value at r = 0.
POSITIVE = {
    "pair/rpy", "pair/rpy_rotation", "pair/regularised_stokeslet", "radial/gaussian", "radial/inverse_quadratic",
    "radial/regularised_coulomb", "radial/regularised_yukawa",
}  # fmt: skip
#: Pair functions that are 8πμ times a mobility, whose flow has no divergence.
MOBILITIES = {"pair/rpy", "pair/rpy_rotation", "pair/regularised_stokeslet"}
EXACT = 1e-6  # tolerance of square roots of sums that have none
MOST_PRODUCTS = 200  # with the matrix, for a square root
Seed = np.random.Generator | int | None


def positive(pair: Pair) -> bool:
    """Tell whether the matrix of any points that are targets and sources is known to be positive definite."""
    radial = dict(pair.slots).get("radial") if pair.pair == "pair/radial" and pair.result == 1 else None
    return pair.pair in POSITIVE or radial in POSITIVE


class Fluctuating(Energetic):
    """Part of `parki.plan.Plan` that multiplies by the square root of the sum's matrix, and draws random results."""

    def _groups(self, count: int) -> Iterator[tuple[int, int]]:
        """Yield the first and the number of each run of right-hand sides, a power of two."""
        raise NotImplementedError

    def sqrt(self, z: AnyArray, *, tolerance: float | None = None) -> Any:
        """Return M^½ z, where M is the matrix of the sum: for z of the unit normal distribution, noise of covariance M.

        Products with M are calls of the plan; Lanczos' method takes a few to some tens of them.

        Parameters
        ----------
        z : array
            Vectors of the shape of a density, several with an axis in front: these share their products.
        tolerance : float, optional
            Relative error in the 2-norm at which to stop, by default that of the plan, 1e-6 for direct sums.

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

        See Also
        --------
        noise : Draw the random vectors as well, in a periodic box in a fraction of the time.

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
        vectors, is_nd = self.arguments.density(z), self.arguments.layout == "nd"
        values = vectors.values.swapaxes(1, 2) if is_nd else vectors.values
        shape = values.shape if vectors.many else values.shape[1:]
        root = self._root(values, self._root_tolerance(tolerance))
        shape = shape if self.kernel.dens > 1 else (*shape[:-2], self.n_sources)
        return self.arguments.home(root.reshape(shape), z)

    def noise(self, rng: Seed = None, count: int | None = None, *, tolerance: float | None = None) -> Any:
        """Return random vectors of the normal distribution of covariance M, where M is the matrix of the sum.

        A sum in a box that is periodic in three directions takes M apart, into the matrix of its near field, whose
        square root takes a few sums of near fields by Lanczos' method, and that of its far field, whose modes are
        independent and are drawn at once.  All other sums, and sums of spheres so large that the matrix of the near
        field is not positive, take the square root of M.

        Parameters
        ----------
        rng : numpy.random.Generator or int, optional
            Generator of random numbers, or its seed.  The same seed gives the same vectors, on any number of threads;
            on a GPU other ones, which it draws itself.
        count : int, optional
            Number of vectors, which share their products.
        tolerance : float, optional
            Relative error of square roots, by default that of the plan, 1e-6 for direct sums.

        Returns
        -------
        array
            A vector of the shape of a density, or `count` with an axis in front.

        Raises
        ------
        ValueError, ArithmeticError, NotImplementedError
            As `sqrt`.

        See Also
        --------
        brownian_step : Take the displacements of a time step.

        References
        ----------
        Fiore, Balboa Usabiaga, Donev and Swan, J. Chem. Phys. 146 (2017) 124116.

        Examples
        --------
        The variance of a sphere's noise is its mobility, 4/3a in free space and less among periodic images:

        >>> import numpy as np, parki
        >>> x = np.full((3, 1), 0.5)
        >>> plan = parki.ewald.plan("rpy", x, x, radius=0.1, box=(1, 1, 1), tolerance=1e-4)
        >>> u = plan.noise(rng=0, count=4000)
        >>> bool(abs(u.var() / plan([[1.0], [0.0], [0.0]])[0, 0] - 1) < 0.05)
        True
        """
        self._check_root()
        check_whole("count", count)
        limit, generator = self._root_tolerance(tolerance), np.random.default_rng(rng)
        size, dens = count or 1, self.kernel.dens
        sampler = self._sampled()
        if sampler:
            with self._whole():
                self._present()
                values = sampler.draw(generator, size, limit, self._groups, MOST_PRODUCTS)
            values = self.arguments.given(values)
        else:
            vectors = self.arguments.given(normal.numbers(generator, (size, dens, self.n_sources), self.dtype, self.xp))
            values = self._root(vectors, limit).reshape(vectors.shape)
        return self.arguments.home(values if count is not None else values[0])

    def brownian_step(
        self, forces: AnyArray | None, dt: float, kT: float, rng: Seed = None, *, viscosity: float = 1.0,
        tolerance: float | None = None,
    ) -> Any:  # fmt: skip
        """Return the displacements of particles in a time step, by forces and by thermal motion.

        These are dt μ F + √(2 kT dt μ) ξ with the mobility μ = M/8πη and normal random numbers ξ (Euler–Maruyama).
        The drift kT ∇·μ is zero, as their flows have no divergence.  The points stay: add the displacements
        to them, and `move` the plan.

        Parameters
        ----------
        forces : array (3, N), or (6, N) for ``"rpy_rotation"``, optional
            Forces, and for that kernel torques below them, at the present points.
        dt : float
            Time step.
        kT : float
            Thermal energy, in units of a force times the points' unit of length.
        rng : numpy.random.Generator or int, optional
            Generator of random numbers, or its seed, as for `noise`.
        viscosity : float, default 1.0
            Viscosity η, in units of a force times the time's unit over the square of the points' unit of length.
        tolerance : float, optional
            Relative error of the random part, by default as `noise`.

        Returns
        -------
        array (3, N) or (6, N)
            The displacements, in the points' unit of length, and for ``"rpy_rotation"`` below them angles of rotation.

        Raises
        ------
        ValueError
            For another kernel than ``"rpy"``, ``"rpy_rotation"`` and ``"regularised_stokeslet"``, for values that are
            not positive, and as `sqrt`.
        ArithmeticError, NotImplementedError
            As `sqrt`.

        References
        ----------
        Ermak and McCammon, J. Chem. Phys. 69 (1978) 1352.

        Examples
        --------
        >>> import numpy as np, parki
        >>> x, rng = np.random.default_rng(1).random((3, 100)), np.random.default_rng(2)
        >>> plan = parki.ewald.plan("rpy", x, x, radius=0.02, box=(1, 1, 1), tolerance=1e-3)
        >>> for _ in range(3):
        ...     x += plan.brownian_step(None, dt=1e-3, kT=0.01, rng=rng)
        ...     plan.move(x)
        """
        if self.kernel.pair not in MOBILITIES:
            raise ValueError(f"the kernel is {self.kernel}; expected 'rpy', 'rpy_rotation' or 'regularised_stokeslet'.")
        for name, value in (("dt", dt), ("viscosity", viscosity)):
            check_positive(name, value)
        check_not_negative("kT", kT)
        rate = dt / (8 * math.pi * viscosity)
        random = kT > 0
        step: Any = math.sqrt(2 * kT * rate) * self.noise(rng, tolerance=tolerance) if random else 0.0
        if forces is None and not random:
            return self.arguments.home(self.xp.zeros(self.arguments.shape(1, False), self.dtype))
        return step if forces is None else step + rate * self(forces)

    def _root(self, values: Array, tolerance: float) -> Array:
        """Return the products of M^½ with densities in the layout of the plan, with an axis in front; rows (k, n)."""
        columns, matrix = self.xp.ascontiguousarray(values.reshape(len(values), -1).T), self.operator()
        inspected, self._inspected = self._inspected, True  # a net force of random vectors is none of the caller's
        try:
            return lanczos.square_root(matrix.matmat, columns, tolerance, MOST_PRODUCTS, self.xp).values.T
        finally:
            self._inspected = inspected

    def _sampled(self) -> Any:
        """Return the sampler of random results, False where the method has none."""
        with self._whole(at_door=True):
            self._present()
            if self._sampler is None and self.structure is not None:
                self._sampler = self.method.sampler(self.full(), self.chosen) or False
            return self._sampler

    def _root_tolerance(self, tolerance: float | None) -> float:
        """Return the checked tolerance of square roots, by default as `noise`."""
        check_share("tolerance", tolerance)
        return getattr(self.method.options, "tolerance", EXACT) if tolerance is None else tolerance

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
        if self.comm is not None or self.exclusions is not None or self._own_terms is not None:
            raise NotImplementedError("a square root is of one process, and of all pairs; expected a plan of these.")
