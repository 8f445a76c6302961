"""Points that are hard on trees: lines, planes, one place, groups far apart, few, far from all sources."""

import numpy as np
import pytest

from parki import samples
from parki.direct import direct_sum
from tests import hard_points as hard
from tests.methods.sums import DOUBLE, FMM, METHODS, TREECODES, checked, far_share, plan, relative, table

TOLERANCE = table(1e-3, 2e-4)
#: Most bytes per point of a plan.  Leaves of treecodes, chosen by the plan, have fewer points than their proxy grids.
PER_POINT = table(20_000, 100_000)
LEAF = table(40, 20)
LONG = [pytest.mark.slow, pytest.mark.timeout(3600)]

each_method = pytest.mark.parametrize("method", METHODS)
many = pytest.mark.parametrize("n", [10_000, pytest.param(1_000_000, marks=LONG)])


def far_groups(n, seed):
    return hard.apart(n, seed, 1e4)


def farther_groups(n, seed):
    return hard.apart(n, seed, 1e6)


SHAPES = {f.__name__: f for f in (*hard.HARD, far_groups, farther_groups)}
#: Shapes whose groups are smaller than the smallest box of an octree.
BEYOND = ("farther_groups", "outlier", "geometric")


def error_of(method, kernel, x, y, q, **options):
    """Return the error of a sum to the tolerance, and its plan."""
    return checked(method, kernel, x, y, q, **{"tolerance": TOLERANCE[method], "leaf_size": LEAF[method]} | options)


@each_method
@pytest.mark.parametrize("shape", SHAPES)
def test_hard_shapes(shape, method):
    n = 2000 if method in TREECODES else 1500
    x, q = SHAPES[shape](n, 3), samples.charges(n, 4)
    error, made = error_of(method, "coulomb", x, x, q)
    assert error < TOLERANCE[method]
    assert far_share(made) > (0 if method in FMM and shape in BEYOND else 0.1)
    assert made.memory < PER_POINT[method] * n
    if method in FMM:
        assert made.structure.tree.nodes.depth <= 20


@pytest.mark.parametrize("method", TREECODES)
def test_points_that_nearly_coincide(method):
    """Points within 1e-14 of the largest extent are one point, as in direct sums, though clusters are smaller."""
    x, q = samples.uniform(1500, 3), samples.charges(1500, 4)
    x[:, :500] *= 2.0**-60
    error, made = error_of(method, "coulomb", x, x, q)
    assert error < TOLERANCE[method]
    assert far_share(made) > 0.1


@pytest.mark.parametrize("method", FMM)
def test_other_targets_in_hard_shapes(method):
    for shape, other in ((hard.line, hard.plane), (far_groups, hard.line), (hard.duplicates, far_groups)):
        x, y, q = shape(900, 1), other(1000, 2), samples.charges(1000, 4)
        error, _ = error_of(method, "coulomb", x, y, q)
        # Interpolation orders are chosen for boxes full of points: errors of lines on planes are up to twice as large.
        assert error < TOLERANCE[method] * (1 if method == "kifmm" else 2), (shape, other)


@pytest.mark.parametrize("distance", [1e2, 1e4, 1e8])
@pytest.mark.parametrize("method", FMM)
def test_targets_far_from_all_sources(method, distance):
    """Charges cancel but for a part, which alone is left of the sum far away."""
    y, x, q = samples.uniform(1500, 1), samples.uniform(1200, 2) + distance, samples.charges(1500, 3) + 0.2
    error, made = error_of(method, "coulomb", x, y, q)
    assert error < TOLERANCE[method]
    assert far_share(made) == 1


@pytest.mark.parametrize(
    ("method", "kernel", "length"),
    [
        ("pc", "gaussian", {"width": 1.0}),
        pytest.param("pc", "yukawa", {"kappa": 1.0}, marks=pytest.mark.slow),
        *((method, "yukawa", {"kappa": 1.0}) for method in FMM),
    ],
)
def test_kernels_with_a_length_in_groups_far_apart(method, kernel, length):
    """Pairs interact within a distance that the size of the whole does not tell."""
    n = 3000 if method in TREECODES else 1500
    x, q = (farther_groups if method in TREECODES else far_groups)(n, 3), samples.charges(n, 4)
    error, made = error_of(method, kernel, x, x, q, **length)
    assert far_share(made) > 0.5
    assert error < TOLERANCE[method]


@each_method
def test_charges_of_one_group_alone(method):
    """Charges in one of two groups, and targets in the other: near pairs add nothing to the sum."""
    y = hard.apart(2500, 1, 20.0)
    q = np.where(y[0] < 10, samples.charges(2500, 2) + 1, 0.0)
    x = samples.uniform(1000, 5) + (20.0 if method in FMM else np.array([[20.0], [0], [0]]))
    error, made = error_of(method, "coulomb", x, y, q)
    assert far_share(made) > 0.5
    assert error < TOLERANCE[method]


@pytest.mark.usefixtures("all_digits")
@each_method
@many
def test_all_points_equal(n, method):
    """Coincident pairs of a singular kernel are left out; those of other kernels count with their limit."""
    x, q, options = np.full((3, n), 0.7), samples.charges(n, 1), {"tolerance": TOLERANCE[method]}
    few = n <= 10_000
    if few or method in TREECODES:  # one box of all points: as a direct sum
        made = plan(method, "coulomb", x, x, **options)
        np.testing.assert_array_equal(made(q), 0)
        assert made.memory < PER_POINT[method] * n
    if few and method != "kifmm":
        u = plan(method, "multiquadric", x, x, width=3.0, **options)(q)
        np.testing.assert_allclose(u, 3 * q.sum(), rtol=1e-10)
    elsewhere = np.array([[0.1], [0.2], [0.3]])
    u = plan(method, "coulomb", elsewhere, x, **options)(abs(q))
    np.testing.assert_allclose(u, abs(q).sum() / np.linalg.norm(elsewhere - 0.7), rtol=TOLERANCE[method])


@pytest.mark.usefixtures("all_digits")
@each_method
def test_two_places_of_many_points(method):
    x = np.array([[0.0], [0.0], [1.0]]) * (np.arange(2000) % 2)
    q = samples.charges(2000, 1)
    error, _ = error_of(method, "coulomb", x, x, q, **DOUBLE[method])
    assert error < (1e-12 if method in TREECODES else TOLERANCE[method])  # one proxy point for each place


@pytest.mark.usefixtures("all_digits")
@each_method
def test_one_point(method):
    one, q = np.array([[0.3], [0.1], [-2.0]]), np.array([2.5])
    options = DOUBLE[method] | ({"degree": 1} if method in TREECODES else {})
    np.testing.assert_array_equal(plan(method, "coulomb", one, one, **options)(q), [0])
    apart = plan(method, "coulomb", one + 1, one, **options)
    # roots err by 1.5e-13 where interpolation errs by more
    np.testing.assert_allclose(apart(q), q / np.sqrt(3), rtol=1e-12)
    if method != "kifmm":
        with_itself = plan(method, "gaussian", one, one.copy(), width=1.0, **options)
        np.testing.assert_array_equal(with_itself(q), q)


@each_method
@many
def test_many_targets_and_one_source_and_the_reverse(n, method):
    many, one, q = samples.uniform(n, 1), np.array([[0.2], [0.1], [0.4]]), samples.charges(n, 2)
    sums = (many, one, np.array([-3.0])), (one, many, abs(q) + 0.1)  # charges of one sign: the sum does not cancel
    for targets, sources, charges in sums:
        error, made = checked(method, "coulomb", targets, sources, charges, tolerance=TOLERANCE[method])
        assert error < TOLERANCE[method]
        assert made.memory < PER_POINT[method] * n


@each_method
def test_leaves_of_one_point(method):
    x, q = samples.plummer(500, 1), samples.charges(500, 2)
    sizes = [{"leaf_size": 1}]
    if method in TREECODES:
        sizes += [{"leaf_size": 1, "batch_size": 50}, {"leaf_size": 50, "batch_size": 1}]
    for size in sizes:
        error, made = error_of(method, "coulomb", x, x, q, **size)
        assert error < TOLERANCE[method]
        if method in TREECODES:
            assert made.structure.targets.sorted.n == 500
            assert made.memory < 1.5 * PER_POINT[method] * 500  # every particle has proxy points of its own
        else:
            assert made.structure.tree.nodes.sources.count[made.structure.tree.nodes.is_leaf].max() == 1


@each_method
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_sizes_of_the_whole(scale, method):
    x, q = scale * samples.uniform(1500, 1), samples.charges(1500, 2)
    error, made = error_of(method, "coulomb", x, x, q)
    assert error < TOLERANCE[method]
    assert far_share(made) > (0.5 if method in FMM else 0.1)


@each_method
def test_single_precision_of_hard_shapes(method):
    for shape in (hard.line, far_groups if method in FMM else farther_groups, hard.duplicates):
        x, q = shape(1500, 1).astype(np.float32), samples.charges(1500, 2).astype(np.float32)
        made = plan(method, "coulomb", x, x, tolerance=TOLERANCE[method], leaf_size=LEAF[method])
        exact = direct_sum("coulomb", x.astype(float), x.astype(float), q.astype(float))
        assert relative(made(q), exact) < TOLERANCE[method]
