"""Points that are hard on trees: lines, planes, one place, groups far apart, few, none."""

import numpy as np
import pytest

import parki
from parki import samples
from parki.direct import direct_sum
from tests import hard_points as hard

METHODS = ("dual", "pc", "cp")
TOLERANCE = 1e-3
#: Bytes of a plan per point, at most, with leaves chosen by the plan: each has fewer points than its proxy grids.
PER_POINT = 20_000


def far_groups(n, seed):
    return hard.apart(n, seed, 1e6)


SHAPES = {f.__name__: f for f in (*hard.HARD, far_groups)}


def checked(kernel, x, y, q, sums, method, tolerance=TOLERANCE, **options):
    """Return the error of a sum, and its plan."""
    parameters = {name: options.pop(name) for name in ("kappa", "width") if name in options}
    plan = parki.treecode.plan(kernel, x, y, method=method, tolerance=tolerance, **options, **parameters)
    return sums.relative(plan(q), direct_sum(kernel, x, y, q, **parameters)), plan


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", SHAPES)
def test_hard_shapes(shape, method, sums):
    n = 2000
    x, q = SHAPES[shape](n, 3), samples.charges(n, 4)
    error, plan = checked("coulomb", x, x, q, sums, method, leaf_size=40)
    assert error < TOLERANCE
    assert sums.far_share(plan) > 0.1
    assert plan.memory < PER_POINT * n


@pytest.mark.parametrize("method", METHODS)
def test_points_that_nearly_coincide(method, sums):
    """Points within 1e-14 of the largest extent are one point, as in direct sums, though clusters are smaller."""
    x, q = samples.uniform(1500, 3), samples.charges(1500, 4)
    x[:, :500] *= 2.0**-60
    error, plan = checked("coulomb", x, x, q, sums, method, leaf_size=40)
    assert error < TOLERANCE
    assert sums.far_share(plan) > 0.1


@pytest.mark.parametrize("kernel", [
    {"kernel": "gaussian", "width": 1.0}, pytest.param({"kernel": "yukawa", "kappa": 1.0}, marks=pytest.mark.slow),
])  # fmt: skip
def test_kernels_with_a_length_in_groups_far_apart(kernel, sums):
    """Pairs interact within a distance that the size of the whole does not tell."""
    n = 3000
    x, q = far_groups(n, 3), samples.charges(n, 4)
    error, plan = checked(x=x, y=x, q=q, sums=sums, method="pc", leaf_size=40, **kernel)
    assert sums.far_share(plan) > 0.5
    assert error < TOLERANCE


@pytest.mark.parametrize("method", METHODS)
def test_charges_of_one_group_alone(method, sums):
    """Charges in one of two groups, and targets in the other: near pairs add nothing to the sum."""
    y = sums.two_groups(3000, 1)
    q = np.where(y[0] < 10, samples.charges(3000, 2) + 1, 0.0)
    x = samples.uniform(1500, 5) + np.array([[20.0], [0], [0]])
    error, plan = checked("coulomb", x, y, q, sums, method, leaf_size=40)
    assert sums.far_share(plan) > 0.5
    assert error < TOLERANCE


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [10_000, pytest.param(1_000_000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_all_points_equal(n, method):
    """Pairs all coincide: a singular kernel sums to zero, others to the kernel's limit at zero distance."""
    x, q = np.full((3, n), 0.7), samples.charges(n, 1)
    plan = parki.treecode.plan("coulomb", x, x, method=method, tolerance=TOLERANCE)
    np.testing.assert_array_equal(plan(q), 0)
    assert plan.memory < PER_POINT * n
    if n <= 10_000:
        u = parki.treecode.plan("multiquadric", x, x, method=method, tolerance=TOLERANCE, width=3.0)(q)
        np.testing.assert_allclose(u, 3 * q.sum(), rtol=1e-10)


def test_two_places_of_many_points(sums):
    x = np.array([[0.0], [0.0], [1.0]]) * (np.arange(4000) % 2)
    q = samples.charges(4000, 1)
    for method in METHODS:
        error, _ = checked("coulomb", x, x, q, sums, method, far_precision="double")
        assert error < 1e-12  # one proxy point for each place


@pytest.mark.parametrize("method", METHODS)
def test_one_point(method, sums):
    one, q = np.array([[0.3], [0.1], [-2.0]]), np.array([2.5])
    np.testing.assert_array_equal(parki.treecode.plan("coulomb", one, one, method=method, degree=1)(q), [0])
    with_itself = parki.treecode.plan("gaussian", one, one.copy(), method=method, degree=1, width=1.0)
    np.testing.assert_array_equal(with_itself(q), q)
    apart = parki.treecode.plan("coulomb", one + 1, one, method=method, degree=1, far_precision="double")
    np.testing.assert_allclose(
        apart(q), q / np.sqrt(3), rtol=1e-12
    )  # roots err by 1.5e-13 where interpolation errs by more


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_many_targets_and_one_source_and_the_reverse(n, method, sums):
    many, one, q = samples.uniform(n, 1), np.array([[0.2], [0.1], [0.4]]), samples.charges(n, 2)
    error, plan = checked("coulomb", many, one, np.array([-3.0]), sums, method)
    assert error < TOLERANCE
    assert plan.memory < PER_POINT * n
    error, plan = checked("coulomb", one, many, abs(q) + 0.1, sums, method)  # one sign: the sum does not cancel
    assert error < TOLERANCE
    assert plan.memory < PER_POINT * n


@pytest.mark.parametrize("method", METHODS)
def test_leaves_of_one_point(method, sums):
    x, q = samples.plummer(800, 1), samples.charges(800, 2)
    for sizes in ({"leaf_size": 1}, {"leaf_size": 1, "batch_size": 50}, {"leaf_size": 50, "batch_size": 1}):
        error, plan = checked("coulomb", x, x, q, sums, method, **sizes)
        assert error < TOLERANCE
        assert plan.structure.targets.sorted.n == 800
        assert plan.memory < 1.5 * PER_POINT * 800  # every particle has proxy points of its own


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_sizes_of_the_whole(scale, method, sums):
    x, q = scale * samples.uniform(1500, 1), samples.charges(1500, 2)
    error, plan = checked("coulomb", x, x, q, sums, method, leaf_size=40)
    assert error < TOLERANCE
    assert sums.far_share(plan) > 0.1


@pytest.mark.parametrize("method", METHODS)
def test_single_precision_of_hard_shapes(method, sums):
    for shape in (hard.line, far_groups, hard.duplicates):
        x, q = shape(1500, 1).astype(np.float32), samples.charges(1500, 2).astype(np.float32)
        plan = parki.treecode.plan("coulomb", x, x, method=method, tolerance=TOLERANCE, leaf_size=40)
        exact = direct_sum("coulomb", x.astype(float), x.astype(float), q.astype(float))
        assert sums.relative(plan(q), exact) < TOLERANCE
