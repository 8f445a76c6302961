"""Forms of a call of fast multipole methods: options, gradients, lists in use, precision, threads."""

import numpy as np
import pytest

import parki
from parki import samples
from parki.direct import direct_sum
from parki.pairs import find

METHODS = ("kifmm", "chebyshev")
COARSE = {"order": 3, "leaf_size": 20}
NT, NS = 350, 400


def points():
    """Return targets and sources whose trees differ, so that all lists are in use."""
    return samples.plummer(NT, 2, 4.0), samples.uniform(NS, 1)


def plan_of(method, kernel="coulomb", **options):
    return parki.fmm.plan(kernel, *points(), method=method, **(COARSE | options))


@pytest.fixture
def q(rng):
    return rng.standard_normal(NS)


def test_defaults():
    x = np.zeros((3, 1))
    plan = parki.fmm.plan("coulomb", x, x)
    assert (plan.method.name, plan.parameters.method, plan.parameters.tolerance) == ("kifmm", "kifmm", 1e-6)
    assert parki.fmm.plan("coulomb", x, x, order=7).parameters.tolerance is None


@pytest.mark.parametrize("method", METHODS)
def test_parameters_and_times(method, q):
    x, y = points()
    call = getattr(parki.fmm, method)
    times, p = call(x, y, q, **COARSE, return_walltime=True, return_params=True)[1:]
    assert (p.method, p.order, p.leaf_size, p.tolerance, p.fill) == (method, 3, 20, None, None)
    assert str(p) == "order 3, leaves 20"
    assert min(times.time.values()) > 0  # all phases have work
    for text in ("octree", "near (P2P)", "M2L", "P2L, M2P", "total"):
        assert text in times.table()
    assert call(x, y, q, tolerance=1e-3, leaf_size=20, return_params=True)[1].tolerance == 1e-3


@pytest.mark.parametrize("method", METHODS)
def test_pairs_are_counted(method, q, sums):
    plan = plan_of(method)
    near = (1 - sums.far_share(plan)) * NT * NS
    assert plan.walltime.pairs["near"] == pytest.approx(near)
    assert plan.walltime.pairs["p2l_m2p"] > 0
    assert 0 < sums.far_share(plan) < 1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("kernel", "given"), [("coulomb", {}), pytest.param("yukawa", {"kappa": 2.0}, marks=pytest.mark.slow)]
)
def test_gradients(kernel, given, method, q, sums):
    x, y = points()
    both = plan_of(method, kernel, gradient=True, **given)
    u, g = both(q)
    assert (u.shape, g.shape) == ((NT,), (3, NT))
    exact = direct_sum(find(kernel, **given).with_gradient(), x, y, q)
    errors = sums.relative(u, exact[0]), sums.relative(g, exact[1:])
    assert 1e-6 < errors[0] < 0.02
    assert 1e-6 < errors[1] < 0.05
    assert both.error(n=NT).value == pytest.approx(max(errors), rel=1e-6)
    only = plan_of(method, kernel, gradient="only", **given)(q)
    assert sums.relative(only, exact[1:]) < 0.05


@pytest.mark.slow
def test_the_gradient_of_the_stokeslet(q, sums):
    x, y, f = *points(), np.stack([q, -q, 2 * q])
    u = plan_of("kifmm", "stokeslet", gradient="only", order=4)(f)
    assert u.shape == (9, NT)
    assert sums.relative(u, direct_sum("stokes_grad", x, y, f)) < 0.02


@pytest.mark.parametrize("method", ["kifmm", pytest.param("chebyshev", marks=pytest.mark.slow)])
def test_spheres_that_overlap(method, rng, sums):
    """RPY has another formula for spheres nearer than 2a, so boxes with far pairs must be larger."""
    x = samples.uniform(NS, 1)
    f = rng.standard_normal((3, NS))
    depths = []
    for radius in (1e-3, 0.2, 3.0):
        plan = parki.fmm.plan("rpy", x, x, radius=radius, method=method, order=4, leaf_size=4)
        nodes, octets = plan.structure.tree.nodes, plan.structure.lists.v_t
        depths.append(nodes.depth)
        exact = direct_sum("rpy", x, x, f, radius=radius)
        assert sums.relative(plan(f), exact) < (0.01 if radius < 3 else 1e-13)
        if len(octets):
            level = nodes.level[nodes.octet_parent[octets]].max() + 1
            assert nodes.width / 2**level > 2 * radius
    assert depths[0] > depths[1] > depths[2]


@pytest.mark.parametrize("method", METHODS)
def test_sums_are_linear(method, sums, rng):
    plan = plan_of(method)
    p, q = rng.standard_normal((2, NS))
    both = 3 * plan(p) - 0.25 * plan(q)
    assert sums.relative(plan(3 * p - 0.25 * q), both) < 1e-12
    np.testing.assert_array_equal(plan(4 * p), 4 * plan(p))
    np.testing.assert_array_equal(plan(-p), -plan(p))


@pytest.mark.parametrize("method", METHODS)
def test_places_do_not_matter(method, sums, rng):
    """Move points by numbers that add exactly, and take them in another order."""
    x = np.round(samples.uniform(900, 6) * [[1.0], [0.9], [0.8]] * 2**30) / 2**30
    q = rng.standard_normal(900)
    u = parki.fmm.plan("coulomb", x, x, method=method, **COARSE)(q)
    moved = x + np.array([[3.0], [-64.0], [0.5]])
    assert sums.relative(parki.fmm.plan("coulomb", moved, moved, method=method, **COARSE)(q), u) < 1e-11
    order = rng.permutation(900)
    other = np.ascontiguousarray(x[:, order])
    assert sums.relative(parki.fmm.plan("coulomb", other, other, method=method, **COARSE)(q[order]), u[order]) < 1e-11


@pytest.mark.parametrize("method", METHODS)
def test_errors_fall_with_the_order(method, sums):
    x, q = samples.uniform(1500, 7), samples.charges(1500, 8)
    exact, errors = direct_sum("coulomb", x, x, q), []
    for order in (3, 4, 5):
        plan = parki.fmm.plan("coulomb", x, x, method=method, order=order, leaf_size=20)
        errors.append(sums.relative(plan(q), exact))
    assert errors[0] > 3 * errors[1] > 9 * errors[2], errors
    assert errors[0] < 0.02


@pytest.mark.parametrize("method", METHODS)
def test_single_precision(method, q, sums):
    x, y, charges = (a.astype(np.float32) for a in (*points(), q))
    u = parki.fmm.plan("coulomb", x, y, method=method, **COARSE)(charges)
    assert u.dtype == np.float32
    wide = [a.astype(np.float64) for a in (x, y, charges)]
    right = parki.fmm.plan("coulomb", *wide[:2], method=method, **COARSE)(wide[2])
    assert sums.relative(u, right) < 1e-3
    assert 1e-5 < sums.relative(u, direct_sum("coulomb", *wide)) < 0.02


@pytest.mark.parametrize("method", METHODS)
def test_sizes_of_leaves(method):
    plan = plan_of(method, leaf_size=30)
    tree = plan.structure.tree
    assert 15 < tree.nodes.sources.count[tree.nodes.is_leaf].max() <= 30
    assert 15 < tree.nodes.targets.count[tree.nodes.is_leaf].max() <= 30
    x = samples.uniform(6000, 1)
    even = parki.fmm.plan("coulomb", x, x, method=method, order=3).parameters
    assert even.fill == round(even.fill) > 2  # uniform points: as many boxes along a side as make leaves of one size
    uneven = samples.plummer(6000, 1)
    assert parki.fmm.plan("coulomb", uneven, uneven, method=method, order=3).parameters.fill is None


@pytest.mark.parametrize("method", METHODS)
def test_results_depend_on_neither_threads_nor_space(method, rng):
    x, y = samples.plummer(3000, 1), samples.uniform(2500, 2)
    q = rng.standard_normal(2500)
    given = {"method": method} | COARSE
    one = parki.fmm.plan("coulomb", x, y, threads=1, **given)(q)
    bound = 0 if method == "kifmm" else 1e-14 * np.abs(one).max()  # libraries cut matrix products by their threads
    for where in ({"threads": 2}, {"execution_space": "Serial"}):
        found = parki.fmm.plan("coulomb", x, y, **where, **given)(q)
        np.testing.assert_allclose(found, one, rtol=0, atol=bound)
