"""Two opposite forces that approach each other, against a double layer, a torque and no source."""

import numpy as np
import pytest

import parki
from tests.quick import but

BOX = (1.0, 1.2, 0.9)
PLACE = np.array([[0.5], [0.6], [0.45]])
FORCE, ARM = np.array([1.0, 2.0, -0.5]), np.array([0.3, -0.4, 1.2])
PERIODICITIES = but(0, 1, of=range(4))


@pytest.fixture
def sums(rng, request):
    """Return targets (3, 6) around a place, and the options of sums with 0 to 3 periodic directions."""
    directions = rng.standard_normal((3, 6))
    at = PLACE + directions / np.linalg.norm(directions, axis=0) * rng.uniform(0.25, 0.4, 6)
    return at, {"box": BOX, "periodicity": request.param, "tolerance": 1e-12}


def source(at, strength, options):
    """Return the flow of a source, strength r/r³, with the background of `laplace_grad`."""
    return -parki.ewald.laplace_grad(at, PLACE, np.array([strength]), **options)


def dipole(at, tensor, options):
    """Return the flow of a symmetric tensor without a trace: half its columns as q, with unit normals, turned round."""
    return parki.ewald.stokes_dl(at, np.tile(PLACE, 3), -0.5 * tensor, np.eye(3), **options)


def couple(at, size, options):
    """Return the flow of forces ±f/size at ±size d/2."""
    x, f = PLACE + np.outer(size * ARM / 2, [1, -1]), np.outer(FORCE / size, [1, -1])
    return parki.ewald.stokes_sl(at, x, f, **options)


@pytest.mark.parametrize("sums", PERIODICITIES, indirect=True)
def test_opposite_forces_tend_to_a_dipole_and_a_torque(sums):
    """Compare sums of second order in the distance, their ratio, and their limit by extrapolation."""
    at, options = sums
    tensor = (np.outer(FORCE, ARM) + np.outer(ARM, FORCE)) / 2 - FORCE @ ARM / 3 * np.eye(3)
    torque = parki.ewald.rotlet(at, PLACE, np.cross(ARM, FORCE)[:, None], **options)
    limit = dipole(at, tensor, options) + torque
    far, close = (couple(at, size, options) for size in (0.01, 0.005))
    assert np.linalg.norm(far - limit) == pytest.approx(4 * np.linalg.norm(close - limit), rel=0.01)
    assert np.linalg.norm((4 * close - far) / 3 - limit) < 1e-6 * np.linalg.norm(limit)


@pytest.mark.parametrize("sums", PERIODICITIES, indirect=True)
def test_one_double_layer_has_a_source_that_forces_do_not_have(sums):
    """Take q = −f/2 and n = d, whose trace −f·d/2 is the source (f·d) r/r³."""
    at, options = sums
    single = parki.ewald.stokes_dl(at, PLACE, -0.5 * FORCE[:, None], ARM[:, None], **options)
    tensor = (np.outer(FORCE, ARM) + np.outer(ARM, FORCE)) / 2 - FORCE @ ARM / 3 * np.eye(3)
    np.testing.assert_allclose(single, dipole(at, tensor, options) + source(at, FORCE @ ARM, options), atol=1e-9)


@pytest.mark.parametrize("sums", PERIODICITIES, indirect=True)
def test_the_trace_is_a_source(sums):
    at, options = sums
    np.testing.assert_allclose(dipole(at, np.eye(3), options), source(at, 3.0, options), atol=1e-9)


@pytest.mark.parametrize("sums", PERIODICITIES, indirect=True)
def test_the_kernel_of_dipoles(sums):
    at, options = sums
    found = parki.ewald.stokes_dipole(at, PLACE, np.outer(FORCE, ARM).reshape(9, 1), **options)
    far, close = (couple(at, size, options) for size in (0.01, 0.005))
    assert np.linalg.norm((4 * close - far) / 3 - found) < 1e-6 * np.linalg.norm(found)
    tensor = (np.outer(FORCE, ARM) + np.outer(ARM, FORCE)) / 2 - FORCE @ ARM / 3 * np.eye(3)
    torque = parki.ewald.rotlet(at, PLACE, np.cross(ARM, FORCE)[:, None], **options)
    np.testing.assert_allclose(found, dipole(at, tensor, options) + torque, atol=1e-9)
