"""Energies, forces and stresses of plans: against exact sums, in every layout and unit, and in boxes that change."""

import warnings

import numpy as np
import pytest

import parki
from parki import engine
from tests.ewald.strained import Charges
from tests.quick import but

RNG = np.random.default_rng(5)
N = 40
BOX = np.array([1.0, 1.25, 0.875])
CELL = np.array([[1.0, 0.1, 0.0], [0.3, 1.2, -0.2], [0.1, 0.4, 0.9]])
X, Q = RNG.random((3, N)) * BOX[:, None], RNG.uniform(0.5, 1.5, N) * RNG.choice([-1.0, 1.0], N)
Q -= Q.mean()
MAKERS = {"direct": parki.direct.plan, "treecode": parki.treecode.plan, "fmm": parki.fmm.plan}
MADELUNG = {"CsCl": 1.7626747730709883, "NaCl": 1.7475645946331822, "ZnS": 1.6380550533887985}
FCC = [(0, 0, 0), (0, 0.5, 0.5), (0.5, 0, 0.5), (0.5, 0.5, 0)]
SITES = {
    "CsCl": ([(0, 0, 0)], [(0.5, 0.5, 0.5)], np.sqrt(0.75)),
    "NaCl": (FCC, [(0.5, 0, 0), (0, 0.5, 0), (0, 0, 0.5), (0.5, 0.5, 0.5)], 0.5),
    "ZnS": (FCC, [(x + 0.25, y + 0.25, z + 0.25) for x, y, z in FCC], np.sqrt(3) / 4),
}


def ewald(x=X, **options):
    return parki.ewald.plan("laplace", x, x, **{"box": tuple(BOX), "tolerance": 1e-9} | options)


def strains(plan, q, measure):
    """Return the stress (3, 3) from energies in strained cells; `plan` makes a plan from the stretch."""
    step, found = 1e-3, np.zeros((3, 3))
    for a in range(3):
        for b in range(a, 3):
            d = np.zeros((3, 3))
            d[a, b] += 0.5
            d[b, a] += 0.5
            e = [plan(np.eye(3) + n * step * d).energy_forces(q).energy for n in (-2, -1, 1, 2)]
            found[a, b] = found[b, a] = (8 * (e[2] - e[1]) - (e[3] - e[0])) / (12 * step) / measure
    return found


@pytest.mark.parametrize("crystal", MADELUNG)
def test_crystals(crystal):
    """Check Madelung constants, zero forces, and the pressure of a 1/r sum: a third of the energy density."""
    cations, anions, nearest = SITES[crystal]
    x, q = np.array(cations + anions, float).T, np.repeat([1.0, -1.0], len(cations))
    energy, forces, stress = ewald(x, box=(1, 1, 1), gradient=True).energy_forces(q, stress=True)
    assert energy * nearest / len(cations) == pytest.approx(-MADELUNG[crystal], rel=1e-9)
    np.testing.assert_allclose(forces, 0, atol=1e-8)
    np.testing.assert_allclose(stress, -energy / 3 * np.eye(3), atol=1e-8 * abs(energy))


@pytest.mark.parametrize("gradient", [False, True])
def test_a_triclinic_cell(gradient):
    """Compare the stress with energies in strained cells, in all six directions, to 1e-7."""
    x = CELL.T @ RNG.random((3, N))
    plan = parki.ewald.plan("laplace", x, x, box=CELL, tolerance=1e-10, gradient=gradient)
    energy, forces, stress = plan.energy_forces(Q, stress=True)

    def strained(s):
        return ewald(s @ x, box=CELL @ s.T, tolerance=1e-12, gradient=True)

    found = strains(strained, Q, np.linalg.det(CELL))
    np.testing.assert_allclose(stress, found, rtol=0, atol=1e-7 * np.abs(found).max())
    exact = Charges("laplace", x, Q, CELL, 3).potential()
    assert energy == pytest.approx(0.5 * Q @ exact[0], rel=1e-8)
    np.testing.assert_allclose(forces, -Q * exact[1], atol=1e-8 * np.abs(Q * exact[1]).max())


def test_shear_of_a_plane():
    """Compare a square plane with the same plane cut along its diagonals, where shear becomes a stretch."""
    q = Q[:8] - Q[:8].mean()
    y = X[:, :8] / BOX[:, None]
    square = parki.ewald.plan("laplace", y, y, box=(1, 1, 3), periodicity=2, tolerance=1e-10)
    stress = square.energy_forces(q, stress=True).stress
    turn = np.array([[1, 1, 0], [-1, 1, 0], [0, 0, np.sqrt(2)]]) / np.sqrt(2)
    z = turn @ np.concatenate([y, y + np.array([[1.0], [0.0], [0.0]])], axis=1)
    diagonal = parki.ewald.plan("laplace", z, z, box=(np.sqrt(2), np.sqrt(2), 3), periodicity=2, tolerance=1e-10)
    found = diagonal.energy_forces(np.tile(q, 2), stress=True).stress
    np.testing.assert_allclose(found, turn @ stress @ turn.T, atol=1e-8 * np.abs(stress).max())


def test_a_line_that_is_turned():
    q, y = Q[:8] - Q[:8].mean(), X[:, :8]
    line = ewald(y, box=(1, 4, 4), periodicity=1, tolerance=1e-10).energy_forces(q, stress=True)
    turn = np.array([[1, 0, 0], [0, 0.6, 0.8], [0, -0.8, 0.6]])
    z = turn @ y + [[0], [0], [1]]
    turned = ewald(z, box=(1, 4, 4), periodicity=1, tolerance=1e-10).energy_forces(q, stress=True)
    bound = 1e-8 * np.abs(line.stress).max()
    np.testing.assert_allclose(turned.stress, turn @ line.stress @ turn.T, atol=bound)


@pytest.mark.parametrize("method", MAKERS)
@pytest.mark.parametrize("kernel", ["coulomb", "yukawa", "gaussian"])
def test_free_space(method, kernel):
    own = {"yukawa": {"kappa": 1.5}, "gaussian": {"width": 0.7}}.get(kernel, {})
    options = own if method == "direct" else own | {"tolerance": 1e-9}
    if method == "fmm" and kernel == "gaussian":
        options |= {"method": "chebyshev"}
    plan = MAKERS[method](kernel, X, X, **options)
    energy, forces, stress = plan.energy_forces(Q, stress=True)
    u, g = parki.direct.plan(kernel, X, X, gradient=True, **own)(Q)
    assert energy == pytest.approx(0.5 * Q @ u, rel=1e-7)
    np.testing.assert_allclose(forces, -Q * g, atol=1e-7 * np.abs(Q * g).max())

    def strained(s):
        return parki.direct.plan(kernel, y := s @ X, y, gradient=True, **own)

    np.testing.assert_allclose(stress, strains(strained, Q, 1.0), atol=1e-7 * np.abs(stress).max())
    again = MAKERS[method](kernel, X, X, gradient=True, **options).energy_forces(Q, stress=True)
    assert again.energy == pytest.approx(energy, rel=1e-8)


def test_layouts_and_right_hand_sides():
    both, rows = np.stack([Q, RNG.permutation(Q)]), np.ascontiguousarray(X.T)
    plan, turned = ewald(gradient=True), ewald(rows, layout="nd")
    energies, forces, stresses = plan.energy_forces(both, stress=True)
    assert (energies.shape, forces.shape, stresses.shape) == ((2,), (2, 3, N), (2, 3, 3))
    for i, q in enumerate(both):
        one, other = (p.energy_forces(q, stress=True) for p in (plan, turned))
        assert one.energy == energies[i]
        assert other.energy == pytest.approx(energies[i], rel=1e-8)
        np.testing.assert_array_equal(one.forces, forces[i])
        np.testing.assert_array_equal(one.stress, stresses[i])
        np.testing.assert_allclose(other.forces, forces[i].T, atol=1e-7)
        np.testing.assert_allclose(other.stress, stresses[i], atol=1e-7)
    assert plan.energy_forces(both).stress is None


@pytest.mark.parametrize("periodicity", [0, 1, 2, 3])
def test_units(periodicity):
    """Check that powers of two of lengths and charges change no digit."""
    small = ewald(gradient=True, periodicity=periodicity).energy_forces(Q, stress=True)
    for length, charge in ((40, -30), (-150, 200)):
        box = tuple(np.ldexp(BOX, length))
        plan = ewald(np.ldexp(X, length), box=box, gradient=True, periodicity=periodicity)
        energy, forces, stress = plan.energy_forces(np.ldexp(Q, charge), stress=True)
        if periodicity != 1:  # with one periodic direction, a logarithm depends on the unit
            assert energy == np.ldexp(small.energy, 2 * charge - length)
        np.testing.assert_array_equal(forces, np.ldexp(small.forces, 2 * charge - 2 * length))
        over = length * (1 + periodicity)
        found = np.ldexp(stress, over - 2 * charge)
        np.testing.assert_allclose(found, small.stress, rtol=0, atol=1e-12 * np.abs(small.stress).max())


def test_boxes_that_change():
    """Check that a box of similar shape compiles nothing and gives the right sum; others are chosen anew."""
    plan = ewald(gradient=True)
    plan.energy_forces(Q, stress=True)
    made, before = plan.parameters, engine.counters().builds
    for stretch in (np.array([1.05, 1.0, 0.97]), np.array([0.99, 0.98, 1.02])):
        box, x = BOX * stretch, X * stretch[:, None]
        plan.move(x, box=tuple(box))
        energy, forces, _ = plan.energy_forces(Q, stress=True)
        exact = Charges("laplace", x, Q, np.diag(box), 3).potential()
        assert energy == pytest.approx(0.5 * Q @ exact[0], rel=1e-8)
        np.testing.assert_allclose(forces, -Q * exact[1], atol=1e-8 * np.abs(Q * exact[1]).max())
        assert (plan.parameters.grid, plan.parameters.P) == (made.grid, made.P)
        assert plan.parameters.rc != made.rc
    assert engine.counters().builds == before
    plan.move(2 * X, box=tuple(2 * BOX))
    assert plan.parameters.rc == 2 * made.rc


def test_a_cell_that_shears():
    c = RNG.random((3, N))
    plan = ewald(CELL.T @ c, box=CELL, gradient=True)
    grid = plan.parameters.grid
    other = CELL + 0.02 * RNG.standard_normal((3, 3))
    plan.move(other.T @ c, box=other)
    assert plan.parameters.grid == grid
    exact = Charges("laplace", other.T @ c, Q, other, 3).potential()[0]
    assert plan.energy_forces(Q).energy == pytest.approx(0.5 * Q @ exact, rel=1e-8)


def test_plans_for_energies_move_along():
    plan, y = ewald(), X + 0.01
    plan.energy_forces(Q, stress=True)
    plan.move(y)
    again, found = (each.energy_forces(Q, stress=True) for each in (ewald(y), plan))
    assert found.energy == pytest.approx(again.energy, rel=1e-12)
    np.testing.assert_allclose(found.stress, again.stress, atol=1e-10)


def test_no_particles():
    plan = ewald(np.zeros((3, 0)), gradient=True)
    energy, forces, stress = plan.energy_forces(np.zeros(0), stress=True)
    assert (energy, forces.shape) == (0.0, (3, 0))
    np.testing.assert_array_equal(stress, np.zeros((3, 3)))


def test_a_net_charge_is_told():
    with pytest.warns(parki.error.NetDensityWarning, match="the total charge is"):
        ewald().energy_forces(np.abs(Q))


@pytest.mark.parametrize("stress", [False, True])
def test_what_is_refused(stress):
    with pytest.raises(ValueError, match="expected a plan whose targets are its sources"):
        parki.ewald.plan("laplace", X, X[:, :5], box=tuple(BOX)).energy_forces(Q[:5], stress=stress)
    with pytest.raises(ValueError, match="the kernel is stokes_sl; expected one of charges"):
        parki.ewald.plan("stokes_sl", X, X, box=tuple(BOX)).energy_forces(np.ones((3, N)), stress=stress)
    with pytest.raises(ValueError, match="the kernel is laplace_grad; expected one of charges"):
        ewald(gradient="only").energy_forces(Q, stress=stress)
    with pytest.raises(ValueError, match="stress is 'yes'; expected True or False"):
        ewald().energy_forces(Q, stress="yes")


@pytest.mark.parametrize(
    "options",
    [
        {"p2p_method": "SM-2D"}, {"p2g_method": "BASE"}, {"g2p_method": "BASE"}, {"fft_type": "C2C"},
        {"split": "gaussian"}, {"far_precision": "single"},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("periodicity", but(2, of=[2, 3]))
def test_variants(options, periodicity):
    tolerance = 1e-4 if "far_precision" in options else 1e-10
    usual = ewald(gradient=True, periodicity=periodicity).energy_forces(Q, stress=True)
    found = ewald(gradient=True, periodicity=periodicity, **options | {"tolerance": tolerance})
    for a, b in zip(found.energy_forces(Q, stress=True), usual, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=10 * tolerance * np.abs(b).max())


@pytest.mark.parametrize("space", ["Serial", "OpenMP", "GpuSim"])
def test_spaces(space):
    usual = ewald(gradient=True).energy_forces(Q, stress=True)
    found = ewald(gradient=True, execution_space=space).energy_forces(Q, stress=True)
    for a, b in zip(found, usual, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-8 * np.abs(b).max())


def test_single_precision():
    x, q = X.astype(np.float32), Q.astype(np.float32)
    usual = ewald(gradient=True).energy_forces(Q, stress=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", parki.error.NetDensityWarning)
        found = ewald(x, gradient=True, tolerance=1e-3).energy_forces(q, stress=True)
    assert found.forces.dtype == np.float32
    for a, b in zip(found, usual, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-3 * np.abs(b).max())
