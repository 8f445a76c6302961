"""Ewald sums of the regularised source dipole: its profile, cuts in free directions, means, and sums for any width."""

import itertools

import numpy as np
import pytest
from scipy.special import k1, roots_legendre

import parki
from parki.ewald.choice import choose
from parki.ewald.choice.question import Question
from parki.ewald.kernels import find
from parki.ewald.split import far_parts, means, profiles
from parki.ewald.split.softened_dipole import SoftenedDipoleField
from parki.ewald.stages import green
from tests.ewald import blob_dipoles, blobs, sums
from tests.mobilities import matrix
from tests.quick import every

BOX = (1.0, 1.2, 0.9)
NAME = "regularised_dipole"
SPLITS = {"prolate": profiles.Prolate(20.0, 50.0), "gaussian": profiles.Gaussian(12.0, 120.0)}
RC = 0.4


def own(k, epsilon):
    """Return the kernel's transform over that of a point dipole."""
    return epsilon * k * k1(epsilon * k)


# The reference


@pytest.mark.parametrize("periodicity", [1, 2, 3])
def test_exact_sums_do_not_depend_on_the_split(periodicity, rng):
    x, d = rng.random((3, 10)), rng.standard_normal((3, 10))
    given = {"box": BOX, "periodicity": periodicity, "skew": (0.2, 0.1, -0.1) if periodicity == 3 else (0.0,) * 3}
    found = [sums.periodic(NAME, x, x, d, xi=xi, epsilon=0.15, **given) for xi in (4.5, 6.0)]
    np.testing.assert_allclose(*found, rtol=0, atol=1e-12 * np.abs(found[0]).max())


@pytest.mark.parametrize("periodicity", range(4))
def test_exact_sums_of_narrow_blobs_are_the_curvature_of_the_laplace_kernel(periodicity, rng):
    """With three periodic directions, ∇² of the potential of a source and its background is 4π/V apart from sources."""
    x, y, d = rng.random((3, 6)), rng.random((3, 10)), rng.standard_normal((3, 10))
    given = {"box": BOX, "periodicity": periodicity}
    found = sums.periodic(NAME, x, y, d, epsilon=1e-5, **given)
    exact = sums.periodic("curvature", x, y, d, **given)
    if periodicity == 3:
        exact -= 4 * np.pi / np.prod(BOX) * d.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, exact, rtol=0, atol=3e-8 * np.abs(exact).max())


def test_exact_sums_of_wide_blobs_are_those_of_their_modes(rng):
    x, d, epsilon = rng.random((3, 6)), rng.standard_normal((3, 6)), 0.35
    k = 2 * np.pi * (np.indices((41,) * 3).reshape(3, -1) - 20.0)
    k = k[:, np.any(k != 0, axis=0)]
    length = np.linalg.norm(k, axis=0)
    along = np.sum(k * (d @ np.exp(-1j * x.T @ k)), axis=0) / length**2
    modes = 4 * np.pi * own(length, epsilon) * (d @ np.exp(-1j * x.T @ k) - k * along)
    exact = (modes @ np.exp(1j * x.T @ k).T).real
    found = sums.periodic(NAME, x, x, d, epsilon=epsilon)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12 * np.abs(exact).max())


# Parts


def near_harmonic(split, s):
    """Return 1/s less its far part."""
    k, weights = blobs.interval(200, split.kmax)
    return 1 / s - 2 / np.pi * np.sinc(np.outer(s, k) / np.pi) @ (weights * split.phi(k))


@pytest.mark.parametrize("name", SPLITS)
@pytest.mark.parametrize("epsilon", [1e-3, 0.05, 0.2, 0.35])
def test_the_profile_is_the_kernel_less_the_transform_of_its_near_part(name, epsilon):
    split = SPLITS[name]
    nodes, weights = roots_legendre(400)
    half = 0.5 * np.arcsinh(1.5 * RC / epsilon)
    r, s = epsilon * np.sinh(half * (nodes + 1)), epsilon * np.cosh(half * (nodes + 1))
    k = np.geomspace(0.01, 0.999, 40) * split.kmax
    near = np.sinc(np.outer(k, r) / np.pi) @ (4 * np.pi * half * weights * s * r**2 * near_harmonic(split, s))
    exact = own(k, epsilon) - k**2 / (4 * np.pi) * near
    np.testing.assert_allclose(profiles.phi_softened_dipole(split, k, epsilon), exact, rtol=0, atol=5e-6)


@pytest.mark.parametrize("epsilon", [0.45, 0.59, 0.61, 3.0])
def test_the_profile_of_wide_blobs_is_the_kernel(epsilon):
    """Up to 0.6 the profile is an integral, and from there on a closed form."""
    split = profiles.Prolate(32.0, 80.0)
    k = np.linspace(0.1, 79.9, 50)
    np.testing.assert_allclose(profiles.phi_softened_dipole(split, k, epsilon), own(k, epsilon), rtol=0, atol=1e-11)


def test_far_parts_of_wide_blobs_are_the_kernel():
    """Beyond the cutoff far parts are the kernel to the tail of the split, in closed form where they are far beyond."""
    split, r = profiles.Prolate(30.0, 75.0), np.linspace(0.0, RC, 9)
    for epsilon in (0.45, 0.59, 0.61, 1e6):
        s = np.hypot(r, epsilon)
        for part, exact in ((far_parts.H_SOFTENED, -0.5 / s**3), (far_parts.K_SOFTENED, 0.75 / s**5)):
            np.testing.assert_allclose(far_parts.values(part, split, r, epsilon), exact, rtol=1e-8)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.38, 2.0])
def test_near_fields_have_no_mean(epsilon):
    for split in SPLITS.values():
        assert abs(means.near_softened_dipole(split, RC, epsilon)) < 2e-5


@pytest.mark.parametrize("periodicity", range(3))
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.5])
def test_cut_fields_are_the_far_field_up_to_the_cut(periodicity, epsilon):
    """Compare the transform's inverse to the closed forms of a Gaussian split."""
    split, box, radius = SPLITS["gaussian"], (1.0, 1.0, 1.0), 1.4
    field = SoftenedDipoleField(split, 0.5, epsilon, periodicity, radius)
    k, weights = blobs.interval(300, split.kmax)
    r = np.linspace(0.0, radius - 0.5, 30)
    found = blobs.from_modes(r, k, weights * field.modes(k**2, 1.0, 1.0), periodicity) + field.shift
    exact = blobs.far_laplacian(blob_dipoles, r, split.xi, box, periodicity, epsilon)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-6 * np.abs(exact).max())


def test_the_series_of_the_profile():
    """Compare the series in the root of k, in which k² ln k has a series that ends late, to the profile itself."""
    for epsilon in (0.01, 0.3):
        p = choose.parameters(Question(find(NAME, epsilon=epsilon), BOX, 50, 50, 1e-12))
        k = np.linspace(0, p.kmax, 500)
        split = profiles.profile(p.split, p.c, p.rc, p.xi)
        exact = profiles.phi_softened_dipole(split, k, p.kernel.parameter())
        np.testing.assert_allclose(green.factor(p, k**2), exact, rtol=0, atol=3e-14)


# Sums


def free(x, d, epsilon):
    """Return the sum in free space by the formula."""
    r = x[:, :, None] - x[:, None]
    s2 = np.sum(r**2, axis=0) + epsilon**2
    return d @ (3 * epsilon**2 / s2**2.5 - s2**-1.5).T + 3 * np.einsum("cij,dij,ij,dj->ci", r, r, s2**-2.5, d)


@pytest.mark.parametrize(
    ("split", "epsilon"), every(3, itertools.product(profiles.SPLITS, [1e-4, 0.03, 0.2, 1.0, 30.0]))
)
def test_blobs_of_any_width_in_free_space(split, epsilon, rng):
    x, d = rng.random((3, 100)), rng.standard_normal((3, 100))
    exact = free(x, d, epsilon)
    found = parki.ewald.regularised_dipole(x, x, d, epsilon, periodicity=0, tolerance=1e-9, split=split)
    assert np.linalg.norm(found - exact) <= 1e-9 * np.linalg.norm(exact)


def test_the_flow_of_others_is_accurate_where_blobs_are_narrow(rng):
    x, d, epsilon = rng.random((3, 200)), rng.standard_normal((3, 200)), 1e-3
    exact = free(x, d, epsilon) - 2 * d / epsilon**3
    found = parki.ewald.regularised_dipole(x, x, d, epsilon, periodicity=0, tolerance=1e-6) - 2 * d / epsilon**3
    assert np.linalg.norm(found - exact) <= 1e-6 * np.linalg.norm(exact)


def test_far_parts_beyond_the_cutoff_do_not_overflow(rng):
    """A batch of few targets is as wide as the box, and its list has sources many cutoffs from most of them."""
    x, y, d = (a.astype(np.float32) for a in (rng.random((3, 30)), rng.random((3, 1)), rng.standard_normal((3, 1))))
    options = {"periodicity": 0, "box": (1, 1, 1), "rc": 0.05, "tolerance": 1e-6, "p2p_method": "LIST"}
    found = parki.ewald.regularised_dipole(x, y, d, 0.02, **options)
    exact = parki.direct.direct_sum(NAME, x, y, d, epsilon=0.02)
    assert np.linalg.norm(found - exact) <= 1e-4 * np.linalg.norm(exact)


@pytest.mark.parametrize(
    ("epsilon", "periodicity"), every(2, [(0.45, 1), (0.02, 1), (0.02, 2), (0.45, 2), (0.45, 3), (0.02, 3)])
)
def test_blobs_in_boxes(epsilon, periodicity, rng):
    """The widest blobs that are taken, too; a unit of length of 2^-40 changes nothing but the unit."""
    x, d, unit = np.array(BOX)[:, None] * rng.random((3, 60)), rng.standard_normal((3, 60)), 2.0**-40
    y = np.array(BOX)[:, None] * rng.random((3, 60))
    for targets in (x, y):
        exact = sums.periodic(NAME, targets, x, d, None, BOX, periodicity, epsilon=epsilon)
        options = {"box": tuple(unit * side for side in BOX), "periodicity": periodicity, "tolerance": 1e-10}
        found = parki.ewald.regularised_dipole(unit * targets, unit * x, d, unit * epsilon, **options) * unit**3
        assert np.linalg.norm(found - exact) <= 1e-10 * np.linalg.norm(exact)


@pytest.mark.parametrize("periodicity", [0, 3])
def test_matrices_are_symmetric(periodicity, rng):
    x = np.array(BOX)[:, None] * rng.random((3, 60))
    plan = parki.ewald.plan(NAME, x, x, epsilon=0.1, box=BOX, periodicity=periodicity, tolerance=1e-6)
    tensors = matrix(plan)
    assert np.abs(tensors - tensors.T).max() <= 1e-6 * np.abs(tensors).max()


def test_a_sphere_is_a_force_and_a_dipole(rng):
    """Beyond its surface the flow of a sphere is that of a force and (a²/6)∇² more, a source dipole −a²f/3."""
    x, f, a = np.array([[2.0], [1.0], [0.5]]), rng.standard_normal((3, 1)), 0.3
    at, options = x * 1.4, {"periodicity": 0, "tolerance": 1e-9}
    dipole = parki.ewald.regularised_dipole(at, x, -(a**2) / 3 * f, 1e-4, **options)
    flow = parki.ewald.stokes_sl(at, x, f, **options) + dipole
    r = at - x
    length = np.linalg.norm(r)
    exact = (1 / length + a**2 / (3 * length**3)) * f + (1 / length**3 - a**2 / length**5) * np.sum(r * f) * r
    np.testing.assert_allclose(flow, exact, rtol=1e-6)


def test_refusals(rng):
    x, d = rng.random((3, 10)), rng.standard_normal((3, 10))
    with pytest.raises(ValueError, match=r"epsilon is 0.6; expected at most 0.5, half of the shortest periodic side"):
        parki.ewald.regularised_dipole(x, x, d, 0.6, box=(1, 2, 2), periodicity=1)
    with pytest.raises(ValueError, match="epsilon is missing; regularised_dipole expects a positive number"):
        parki.ewald.plan(NAME, x, x, box=(1, 1, 1))
    assert find(NAME, epsilon=0.1).cubic
