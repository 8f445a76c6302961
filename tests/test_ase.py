"""Point charges as a calculator of ASE: bulk, slab, wire and molecule, against constants and exact sums."""

import numpy as np
import pytest
from scipy.linalg import null_space

import parki
from tests.ewald import sums
from tests.ewald.strained import Charges

ase = pytest.importorskip("ase")
build = pytest.importorskip("ase.build")
calculators = pytest.importorskip("ase.calculators.calculator")
fd = pytest.importorskip("ase.calculators.fd")

import parki.ase  # noqa: E402

COULOMB = 14.3996454784  # eV Å, CODATA 2018
MADELUNG = {"rocksalt": (1.7475645946331822, 0.5), "cesiumchloride": (1.7626747730709883, np.sqrt(0.75)),
            "zincblende": (1.6380550533887985, np.sqrt(3) / 4)}  # fmt: skip
RNG = np.random.default_rng(8)
Q = np.array([1.0, -1.0, 0.5, -0.7, 0.9, -0.7])


@pytest.mark.parametrize("structure", MADELUNG)
@pytest.mark.parametrize("cubic", [False, True])
def test_crystals(structure, cubic):
    constant, nearest = MADELUNG[structure]
    atoms = build.bulk("NaCl", structure, a=5.0, cubic=cubic)
    atoms.calc = parki.ase.Coulomb(np.where(atoms.symbols == "Na", 1.0, -1.0), tolerance=1e-10)
    exact = -constant * parki.units.coulomb("Å", "eV") / (5.0 * nearest) * len(atoms) / 2
    assert atoms.get_potential_energy() == pytest.approx(exact, rel=1e-9)
    np.testing.assert_allclose(atoms.get_forces(), 0, atol=1e-7)
    pressure = -atoms.get_stress()[:3].mean()
    assert pressure * atoms.get_volume() == pytest.approx(exact / 3, rel=1e-7)


def cloud(pbc, cell=(6.0, 7.0, 8.0)):
    x = RNG.random((6, 3)) * np.array(cell)
    atoms = ase.Atoms("H6", positions=x, cell=cell, pbc=pbc)
    atoms.set_initial_charges(Q)
    return atoms


@pytest.mark.parametrize(("pbc", "along"), [((1, 1, 0), [[6, 0, 0], [-3, 5, 1]]), ((0, 1, 0), [[2, 4, 5]])])
def test_slabs_and_wires_in_any_direction(pbc, along):
    """Check oblique cells, whose other vectors are ignored; compare stresses with strained cells."""
    cell, on = np.array([[1.0, 2, 3], [4, 5, 7], [-2, 3, 9]]), np.array(pbc, bool)
    cell[on] = along
    atoms = cloud(pbc)
    atoms.set_cell(cell)
    atoms.calc = parki.ase.Coulomb(Q, tolerance=1e-10)
    across = null_space(cell[on]).T
    charges = Charges("laplace", atoms.positions.T, Q, np.concatenate([cell[on], 20 * across]), sum(pbc))
    u, g = charges.potential()
    prefactor = parki.units.coulomb("Å", "eV")
    assert atoms.get_potential_energy() == pytest.approx(0.5 * prefactor * Q @ u, rel=1e-9)
    np.testing.assert_allclose(atoms.get_forces(), -prefactor * (Q * g).T, rtol=0, atol=1e-8 * np.abs(Q * g).max())
    strain = np.linalg.pinv(cell[on]) @ cell[on]  # strain along the periodic directions only
    found = np.sum(atoms.get_stress(voigt=False) * strain) * atoms.get_volume()
    assert found == pytest.approx(prefactor * charges.slope(strain), abs=1e-7 * abs(prefactor * Q @ u))


@pytest.mark.parametrize("pbc", [(1, 1, 1), (1, 1, 0), (1, 0, 1), (0, 0, 1), (0, 1, 0), (0, 0, 0)])
def test_exact_sums(pbc):
    """Compare with exact sums, and with numerical forces and stresses."""
    atoms = cloud(pbc)
    atoms.calc = parki.ase.Coulomb(tolerance=1e-10)
    order = sorted(range(3), key=lambda axis: not pbc[axis])
    x = np.ascontiguousarray(atoms.positions.T[order])
    box = atoms.cell.lengths()[order]
    u = sums.periodic("laplace", x, x, Q, box=box, periodicity=sum(pbc))
    energy = 0.5 * parki.units.coulomb("Å", "eV") * Q @ u
    assert atoms.get_potential_energy() == pytest.approx(energy, rel=1e-8)
    forces, stress = atoms.get_forces(), atoms.get_stress()
    again = atoms.copy()
    again.calc = parki.ase.Coulomb(tolerance=1e-12)
    np.testing.assert_allclose(forces, fd.calculate_numerical_forces(again, eps=1e-4), atol=1e-6)
    for axis in range(3):  # a slab is not sheared
        energies = []
        for step in (-1e-4, 1e-4):
            stretched = again.copy()
            stretched.set_cell(atoms.cell.array * (1 + step * (np.arange(3) == axis)), scale_atoms=True)
            stretched.calc = parki.ase.Coulomb(tolerance=1e-12)
            energies.append(stretched.get_potential_energy())
        assert stress[axis] == pytest.approx((energies[1] - energies[0]) / 2e-4 / atoms.get_volume(), abs=1e-7)


def test_plans_are_kept():
    """Check that a plan is kept while atoms move and the cell stretches, and that a slab accepts other heights."""
    atoms = cloud((1, 1, 0))
    atoms.calc = calculator = parki.ase.Coulomb(tolerance=1e-10)
    atoms.get_potential_energy()
    plan = calculator._plan
    atoms.positions[:, 2] += 3.0
    atoms.positions[0] += 0.1
    atoms.get_forces()
    assert calculator._plan is plan
    atoms.set_cell(1.01 * atoms.cell.array, scale_atoms=True)
    energy = atoms.get_potential_energy()
    assert calculator._plan is plan
    fresh = atoms.copy()
    fresh.calc = parki.ase.Coulomb(tolerance=1e-10)
    assert fresh.get_potential_energy() == pytest.approx(energy, rel=1e-7)
    atoms.positions[0, 2] += 30.0
    fresh.positions[0, 2] += 30.0
    assert fresh.get_potential_energy() == pytest.approx(atoms.get_potential_energy(), rel=1e-7)


def test_excluded_and_screened_pairs():
    atoms = cloud((0, 0, 0))
    atoms.calc = parki.ase.Coulomb(tolerance=1e-9, exclude=[[0, 2], [1, 3]], kappa=0.3, permittivity=2.0)
    r = np.linalg.norm(atoms.positions[:, None] - atoms.positions, axis=-1) + np.eye(6)
    pairs = np.triu(Q[:, None] * Q * np.exp(-0.3 * r) / r, 1)
    pairs[0, 1] = pairs[2, 3] = 0
    exact = 0.5 * parki.units.coulomb("Å", "eV") * pairs.sum()
    assert atoms.get_potential_energy() == pytest.approx(exact, rel=1e-7)


def test_what_is_refused():
    atoms = cloud((1, 1, 0))
    atoms.calc = parki.ase.Coulomb(Q[:5])
    with pytest.raises(ValueError, match=r"charges has shape \(5,\); expected \(6,\), one an atom"):
        atoms.get_potential_energy()
    flat = ase.Atoms("H6", positions=atoms.positions, cell=[6, 7, 0], pbc=(1, 1, 0))
    flat.calc = parki.ase.Coulomb(Q)
    with pytest.raises(calculators.PropertyNotImplementedError, match="the cell has no volume"):
        flat.get_stress()


@pytest.mark.parametrize(
    ("found", "exact"),
    [
        (parki.units.coulomb("Å", "eV"), COULOMB),
        (parki.units.coulomb("bohr", "hartree"), 1.0),
        (parki.units.coulomb("Å", "kcal/mol"), 332.0637133),
        (parki.units.coulomb("nm", "kJ/mol", 78.5), 138.935458 / 78.5),
        (parki.units.gravity("au", "Msun", "km/s"), 887.1),
        (parki.units.stokes(2.0) * 16 * np.pi, 1.0),
        (parki.units.laplace() * 4 * np.pi, 1.0),
    ],
)
def test_units(found, exact):
    assert found == pytest.approx(exact, rel=1e-4 if exact > 500 else 1e-7)


def test_units_that_are_refused():
    with pytest.raises(ValueError, match="length is 'feet'; expected one of 'm', 'nm'"):
        parki.units.coulomb("feet")
    with pytest.raises(ValueError, match="permittivity is 0; expected a positive number"):
        parki.units.coulomb(permittivity=0)
    with pytest.raises(ValueError, match="mass is 'lb'; expected one of 'kg', 'Msun'"):
        parki.units.gravity(mass="lb")
