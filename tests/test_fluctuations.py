"""Square roots of sums as matrices: of every method, in every shape of a call, and the covariance of their noise."""

import numpy as np
import pytest

import parki
from tests.mobilities import dense, deviations
from tests.quick import but

TOLERANCE = 1e-5


def plans():
    """Return the names of methods and functions that plan the mobility of spheres at points."""
    free = {"radius": 0.05, "tolerance": 1e-7}
    return {
        "ewald": lambda x, **more: parki.ewald.plan("rpy", x, x, box=(1, 1, 1), **free | more),
        "ewald, free": lambda x, **more: parki.ewald.plan("rpy", x, x, periodicity=0, **free | more),
        "treecode": lambda x, **more: parki.treecode.plan("rpy", x, x, **free | more),
        "fmm": lambda x, **more: parki.fmm.plan("rpy", x, x, **free | more),
        "direct": lambda x, **more: parki.direct.plan("rpy", x, x, radius=0.05, **more),
    }


def root(matrix):
    values, vectors = np.linalg.eigh(matrix)
    assert values[0] > 0
    return (vectors * np.sqrt(values)) @ vectors.T


@pytest.mark.parametrize("name", but("ewald, free", "fmm", of=plans()))
def test_roots_are_those_of_the_dense_matrix(name, rng):
    x = rng.random((3, 60))
    plan = plans()[name](x)
    exact, z = root(dense(plan)), rng.standard_normal((3, 60))
    for tolerance in (1e-2, TOLERANCE):
        y = plan.sqrt(z, tolerance=tolerance)
        assert y.shape == z.shape
        assert np.linalg.norm(y.ravel() - exact @ z.ravel()) <= tolerance * np.linalg.norm(y)


def test_several_vectors_and_layouts(rng):
    x, z = rng.random((3, 50)), rng.standard_normal((4, 3, 50))
    plan = plans()["ewald"](x)
    y = plan.sqrt(z, tolerance=1e-8)
    assert y.shape == z.shape
    for one, vector in zip(y, z, strict=True):
        np.testing.assert_allclose(plan.sqrt(vector, tolerance=1e-8), one, atol=1e-6)
    rows = plans()["ewald"](np.ascontiguousarray(x.T), layout="nd")
    for a, b in ((z, y), (z[0], y[0])):
        found = rows.sqrt(np.ascontiguousarray(a.swapaxes(-1, -2)), tolerance=1e-8)
        np.testing.assert_allclose(found.swapaxes(-1, -2), b, atol=1e-6)


@pytest.mark.parametrize("kernel", [("gaussian", {"width": 0.2}), ("regularised_coulomb", {"epsilon": 0.1})])
def test_scalar_kernels(kernel, rng):
    (name, parameters), x, z = kernel, rng.random((3, 40)), rng.standard_normal((2, 40))
    plan = parki.direct.plan(name, x, x, **parameters)
    y = plan.sqrt(z, tolerance=1e-6)
    twice = plan.sqrt(y, tolerance=1e-6)
    np.testing.assert_allclose(twice, plan(z), atol=1e-5 * np.abs(plan(z)).max())


def test_spheres_that_rotate(rng):
    """Square roots and steps of forces and torques together, (6, N)."""
    x, z = rng.random((3, 30)), rng.standard_normal((6, 30))
    plan = parki.ewald.plan("rpy_rotation", x, x, radius=0.1, box=(1, 1, 1), tolerance=1e-8)
    twice = plan.sqrt(plan.sqrt(z))
    np.testing.assert_allclose(twice, plan(z), rtol=0, atol=1e-6 * np.abs(plan(z)).max())
    step = plan.brownian_step(z, 0.1, 0.2, rng=4)
    rate = 0.1 / (8 * np.pi)
    np.testing.assert_allclose(step, rate * plan(z) + np.sqrt(2 * 0.2 * rate) * plan.noise(rng=4), rtol=1e-12)


def test_single_precision(rng):
    x, z = rng.random((3, 50)).astype("f4"), rng.standard_normal((3, 50)).astype("f4")
    y = plans()["ewald"](x, tolerance=1e-4).sqrt(z)
    exact = plans()["ewald"](x.astype("f8")).sqrt(z.astype("f8"))
    assert y.dtype == np.float32
    assert np.linalg.norm(y - exact) < 3e-4 * np.linalg.norm(exact)


def test_the_covariance_of_noise(rng):
    """Compare the mean of products of samples with the mobility, to the error of sampling."""
    n, samples = 6, 4000
    x = rng.random((3, n))
    plan = plans()["ewald, free"](x, radius=0.15)
    y = plan.sqrt(rng.standard_normal((samples, 3, n)), tolerance=1e-6).reshape(samples, -1)
    matrix = dense(plan)
    deviation = deviations(y, matrix)
    assert np.abs(deviation).max() < 4.5
    assert 0.8 < np.sqrt(np.mean(deviation**2)) < 1.2


def test_refusals(rng):
    x, z = rng.random((3, 20)), rng.standard_normal((3, 20))
    with pytest.raises(ValueError, match="the kernel is stokes_sl; expected one of a positive matrix, such as 'rpy'"):
        parki.ewald.plan("stokes_sl", x, x, box=(1, 1, 1)).sqrt(z)
    with pytest.raises(ValueError, match="this plan has targets apart from its sources"):
        parki.direct.plan("rpy", x[:, :5], x, radius=0.1).sqrt(z)
    with pytest.raises(ValueError, match="periodicity is 2, where the flow of a net force grows"):
        plans()["ewald"](x, periodicity=2).sqrt(z)
    with pytest.raises(ValueError, match="tolerance is 2; expected a number between 0 and 1"):
        plans()["direct"](x).sqrt(z, tolerance=2)
    with pytest.raises(ValueError, match=r"density has shape \(2, 20\)"):
        plans()["direct"](x).sqrt(z[:2])
    with pytest.raises(NotImplementedError, match="of one process, and of all pairs"):
        parki.direct.plan("rpy", x, x, radius=0.1, exclude=np.array([[0], [1]])).sqrt(z)


@pytest.mark.parametrize("name", but("ewald", "ewald, free", "treecode", of=plans()))
def test_noise_of_every_method_has_the_variance_of_the_mobility(name, rng):
    x = rng.random((3, 10))
    plan = plans()[name](x)
    samples = plan.noise(rng=rng, count=1000)
    np.testing.assert_allclose(samples.var(axis=(0, 2)), np.diag(dense(plan)).reshape(3, 10).mean(axis=1), rtol=0.08)


def test_a_brownian_step_is_flow_and_noise(rng):
    x, f = rng.random((3, 30)), rng.standard_normal((3, 30))
    plan = plans()["ewald"](x)
    rate = 0.25 / (8 * np.pi * 2.0)
    flow, noise = rate * plan(f), np.sqrt(2 * 0.3 * rate) * plan.noise(rng=5)
    np.testing.assert_allclose(plan.brownian_step(f, 0.25, 0.3, rng=5, viscosity=2.0), flow + noise, rtol=1e-12)
    np.testing.assert_array_equal(plan.brownian_step(None, 0.25, 0.3, rng=5, viscosity=2.0), noise)
    np.testing.assert_array_equal(plan.brownian_step(f, 0.25, 0, viscosity=2.0), flow)
    assert not plan.brownian_step(None, 0.25, 0).any()
    assert plan.brownian_step(None, 0.25, 0).shape == (3, 30)


@pytest.mark.parametrize("name", ["ewald", "direct"])
def test_there_is_no_drift(name, rng):
    """Check Σ ∂M_ij/∂x_j = 0, by differences of the sum itself with the points moved along each unit vector."""
    n, step = 5, 1e-5
    x = rng.random((3, n)) * 0.15  # some spheres overlap
    make, total = plans()[name], np.zeros((3, n))
    plan, size = make(x), 0.0
    for column in np.eye(3 * n):
        e, columns = column.reshape(3, n), []
        for sign in (1, -1):
            plan.move(x + sign * step * e)
            columns.append(plan(e))
        derivative = (columns[0] - columns[1]) / (2 * step)
        total, size = total + derivative, max(size, np.abs(derivative).max())
    assert np.abs(total).max() < 1e-3 * size


def test_free_diffusion_of_one_sphere(rng):
    """Compare the mean square displacement with 6Dt, D = kT/6πηa."""
    x = np.zeros((3, 1))
    plan, n = parki.direct.plan("rpy", x, x, radius=0.5), 20_000
    steps = np.sqrt(2 * 0.7 * 0.1 / (8 * np.pi * 1.5)) * plan.noise(rng=rng, count=n)
    diffusion = 0.7 / (6 * np.pi * 1.5 * 0.5)
    assert abs((steps**2).sum(axis=1).mean() / (6 * diffusion * 0.1) - 1) < 0.03


def test_refused_steps(rng):
    x = rng.random((3, 20))
    with pytest.raises(ValueError, match="the kernel is gaussian; expected 'rpy', 'rpy_rotation' or 'regula"):
        parki.direct.plan("gaussian", x, x, width=0.1).brownian_step(None, 1.0, 1.0)
    plan = plans()["direct"](x)
    with pytest.raises(ValueError, match="dt is 0; expected a positive number"):
        plan.brownian_step(None, 0, 1.0)
    with pytest.raises(ValueError, match=r"kT is -1\.0; expected a number that is not negative"):
        plan.brownian_step(None, 1.0, -1.0)
    with pytest.raises(ValueError, match=r"viscosity is 0\.0; expected a positive number"):
        plan.brownian_step(None, 1.0, 1.0, viscosity=0.0)
    with pytest.raises(ValueError, match="count is 0; expected a positive whole number"):
        plan.noise(count=0)
    plan.retire()
    with pytest.raises(RuntimeError, match="this plan was retired"):
        plan.noise()
