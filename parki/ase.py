"""A calculator of the Atomic Simulation Environment: point charges in any periodicity, in eV and Å."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from ase.calculators.calculator import Calculator, PropertyNotImplementedError, all_changes
from scipy.linalg import null_space

from parki import units
from parki.ewald import api
from parki.exclusions import Excluded

__all__ = ["Coulomb"]

ROOM = 0.25  # share of the extent along a free direction by which atoms may move without a new plan
MARGIN = 1.0  # Å added to that share


def __dir__() -> list[str]:
    return sorted(__all__)


class Coulomb(Calculator):
    """Compute energy, forces and stress of point charges by Ewald sums.

    The periodicity is that of the atoms: bulk, slab, wire or molecule, without empty space between images.  Several
    calculators add up by `ase.calculators.mixing.SumCalculator`.

    Parameters
    ----------
    charges : array (N,), optional
        Charges in e; by default the initial charges of the atoms.
    tolerance : float, default 1e-6
        Relative RMS error of potential and gradient.
    kappa : float, optional
        Inverse screening length in 1/Å.
    permittivity : float, default 1
        Relative permittivity of the medium.
    exclude : array (2, M) or tuple, optional
        Pairs of atoms that do not see each other, as the `exclude` of `parki.ewald.plan`.
    **options
        Options of `parki.ewald.plan`.

    Raises
    ------
    ValueError
        When atoms are computed, as `parki.ewald.plan`.

    See Also
    --------
    parki.plan.Plan.energy_forces : Compute the same without units.
    parki.units.coulomb : Return the prefactor.

    Examples
    --------
    >>> import ase.build, parki.ase
    >>> salt = ase.build.bulk("NaCl", "rocksalt", a=5.64)
    >>> salt.calc = parki.ase.Coulomb([1.0, -1.0], tolerance=1e-8)
    >>> print(f"{salt.get_potential_energy():.4f} eV")
    -8.9235 eV
    """

    implemented_properties: ClassVar[list[str]] = ["energy", "free_energy", "forces", "stress"]

    def __init__(
        self, charges: Any = None, tolerance: float = 1e-6, *, kappa: float | None = None, permittivity: float = 1.0,
        exclude: Excluded = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        self._charges = None if charges is None else np.array(charges, float)
        self._prefactor = units.coulomb("Å", "eV", permittivity)
        self._options = options | {"tolerance": tolerance, "exclude": exclude}
        self._kernel = "laplace" if kappa is None else "yukawa"
        if kappa is not None:
            self._options["kappa"] = kappa
        self._plan: Any = None
        self._key: Any = None

    def calculate(self, atoms: Any = None, properties: Any = ("energy",), system_changes: Any = all_changes) -> None:
        """Compute properties of atoms.

        Parameters
        ----------
        atoms : ase.Atoms
            The atoms.
        properties : sequence of str
            Names of properties.
        system_changes : sequence of str
            Changes since the last call.
        """
        super().calculate(atoms, properties, system_changes)
        atoms, stress = self.atoms, "stress" in properties
        charges = atoms.get_initial_charges() if self._charges is None else self._charges
        if np.shape(charges) != (len(atoms),):
            raise ValueError(f"charges has shape {np.shape(charges)}; expected ({len(atoms)},), one an atom.")
        measure = self._place(atoms)
        terms = self._plan.energy_forces(charges, stress=stress)
        self.results = {"energy": self._prefactor * terms.energy, "forces": self._prefactor * terms.forces.T}
        self.results["free_energy"] = self.results["energy"]
        if stress:
            volume = abs(np.linalg.det(atoms.cell.array))
            if not volume:
                raise PropertyNotImplementedError("the cell has no volume; expected three cell vectors for a stress.")
            s = self._prefactor * terms.stress * measure / volume
            self.results["stress"] = np.array([s[0, 0], s[1, 1], s[2, 2], s[1, 2], s[0, 2], s[0, 1]])

    def _place(self, atoms: Any) -> float:
        """Bring the plan to the atoms' points and cell; return the volume, area or length of the periodic cell."""
        pbc, cell = tuple(map(bool, atoms.pbc)), atoms.cell.array
        x = np.ascontiguousarray(atoms.positions.T)
        count = sum(pbc)
        if count == 0:
            return self._take(x, {"periodicity": 0}, None) or 1.0
        if count == 3:
            self._take(x, {"periodicity": 3}, cell)
            return abs(np.linalg.det(cell))
        periodic_axes, free_axes = (
            [i for i, is_periodic in enumerate(pbc) if is_periodic is periodic] for periodic in (True, False)
        )
        periodic_vectors, normals = cell[periodic_axes], np.eye(3)[free_axes]
        if np.any(periodic_vectors @ normals.T):
            normals = null_space(periodic_vectors).T
        heights = normals @ x
        x -= normals.T @ heights.min(axis=1, keepdims=True)
        extent = np.ptp(heights, axis=1)
        reuse = self._key is not None and self._key[:2] == (len(atoms), pbc)
        sides = self._key[2] if reuse and np.all(extent <= self._key[2]) else (1 + ROOM) * extent + MARGIN
        box = cell.copy()
        box[free_axes] = normals * np.reshape(sides, (-1, 1))
        self._take(x, {"periodicity": pbc}, box, sides)
        return math.sqrt(np.linalg.det(periodic_vectors @ periodic_vectors.T))

    def _take(self, x: np.ndarray, periodic: dict[str, Any], box: Any, free: Any = ()) -> None:
        """Make a plan for points in a box, or move the existing plan."""
        key = x.shape[1], periodic["periodicity"], tuple(np.atleast_1d(free).tolist())
        if self._plan is not None and key[:2] == self._key[:2]:
            self._plan.move(x) if box is None else self._plan.move(x, box=box)
        else:
            keywords = {} if box is None else {"box": box}
            self._plan = api.plan(self._kernel, x, x, gradient=True, **self._options, **periodic, **keywords)
        self._key = (*key[:2], np.array(key[2]))
