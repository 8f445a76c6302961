"""Mobilities of spheres in boxes: symmetric and positive, sedimenting lattices, and the near field of their split."""

import itertools

import numpy as np
import pytest

import parki
from parki.ewald.kernels import KERNELS, find
from parki.ewald.split import far_parts, profiles
from tests.ewald import sums
from tests.mobilities import matrix
from tests.quick import every

BOX = (1.0, 1.2, 0.9)


@pytest.mark.parametrize("periodicity", range(4))
def test_mobilities_are_symmetric_and_positive(periodicity, rng):
    """Spheres overlap, and some touch; with one or two periodic directions only forces without a sum have no mode."""
    n, a = 80, 0.07
    x = np.array(BOX)[:, None] * rng.random((3, n))
    turns = rng.standard_normal((3, n // 4))
    x[:, : n // 4] = x[:, n // 4 : n // 2] + 2 * a * turns / np.linalg.norm(turns, axis=0)
    free = np.array([axis >= periodicity for axis in range(3)])[:, None]
    x = np.where(free, np.clip(x, 0, np.array(BOX)[:, None]), x)
    plan = parki.ewald.plan("rpy", x, x, radius=a, box=BOX, periodicity=periodicity, tolerance=1e-6)
    mobility = matrix(plan)
    assert np.abs(mobility - mobility.T).max() <= 1e-6 * np.abs(mobility).max()
    if periodicity in (1, 2):
        across = np.eye(3 * n) - np.kron(np.eye(3), np.full((n, n), 1 / n))
        mobility = across @ mobility @ across
    values = np.linalg.eigvalsh(0.5 * (mobility + mobility.T))
    assert values[0 if periodicity in (0, 3) else 3] > 0
    assert values[0] > -1e-6 * values[-1]


@pytest.mark.parametrize("periodicity", every(2, [3, 0]))
def test_mobilities_with_rotation_are_symmetric_and_positive(periodicity, rng):
    n, a = 40, 0.1
    x = np.array(BOX)[:, None] * rng.random((3, n))
    plan = parki.ewald.plan("rpy_rotation", x, x, radius=a, box=BOX, periodicity=periodicity, tolerance=1e-6)
    mobility = matrix(plan)
    assert np.abs(mobility - mobility.T).max() <= 1e-6 * np.abs(mobility).max()
    assert np.linalg.eigvalsh(0.5 * (mobility + mobility.T))[0] > 0


def test_rotations_have_an_error_of_their_own(rng):
    """Leave out pairs of a sum, whose size is measured by rows of one unit, as its error is."""
    x, loads = rng.random((3, 80)), rng.standard_normal((6, 80))
    pairs = np.array([[0, 2, 4], [1, 3, 5]])
    options = {"radius": 0.04, "exclude": pairs}
    plan = parki.ewald.plan("rpy_rotation", x, x, periodicity=0, tolerance=1e-5, **options)
    exact = parki.direct.plan("rpy_rotation", x, x, **options)(loads)
    off = plan(loads) - exact
    errors = [np.linalg.norm(off[c]) / np.linalg.norm(exact[c]) for c in (slice(3), slice(3, 6))]
    assert max(errors) < 1e-5
    assert plan.error(80).value == pytest.approx(max(errors), rel=1e-6)


@pytest.mark.parametrize("phi", every(4, [0.1, 1e-4, 1e-2, 0.4]))
def test_a_simple_cubic_lattice_sediments_by_the_series_of_hasimoto(phi):
    """The series of the tensor ends with φ: sums of its images are those of point forces and of their Laplacian."""
    a = (3 * phi / (4 * np.pi)) ** (1 / 3)
    x, f = np.full((3, 1), 0.3), np.array([[0.0], [1.0], [0.0]])
    found = parki.ewald.rpy(x, x, f, a, box=(1, 1, 1), tolerance=1e-9)[1, 0] * 0.75 * a
    assert found == pytest.approx(1 - 2.8372974794806 * a + phi, rel=1e-8)


def test_the_flow_of_torques_is_the_curl_of_potentials(rng):
    x, t = rng.random((3, 30)), rng.standard_normal((3, 30))
    slopes = np.array([sums.periodic("laplace_grad", x, x, row) for row in t])  # of t_k, along j
    curl = np.array([slopes[2, 1] - slopes[1, 2], slopes[0, 2] - slopes[2, 0], slopes[1, 0] - slopes[0, 1]])
    found = parki.ewald.rotlet(x, x, t, box=(1, 1, 1), tolerance=1e-9)
    assert np.linalg.norm(found - curl) <= 1e-9 * np.linalg.norm(curl)


def tail(split, radius, rc):
    """Return the RMS of the near field of spheres from rc to 2 rc, over that of points."""
    nodes, weights = np.polynomial.legendre.leggauss(80)
    r, weights = rc * (1.5 + 0.5 * nodes), weights * (1.5 + 0.5 * nodes) ** 2
    sizes = []
    for a, parts in ((0.0, KERNELS["stokes_sl"].far), (radius, KERNELS["rpy"].far)):
        d, e = (far_parts.values(part, split, r, a) for part in parts)
        along = 1 / r + 2 / 3 * a**2 / r**3 - d - r**2 * e
        both = along + r**2 * (1 / r**3 - 2 * a**2 / r**5 + e)
        sizes.append(np.sqrt(weights @ (2 * along**2 + both**2)))
    return sizes[1] / sizes[0]


@pytest.mark.parametrize("c", [8.0, 12.0, 18.0, 26.0, 34.0])
@pytest.mark.parametrize("ratio", [0.01, 0.05, 0.15, 0.4])
def test_near_fields_grow_with_the_radius_as_predicted(c, ratio):
    for name, split, xi in (("prolate", profiles.Prolate(c, c), 0.0),
                            ("gaussian", profiles.Gaussian(np.sqrt(c / 2), 4 * c), np.sqrt(c / 2))):  # fmt: skip
        kernel = find("rpy", radius=ratio)
        predicted = float(kernel.growth(-(profiles.rate(name, c, 1.0, xi) ** 2)))
        assert 0.85 * tail(split, ratio, 1.0) <= predicted <= 4 * tail(split, ratio, 1.0)


def test_refusals(rng):
    x, f = rng.random((3, 10)), rng.standard_normal((3, 10))
    with pytest.raises(ValueError, match=r"radius is 0.6; expected at most 0.5, for the periodic sides"):
        parki.ewald.rpy(x, x, f, 0.6, box=(1, 1, 1))
    with pytest.raises(ValueError, match=r"rc is 0.15; expected at least 0.2, for near pairs of rpy"):
        parki.ewald.rpy(x, x, f, 0.1, box=(1, 1, 1), rc=0.15)
    with pytest.raises(ValueError, match="radius is missing; rpy expects a positive number"):
        parki.ewald.plan("rpy", x, x, box=(1, 1, 1))
    with pytest.raises(ValueError, match="radius was given, but laplace takes no parameters"):
        parki.ewald.plan("laplace", x, x, box=(1, 1, 1), radius=0.1)


FLAGS = list(itertools.product((False, True), repeat=3))
BOXES = {"sides": (30, 30, 30), "left-handed cell": 30.0 * np.eye(3)[[1, 0, 2]]}


@pytest.mark.parametrize(("box", "flags"), [(b, f) for b in BOXES for f in FLAGS if b == "sides" or any(f)])
def test_curls_keep_their_sign_for_any_order_of_the_axes(box, flags, rng):
    """Compare a small cluster in a large box with the sum in free space, whose difference is of images."""
    x, t = 2 + rng.random((3, 30)), rng.standard_normal((3, 30))
    t -= t.mean(axis=1, keepdims=True)
    u = parki.ewald.rotlet(x, x, t, box=BOXES[box], periodicity=flags, tolerance=1e-4)
    free = parki.direct.direct_sum("rotlet", x, x, t)
    assert np.linalg.norm(u - free) < 0.02 * np.linalg.norm(free)
