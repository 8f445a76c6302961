"""Tests of the Chebyshev method: its definition, symmetry, errors, kernels of every kind, special sets of points."""

import itertools

import numpy as np
import pytest

from parki import pairs, samples
from parki.direct import direct_sum
from parki.engine.run import spaces
from parki.fmm import (
    chebyshev_expansion,
    chebyshev_m2l,
    chebyshev_order,
    chebyshev_tables,
    chebyshev_translations,
    representations,
)
from parki.trees import octlists, octree
from tests import own_pairs
from tests.quick import every

SERIAL = spaces.get("Serial")
#: A kernel with a length that depends on direction: no symmetry of the cube, no exponents; and one without directions.
SKEWED = own_pairs.file(
    "u[0] += s[0] * (pk.rsqrt(1.0 + dx * dx + 2.0 * dy * dy + 3.0 * dz * dz + dx * dy - 0.3 * dx) + 0.1 * dz)"
)
ONE = own_pairs.file("u[0] += s[0]")


def error(found, exact):
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


class Case:
    """A tree with its lists, and sums in the caller's order of points."""

    def __init__(self, x, y, leaf, space=SERIAL):
        self.x, self.y, self.space = x, y, space
        self.tree = octree.build(y, None if x is y else x, leaf, space)
        self.lists = octlists.lists(self.tree.nodes).only

    def expansion(self, pair, order, **options):
        options = {"eps": 10.0**-order} | options
        return chebyshev_expansion.chebyshev_expansion(self.tree, self.lists, pair, order, **options)

    def sum(self, pair, order, charges, **options):
        return self.run(self.expansion(pair, order, **options), charges)[0]

    def run(self, expansion, *many):
        """Return the sums of one placed expansion, for charges one after the other."""
        placed, particles, sums = expansion.place(self.space), expansion.particles, []
        for charges in many:
            u = np.full(particles.result.shape, np.nan, particles.real)
            placed.run({particles.charges: charges.reshape(particles.pair.dens, -1), particles.result: u})
            sums.append(u)
        return sums


def exact(pair, case, charges):
    dens = charges[0] if pair.dens == 1 else charges
    return direct_sum(pair, case.x, case.y, dens, execution_space="Serial").reshape(pair.result, -1)


def charges_of(pair, case, seed=5):
    return np.random.default_rng(seed).uniform(-1, 1, (pair.dens, case.y.shape[1]))


def coulomb(x, y):
    with np.errstate(divide="ignore"):
        d = 1 / np.sqrt(((x[:, None] - y) ** 2).sum(axis=2))
    return np.where(np.isfinite(d), d, 0.0)


def stokeslet(x, y):
    r, d = x[:, None] - y, coulomb(x, y)[..., None, None]
    k = np.eye(3) * d + r[..., :, None] * r[..., None, :] * d**3
    return k.transpose(0, 2, 1, 3).reshape(3 * len(x), 3 * len(y))


def by_definition(case, kernel, components, order, q):
    """Return sums by dense matrices of all lists: polynomials of all points of a box, without the levels between."""
    tree, grid, eye = case.tree, chebyshev_tables.grid(order), np.eye(components)
    x, y = tree.targets.points.T, tree.sources.points.T
    q, u = q[:, tree.sources.order].T, np.zeros((len(x), components))
    src = [slice(b, e) for b, e in zip(tree.nodes.sources.begin, tree.nodes.sources.end, strict=True)]
    trg = [slice(b, e) for b, e in zip(tree.nodes.targets.begin, tree.nodes.targets.end, strict=True)]

    def nodes(b):
        return tree.nodes.centre[b] + tree.nodes.half[b] * grid

    def polynomials(b, points):
        return np.kron(chebyshev_order.polynomials((points - tree.nodes.centre[b]) / tree.nodes.half[b], order), eye)

    def add(t, s, target_grid, source_grid):
        a = kernel(nodes(t) if target_grid else x[trg[t]], nodes(s) if source_grid else y[src[s]])
        v = q[src[s]].ravel()
        v = a @ (polynomials(s, y[src[s]]).T @ v if source_grid else v)
        u[trg[t]] += (polynomials(t, x[trg[t]]) @ v if target_grid else v).reshape(-1, components)

    of = case.lists
    for name, kind in (("u", (False, False)), ("w", (False, True)), ("x", (True, False))):
        for t, s in zip(getattr(of, f"{name}_t"), getattr(of, f"{name}_s"), strict=True):
            add(t, s, *kind)
    below = {k: tree.nodes.child[b] for k, b in enumerate(tree.nodes.octet_parent)}
    for ot, os in zip(of.v_t, of.v_s, strict=True):
        for t, s in itertools.product(below[ot], below[os]):
            apart = t >= 0 and s >= 0 and np.abs(tree.nodes.anchor[t] - tree.nodes.anchor[s]).max() > 1
            if apart and tree.nodes.targets.count[t] and tree.nodes.sources.count[s]:
                add(t, s, True, True)
    found = np.empty((components, len(x)))
    found[:, tree.targets.order] = u.T
    return found


@pytest.fixture(scope="module")
def mixed():
    """Return a case of targets and other sources, with all lists in use."""
    case = Case(samples.plummer(300, 1), samples.uniform(280, 2), 8)
    assert min(len(a) for a in (case.lists.u_t, case.lists.v_t, case.lists.w_t, case.lists.x_t)) > 20
    return case


# By definition --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "kernel", "components", "symmetric"),
    [
        ("laplace", coulomb, 1, True), ("laplace", coulomb, 1, False), ("stokes_sl", stokeslet, 3, True),
        pytest.param("stokes_sl", stokeslet, 3, False, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_sums_are_those_of_the_definition(name, kernel, components, symmetric, mixed):
    pair = pairs.find(name)
    q = charges_of(pair, mixed)
    expected = by_definition(mixed, kernel, components, 3, q)
    assert error(mixed.sum(pair, 3, q, eps=0.0, symmetric=symmetric), expected) < 1e-12
    assert error(expected, exact(pair, mixed, q)) < 2e-2


def test_columns_at_one_time_do_not_change_the_sum(mixed, monkeypatch):
    pair = pairs.find("laplace")
    q = charges_of(pair, mixed)
    one = mixed.sum(pair, 3, q)
    monkeypatch.setattr(chebyshev_translations, "COLUMNS", 40)
    expansion = mixed.expansion(pair, 3)
    assert max(len(level.parts) for level in expansion.translations.levels) > 5
    assert error(mixed.run(expansion, q)[0], one) < 1e-14


# Symmetry -------------------------------------------------------------------------------------------------------------
LAYOUTS = {
    "laplace": ((1,), (1,), (False,)),
    "laplace_grad": ((3,), (1,), (False,)),
    "stokes_sl": ((3,), (3,), (False,)),
    "rotlet": ((3,), (3,), (True,)),
    "stokes_grad": ((9,), (3,), (False,)),
    "stokes_dipole": ((3,), (9,), (False,)),
    "rpy_rotation": ((3, 3), (3, 3), (False, True)),
    "oscillatory": ((1,), (1,), (False,)),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_symmetry_is_found(name):
    parameters = {"rpy_rotation": {"radius": 0.7}, "oscillatory": {"k": 30.0}}.get(name, {})
    result, charges = chebyshev_tables.symmetry(pairs.find(name, **parameters))
    assert (result.parts, charges.parts, result.axial) == LAYOUTS[name]
    assert not charges.axial[0]


@pytest.mark.parametrize("name", ["laplace", "stokes_sl", "rotlet"])
def test_sixteen_operators_make_all(name):
    pair = pairs.find(name)
    few, all_of = (chebyshev_m2l.tables(pair, 3, 1.0, 0.0, symmetric) for symmetric in (True, False))
    assert (few.operators, all_of.operators) == (16, 316)
    for j, d in enumerate(chebyshev_tables.offsets()):
        columns = slice(few.column[j], few.column[j + 1])
        # Right factor in the frame of the source, left in that of the target, both turned so that the offset is d.
        exact = chebyshev_m2l.operator(pair, 3, d, 1.0)
        turn = chebyshev_tables.Turn(
            (0, 1, 2), tuple(b // a if a else 1 for a, b in zip(d, chebyshev_tables.seen_from_source(d), strict=True))
        )
        parts = chebyshev_tables.symmetry(pair)[1]
        right = chebyshev_tables.Action.of(turn, parts, 3, False)(few.right[0, columns])
        assert error(few.left[0, columns].T @ right, exact) < 1e-13


@pytest.mark.parametrize("symmetric", [True, False])
def test_compression_keeps_its_share(symmetric):
    pair = pairs.find("laplace")
    whole, less = (chebyshev_m2l.tables(pair, 4, 1.0, eps, symmetric) for eps in (0.0, 1e-4))
    # Ranks of the published method at order 4 are 4 to 14.
    ranks = np.diff(less.column)
    assert (ranks.min(), ranks.max()) == (4, 14)
    assert (np.diff(whole.column) == 64).all()
    if not symmetric:
        for j in (0, 60, 188):
            d, columns = chebyshev_tables.offsets()[j], slice(less.column[j], less.column[j + 1])
            octant = sum((a % 2) << bit for a, bit in zip(d, (2, 1, 0), strict=True))  # of the source; the target's: 0
            made = less.left[0, columns].T @ less.right[octant, columns]
            assert error(made, chebyshev_m2l.operator(pair, 4, d, 1.0)) < 1e-3


def test_a_kernel_without_symmetry():
    pair = pairs.own(SKEWED)
    assert chebyshev_tables.symmetry(pair) is None
    assert representations.exponents(pair) is None
    case = Case(samples.uniform(700, 1), samples.uniform(600, 2), 15)
    q = charges_of(pair, case)
    expansion = case.expansion(pair, 6)
    assert set(expansion.translations.operators.values()) == {316}
    assert error(case.sum(pair, 6, q), exact(pair, case, q)) < 2e-4


# Errors ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("shape", "name", "parameters"),
    every(
        2,
        (
            (shape, *kernel)
            for kernel in (("laplace", {}), ("multiquadric", {"width": 0.4}))
            for shape in ("uniform", "plummer", "sphere")
        ),
    ),
)
def test_tolerances_are_met(shape, name, parameters):
    pair = pairs.find(name, **parameters)
    x = getattr(samples, shape)(3000, 3)
    case = Case(x, x, 30)
    q = charges_of(pair, case)
    expected = exact(pair, case, q)
    for tolerance in (1e-2, 1e-4):
        order = chebyshev_order.order(pair, tolerance, chebyshev_order.Met.of(case.tree.nodes, case.lists))
        assert error(case.sum(pair, order, q, eps=tolerance / 10), expected) < tolerance


@pytest.mark.parametrize("order", range(2, 8))
def test_measured_errors_fall(order):
    pair = pairs.find("laplace")
    # Errors of whole sums, as published for the uniform cube, are a little less.
    assert chebyshev_order.measured(pair, order, 1.0) < 0.1 * 7.0 ** (2 - order)
    assert chebyshev_order.measured(pair, order + 1, 1.0) < 0.35 * chebyshev_order.measured(pair, order, 1.0)


def test_orders_follow_the_tolerance_and_the_length_of_the_kernel():
    x = samples.uniform(1000, 1)
    case = Case(x, x, 20)
    laplace, met = pairs.find("laplace"), chebyshev_order.Met.of(case.tree.nodes, case.lists)
    found = [chebyshev_order.order(laplace, 10.0**-k, met) for k in (2, 3, 4, 5, 6)]
    assert found == [3, 5, 6, 7, 8]
    # A Gaussian that is wide for all boxes is nearly constant; a Gaussian that is narrow for all has a near field only.
    wide, middle, narrow = (
        chebyshev_order.order(pairs.find("gaussian", width=width), 1e-5, met) for width in (20.0, 0.8, 0.01)
    )
    assert wide < middle
    assert narrow < middle


@pytest.mark.parametrize(("name", "parameters"), [
    ("laplace", {}), ("stokeslet", {}), ("multiquadric", {"width": 0.1}), ("gaussian", {"width": 0.3}),
    ("oscillatory", {"k": 0.5})])  # fmt: skip
def test_orders_that_fail_on_one_side_fail_on_both(name, parameters, monkeypatch):
    case = Case(samples.plummer(1000, 1), samples.plummer(1000, 1), 20)
    pair, met = pairs.find(name, **parameters), chebyshev_order.Met.of(case.tree.nodes, case.lists)
    found = [chebyshev_order.order(pair, tolerance, met) for tolerance in (1e-2, 1e-3, 1e-4)]
    monkeypatch.setattr(chebyshev_order, "ONE_SIDE", np.inf)
    assert [chebyshev_order.order(pair, tolerance, met) for tolerance in (1e-2, 1e-3, 1e-4)] == found
    assert found == sorted(found)


# Kernels --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "parameters", "bound"),
    [
        ("yukawa", {"kappa": 1.0}, 2e-3),
        ("stokes_dl", {}, 2e-3),
        ("rpy", {"radius": 1e-3}, 3e-3),
    ],
)
def test_kernels(name, parameters, bound, mixed):
    pair, charges = pairs.find(name, **parameters).linear()
    given = pairs.find(name, **parameters)
    rng = np.random.default_rng(7)
    dens = rng.uniform(-1, 1, (given.dens, mixed.y.shape[1]))
    normals = rng.standard_normal((3, mixed.y.shape[1])) if given.normals else None
    q = charges(dens, normals)
    assert error(mixed.sum(pair, 4, q), exact(pair, mixed, q)) < bound


def test_gradients(mixed):
    pair = pairs.find("laplace").with_gradient()
    q = charges_of(pair, mixed)
    found, expected = mixed.sum(pair, 5, q), exact(pair, mixed, q)
    assert error(found[0], expected[0]) < 1e-4
    assert error(found[1:], expected[1:]) < 1e-4


# Points ---------------------------------------------------------------------------------------------------------------
def test_every_pair_counts_once(mixed):
    pair = pairs.own(ONE)
    q = np.ones((1, mixed.y.shape[1]))
    found = mixed.sum(pair, 3, q)
    np.testing.assert_allclose(found, mixed.y.shape[1], rtol=1e-12)


def test_coincident_points():
    x = samples.uniform(600, 1)
    x[:, 100:160] = x[:, :1]
    x[:, 160:220] = x[:, 1:2]
    case, pair = Case(x, x, 10), pairs.find("laplace")
    q = charges_of(pair, case)
    assert error(case.sum(pair, 5, q), exact(pair, case, q)) < 1e-3


@pytest.mark.parametrize(("nt", "ns"), [(1, 1), (3, 200), (200, 2)])
def test_few_points(nt, ns):
    case, pair = Case(samples.uniform(nt, 1), samples.uniform(ns, 2), 4), pairs.find("laplace")
    q = charges_of(pair, case)
    found = case.sum(pair, 5, q)
    expected = exact(pair, case, q)
    assert found.shape == expected.shape
    assert np.linalg.norm(found - expected) <= 1e-3 * np.linalg.norm(expected)


def test_single_precision(mixed):
    pair = pairs.find("laplace")
    q = charges_of(pair, mixed)
    case = Case(mixed.x.astype(np.float32), mixed.y.astype(np.float32), 8)
    found = case.sum(pair, 4, q.astype(np.float32))
    assert found.dtype == np.float32
    double = mixed.sum(pair, 4, q)
    assert error(found, double) < 1e-3


def test_new_charges_forget_the_old_ones(mixed):
    pair = pairs.find("laplace")
    one, two = (charges_of(pair, mixed, seed) for seed in (1, 2))
    first, second, again = mixed.run(mixed.expansion(pair, 3), one, two, one)
    assert error(again, first) == 0
    assert error(second, first) > 0.1


def test_charges_may_have_any_layout(mixed):
    pair = pairs.find("stokes_sl")
    q = charges_of(pair, mixed)
    first, second = mixed.run(mixed.expansion(pair, 3), q, np.repeat(q.T, 2, axis=1)[:, ::2].T)
    assert error(second, first) == 0


@pytest.mark.parametrize("name", ["GpuSim", "OpenMP"])
def test_spaces_agree(name):
    x, y = samples.uniform(60, 1), samples.uniform(50, 2)
    pair = pairs.find("laplace")
    host = Case(x, y, 3)
    q = charges_of(pair, host)
    case = Case(x, y, 3, spaces.get(name))
    assert len(case.lists.v_t) > 0
    assert error(case.sum(pair, 2, q), host.sum(pair, 2, q)) < 1e-12
