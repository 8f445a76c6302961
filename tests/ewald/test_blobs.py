"""Ewald sums of the regularised stokeslet: its profile, cuts in free directions, means, and sums for any width."""

import itertools

import numpy as np
import pytest
from scipy.special import kn, roots_legendre

import parki
from parki.ewald.choice import choose
from parki.ewald.choice.question import Question
from parki.ewald.kernels import KERNELS, find
from parki.ewald.split import far_parts, means, profiles
from parki.ewald.split.softened import SoftenedField
from parki.ewald.stages import green
from tests.ewald import blobs, sums
from tests.mobilities import matrix
from tests.quick import every

BOX = (1.0, 1.2, 0.9)
NAME = "regularised_stokeslet"
SPLITS = {"prolate": profiles.Prolate(20.0, 50.0), "gaussian": profiles.Gaussian(12.0, 120.0)}
RC = 0.4


def own(k, epsilon):
    """Return the kernel's transform over that of the single layer."""
    return 0.5 * (epsilon * k) ** 2 * kn(2, epsilon * k)


# The reference


@pytest.mark.parametrize("periodicity", [1, 2, 3])
def test_exact_sums_do_not_depend_on_the_split(periodicity, rng):
    x, f = rng.random((3, 10)), rng.standard_normal((3, 10))
    given = {"box": BOX, "periodicity": periodicity, "skew": (0.2, 0.1, -0.1) if periodicity == 3 else (0.0,) * 3}
    found = [sums.periodic(NAME, x, x, f, xi=xi, epsilon=0.15, **given) for xi in (4.5, 6.0)]
    np.testing.assert_allclose(*found, rtol=0, atol=1e-12 * np.abs(found[0]).max())


@pytest.mark.parametrize("periodicity", range(4))
def test_exact_sums_of_narrow_blobs_are_those_of_point_forces(periodicity, rng):
    x, f = rng.random((3, 10)), rng.standard_normal((3, 10))
    given = {"box": BOX, "periodicity": periodicity}
    apart = sums.periodic(NAME, x, x, f, epsilon=1e-5, **given) - 2e5 * f
    exact = sums.periodic("stokes_sl", x, x, f, **given)
    np.testing.assert_allclose(apart, exact, rtol=0, atol=3e-8 * np.abs(exact).max())


def test_exact_sums_of_wide_blobs_are_those_of_their_modes(rng):
    x, f, epsilon = rng.random((3, 6)), rng.standard_normal((3, 6)), 0.35
    k = 2 * np.pi * (np.indices((41,) * 3).reshape(3, -1) - 20.0)
    k = k[:, np.any(k != 0, axis=0)]
    length = np.linalg.norm(k, axis=0)
    along = np.sum(k * (f @ np.exp(-1j * x.T @ k)), axis=0) / length**2
    modes = 8 * np.pi / length**2 * own(length, epsilon) * (f @ np.exp(-1j * x.T @ k) - k * along)
    exact = (modes @ np.exp(1j * x.T @ k).T).real
    found = sums.periodic(NAME, x, x, f, epsilon=epsilon)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12 * np.abs(exact).max())


# Parts


def near_biharmonic(split, s):
    """Return s less its far part, which is zero far away."""
    k, weights = blobs.interval(200, split.kmax)
    rest = weights @ ((1 - split.phi_stokes(k)) / k**2) + 1 / split.kmax
    waves = np.sinc(np.outer(s, k) / np.pi) - 1
    return s - 4 / np.pi * (rest - waves @ (weights * split.phi_stokes(k) / k**2))


@pytest.mark.parametrize("name", SPLITS)
@pytest.mark.parametrize("epsilon", [1e-3, 0.05, 0.2, 0.35])
def test_the_profile_is_the_kernel_less_the_transform_of_its_near_part(name, epsilon):
    split = SPLITS[name]
    nodes, weights = roots_legendre(200)
    half = 0.5 * np.arcsinh(1.5 * RC / epsilon)
    r, s = epsilon * np.sinh(half * (nodes + 1)), epsilon * np.cosh(half * (nodes + 1))
    k = np.geomspace(0.01, 0.999, 40) * split.kmax
    near = np.sinc(np.outer(k, r) / np.pi) @ (4 * np.pi * half * weights * s * r**2 * near_biharmonic(split, s))
    exact = own(k, epsilon) + k**4 / (8 * np.pi) * near
    np.testing.assert_allclose(profiles.phi_softened(split, k, epsilon), exact, rtol=0, atol=2e-7)


@pytest.mark.parametrize("epsilon", [0.45, 0.59, 0.61, 3.0])
def test_the_profile_of_wide_blobs_is_the_kernel(epsilon):
    """Up to 0.6 the profile is an integral, and from there on a closed form."""
    split = profiles.Prolate(32.0, 80.0)
    k = np.linspace(0.1, 79.9, 50)
    np.testing.assert_allclose(profiles.phi_softened(split, k, epsilon), own(k, epsilon), rtol=0, atol=1e-11)


def test_far_parts_of_wide_blobs_are_the_kernel():
    """Beyond the cutoff far parts are the kernel to the tail of the split, in closed form where they are far beyond."""
    split, r = profiles.Prolate(30.0, 75.0), np.linspace(0.0, RC, 9)
    for epsilon in (0.45, 0.59, 0.61, 1e6):
        s = np.hypot(r, epsilon)
        for part, exact in ((far_parts.D_SOFTENED, 2 / s), (far_parts.E_SOFTENED, -1 / s**3)):
            np.testing.assert_allclose(far_parts.values(part, split, r, epsilon), exact, rtol=1e-8)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.38, 2.0])
def test_near_fields_have_no_mean(epsilon):
    for split in SPLITS.values():
        assert abs(means.near_softened(split, RC, epsilon)) < 1e-6


@pytest.mark.parametrize("periodicity", range(3))
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.5])
def test_cut_fields_are_the_far_field_up_to_the_cut(periodicity, epsilon):
    """Compare the transform's inverse to the closed forms of a Gaussian split: those of lines and planes of `sums`."""
    split, box, radius = SPLITS["gaussian"], (1.0, 1.0, 1.0), 1.4
    field = SoftenedField(split, 0.5, epsilon, periodicity, radius)
    k, weights = blobs.interval(300, split.kmax)
    r = np.linspace(0.0, radius - 0.5, 30)
    found = blobs.from_modes(r, k, weights * field.modes(k**2, 1.0, 1.0), periodicity) + field.shift
    exact = blobs.far_laplacian(blobs, r, split.xi, box, periodicity, epsilon)
    np.testing.assert_allclose(found, exact, rtol=0, atol=2e-8 * np.abs(exact).max())


def test_the_series_of_the_profile():
    """Compare the series in the root of k, of which the singular k⁴ ln k is smooth, to the profile itself."""
    for epsilon in (0.01, 0.3):
        p = choose.parameters(Question(find(NAME, epsilon=epsilon), BOX, 50, 50, 1e-12))
        k = np.linspace(0, p.kmax, 500)
        split = profiles.profile(p.split, p.c, p.rc, p.xi)
        exact = profiles.phi_softened(split, k, p.kernel.parameter())
        np.testing.assert_allclose(green.factor(p, k**2), exact, rtol=0, atol=3e-14)


# Sums


@pytest.mark.parametrize(
    ("split", "epsilon"), every(3, itertools.product(profiles.SPLITS, [1e-4, 0.03, 0.2, 1.0, 30.0]))
)
def test_blobs_of_any_width_in_free_space(split, epsilon, rng):
    x, f = rng.random((3, 100)), rng.standard_normal((3, 100))
    f -= f.mean(axis=1, keepdims=True) * (epsilon < 1)
    exact = parki.direct.direct_sum(NAME, x, x, f, epsilon=epsilon)
    found = parki.ewald.regularised_stokeslet(x, x, f, epsilon, periodicity=0, tolerance=1e-9, split=split)
    assert np.linalg.norm(found - exact) <= 1e-9 * np.linalg.norm(exact)


@pytest.mark.parametrize(
    ("epsilon", "periodicity"), every(2, [(0.45, 1), (0.02, 1), (0.02, 2), (0.45, 2), (0.45, 3), (0.02, 3)])
)
def test_blobs_in_boxes(epsilon, periodicity, rng):
    """The widest blobs that are taken, too; a unit of length of 2^-40 changes nothing but the unit."""
    x, f, unit = np.array(BOX)[:, None] * rng.random((3, 60)), rng.standard_normal((3, 60)), 2.0**-40
    exact = sums.periodic(NAME, x, x, f, None, BOX, periodicity, epsilon=epsilon)
    if periodicity == 1:  # the flow of a line depends on the unit by a constant
        f -= f.mean(axis=1, keepdims=True)
        exact = sums.periodic(NAME, x, x, f, None, BOX, periodicity, epsilon=epsilon)
    box = tuple(unit * side for side in BOX)
    options = {"box": box, "periodicity": periodicity, "tolerance": 1e-10}
    found = parki.ewald.regularised_stokeslet(unit * x, unit * x, f, unit * epsilon, **options) * unit
    assert np.linalg.norm(found - exact) <= 1e-10 * np.linalg.norm(exact)


def test_a_line_of_forces_has_its_logarithm_in_the_unit_of_the_caller(rng):
    x, f = np.array(BOX)[:, None] * rng.random((3, 40)), rng.random((3, 40))
    for unit in (1.0, 8.0):
        box = tuple(unit * side for side in BOX)
        exact = sums.periodic(NAME, unit * x, unit * x, f, None, box, 1, epsilon=0.1 * unit)
        found = parki.ewald.regularised_stokeslet(
            unit * x, unit * x, f, 0.1 * unit, box=box, periodicity=1, tolerance=1e-9
        )
        assert np.linalg.norm(found - exact) <= 1e-9 * np.linalg.norm(exact)


@pytest.mark.parametrize("periodicity", [0, 3])
def test_mobilities_are_symmetric_and_positive(periodicity, rng):
    n = 60
    x = np.array(BOX)[:, None] * rng.random((3, n))
    plan = parki.ewald.plan(NAME, x, x, epsilon=0.05, box=BOX, periodicity=periodicity, tolerance=1e-6)
    mobility = matrix(plan)
    assert np.abs(mobility - mobility.T).max() <= 1e-6 * np.abs(mobility).max()
    assert np.linalg.eigvalsh(0.5 * (mobility + mobility.T))[0] > 0


def test_square_roots(rng):
    x, z = rng.random((3, 80)), rng.standard_normal((3, 80))
    plan = parki.ewald.plan(NAME, x, x, epsilon=0.03, box=(1, 1, 1), tolerance=1e-8)
    root = plan.sqrt(z, tolerance=1e-7)
    exact = plan(z)
    assert np.linalg.norm(plan.sqrt(root, tolerance=1e-7) - exact) < 1e-6 * np.linalg.norm(exact)


def test_refusals(rng):
    x, f = rng.random((3, 10)), rng.standard_normal((3, 10))
    with pytest.raises(ValueError, match=r"epsilon is 0.6; expected at most 0.5, half of the shortest periodic side"):
        parki.ewald.regularised_stokeslet(x, x, f, 0.6, box=(1, 2, 2), periodicity=1)
    with pytest.raises(ValueError, match="epsilon is missing; regularised_stokeslet expects a positive number"):
        parki.ewald.plan(NAME, x, x, box=(1, 1, 1))
    with pytest.raises(ValueError, match="epsilon was given, but laplace takes no parameters"):
        parki.ewald.plan("laplace", x, x, box=(1, 1, 1), epsilon=0.1)
    assert find(NAME, epsilon=0.1).far == KERNELS[NAME].far
