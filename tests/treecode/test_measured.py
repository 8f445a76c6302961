"""Measured errors of interpolation, and the shares of near and far particles in fields."""

import numpy as np
import pytest

import parki
from parki import samples
from parki.direct import direct_sum
from parki.treecode import measured, params
from tests.hard_points import lattice
from tests.methods.sums import TREECODES, relative
from tests.quick import but
from tests.treecode import sums

THETA = 0.8
STEEP = ("laplace_grad", "rotlet", "laplace_dipole", "stokes_dl")


def interpolated(kernel, points):
    """Return the relative error of fields between cubes in random directions, both interpolated at once."""
    rng, pair = np.random.default_rng(5), parki.pairs.PAIRS[kernel]
    grid = np.stack(np.meshgrid(*[sums.chebyshev(points)] * 3, indexing="ij")).reshape(3, -1)
    squares, fields = 0.0, 0.0
    for _ in range(150):
        x, y, shift = rng.uniform(-1, 1, (3, 40)), rng.uniform(-1, 1, (3, 40)), rng.standard_normal((3, 1))
        shift *= 2 * np.sqrt(3) / THETA / np.linalg.norm(shift)
        q = rng.uniform(-1, 1, (pair.dens, 40))
        at_x, at_y = (
            np.einsum("ij,ik,il->ijkl", *(sums.lagrange(a, points) for a in p)).reshape(40, -1) for p in (x, y)
        )
        exact = direct_sum(pair, x + shift, y, q.squeeze()).reshape(pair.result, -1)
        proxy = direct_sum(pair, grid + shift, grid, (q @ at_y).squeeze()).reshape(pair.result, -1) @ at_x.T
        squares, fields = squares + np.square(proxy - exact).sum(), fields + np.square(exact).sum()
    return np.sqrt(squares / fields)


@pytest.mark.parametrize("points", [4, 7])
def test_errors_relative_to_those_of_coulomb(points):
    """One pair of clusters has nearly the errors of the mean of many."""
    coulomb = interpolated("laplace", points)
    assert measured.error(measured.COULOMB, THETA, points, 1.0) == pytest.approx(coulomb, rel=0.4)
    for kernel in ("laplace_grad", "stokes_sl", "stokes_grad"):
        found = measured.ratio(parki.pairs.PAIRS[kernel], THETA, points, 1.0, None)
        assert found == pytest.approx(interpolated(kernel, points) / coulomb, rel=0.5), kernel


def test_directions_are_even():
    vector = measured._directions()
    np.testing.assert_allclose(np.linalg.norm(vector, axis=0), 1)
    assert ((vector[0] >= vector[1]) & (vector[1] >= vector[2]) & (vector[2] >= 0)).all()
    assert np.mean(vector**4) * 3 == pytest.approx(3 / 5, rel=0.02)  # the mean of x⁴ + y⁴ + z⁴ on a sphere
    assert np.mean(vector.prod(axis=0) ** 2) == pytest.approx(1 / 105, rel=0.2)


@pytest.mark.parametrize(("kernel", "gradient"), [("laplace", "only"), ("yukawa", False)])
def test_moved_points_measure_nothing_anew(kernel, gradient):
    options = {"tolerance": 1e-4, "gradient": gradient, "leaf_size": 30}
    options |= {"kappa": 2.0} if kernel == "yukawa" else {}
    x = samples.uniform(1500, 1)
    parki.treecode.plan(kernel, x, x, **options)
    before = [f.cache_info().misses for f in (measured.error, measured.fields)]
    for seed in (2, 3, 4):
        x = 0.97 * samples.uniform(1500, seed)
        parki.treecode.plan(kernel, x, x, **options)
    again = [f.cache_info().misses for f in (measured.error, measured.fields)]
    assert again[0] <= before[0] + 2 * (kernel == "yukawa")  # numbers of points follow the distance of points
    assert again[1] == before[1]


@pytest.mark.parametrize("kernel", but("laplace_grad", "stokes_dl", of=STEEP))
def test_steep_fields_meet_tolerances(kernel):
    """Points on a lattice have no close partners, and a few charges leave most targets with far sources only."""
    x, tolerance, pair = lattice(22**3, 1), 1e-4, parki.pairs.PAIRS[kernel]
    rng = np.random.default_rng(1)
    q = rng.uniform(-1, 1, (pair.dens, x.shape[1]))
    normals = rng.standard_normal(x.shape) if pair.normals else None
    for method in TREECODES:
        plan = parki.treecode.plan(kernel, x, x, method=method, tolerance=tolerance, leaf_size=40)
        assert plan.parameters.error > 1.5 * params.ERROR_SHARES[method] * tolerance
        for share in (1.0, 0.003):
            charges = (q * (rng.random(x.shape[1]) < share)).squeeze()
            exact = direct_sum(kernel, x, x, charges, normals)
            assert 0.002 * tolerance < relative(plan(charges, normals), exact) < tolerance


def test_targets_apart_from_sources_have_no_near_share():
    x, y = samples.uniform(1500, 1), samples.uniform(1500, 2)
    apart, same = (
        parki.treecode.plan("laplace_grad", t, y, tolerance=1e-4, leaf_size=40).parameters.error for t in (x, y)
    )
    potential = parki.treecode.plan("laplace", y, y, tolerance=1e-4, leaf_size=40).parameters.error
    assert apart == pytest.approx(params.ERROR_SHARES["dual"] * 1e-4)
    assert same > 1.5 * apart
    assert apart <= potential < 1.2 * apart
