"""The sampled error is the error."""

import numpy as np
import pytest

import parki
from parki.ewald.check import sampled_error
from parki.ewald.options import EwaldOptions


@pytest.fixture
def sums(rng):
    """A result with its arguments, at a tolerance far above that of the check."""
    x = rng.random((3, 300))
    dens, normals = rng.standard_normal((6, 300)), rng.standard_normal((3, 300))
    options = EwaldOptions(box=[1.0, 1.0, 1.0], tolerance=1e-4)
    return x, dens, normals, parki.ewald.stokes_comb(x, x, dens, normals, options), options


def test_a_right_result_is_within_its_tolerance(sums):
    x, dens, normals, u, options = sums
    assert 0 < sampled_error("stokes_comb", x, x, dens, normals, u, options) < options.tolerance


CELL = np.array([[1.0, 0.2, 0.0], [0.0, 1.1, 0.3], [0.1, 0.0, 0.9]])
GEOMETRIES = [
    {"box": [1.0, 1.2, 0.9], "periodicity": 0},
    {"box": None, "periodicity": 0},
    {"box": [1.0, 1.2, 0.9], "periodicity": 1},
    {"box": [1.0, 1.2, 0.9], "periodicity": (False, True, True)},
    {"box": CELL.tolist(), "periodicity": 3},
]


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_every_periodicity(geometry, rng):
    options = EwaldOptions(**geometry, tolerance=1e-4)
    src = rng.random((3, 150)) * (0.9 if geometry["box"] is not None else 0.01)
    trg, dens = src[:, ::2], rng.standard_normal((3, 150))
    u = parki.ewald.stokes_sl(trg, src, dens, options)
    assert 0 < sampled_error("stokes_sl", trg, src, dens, None, u, options) < options.tolerance
    found = sampled_error("stokes_sl", trg, src, dens, None, 1.1 * u, options)
    assert found == pytest.approx(0.1, rel=1e-2)


def test_a_kernel_with_a_parameter(rng):
    x, dens = rng.random((3, 100)), rng.standard_normal(100)
    for periodicity in (0, 3):
        options = EwaldOptions(box=[1.0, 1.0, 1.0], periodicity=periodicity, tolerance=1e-4)
        u = parki.ewald.plan("yukawa", x, x, options, kappa=3.0)(dens)
        assert 0 < sampled_error("yukawa", x, x, dens, None, u, options, kappa=3.0) < 1e-4
        assert sampled_error("yukawa", x, x, dens, None, u, options, kappa=4.0) > 1e-2


@pytest.mark.parametrize("size", [1e-3, 1e-1])
def test_an_error_put_in_is_found(sums, size, rng):
    x, dens, normals, u, options = sums
    noise = rng.standard_normal(u.shape)
    wrong = u + size * noise * np.sqrt(np.mean(u**2))
    found = sampled_error("stokes_comb", x, x, dens, normals, wrong, options, n=300)
    assert 0.8 * size < found < 1.2 * size


def test_layout_and_dtype_do_not_matter(sums):
    x, dens, normals, u, options = sums
    turned = EwaldOptions(box=[1.0, 1.0, 1.0], tolerance=1e-4, layout="nd")
    plain = sampled_error("stokes_comb", x, x, dens, normals, u, options)
    assert sampled_error("stokes_comb", x.T, x.T, dens.T, normals.T, u.T, turned) == pytest.approx(plain)
    single = [array.astype(np.float32) for array in (x, dens, normals)]
    coarse = parki.ewald.stokes_comb(single[0], *single, options)
    assert 0 < sampled_error("stokes_comb", single[0], *single, coarse, options) < options.tolerance


def test_the_second_sum_has_another_radius(sums, monkeypatch):
    x, dens, normals, u, options = sums
    radii = []
    plan = parki.ewald.api.plan
    monkeypatch.setattr(parki.ewald.api, "plan", lambda *given: radii.append(given[-1]) or plan(*given))
    for rc in (None, 0.1, 0.3, 0.4, 0.45, 0.5):
        sampled_error("stokes_comb", x, x, dens, normals, u, options, rc=rc)
        assert rc is None or abs(radii[-1].rc / rc - 1) >= 0.19
        assert radii[-1].split != options.split
        assert radii[-1].tolerance == pytest.approx(options.tolerance / 100)


def test_a_sum_of_nothing_has_no_error(sums):
    x, dens, normals, u, options = sums
    with pytest.raises(ValueError, match="trg has no points"):
        sampled_error("stokes_comb", x[:, :0], x, dens, normals, u[:, :0], options)
    with pytest.raises(ValueError, match="zero at all sampled targets"):
        sampled_error("stokes_comb", x, x, 0 * dens, normals, 0 * u, options)
