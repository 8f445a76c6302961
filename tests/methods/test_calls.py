"""Properties of the sums of every method: linear, independent of places, threads and spaces, near the direct sum."""

import itertools

import numpy as np
import pytest

from parki import samples
from parki.direct import direct_sum
from parki.pairs import find
from tests.methods.sums import COARSE, DOUBLE, FMM, METHODS, NS, NT, TREECODES, far_share, once, plan, points, relative
from tests.quick import but

each_method = pytest.mark.parametrize("method", METHODS)


def plan_of(method, kernel="coulomb", **options):
    """Return a coarse plan for different targets and sources, which has far pairs."""
    return plan(method, kernel, *points(method), **(COARSE[method] | options))


@pytest.fixture
def q(rng):
    return rng.standard_normal(NS)


@each_method
def test_calls_are_plans_used_once(method, q):
    x, y = points(method)
    made = plan_of(method)
    u = made(q)
    assert (u.shape, u.dtype, type(u)) == ((NT,), np.float64, np.ndarray)
    assert 0.1 < far_share(made) < 1
    assert 1e-5 < relative(u, direct_sum("coulomb", x, y, q)) < 0.05
    np.testing.assert_array_equal(once(method, x, y, q, **COARSE[method]), u)


@each_method
def test_parameters_and_times(method, q):
    x, y = points(method)
    times, p = once(method, x, y, q, **COARSE[method], return_walltime=True, return_params=True)[1:]
    assert (p.method, p.leaf_size, p.tolerance) == (method, 20, None)
    if method in FMM:
        assert (p.order, p.fill, str(p)) == (3, None, "order 3, leaves 20")
        assert min(times.time.values()) > 0  # all phases have work
        texts = "octree", "near (P2P)", "M2L", "P2L, M2P", "total"
    else:
        assert (p.theta, p.degree, p.batch_size) == (0.9, 1, 20)
        assert str(plan_of(method)).splitlines()[1] == f"{method}, θ 0.9, degree 1, leaves 20, batches 20"
        assert min(times.time[phase] for phase in ("tree", "lists", "pp", "cp" if method == "cp" else "upward")) > 0
        texts = "particle–particle", "upward pass", "total"
    assert all(text in times.table() for text in texts)
    assert once(method, x, y, q, tolerance=1e-3, leaf_size=20, return_params=True)[1].tolerance == 1e-3


@each_method
@pytest.mark.parametrize(
    ("kernel", "length"), [("coulomb", {}), pytest.param("yukawa", {"kappa": 2.0}, marks=pytest.mark.slow)]
)
def test_gradients(kernel, length, method, q):
    x, y = points(method)
    options = length | ({"theta": 0.7} if method in TREECODES else {})
    both = plan_of(method, kernel, gradient=True, **options)
    u, g = both(q)
    assert (u.shape, g.shape) == ((NT,), (3, NT))
    exact = direct_sum(find(kernel, **length).with_gradient(), x, y, q)
    assert far_share(both) > 0.05
    errors = relative(u, exact[0]), relative(g, exact[1:])
    assert 1e-6 < errors[0] < 0.02
    assert 1e-6 < errors[1] < 0.05
    assert both.error(n=NT).value == pytest.approx(max(errors), rel=1e-6)
    only = plan_of(method, kernel, gradient="only", **options)(q)
    assert relative(only, exact[1:]) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("method", ["dual", "kifmm"])
def test_the_gradient_of_the_stokeslet(method, q):
    x, y, f = *points(method), np.stack([q, -q, 2 * q])
    u = plan_of(method, "stokeslet", gradient="only", **({"order": 4} if method in FMM else {}))(f)
    assert u.shape == (9, NT)
    assert relative(u, direct_sum("stokes_grad", x, y, f)) < (0.02 if method in FMM else 0.1)


@each_method
def test_sums_are_linear(method, rng):
    made = plan_of(method, **DOUBLE[method])
    p, q = rng.standard_normal((2, NS))
    both = 3 * made(p) - 0.25 * made(q)
    assert relative(made(3 * p - 0.25 * q), both) < 1e-12
    np.testing.assert_array_equal(made(4 * p), 4 * made(p))
    np.testing.assert_array_equal(made(-p), -made(p))


@each_method
def test_places_do_not_matter(method, rng):
    """Move points by numbers that add exactly, take them in another order, and exchange the axes."""
    x = np.round(samples.uniform(900, 6) * [[1.0], [0.9], [0.8]] * 2**30) / 2**30
    q, order = rng.standard_normal(900), rng.permutation(900)

    def total(points, charges):
        points = np.ascontiguousarray(points)
        made = plan(method, "coulomb", points, points, **COARSE[method], **DOUBLE[method])
        assert far_share(made) > 0
        return made(charges)

    u = total(x, q)
    assert relative(total(x + np.array([[3.0], [-64.0], [0.5]]), q), u) < 1e-11
    assert relative(total(x[:, order], q[order]), u[order]) < 1e-11
    assert relative(total(x[[1, 2, 0]], q), u) < 1e-11


@each_method
def test_errors_fall(method):
    """Raise the degree or the order."""
    x, q = samples.uniform(1500, 7), samples.charges(1500, 8)
    exact, errors = direct_sum("coulomb", x, x, q), []
    name, values = ("degree", (1, 2, 3)) if method in TREECODES else ("order", (3, 4, 5))
    for value in values:
        made = plan(method, "coulomb", x, x, **COARSE[method] | DOUBLE[method] | {name: value})
        assert far_share(made) > 0
        errors.append(relative(made(q), exact))
    assert all(a > (2 if method in TREECODES else 3) * b for a, b in itertools.pairwise(errors)), errors
    assert errors[0] < (0.02 if method in FMM else 0.05)


@each_method
def test_single_precision(method, q):
    x, y, charges = (a.astype(np.float32) for a in (*points(method), q))
    u = plan(method, "coulomb", x, y, **COARSE[method])(charges)
    assert u.dtype == np.float32
    wide = [a.astype(np.float64) for a in (x, y, charges)]
    precision = {"far_precision": "single"} if method in TREECODES else {}
    right = plan(method, "coulomb", *wide[:2], **COARSE[method], **precision)(wide[2])
    assert relative(u, right) < (3e-6 if method in TREECODES else 1e-3)
    assert 1e-5 < relative(u, direct_sum("coulomb", *wide)) < 0.05


@each_method
def test_results_depend_on_neither_threads_nor_space(method, rng):
    x, y = samples.plummer(3000, 1), samples.uniform(2500, 2)
    kernel = "coulomb" if method in FMM else "stokeslet"
    q = rng.standard_normal(2500 if method in FMM else (3, 2500))
    one = plan(method, kernel, x, y, threads=1, **COARSE[method])(q)
    bound = 1e-14 * np.abs(one).max() if method == "chebyshev" else 0  # libraries cut matrix products by their threads
    for where in ({"threads": 2}, {"execution_space": "Serial"}):
        found = plan(method, kernel, x, y, **where, **COARSE[method])(q)
        np.testing.assert_allclose(found, one, rtol=0, atol=bound)


@pytest.mark.parametrize("method", but(*TREECODES, "chebyshev", of=METHODS))
def test_spheres_that_overlap(method, all_digits, rng):
    """RPY has another formula for spheres nearer than 2a: no pair within that distance is far."""
    x, f = samples.uniform(NS, 1), rng.standard_normal((3, NS))
    options = COARSE[method] | ({"order": 4, "leaf_size": 4} if method in FMM else {})
    shares, depths = [], []
    for radius in (1e-3, 0.2 if method in FMM else 0.4, 3.0):
        made = plan(method, "rpy", x, x, radius=radius, **options)
        shares.append(far_share(made))
        exact = direct_sum("rpy", x, x, f, radius=radius)
        assert relative(made(f), exact) < (1e-13 if radius == 3 else 0.01 if method in FMM else 0.02)
        if method in FMM:
            nodes, octets = made.structure.tree.nodes, made.structure.lists.v_t
            depths.append(nodes.depth)
            if len(octets):
                level = nodes.level[nodes.octet_parent[octets]].max() + 1
                assert nodes.width / 2**level > 2 * radius
    assert shares[0] > shares[1] > shares[2] == 0
    assert depths == sorted(depths, reverse=True)
    assert len(set(depths)) == len(depths)
