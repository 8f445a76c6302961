"""Energies, forces and stresses of particles that interact by a sum: the part of a plan for simulations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from parki import arrays, exclusions, scaling
from parki.arguments import Density
from parki.arrays import AnyArray, Array
from parki.checks import check_flag
from parki.excluding import Excluding
from parki.timing import PhaseTimes


class EnergyForces(NamedTuple):
    """Hold the energy, forces and stress of particles.

    Parameters
    ----------
    energy : float
        ½ Σ q_i u_i; an array ``(k,)`` for k right-hand sides.
    forces : array (3, N)
        −q_i ∇u_i, with ``layout="nd"`` ``(N, 3)``; with an axis of right-hand sides in front if there is one.
    stress : array (3, 3) or None
        If asked for, the derivative of the energy by the strain, over the volume of the cell (its area with two
        periodic directions, its length with one, 1 in free space).

    See Also
    --------
    parki.plan.Plan.energy_forces : Compute all of them in one pass.

    Examples
    --------
    >>> from parki.energies import EnergyForces
    >>> EnergyForces(0.5, [[0.25, -0.25]], None).energy
    0.5
    """

    energy: Any
    forces: Any
    stress: Any


class EnergyTerms(NamedTuple):
    """Hold an energy and its derivatives: −forces by the points, stress by the strain, potential by the charges."""

    energy: Any
    forces: Array
    stress: Any
    potential: Array


class Energetic(Excluding):
    """Part of `parki.plan.Plan` that returns energies, forces and stresses."""

    _inspected: bool
    energies: Any = None  # sum with its virial, None until a stress needs it

    def _called(self, density: Any, normals: Any, out: Any, work: Any) -> Any:
        """Check the arguments of a call, and return the result that `work` sums."""
        raise NotImplementedError

    def energy_forces(self, density: AnyArray, *, stress: bool = False) -> EnergyForces:
        """Return the energy of particles in each other's potential, the forces on them, and their stress, in one pass.

        The energy is E = ½ Σ q_i u_i with the potential u of a call, the force on a particle −q_i ∇u_i.  With the
        strain ε points and lattice vectors x become x + ε x, and the stress is ∂E/∂ε over the volume of the cell, its
        area with two periodic directions and its length with one; in free space it is ∂E/∂ε itself.  Units are those
        of the charges, squared, over the points' unit of length.

        Parameters
        ----------
        density : array (N,), or (k, N) for k right-hand sides
            Charges.
        stress : bool, default False
            Return the stress, too.

        Returns
        -------
        EnergyForces
            The tuple (energy, forces, stress).

        Raises
        ------
        ValueError
            For a plan whose targets are not its sources, a kernel without a gradient, and as a call.
        NotImplementedError
            For the stress of a plan over ranks.

        Notes
        -----
        A plan that is made with ``gradient=True`` serves energies itself; for any other plan the first call makes a
        second one, which moves along.  The tolerance is that of potential and gradient.

        Examples
        --------
        The lattice energy of rock salt, and its pressure −tr(stress)/3, which is a third of the energy's density:

        >>> import numpy as np, parki
        >>> x = np.array([(i, j, k) for i in range(2) for j in range(2) for k in range(2)], float).T
        >>> q = (-1.0) ** x.sum(axis=0)
        >>> plan = parki.ewald.plan("laplace", x, x, box=(2, 2, 2), tolerance=1e-9, gradient=True)
        >>> energy, forces, stress = plan.energy_forces(q, stress=True)
        >>> print(f"{energy:.5f} {-np.trace(stress) / 3:.5f} {energy / 24:.5f}")
        -6.99026 -0.29126 -0.29126
        """
        terms = self.energy_terms(density, stress=stress)
        forces = terms.forces.swapaxes(-1, -2) if self.arguments.layout == "nd" else terms.forces
        return EnergyForces(terms.energy, self.arguments.home(forces, density), terms.stress)

    def energy_terms(self, density: AnyArray, *, stress: bool = False) -> EnergyTerms:
        """Return the results of `energy_forces` and the potential, components first, in the sum's own memory."""
        check_flag("stress", stress)
        self._check_same()
        if stress and self.comm is not None:
            raise NotImplementedError("stress is of one process; expected a plan without comm.")
        if self.kernel.dens != 1 or self.method.gradient == "only":
            raise ValueError(f"the kernel is {self.kernel}; expected one of charges, such as 'laplace' or 'yukawa'.")
        plan = self
        if not self.method.serves_energies(self.problem, stress):
            key = "stress" if stress else "gradient"
            self._inspect(density)
            plan = self.related(
                key, lambda: type(self)(*self.method.with_gradient(self.full(), stress), exclusions=self.exclusions)
            )
        return plan._energies(density, stress)

    def _check_same(self) -> None:
        """Raise unless the targets are the sources."""
        if not self.problem.same:
            raise ValueError(
                "this plan has targets apart from its sources; expected a plan whose targets are its sources."
            )

    def _inspect(self, density: AnyArray) -> None:
        """Warn of a density whose sum follows a convention, as a call does; plans that serve this one do not warn."""
        if not self._inspected:
            self.method.inspect(self.problem, self.arguments.density(density))
            self._inspected = True

    def _energies(self, density: AnyArray, stress: bool) -> EnergyTerms:
        """Return energies, forces, stresses and potentials of a plan with its gradient."""
        results: list[tuple[float, Any, Any, Any]] = []
        batched = False

        def work(inputs: Density, rows: Array, times: PhaseTimes) -> None:
            nonlocal batched
            results.clear()  # results by parameters that missed the tolerance
            batched, strains = inputs.many, self._summed(inputs, rows, times, stress)
            for q, u, strain in zip(inputs.values[:, 0], rows, strains, strict=True):
                results.append((_half_product(q, u[0]), -q * u[1:], strain, u[0]))

        self._called(density, None, None, work)
        energies, forces, strains, potentials = zip(*results, strict=True)
        if self.comm is not None:
            energies = self.comm.allreduce(np.array(energies)).tolist()
        if not batched:
            return EnergyTerms(energies[0], forces[0], strains[0], potentials[0])
        strains = np.array(strains) if stress else None
        return EnergyTerms(np.array(energies), self.xp.stack(forces), strains, self.xp.stack(potentials))

    def _summed(self, inputs: Density, rows: Array, times: PhaseTimes, stress: bool) -> list[Any]:
        """Sum potential and gradient to rows; return the stress of each right-hand side, or None."""
        cell = self.problem.cell
        if stress and cell is not None and self.structure is not None:
            if self.energies is None:
                self.energies = self.method.energy_sum(self.problem, self.chosen, self.structure, times)
            inverse_volume = 1 / math.prod(
                math.ldexp(side, -self.problem.power) for side in cell.sides if side < math.inf
            )
            return [0.5 * inverse_volume * (strain + strain.T) for strain in self._strained(inputs.values, rows, times)]
        self._sum(inputs, rows, times)
        if not stress:
            return [None] * len(rows)
        if self.structure is None:
            return [np.zeros((3, 3))] * len(rows)
        problem = self.full()
        return [_moments(problem, q, u) for q, u in zip(inputs.values[:, 0], rows, strict=True)]

    def _strained(self, values: Array, rows: Array, times: PhaseTimes) -> Iterator[np.ndarray]:
        """Sum potential and gradient of each right-hand side to rows; yield the derivative of its energy by strain."""
        norms = []
        for r in range(len(values)):
            charges, row = values[r : r + 1], rows[r : r + 1]
            strain = self.energies.run_with_virial(charges, row, times)
            if self.exclusions is not None:
                norms.append(exclusions.norms(row)[0])
                strain = strain - self._excluded().take_off_with_virial(charges, row)
            yield strain
        if self.exclusions is not None:
            self._norms = np.array(norms)


def _half_product(q: Array, u: Array) -> float:
    """Return ½ Σ q u in double precision, from scaled factors, because their products may be out of range."""
    powers = [scaling.exponent(float(scaling.largest(a))) for a in (q, u)]
    a, b = (scaling.times(x, power).astype(np.float64) for x, power in zip((q, u), powers, strict=True))
    return math.ldexp(0.5 * float(a @ b), -sum(powers))


def _moments(problem: Any, q: Array, u: Array) -> np.ndarray:
    """Return Σ x q ∇u (3, 3), which is ∂E/∂ε where no direction is periodic."""
    x = problem.sources.astype(np.float64)
    powers = [scaling.exponent(float(scaling.largest(a).max())) for a in (q, u[1:])]
    slopes = scaling.times(q, powers[0]).astype(np.float64) * scaling.times(u[1:], powers[1]).astype(np.float64)
    moments = arrays.to_host((x - x.mean(axis=1)[:, None]) @ slopes.T)
    return np.ldexp(0.5 * (moments + moments.T), -sum(powers) - problem.power)
