"""Linear forms of pairs: sources as charges that treecodes and FMM take, against the pairs themselves."""

import numpy as np
import pytest

from parki.direct import direct_sum
from parki.ewald import kernels
from parki.pairs import PAIRS


def error(u, expected):
    return np.linalg.norm(u - expected) / np.linalg.norm(expected)


@pytest.mark.parametrize("name", ["stokes_dl", "stokes_comb", "stokes_dipole"])
def test_charges_of_flows(name, rng):
    pair = PAIRS[name]
    linear, charges = pair.linear()
    x, y, dens, n = (rng.standard_normal((c, 90)) for c in (3, 3, pair.dens, 3))
    x[:, :30] = y[:, :30]
    given = (dens, n) if pair.normals else (dens,)
    kept = [array.copy() for array in given]
    carried = charges(*given)
    assert (linear.normals, linear.dens, linear.result) == (False, len(carried), 3)
    assert error(direct_sum(linear, x, y, carried), direct_sum(name, x, y, *given)) < 1e-14
    assert charges(*(array.astype(np.float32) for array in given)).dtype == np.float32
    for array, before in zip(given, kept, strict=True):
        np.testing.assert_array_equal(array, before)
    assert linear.linear()[0] is linear
    assert kernels.KERNELS[name].linear()[0] == linear


@pytest.mark.parametrize("name", ["stokes_dl", "stokes_comb"])
def test_tensors_in_the_place_of_normals(name, rng):
    pair = PAIRS[name]
    _, charges = pair.linear()
    dens, n = rng.standard_normal((pair.dens, 90)), rng.standard_normal((3, 90))
    carried = charges(dens, n)
    assert carried.shape == (pair.dens + 3, 90)
    assert error(charges(dens, 2 * n)[-6:], 2 * carried[-6:]) < 1e-15
    with pytest.raises(ValueError, match=r"normals is missing; expected \(3, N\)"):
        charges(dens, None)


def test_the_charges_of_a_dipole():
    """Check a unit dipole f = x, d = y, and one along x: a torque −z and −(xy + yx)/4; I/6 − xx/2."""
    _, charges = PAIRS["stokes_dipole"].linear()
    across, along = charges(np.eye(9)[:, :2][:, ::-1]).T
    np.testing.assert_allclose(across, [0, 0, -1, 0, -0.25, 0, 0, 0, 0], atol=1e-16)
    np.testing.assert_allclose(along, [0, 0, 0, -1 / 3, 0, 0, 1 / 6, 0, 1 / 6], atol=1e-16)


def test_other_kernels_are_linear():
    for name, pair in PAIRS.items():
        if not pair.normals and name != "stokes_dipole":
            same, charges = pair.linear()
            assert same is pair, name
    np.testing.assert_array_equal(charges(np.arange(3.0), None), [[0, 1, 2]])
    np.testing.assert_array_equal(charges(np.ones((3, 4))), np.ones((3, 4)))
