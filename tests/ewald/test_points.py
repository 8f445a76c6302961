"""Awkward points and boxes, against the exact sums."""

import numpy as np
import pytest

import parki
from tests import reference
from tests.catalogue import COMPONENTS

BOX = (1.0, 2.0, 3.0)
TOLERANCE = 1e-9


def strengths_for(kernel, n, rng):
    dens = rng.standard_normal((COMPONENTS[kernel], n) if COMPONENTS[kernel] > 1 else n)
    return (dens, rng.standard_normal((3, n))) if kernel == "stokes_comb" else (dens,)


def total(kernel, trg, src, strengths, **options):
    return getattr(parki.ewald, kernel)(trg, src, *strengths, **({"box": BOX, "tolerance": TOLERANCE} | options))


def ratio(kernel, trg, src, strengths, box=BOX, tolerance=TOLERANCE):
    """Return the error over the tolerance."""
    u = total(kernel, trg, src, strengths, box=box, tolerance=tolerance)
    assert np.isfinite(u).all()
    return reference.relative_rms(u, reference.potential(kernel, trg, src, *strengths, box=box)) / tolerance


def uniform(rng, n, box=BOX):
    return np.array(box)[:, None] * rng.random((3, n))


@pytest.mark.parametrize("kernel", COMPONENTS)
def test_no_targets_and_no_sources(kernel, rng):
    x, strengths = uniform(rng, 5), strengths_for(kernel, 5, rng)
    shape = () if kernel == "laplace" else (3,)
    assert total(kernel, x[:, :0], x, strengths).shape == (*shape, 0)
    nothing = total(kernel, x, x[:, :0], [s[..., :0] for s in strengths])
    assert nothing.shape == (*shape, 5)
    np.testing.assert_array_equal(nothing, 0.0)
    assert total(kernel, x[:, :0], x[:, :0], [s[..., :0] for s in strengths]).shape == (*shape, 0)


@pytest.mark.parametrize("kernel", COMPONENTS)
def test_few_points(kernel, rng):
    for n in (1, 2, 3):
        x, strengths = uniform(rng, n), strengths_for(kernel, n, rng)
        if kernel == "stokes_comb" and n == 1:
            strengths[0][:3] *= 10.0  # the double layer of one particle has no regular part at its own place
        assert ratio(kernel, x, x, strengths) <= 1
        assert ratio(kernel, uniform(rng, 4 - n), x, strengths) <= 1


@pytest.mark.parametrize("kernel", COMPONENTS)
def test_targets_equal_to_sources(kernel, rng):
    """Coincident pairs are skipped for the same array, for a copy, and for some of its points."""
    x, strengths = uniform(rng, 60), strengths_for(kernel, 60, rng)
    u = total(kernel, x, x, strengths)
    assert reference.relative_rms(u, reference.potential(kernel, x, x, *strengths, box=BOX)) <= TOLERANCE
    np.testing.assert_array_equal(total(kernel, x.copy(), x, strengths), u)
    some = total(kernel, x[:, 7:47], x, strengths)
    assert reference.relative_rms(some, u[..., 7:47]) <= 2 * TOLERANCE


@pytest.mark.parametrize("kernel", COMPONENTS)
def test_repeated_points(kernel, rng):
    """Sources on one another, and targets on them, skip only the pairs at zero distance."""
    base = uniform(rng, 40)
    src = np.concatenate([base, base[:, :15], base[:, :5]], axis=1)
    trg = np.concatenate([base[:, 3:20], uniform(rng, 23), base[:, 3:5]], axis=1)
    strengths = strengths_for(kernel, 60, rng)
    assert ratio(kernel, trg, src, strengths) <= 1
    assert ratio(kernel, src, src, strengths) <= 1
    u = total(kernel, src, src, strengths)
    np.testing.assert_allclose(u[..., 40:55], u[..., :15], rtol=0, atol=1e-13 * np.abs(u).max())
    # Kernels that are linear in the strengths: one source in place of several at the same point.
    if kernel != "stokes_comb":
        merged = strengths[0][..., :40].copy()
        merged[..., :15] += strengths[0][..., 40:55]
        merged[..., :5] += strengths[0][..., 55:]
        one = total(kernel, base, base, (merged,))
        assert reference.relative_rms(one, u[..., :40]) <= 2 * TOLERANCE


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", COMPONENTS)
def test_faces(kernel, dtype, rng):
    """Points on an upper face equal points on the lower one: the sum is the same, and coincident pairs are skipped."""
    sides = np.array(BOX, dtype)
    low = uniform(rng, 60).astype(dtype)
    for d in range(3):
        low[d, 10 * d : 10 * d + 10] = 0
    low[:, 0] = 0
    high = low.copy()
    for d in range(3):
        chosen = np.flatnonzero(low[d] == 0)[:: d + 1]
        high[d, chosen] = sides[d]
    assert (high == sides[:, None]).sum() > 10
    strengths = [s.astype(dtype) for s in strengths_for(kernel, 60, rng)]
    tolerance = TOLERANCE if dtype == np.float64 else 1e-3
    u = total(kernel, low, low, strengths, tolerance=tolerance)
    for trg, src in ((high, high), (high, low), (low, high)):
        np.testing.assert_array_equal(total(kernel, trg, src, strengths, tolerance=tolerance), u)


def clusters(rng, size, n, where):
    """Return `n` points of a Gaussian cluster of this size, wrapped into the box."""
    return parki.utils.wrap(np.array(where)[:, None] + size * rng.standard_normal((3, n)), BOX)


@pytest.mark.parametrize("size", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("kernel", COMPONENTS)
def test_clusters(kernel, size, rng):
    strengths = strengths_for(kernel, 60, rng)
    inside, across = (clusters(rng, size, 60, where) for where in ((0.4, 1.1, 2.7), (0.0, 1.1, 3.0)))
    assert ratio(kernel, inside, inside, strengths) <= 1
    assert ratio(kernel, across, across, strengths) <= 1
    assert ratio(kernel, uniform(rng, 60), inside, strengths) <= 1


@pytest.mark.parametrize("kernel", COMPONENTS)
def test_several_clusters(kernel, rng):
    x = np.concatenate([clusters(rng, 0.03, 20, where) for where in uniform(rng, 3).T], axis=1)
    assert ratio(kernel, x, x, strengths_for(kernel, 60, rng)) <= 1


@pytest.mark.parametrize("box", [(1.0, 1.0, 6.0), (6.0, 1.0, 1.0), (0.02, 0.04, 0.06), (300.0, 100.0, 200.0)], ids=str)
@pytest.mark.parametrize("kernel", COMPONENTS)
def test_boxes(kernel, box, rng):
    strengths = strengths_for(kernel, 60, rng)
    assert ratio(kernel, uniform(rng, 40, box), uniform(rng, 60, box), strengths, box) <= 1


@pytest.mark.parametrize("kernel", COMPONENTS)
def test_a_lattice_of_targets(kernel, rng):
    """Targets at grid points and cell edges, where a point may be counted to either side."""
    line = np.arange(4) / 4
    trg = np.array(BOX)[:, None] * np.array(np.meshgrid(line, line, line)).reshape(3, -1)
    strengths = strengths_for(kernel, 60, rng)
    assert ratio(kernel, trg, uniform(rng, 60), strengths) <= 1
    src = trg[:, rng.permutation(64)[:60]]
    assert ratio(kernel, trg, src, strengths) <= 1
