"""Errors that plans measure, against errors that are known."""

import numpy as np
import pytest

import parki
from parki import error
from parki.ewald import reference
from tests.quick import but

CELL = np.array([[1.0, 0.2, 0.0], [0.0, 1.1, 0.3], [0.1, 0.0, 0.9]])
GEOMETRIES = [
    {"box": [1.0, 1.2, 0.9], "periodicity": 0},
    {"box": None, "periodicity": 0},
    {"box": [1.0, 1.2, 0.9], "periodicity": 1},
    {"box": [1.0, 1.2, 0.9], "periodicity": (False, True, True)},
    {"box": CELL.tolist(), "periodicity": 3},
]


@pytest.fixture
def plan(rng):
    """Return a plan and its strengths, at a tolerance far above that of the second sum."""
    x = rng.random((3, 100))
    made = parki.ewald.plan("stokes_comb", x, x, box=(1, 1, 1), tolerance=1e-3)
    return made, rng.standard_normal((6, 100)), rng.standard_normal((3, 100))


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_every_periodicity(geometry, rng):
    src = rng.random((3, 150)) * (0.9 if geometry["box"] is not None else 0.01)
    trg, dens = src[:, ::2].copy(), rng.standard_normal((3, 150))
    plan = parki.ewald.plan("stokes_sl", trg, src, tolerance=1e-3, **geometry)
    u = plan(dens)
    assert 0 < plan.error().value < 1e-3
    assert plan.error(u=1.1 * u).value == pytest.approx(0.1, rel=1e-2)


@pytest.mark.parametrize("periodicity", but(0, of=(0, 3)))
def test_a_kernel_with_a_parameter(periodicity, rng):
    x, dens = rng.random((3, 100)), rng.standard_normal(100)
    given = {"box": (1, 1, 1), "periodicity": periodicity, "tolerance": 1e-3}
    plan, other = (parki.ewald.plan("yukawa", x, x, kappa=kappa, **given) for kappa in (3.0, 4.0))
    u = plan(dens)
    assert 0 < plan.error().value < 1e-3
    assert other.error(density=dens, u=u).value > 1e-2


@pytest.mark.parametrize("size", [1e-3, 1e-1])
def test_an_error_put_in_is_found(plan, size, rng):
    made, *strengths = plan
    u = made(*strengths)
    wrong = u + size * rng.standard_normal(u.shape) * np.sqrt(np.mean(u**2))
    found = made.error(n=100, u=wrong)
    assert 0.8 * size < found.value < 1.2 * size
    assert found.low == found.value == found.high  # all targets are sampled, so the interval has no width


def test_layout_and_dtype_do_not_matter(plan, rng):
    made, dens, normals = plan
    made(dens, normals)
    x = made.structure.originals()[0]
    turned = parki.ewald.plan("stokes_comb", x.T, x.T, box=(1, 1, 1), tolerance=1e-3, layout="nd")
    turned(dens.T, normals.T)
    assert turned.error().value == pytest.approx(made.error().value, rel=0.2)
    x, dens, normals = (a.astype(np.float32) for a in (x, dens, normals))
    single = parki.ewald.plan("stokes_comb", x, x, box=(1, 1, 1), tolerance=1e-3)
    single(dens, normals)
    assert 0 < single.error().value < 1e-3


def test_the_second_sum_has_other_parameters(rng):
    x = rng.random((3, 50))
    for rc in (None, 0.1, 0.3, 0.4, 0.45, 0.5):
        made = parki.ewald.plan("laplace", x, x, box=(1, 1, 1), tolerance=1e-3, rc=rc)
        second = reference.other(made.method.options, made.chosen.parameters, made.problem.geometry)
        assert abs(second["rc"] / made.parameters.rc - 1) >= 0.19
        assert second["split"] != made.method.options.split
        assert second["tolerance"] == pytest.approx(1e-5)


def test_a_sum_of_nothing_has_no_error(plan, rng):
    made, dens, normals = plan
    made(0 * dens, normals)
    with pytest.raises(ValueError, match="zero at all sampled targets"):
        made.error()
    empty = parki.ewald.plan("laplace", rng.random((3, 0)), rng.random((3, 4)), box=(1, 1, 1))
    empty(np.ones(4))
    with pytest.raises(ValueError, match="no targets or no sources"):
        empty.error()


def test_errors_of_single_targets(rng):
    exact, off = rng.standard_normal((2, 3, 1000)), np.zeros((2, 3, 1000))
    off[0, 1, 7], off[1, :, 30:80] = 5.0, 1e-3
    found = error.estimate(exact + off, exact, 1000, 0)
    size = np.sqrt(np.sum(exact**2) / 1000)
    assert found.maximum == pytest.approx(5.0 / size)
    assert found.percentile_99 == pytest.approx(1e-3 * np.sqrt(3) / size)
    assert found.median == 0
    assert found.value == pytest.approx(np.linalg.norm(off) / np.linalg.norm(exact))


def test_of_potential_and_gradient_the_larger_error_counts(rng):
    """Units of potential and gradient do not matter."""
    exact = rng.standard_normal((1, 4, 50)) * np.array([1e-30, 1e30, 1e30, 1e30])[:, None]
    for part, size in ((slice(0, 1), 1e-3), (slice(1, 4), 1e-2)):
        found = exact.copy()
        found[:, part] *= 1 + size
        assert error.estimate(found, exact, 50, 0, first=1).value == pytest.approx(size)
