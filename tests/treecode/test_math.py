"""Mathematics of treecodes: interpolation, proxy charges, exact cases, invariances, errors as published."""

import numpy as np
import pytest

import parki
from parki import proxies, samples
from parki.direct import direct_sum
from parki.treecode import interactions
from tests import own_pairs
from tests.methods.draws import SHAPES
from tests.methods.sums import TREECODES, far_share, relative
from tests.treecode import sums

#: Polynomials of degree 2 along every axis, so that three points along each interpolate them exactly.
POLYNOMIALS = (
    "u[0] += s[0] * (dx * dx * dy * dy * dz * dz - dx * dz * dz + 2.0 * dy * dy - dx + 1.5)",
    "u[1] += s[0] * (dx * dy * dz - dx * dx * dz)",
)


def plan_of(x, y=None, kernel="coulomb", **options):
    """Return a plan with small leaves."""
    options = {"leaf_size": 20, "degree": 2, "far_precision": "double"} | options
    return parki.treecode.plan(kernel, x, x if y is None else y, **options)


# Interpolation --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("m", range(1, proxies.MOST_POINTS + 1))
def test_tables(m):
    nodes, weights = (table[m - 1, :m] for table in proxies.tables())
    np.testing.assert_allclose(nodes, sums.chebyshev(m), rtol=0, atol=1e-15)
    np.testing.assert_array_equal(nodes, -nodes[::-1])
    apart = nodes[:, None] - nodes + np.eye(m)
    np.testing.assert_allclose(weights * apart.prod(axis=1), 1, rtol=1e-13)


@pytest.mark.parametrize("m", range(2, proxies.MOST_POINTS + 1))
def test_polynomials_up_to_the_degree_are_interpolated_exactly(m, rng):
    nodes, weights = (table[m - 1, :m] for table in proxies.tables())
    x = rng.uniform(-1, 1, 50)
    value = weights * (x[:, None] - nodes).prod(axis=1)[:, None] / (x[:, None] - nodes)
    np.testing.assert_allclose(value.sum(axis=1), 1, rtol=0, atol=2e-14)
    for power in range(m):
        np.testing.assert_allclose(value @ nodes**power, x**power, rtol=0, atol=2e-14)
    # One degree more has an error: the product of all differences.
    beyond = value @ nodes**m - x**m
    np.testing.assert_allclose(beyond, -(x[:, None] - nodes).prod(axis=1), rtol=0, atol=2e-14)
    assert np.abs(beyond).max() > 2.0 ** (1 - m) / 2


def test_rate_of_convergence(rng):
    """Errors of 1/(z − x) fall by the factor g(z) with each additional point."""
    z, x, errors = 2.5, rng.uniform(-1, 1, 200), []
    for m in (6, 12):
        nodes, weights = (table[m - 1, :m] for table in proxies.tables())
        value = weights * (x[:, None] - nodes).prod(axis=1)[:, None] / (x[:, None] - nodes)
        errors.append(np.abs(value @ (1 / (z - nodes)) - 1 / (z - x)).max())
    assert errors[0] / errors[1] == pytest.approx(float(interactions.growth(z)) ** 6, rel=0.3)


# Upward pass ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", ["uniform", "rod", "sphere"])
def test_charges_of_a_cluster_are_those_of_its_particles(shape, rng):
    """Charges of leaves, of clusters made from their children, and of fewer points are exact."""
    y = SHAPES[shape](1500, 3)
    targets = np.concatenate([samples.uniform(25, 1), 0.3 * samples.uniform(25, 2) + 6], axis=1)
    plan = plan_of(targets, y, method="pc", leaf_size=40, batch_size=1)
    q = rng.standard_normal(1500)
    q /= np.abs(q).max()  # the unit in which charges are summed
    plan(q)
    used, tree = plan.structure.up, plan.structure.sources
    top = min(int(tree.nodes.level[nodes].min()) for nodes in used.values())
    assert top < tree.nodes.level.max() - 1
    assert len(used) > 1
    sorted_q = q[None, tree.sorted.order]
    for m in {3, *used}:
        charge = sums.charges_of(plan, m)
        nodes = np.flatnonzero(tree.nodes.level >= top) if m == 3 else used[m]
        rows = nodes if m == 3 else np.arange(len(nodes))  # only the clusters that are used
        assert len(nodes) > 0
        assert len(charge) == (len(tree.nodes.begin) if m == 3 else len(nodes))
        for row, node in zip(rows, nodes, strict=True):
            right = sums.proxy_charges(tree, node, sorted_q, m).ravel()
            np.testing.assert_allclose(charge[row], right, rtol=0, atol=1e-12 * np.abs(right).max())


def test_charges_of_several_components(rng):
    y, q = samples.uniform(300, 5), rng.standard_normal((3, 300))
    q /= np.abs(q).max()  # the unit in which forces are summed
    plan = plan_of(samples.uniform(40, 1) + 3, y, "stokeslet", degree=1, method="pc")
    plan(q)
    tree, charge = plan.structure.sources, sums.charges_of(plan, 2)
    for node in plan.structure.up[2]:
        right = sums.proxy_charges(tree, node, q[:, tree.sorted.order], 2).ravel()
        np.testing.assert_allclose(charge[node], right, rtol=0, atol=1e-13 * np.abs(right).max())


def on_nodes(m):
    """Return all proxy points of the cube [−1, 1]³ in random order, and the order."""
    s = proxies.tables()[0][m - 1, :m]
    order = np.random.default_rng(0).permutation(m**3)
    return np.stack(np.meshgrid(s, s, s, indexing="ij")).reshape(3, -1)[:, order], order


def exponentials(plan):
    """Return the error allowed to exponentials, which grows with the expected error (`parki.hints.short`)."""
    return 4.4e-7 if plan.parameters.expected >= 3e-6 else 1.7e-9


@pytest.mark.parametrize("m", [2, 3])
def test_particles_on_proxy_points_are_proxy_points(m, rng):
    """No quotient is 0/0 where a particle has a coordinate of a proxy point."""
    y, order = on_nodes(m)
    targets = rng.uniform(-0.1, 0.1, (3, 40)) + np.array([[4.5], [0], [0]])
    plan = plan_of(targets, y, "gaussian", width=4.0, degree=m - 1, leaf_size=m**3, method="pc", theta=0.8)
    for k in (0, 3, m**3 - 1):
        one = np.eye(m**3)[k]
        u = plan(one)
        charge = sums.charges_of(plan, m)[0]
        np.testing.assert_array_equal(np.flatnonzero(charge), [order[k]])
        assert charge[order[k]] == pytest.approx(1, rel=1e-15)
        np.testing.assert_allclose(u, direct_sum("gaussian", targets, y, one, width=4.0), rtol=exponentials(plan))
    assert plan.walltime.pairs["pp"] == 0


def test_targets_on_proxy_points_have_their_potentials(rng):
    x, _ = on_nodes(3)
    x = np.concatenate([x, x[:, :9]], axis=1)
    sources, q = rng.uniform(-0.1, 0.1, (3, 40)) + np.array([[0], [4.5], [0]]), rng.standard_normal(40)
    plan = plan_of(x, sources, "gaussian", width=4.0, leaf_size=64, method="cp", theta=0.8)
    exact = direct_sum("gaussian", x, sources, q, width=4.0)
    np.testing.assert_allclose(plan(q), exact, rtol=0, atol=exponentials(plan) * np.abs(q).sum())
    assert plan.walltime.pairs["pp"] == 0
    assert plan.walltime.pairs["cp"] == 27 * 40


@pytest.mark.parametrize("method", TREECODES)
def test_a_kernel_that_is_a_polynomial_is_summed_exactly(method, rng):
    path = own_pairs.file(*POLYNOMIALS, results=2)
    x, y, q = samples.uniform(700, 1), samples.gaussian(800, 2, 0.2), rng.standard_normal(800)
    plan = plan_of(x, y, path, method=method, leaf_size=40, theta=0.9)
    assert far_share(plan) > 0.2
    exact = direct_sum(path, x, y, q)
    for found, right in zip(plan(q), exact, strict=True):
        assert relative(found, right) < 1e-13
    if method == "pc":  # a lower degree is not exact
        assert relative(plan_of(x, y, path, method=method, degree=1, theta=0.9)(q), exact) > 1e-3


# Sums -----------------------------------------------------------------------------------------------------------------
def test_errors_fall_with_theta():
    x, q = samples.uniform(2500, 7), samples.charges(2500, 8)
    exact = direct_sum("coulomb", x, x, q)
    plans = [plan_of(x, degree=2, theta=theta) for theta in (0.9, 0.7, 0.5)]
    errors = [relative(plan(q), exact) for plan in plans]
    assert errors[0] > 1.5 * errors[1] > 2 * errors[2] > 0
    assert plans[0].walltime.pairs["pp"] < plans[1].walltime.pairs["pp"] < plans[2].walltime.pairs["pp"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("method", "published"), [("pc", 1.75e-8), ("dual", 1.58e-8)])
def test_errors_as_published(method, published):
    """Wilson, Vaughn and Krasny (2021), table 2: N = 1e5 in a cube, θ = 0.7, n = 8; at most twice the error.

    Leaves and batches have 2000 particles as in the paper: smaller batches are nearer to their clusters, and err more.
    """
    n = 100_000
    x, q = samples.uniform(n, 1), samples.charges(n, 2)
    plan = parki.treecode.plan("coulomb", x, x, method=method, theta=0.7, degree=8, leaf_size=2000)
    u = plan(q)
    assert far_share(plan) > 0.05
    error = relative(u, direct_sum("coulomb", x, x, q))
    assert 1e-10 < error < 2 * published
