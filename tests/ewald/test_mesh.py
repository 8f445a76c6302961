"""Grid in memory: distances of rows and planes."""

import numpy as np
import pytest

import parki
from parki.ewald.stages import mesh


def full(rows, length, P, itemsize):
    """Return the share of cache lines of the P x P rows of a window that find their set of the cache full."""
    first = [(x * rows + y) * length * itemsize // 64 for x in range(P) for y in range(P)]
    lines = np.array([line + k for line in first for k in range(P * itemsize // 64 + 2)])
    return np.maximum(np.bincount(lines % 64, minlength=64) - 8, 0).sum() / len(lines)


@pytest.mark.parametrize("itemsize", [4, 8])
@pytest.mark.parametrize("P", [5, 9, 12])
@pytest.mark.parametrize(("rows", "length"), [(513, 514), (512, 512), (1024, 1030), (256, 256), (129, 260), (62, 62)])
def test_rows_of_a_window_do_not_crowd_in_the_cache(rows, length, P, itemsize):
    planes, row = found = mesh.spread_out(rows, length, P, itemsize)
    assert (planes >= rows, row >= length, (row - length) % 2) == (True, True, 0)
    assert planes * row <= 1.15 * rows * length
    assert full(*found, P, itemsize) <= 0.1
    if full(rows, length, P, itemsize) <= 0.1:
        assert found == (rows, length)


def test_some_would_crowd():
    assert full(513, 514, 9, 8) > 0.6
    assert full(512, 512, 12, 8) > 0.6


@pytest.mark.parametrize("periodicity", [0, 1, 3])
@pytest.mark.parametrize("kernel", ["laplace", "stokes_sl"])
def test_padding_changes_nothing(kernel, periodicity, monkeypatch, rng):
    x = rng.random((3, 200))
    dens = rng.standard_normal((3, 200) if kernel == "stokes_sl" else 200)
    options = {"box": (1, 1, 1), "periodicity": periodicity, "tolerance": 1e-5, "rc": 0.4}
    expected = parki.ewald.plan(kernel, x, x, **options)(dens)
    monkeypatch.setattr(mesh, "spread_out", lambda rows, length, P, itemsize: (rows + 3, length + 6))
    plan = parki.ewald.plan(kernel, x, x, **options)
    np.testing.assert_array_equal(plan(dens), expected)
    grid = plan.sums[1].sum.far.grid
    strides = plan.sums[1].placed[grid].strides
    assert strides[1] > grid.shape[2] * strides[2]
