"""Points that are hard on octrees: lines, planes, one place, groups far apart, few, far from all sources."""

import numpy as np
import pytest

import parki
from parki import samples
from parki.direct import direct_sum
from tests import hard_points as hard

METHODS = ("kifmm", "chebyshev")
TOLERANCE = 2e-4
#: Bytes per point: bound of the memory of a plan with small leaves.
PER_POINT = 100_000


def far_groups(n, seed):
    return hard.apart(n, seed, 1e4)


def farther_groups(n, seed):
    return hard.apart(n, seed, 1e6)


SHAPES = {f.__name__: f for f in (*hard.HARD, far_groups, farther_groups)}
#: Shapes whose groups are smaller than the smallest box.
BEYOND = ("farther_groups", "outlier", "geometric")


def checked(kernel, x, y, q, sums, method, tolerance=TOLERANCE, **options):
    """Return the error of a sum, and its plan."""
    parameters = {name: options.pop(name) for name in ("kappa", "width") if name in options}
    plan = parki.fmm.plan(kernel, x, y, method=method, tolerance=tolerance, **options, **parameters)
    return sums.relative(plan(q), direct_sum(kernel, x, y, q, **parameters)), plan


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", SHAPES)
def test_hard_shapes(shape, method, sums):
    n = 1500
    x, q = SHAPES[shape](n, 3), samples.charges(n, 4)
    error, plan = checked("coulomb", x, x, q, sums, method, leaf_size=20)
    assert error < TOLERANCE
    assert sums.far_share(plan) > (0.1 if shape not in BEYOND else 0)
    assert plan.memory < PER_POINT * n
    assert plan.structure.tree.nodes.depth <= 20


@pytest.mark.parametrize("method", METHODS)
def test_other_targets_in_hard_shapes(method, sums):
    for shape, other in ((hard.line, hard.plane), (far_groups, hard.line), (hard.duplicates, far_groups)):
        x, y, q = shape(900, 1), other(1000, 2), samples.charges(1000, 4)
        error, _ = checked("coulomb", x, y, q, sums, method, leaf_size=20)
        # Interpolation orders are chosen for boxes full of points: errors of lines on planes are up to twice as large.
        assert error < (TOLERANCE if method == "kifmm" else 2 * TOLERANCE), (shape, other)


@pytest.mark.parametrize("distance", [1e2, 1e4, 1e8])
@pytest.mark.parametrize("method", METHODS)
def test_targets_far_from_all_sources(method, distance, sums):
    """Charges cancel but for a part, which alone is left of the sum far away."""
    y, x, q = samples.uniform(1500, 1), samples.uniform(1200, 2) + distance, samples.charges(1500, 3) + 0.2
    error, plan = checked("coulomb", x, y, q, sums, method, leaf_size=20)
    assert error < TOLERANCE
    assert sums.far_share(plan) == 1


@pytest.mark.parametrize("method", METHODS)
def test_charges_of_one_group_alone(method, sums):
    """Two groups, charges in one of them, and targets in the other: near pairs have no part in the sum."""
    y = hard.apart(2000, 1, 20.0)
    q = np.where(y[0] < 10, samples.charges(2000, 2) + 1, 0.0)
    x = samples.uniform(1000, 5) + 20.0
    error, plan = checked("coulomb", x, y, q, sums, method, leaf_size=20)
    assert sums.far_share(plan) > 0.5
    assert error < TOLERANCE


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [10_000, pytest.param(1_000_000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_all_points_equal(n, method):
    """Coincident pairs of a singular kernel are left out; those of other kernels count with their limit."""
    x, q = np.full((3, n), 0.7), samples.charges(n, 1)
    if n <= 10_000:  # one box of all points: as a direct sum
        plan = parki.fmm.plan("coulomb", x, x, method=method, tolerance=TOLERANCE)
        np.testing.assert_array_equal(plan(q), 0)
        assert plan.memory < PER_POINT * n
        if method == "chebyshev":
            u = parki.fmm.plan("multiquadric", x, x, method=method, tolerance=TOLERANCE, width=3.0)(q)
            np.testing.assert_allclose(u, 3 * q.sum(), rtol=1e-10)
    elsewhere = np.array([[0.1], [0.2], [0.3]])
    u = parki.fmm.plan("coulomb", elsewhere, x, method=method, tolerance=TOLERANCE)(abs(q))
    np.testing.assert_allclose(u, abs(q).sum() / np.linalg.norm(elsewhere - 0.7), rtol=TOLERANCE)


@pytest.mark.parametrize("method", METHODS)
def test_two_places_of_many_points(method, sums):
    x = np.array([[0.0], [0.0], [1.0]]) * (np.arange(2000) % 2)
    q = samples.charges(2000, 1)
    error, _ = checked("coulomb", x, x, q, sums, method, leaf_size=20)
    assert error < TOLERANCE


@pytest.mark.parametrize("method", METHODS)
def test_one_point(method):
    one, q = np.array([[0.3], [0.1], [-2.0]]), np.array([2.5])
    np.testing.assert_array_equal(parki.fmm.plan("coulomb", one, one, method=method)(q), [0])
    apart = parki.fmm.plan("coulomb", one + 1, one, method=method)
    np.testing.assert_allclose(apart(q), q / np.sqrt(3), rtol=1e-12)
    if method == "chebyshev":
        with_itself = parki.fmm.plan("gaussian", one, one.copy(), method=method, width=1.0)
        np.testing.assert_array_equal(with_itself(q), q)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [10_000, pytest.param(1_000_000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_many_targets_and_one_source_and_the_reverse(n, method, sums):
    many, one, q = samples.uniform(n, 1), np.array([[0.2], [0.1], [0.4]]), samples.charges(n, 2)
    error, plan = checked("coulomb", many, one, np.array([-3.0]), sums, method)
    assert error < TOLERANCE
    assert plan.memory < PER_POINT * n
    error, plan = checked("coulomb", one, many, abs(q) + 0.1, sums, method)  # charges must not cancel at one target
    assert error < TOLERANCE
    assert plan.memory < PER_POINT * n


@pytest.mark.parametrize("method", METHODS)
def test_leaves_of_one_point(method, sums):
    x, q = samples.plummer(500, 1), samples.charges(500, 2)
    error, plan = checked("coulomb", x, x, q, sums, method, leaf_size=1)
    assert error < TOLERANCE
    assert plan.structure.tree.nodes.sources.count[plan.structure.tree.nodes.is_leaf].max() == 1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_sizes_of_the_whole(scale, method, sums):
    x, q = scale * samples.uniform(1500, 1), samples.charges(1500, 2)
    error, plan = checked("coulomb", x, x, q, sums, method, leaf_size=20)
    assert error < TOLERANCE
    assert sums.far_share(plan) > 0.5


@pytest.mark.parametrize("method", METHODS)
def test_single_precision_of_hard_shapes(method, sums):
    for shape in (hard.line, far_groups, hard.duplicates):
        x, q = shape(1500, 1).astype(np.float32), samples.charges(1500, 2).astype(np.float32)
        plan = parki.fmm.plan("coulomb", x, x, method=method, tolerance=TOLERANCE, leaf_size=20)
        exact = direct_sum("coulomb", x.astype(float), x.astype(float), q.astype(float))
        assert sums.relative(plan(q), exact) < TOLERANCE


@pytest.mark.parametrize("method", METHODS)
def test_kernels_with_a_length_in_groups_far_apart(method, sums):
    """Distances of pairs that interact do not follow from the size of the whole."""
    n = 1500
    x, q = far_groups(n, 3), samples.charges(n, 4)
    error, _ = checked("yukawa", x, x, q, sums, method, leaf_size=20, kappa=1.0)
    assert error < TOLERANCE
