"""Factors, signs and layouts of other programs, as on the pages under docs/coming-from, where they are installed."""

import numpy as np
import pytest

import parki
from parki.direct import direct_sum

N = 300
FOUR_PI, EIGHT_PI = 4 * np.pi, 8 * np.pi
COULOMB = 138.93545755  # kJ/mol nm/e²


def assert_same(found, expected, tolerance):
    assert found.shape == expected.shape
    assert np.linalg.norm(found - expected) < tolerance * np.linalg.norm(expected)


# FMM3D ----------------------------------------------------------------------------------------------------------------
@pytest.fixture
def fmm3d():
    return pytest.importorskip("fmm3dpy")


@pytest.fixture
def sources(rng):
    """Return points, and two vectors at each point."""
    return rng.random((3, N)), rng.standard_normal((3, N)), rng.standard_normal((3, N))


def test_fmm3d_laplace(fmm3d, sources):
    x, v, _ = sources
    t = 0.5 * x[:, :40] + 0.3
    charges = fmm3d.lfmm3d(eps=1e-9, sources=x, charges=v[0], pg=2, targets=t, pgt=2)
    assert_same(FOUR_PI * charges.pot, direct_sum("laplace", x, x, v[0]), 1e-9)
    assert_same(FOUR_PI * charges.grad, direct_sum("laplace_grad", x, x, v[0]), 1e-8)
    assert_same(FOUR_PI * charges.pottarg, direct_sum("laplace", t, x, v[0]), 1e-9)
    dipoles = fmm3d.lfmm3d(eps=1e-9, sources=x, dipvec=v, pg=1)
    assert_same(FOUR_PI * dipoles.pot, direct_sum("laplace_dipole", x, x, v), 1e-8)


def test_fmm3d_several_densities(fmm3d, sources):
    x, v, _ = sources
    found = FOUR_PI * fmm3d.lfmm3d(eps=1e-9, sources=x, charges=v, nd=3, pg=1).pot
    assert_same(found, parki.direct.plan("laplace", x, x)(v), 1e-9)


def test_fmm3d_yukawa(fmm3d, sources):
    x, v, _ = sources
    found = fmm3d.hfmm3d(eps=1e-9, zk=2j, sources=x, charges=v[0].astype(complex), pg=1).pot
    assert_same(FOUR_PI * found.real, direct_sum("yukawa", x, x, v[0], kappa=2.0), 1e-9)


def test_fmm3d_stokes(fmm3d, sources):
    x, f, _ = sources
    found = fmm3d.stfmm3d(eps=1e-9, sources=x, stoklet=f, ifppreg=3)
    assert_same(EIGHT_PI * found.pot[0], direct_sum("stokes_sl", x, x, f), 1e-8)
    assert_same(EIGHT_PI * found.pre[0], direct_sum("stokes_pressure", x, x, f), 1e-8)
    ours = direct_sum("stokes_grad", x, x, f).reshape(3, 3, N)
    assert_same(EIGHT_PI * found.grad[0].transpose(1, 0, 2), ours, 1e-8)


def test_fmm3d_stresslets_and_rotlets(fmm3d, sources):
    x, q, n = sources
    stresslets = fmm3d.stfmm3d(eps=1e-9, sources=x, strslet=q, strsvec=n, ifppreg=1)
    assert_same(-EIGHT_PI * stresslets.pot[0], direct_sum("stokes_dl", x, x, q, n), 1e-8)
    rotlets = fmm3d.stfmm3d(eps=1e-9, sources=x, rotlet=q, rotvec=n, ifppreg=1)
    assert_same(-FOUR_PI * rotlets.pot[0], direct_sum("rotlet", x, x, np.cross(q, n, axis=0)), 1e-8)


# torch-pme ------------------------------------------------------------------------------------------------------------
@pytest.fixture
def torchpme():
    """Return a function for half potentials (n,) and forces (3, n) of charges in a cell of rows, times a prefactor."""
    pytest.importorskip("vesin")
    torch = pytest.importorskip("torch")
    module = pytest.importorskip("torchpme")

    def run(x, q, cell, full=False, prefactor=1.0, periodic=(True, True, True)):
        import vesin

        neighbours = vesin.NeighborList(cutoff=1.2, full_list=full)
        i, j, shifts = neighbours.compute(points=x.T.copy(), box=cell, periodic=True, quantities="ijS")
        potential = module.CoulombPotential(smearing=0.2, prefactor=prefactor)
        settings = {"mesh_spacing": 0.06, "interpolation_nodes": 7, "full_neighbor_list": full}
        calculator = module.PMECalculator(potential, **settings).to(torch.float64)
        rows, charges = torch.tensor(x.T.copy(), requires_grad=True), torch.tensor(q[:, None])
        images = torch.tensor(shifts.astype(float) @ cell)
        distances = torch.linalg.norm(rows[j.astype(int)] - rows[i.astype(int)] + images, dim=1)
        pairs = torch.tensor(np.stack([i, j], axis=1).astype(np.int64))
        found = calculator(charges, torch.tensor(cell), rows, pairs, distances, periodic=torch.tensor(periodic))
        (charges * found).sum().backward()
        return found[:, 0].detach().numpy(), -rows.grad.numpy().T

    return run


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("cell", [3.0 * np.eye(3), np.array([[3.0, 0, 0], [0.6, 3.0, 0], [0.2, -0.5, 3.0]])])
def test_torch_pme(torchpme, cell, full, rng):
    x, q = (rng.random((100, 3)) @ cell).T.copy(), rng.standard_normal(100)
    half, forces = torchpme(x, q - q.mean(), cell, full)
    options = {"box": cell, "tolerance": 1e-9}
    assert_same(2 * half, parki.ewald.laplace(x, x, q - q.mean(), **options), 1e-6)
    assert_same(forces, -(q - q.mean()) * parki.ewald.laplace_grad(x, x, q - q.mean(), **options), 1e-6)


def test_torch_pme_has_the_same_background_and_a_prefactor(torchpme, rng):
    x, q = 3 * rng.random((3, 100)), rng.random(100)
    half, _ = torchpme(x, q, 3.0 * np.eye(3), prefactor=COULOMB)
    assert_same(2 * half, COULOMB * parki.ewald.laplace(x, x, q, box=(3, 3, 3), tolerance=1e-9), 1e-6)


def test_torch_pme_slab(torchpme, rng):
    """Compare with their slab, which has empty space above and below and a correction."""
    x, q = 3 * rng.random((3, 100)), rng.standard_normal(100)
    half, _ = torchpme(x, q - q.mean(), np.diag([3.0, 3.0, 9.0]), periodic=(True, True, False))
    ours = parki.ewald.laplace(x, x, q - q.mean(), box=(3, 3, 3), periodicity=2, tolerance=1e-9)
    assert_same(2 * half, ours, 1e-6)


# OpenMM ---------------------------------------------------------------------------------------------------------------
@pytest.fixture
def openmm():
    """Return a function for OpenMM's energy in kJ/mol and forces (3, n) of charges, with excluded pairs."""
    module = pytest.importorskip("openmm")

    def run(x, q, cell, excluded=()):
        system, force = module.System(), module.NonbondedForce()
        system.setDefaultPeriodicBoxVectors(*cell)
        force.setNonbondedMethod(module.NonbondedForce.PME)
        force.setCutoffDistance(1.2)
        force.setEwaldErrorTolerance(1e-6)
        for charge in q:
            system.addParticle(1.0)
            force.addParticle(float(charge), 1.0, 0.0)
        for i, j in excluded:
            force.addException(int(i), int(j), 0.0, 1.0, 0.0)
        system.addForce(force)
        platform = module.Platform.getPlatformByName("Reference")
        context = module.Context(system, module.VerletIntegrator(0.001), platform)
        context.setPositions(x.T.copy())
        state, unit = context.getState(getEnergy=True, getForces=True), module.unit
        per_mole = unit.kilojoule_per_mole
        forces = state.getForces(asNumpy=True).value_in_unit(per_mole / unit.nanometer)
        return state.getPotentialEnergy().value_in_unit(per_mole), np.array(forces).T

    return run


@pytest.fixture
def ions(rng):
    """Return charges with zero sum, at points at least 0.25 apart, in a cube of side 3."""
    sites = np.stack(np.meshgrid(*[np.arange(6)] * 3)).reshape(3, -1)
    x = 0.5 * (sites + 0.25 + 0.5 * rng.random(sites.shape))
    return x, (-1.0) ** np.arange(x.shape[1])


@pytest.mark.parametrize("cell", [3.0 * np.eye(3), np.array([[3.0, 0, 0], [0.6, 3.0, 0], [0.2, -0.5, 3.0]])])
def test_openmm(openmm, ions, cell):
    x, q = cell.T @ (ions[0] / 3), ions[1]
    energy, forces = openmm(x, q, cell)
    options = {"box": cell, "tolerance": 1e-9}
    assert energy == pytest.approx(0.5 * COULOMB * q @ parki.ewald.laplace(x, x, q, **options), rel=2e-6)
    assert_same(forces, -COULOMB * q * parki.ewald.laplace_grad(x, x, q, **options), 1e-5)


def test_openmm_leaves_out_pairs(openmm, ions):
    """Subtract the excluded pairs one by one, as on the page on molecular dynamics."""
    x, q = ions
    i, j = np.arange(0, x.shape[1], 2), np.arange(1, x.shape[1], 2)
    energy, forces = openmm(x, q, 3.0 * np.eye(3), zip(i, j, strict=True))
    r = x[:, i] - x[:, j]
    r -= 3 * np.round(r / 3)
    d = np.linalg.norm(r, axis=0)
    options = {"box": (3, 3, 3), "tolerance": 1e-9}
    own = 0.5 * q @ parki.ewald.laplace(x, x, q, **options) - (q[i] * q[j] / d).sum()
    assert energy == pytest.approx(COULOMB * own, rel=2e-6)
    push = q * -parki.ewald.laplace_grad(x, x, q, **options)
    pair = q[i] * q[j] * r / d**3
    push[:, i] -= pair
    push[:, j] += pair
    assert_same(forces, COULOMB * push, 1e-5)
