"""Spheres of several radii: their mobility by every method, against sums over all pairs and properties."""

import warnings

import numpy as np
import pytest

import parki
from parki.spheres import mobility
from tests.mobilities import matrix
from tests.quick import every

BOX = np.array([1.0, 1.2, 0.9])
CELL = np.array([[1.0, 0.2, 0.1], [0.0, 1.0, 0.3], [-0.1, 0.0, 0.9]])
METHODS = {
    "direct": lambda *points, tolerance, **options: parki.direct.plan("rpy", *points, **options),
    "dual": lambda *points, **options: parki.treecode.plan("rpy", *points, **options),
    "pc": lambda *points, **options: parki.treecode.plan("rpy", *points, method="pc", **options),
    "kifmm": lambda *points, **options: parki.fmm.plan("rpy", *points, **options),
    "chebyshev": lambda *points, **options: parki.fmm.plan("rpy", *points, method="chebyshev", **options),
    "ewald": lambda *points, **options: parki.ewald.plan("rpy", *points, periodicity=0, **options),
}


def spheres(rng, n, largest, box=BOX):
    """Return centres, radii down to a fiftieth of the largest, and forces; a third of the spheres overlap."""
    x, a = box[:, None] * rng.random((3, n)), largest * 50.0 ** -rng.random(n)
    a[0] = largest
    turns = rng.standard_normal((3, n // 3))
    turns *= rng.random(n // 3) * largest / np.linalg.norm(turns, axis=0)
    x[:, : n // 3] = np.clip(x[:, n // 3 : 2 * (n // 3)] + turns, 0, box[:, None])
    return x, a, rng.standard_normal((3, n))


def direct(x, y, a, b, f):
    """Return velocities of targets x of radii a by forces f on spheres y of radii b, in free space."""
    d = x[:, :, None] - y[:, None, :]
    r = np.sqrt((d**2).sum(axis=0))
    along, across = mobility.exact(r, a[:, None], b[None, :])
    n = d / np.where(r > 0, r, 1.0)
    return np.einsum("ij,dj->di", along, f) + np.einsum("ij,dij,eij,ej->di", across, n, n, f)


def error(u, exact):
    return np.linalg.norm(u - exact) / np.linalg.norm(exact)


# Two spheres ----------------------------------------------------------------------------------------------------------
def test_equal_spheres_have_the_mobility_of_one_radius():
    """The pair `rpy` is compared with the formulas of its authors in other tests."""
    a, r = 0.7, np.array([0.0, 0.1, 1.0, 1.39, 1.41, 3.0, 20.0])
    x = np.array([r, 0 * r, 0 * r])
    for force, axis in (([1.0, 0.0, 0.0], 0), ([0.0, 1.0, 0.0], 1)):
        u = parki.direct.direct_sum("rpy", x, np.zeros((3, 1)), np.array(force)[:, None], radius=a)[axis]
        along, across = mobility.exact(r, np.full(7, a), np.full(7, a))
        np.testing.assert_allclose(along + across * (axis == 0), u, rtol=1e-13)


def test_mobilities_are_continuous_and_those_of_points_on_spheres():
    """At contact, at inner contact; and the mean over a sphere's surface of the flow around another sphere."""
    a, b = np.array([0.3]), np.array([0.8])
    for r in (np.array([1.1]), np.array([0.5])):
        low, high = (np.array(mobility.exact(r * (1 + s), a, b)) for s in (-1e-9, 1e-9))
        np.testing.assert_allclose(low, high, atol=1e-7)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    angle = 2 * np.pi * np.arange(80) / 80
    sine = np.sqrt(1 - nodes**2)
    surface = np.stack([np.outer(sine, np.cos(angle)), np.outer(sine, np.sin(angle)), np.outer(nodes, 0 * angle + 1)])
    surface, weights = surface.reshape(3, -1), np.repeat(weights, 80) / 160
    for distance in (2.0, 0.9):  # apart, and in part inside: the flow inside a sphere that drags its shell is uniform
        points, force = a * surface + np.array([[0.0], [0.0], [distance]]), np.array([[0.3], [0.0], [1.0]])
        flow = direct(points, np.zeros((3, 1)), np.zeros(points.shape[1]), b, force)
        mean = flow @ weights
        exact = direct(np.array([[0.0], [0.0], [distance]]), np.zeros((3, 1)), a, b, force)[:, 0]
        np.testing.assert_allclose(mean, exact, rtol=2e-3 if distance < 1 else 1e-12, atol=1e-12)


# Free space -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "tolerance", "dtype"),
    every(
        4,
        (
            (name, *asked)
            for name in sorted(METHODS.keys() - {"chebyshev"})
            for asked in ((1e-3, "float64"), (1e-8, "float64"), (1e-4, "float32"))
        ),
    ),
)
def test_sums_in_free_space(name, tolerance, dtype, rng):
    x, a, f = spheres(rng, 900, 0.03)
    y, g = x.astype(dtype), f.astype(dtype)
    plan = METHODS[name](y, y, radius=a, tolerance=tolerance)
    exact = direct(y.astype(float), y.astype(float), a, a, g.astype(float))
    assert error(plan(g), exact) <= tolerance
    assert plan.error(50).value == pytest.approx(error(plan(g), exact), abs=tolerance)
    targets, b = (BOX[:, None] * rng.random((3, 60))).astype(dtype), np.where(rng.random(60) < 0.3, 0, 0.04)
    plan = METHODS[name](targets, y, radius=(b, a), tolerance=tolerance)
    assert error(plan(g), direct(targets.astype(float), y.astype(float), b, a, g.astype(float))) <= tolerance


def test_chebyshev_interpolation(rng):
    x, a, f = spheres(rng, 400, 0.02)
    plan = METHODS["chebyshev"](x, x, radius=a, tolerance=1e-2)
    assert 1e-9 < error(plan(f), direct(x, x, a, a, f)) <= 1e-2


@pytest.mark.parametrize("name", ["dual", "kifmm"])
def test_trees_with_far_clusters(name, rng):
    x, a, f = spheres(rng, 9000, 0.004)
    plan = METHODS[name](x, x, radius=a, tolerance=1e-3)
    index = np.arange(0, 9000, 30)
    exact = direct(np.ascontiguousarray(x[:, index]), x, a[index], a, f)
    assert 1e-8 < error(plan(f)[:, index], exact) <= 1e-3


# Boxes ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("box", "periodicity"), every(2, [(BOX, 1), (BOX, 2), (CELL, 3), (BOX, 3)]))
def test_equal_radii_give_the_sum_of_one_radius(box, periodicity, rng):
    x, _, f = spheres(rng, 120, 0.08, BOX if box is BOX else np.full(3, 0.8))
    options = {"box": tuple(box) if box is BOX else box, "periodicity": periodicity, "tolerance": 1e-9}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", parki.ewald.NetDensityWarning)
        u, exact = (parki.ewald.rpy(x, x, f, radius, **options) for radius in (np.full(120, 0.08), 0.08))
    assert error(u, exact) <= 2e-9


def test_velocities_are_those_of_faxen(rng):
    """Compare spheres apart in a periodic box with point forces, whose Laplacian is by finite differences."""
    side = np.stack(np.meshgrid(*[np.arange(3)] * 3, indexing="ij")).reshape(3, -1) / 3
    x = side + 0.03 * rng.standard_normal(side.shape)
    a, f, h = 0.02 + 0.06 * rng.random(27), rng.standard_normal((3, 27)), 0.004
    f -= f.mean(axis=1, keepdims=True)
    found = parki.ewald.rpy(x, x, f, a, box=(1, 1, 1), tolerance=1e-10)

    def flow(forces):
        """Return the flow of point forces and its Laplacian at x, fourth order."""
        steps = [np.zeros(3), *(k * h * axis for axis in np.eye(3) for k in (-2, -1, 1, 2))]
        moved = np.concatenate([x + step[:, None] for step in steps], axis=1)
        u = parki.ewald.stokes_sl(moved, x, forces, box=(1, 1, 1), tolerance=1e-13).reshape(3, 13, 27)
        weights = np.array([-1, 16, 16, -1]) / 12
        sums = np.tensordot(u[:, 1:].reshape(3, 3, 4, 27), weights, (2, 0)).sum(axis=1)
        return u[:, 0], (sums - 7.5 * u[:, 0]) / h**2

    images = 2.8372974794806  # a sphere's velocity by its own images is −4/3 × 2.837 f, less that of the background
    exact = np.zeros((3, 27))
    for j in range(27):
        alone = np.zeros((3, 27))
        alone[:, j] = f[:, j]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", parki.ewald.NetDensityWarning)
            u, laplacian = flow(alone)
        u = u + (a**2 + a[j] ** 2) / 6 * laplacian
        exact += np.where(np.arange(27) == j, 0.0, u)
        exact[:, j] += f[:, j] * (4 / (3 * a[j]) - images * 4 / 3 + 16 * np.pi / 9 * a[j] ** 2)
    assert error(found, exact) <= 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("periodicity", [3, 0])
def test_the_matrix_is_symmetric_and_positive(periodicity, rng):
    x, a, _ = spheres(rng, 30, 0.15)
    options = {"box": tuple(BOX), "periodicity": periodicity, "tolerance": 1e-7}
    plan = parki.ewald.plan("rpy", x, x, radius=a, **options)
    mobility_matrix = matrix(plan)
    assert np.abs(mobility_matrix - mobility_matrix.T).max() <= 1e-6 * np.abs(mobility_matrix).max()
    assert np.linalg.eigvalsh(0.5 * (mobility_matrix + mobility_matrix.T))[0] > 0
    z = rng.standard_normal((3, 30))
    assert error(plan.sqrt(plan.sqrt(z, tolerance=1e-8), tolerance=1e-8), plan(z)) < 1e-6
    step = plan.brownian_step(None, 0.1, 1.0, rng=3)
    assert np.array_equal(step, plan.brownian_step(None, 0.1, 1.0, rng=3))


@pytest.mark.parametrize("power", [-300, 40])
def test_sums_scale_with_the_unit_of_length(power, rng):
    x, a, f = spheres(rng, 50, 0.1)
    options = {"tolerance": 1e-6, "periodicity": 0}
    u = parki.ewald.rpy(x, x, f, a, **options)
    y = np.ldexp(x, power)
    scaled = parki.ewald.rpy(y, y, f, np.ldexp(a, power), **options)
    np.testing.assert_array_equal(np.ldexp(scaled, power), u)


# Plans ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["direct", "ewald", "kifmm"])
def test_plans_of_moving_spheres(name, rng):
    x, a, f = spheres(rng, 80, 0.1)
    box = {"box": (4.0, 4.0, 4.0)} if name == "ewald" else {}
    plan, y = METHODS[name](x, x, radius=a, tolerance=1e-7, **box), 1 + rng.random((3, 80))
    plan.move(y)
    exact = direct(y, y, a, a, f)
    assert error(plan(f), exact) <= 1e-7
    many = plan(np.array([f, -2 * f]))
    assert error(many[1], -2 * exact) <= 1e-7
    rows = METHODS[name](*[np.ascontiguousarray(y.T)] * 2, radius=a, tolerance=1e-7, layout="nd", **box)
    with pytest.raises(ValueError, match="radius is one array and targets are not sources"):
        METHODS[name](y, y.copy(), radius=a, tolerance=1e-7, **box)
    assert rows.n_targets == 80


def test_rows_of_points_and_operators(rng):
    x, a, f = spheres(rng, 40, 0.1)
    rows = np.ascontiguousarray(x.T)
    options = {"box": (2.0, 2.0, 2.0), "tolerance": 1e-9}
    u = parki.ewald.plan("rpy", x, x, radius=a, **options)(f)
    plan = parki.ewald.plan("rpy", rows, rows, radius=a, layout="nd", **options)
    np.testing.assert_allclose(plan(np.ascontiguousarray(f.T)).T, u, rtol=1e-12, atol=1e-12)
    targets = 2 * rng.random((3, 15))
    operator = parki.ewald.plan("rpy", targets, x, radius=(a[:15], a), **options).operator()
    v, w = rng.standard_normal(120), rng.standard_normal(45)
    assert w @ (operator @ v) == pytest.approx(v @ (operator.T @ w), rel=1e-7)


@pytest.mark.parametrize("space", ["GpuSim", "Serial"])
def test_spaces(space, rng):
    x, a, f = spheres(rng, 60, 0.1)
    plan = parki.ewald.plan("rpy", x, x, radius=a, periodicity=0, tolerance=1e-5, execution_space=space)
    assert error(plan(f), direct(x, x, a, a, f)) <= 1e-5


@pytest.mark.parametrize(
    ("radius", "message"),
    [
        ([0.1, 0.2], "radius has 2 numbers for 3 targets; expected one for each"),
        ([0.1, 0.0, 0.1], "radius has numbers from 0 to 0.1; expected positive finite numbers"),
        ([0.1, np.nan, 0.1], "expected positive finite numbers"),
        (np.ones((3, 1)), r"radius has shape \(3, 1\); expected \(N,\)"),
        (([0.1] * 3,), "radius is a tuple of 1; expected two arrays"),
        (([-0.1] * 3, [0.1] * 3), r"radius\[0\] has numbers from -0.1 to -0.1; expected finite numbers of at least 0"),
        (["a", "b", "c"], "expected an array of numbers"),
        ([0.3, 0.1, 0.1], "radius is up to 0.3; expected at most 0.25, a quarter of the cell's shortest height"),
    ],
)
def test_refusals(radius, message, rng):
    x = rng.random((3, 3))
    with pytest.raises(ValueError, match=message):
        parki.ewald.plan("rpy", x, x, radius=radius, box=(1, 1, 1))


def test_no_spheres():
    x = np.empty((3, 0))
    for name in ("ewald", "kifmm", "direct"):
        assert METHODS[name](x, x, radius=np.empty(0), tolerance=1e-3)(x).shape == (3, 0)


def test_pairs_that_are_left_out_are_refused(rng):
    x = rng.random((3, 3))
    for name in ("ewald", "direct"):
        with pytest.raises(NotImplementedError, match="exclude was given with one radius for each sphere"):
            METHODS[name](x, x, radius=[0.1] * 3, exclude=np.array([[0], [1]]), tolerance=1e-3)


def test_lists_of_close_pairs_serve_small_moves(rng):
    x, a, f = spheres(rng, 80, 0.1)
    options = {"radius": a, "box": tuple(BOX), "tolerance": 1e-6}
    plan = parki.ewald.plan("rpy", x, x, **options)
    listed = plan.structure.close.listed
    for step, is_kept in ((0.01, True), (0.5, False)):
        turns = rng.standard_normal((3, 80))
        y = x + step * turns / np.linalg.norm(turns, axis=0) + BOX[:, None]  # and into the next cell
        plan.move(y)
        assert (plan.structure.close.listed is listed) is is_kept
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", parki.ewald.NetDensityWarning)
            np.testing.assert_allclose(plan(f), parki.ewald.plan("rpy", y, y, **options)(f), rtol=1e-9, atol=1e-9)
