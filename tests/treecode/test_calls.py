"""Forms of a call: options, gradients, right-hand sides, layouts, precision, what is returned, threads."""

import logging

import numpy as np
import pytest

import parki
from parki import samples
from parki.direct import direct_sum
from parki.pairs import find

METHODS = ("dual", "pc", "cp")
#: One kernel to compile for all sums over proxy points.
COARSE = {"degree": 1, "theta": 0.9, "leaf_size": 20}
TOLERANCE = 1e-2
NT, NS = 350, 400


def points(same=False, dtype=np.float64, seed=1):
    """Targets and sources."""
    y = samples.uniform(NS, seed).astype(dtype)
    return (y if same else samples.uniform(NT, seed + 1).astype(dtype)), y


def plan_of(kernel="coulomb", same=False, **options):
    """A plan of few proxy points, which has far pairs."""
    return parki.treecode.plan(kernel, *points(same), **(COARSE | options))


def strengths(kernel, rng, *many, dtype=np.float64):
    """Charges and, of kernels with them, normals."""
    pair = find(kernel) if isinstance(kernel, str) else kernel
    charges = rng.standard_normal((*many, pair.dens, NS) if pair.dens > 1 else (*many, NS))
    return [a.astype(dtype) for a in (charges, *([rng.standard_normal((3, NS))] if pair.normals else []))]


@pytest.fixture
def q(rng):
    return rng.standard_normal(NS)


# Calls and what they return -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("same", [True, False])
def test_calls_are_plans_used_once(same, q, sums):
    x, y = points(same)
    for method in METHODS:
        plan = parki.treecode.plan("coulomb", x, y, method=method, **COARSE)
        u = plan(q)
        assert (u.shape, u.dtype, type(u)) == ((x.shape[1],), np.float64, np.ndarray)
        assert sums.far_share(plan) > 0.2
        assert 1e-5 < sums.relative(u, direct_sum("coulomb", x, y, q)) < 0.05
        call, which = (parki.treecode.bldtt, {}) if method == "dual" else (parki.treecode.bltc, {"variant": method})
        np.testing.assert_array_equal(call(x, y, q, **which, **COARSE), u)
    np.testing.assert_array_equal(
        parki.treecode.bltc(x, y, q, "coulomb", **COARSE), parki.treecode.bltc(x, y, q, variant="pc", **COARSE)
    )


def test_kinds_of_sums(q, sums):
    """Which of PP, PC, CP and CC each method has."""
    x, y = points()
    for method, kinds in (("pc", {"pp", "pc"}), ("cp", {"pp", "cp"}), ("dual", {"pp", "pc", "cp", "cc"})):
        pairs = parki.treecode.plan("coulomb", x, y, method=method, **COARSE).walltime.pairs
        assert set(pairs) == {"pp", "pc", "cp", "cc"}
        assert {kind for kind, n in pairs.items() if n} <= kinds
        assert sum(n for kind, n in pairs.items() if kind != "pp") > 0


def test_what_is_returned_and_in_which_order(q):
    x, y = points()
    u = parki.treecode.bldtt(x, y, q, **COARSE)
    kinds = {
        "return_walltime": parki.treecode.report.WallTime,
        "return_params": parki.treecode.Parameters,
        "return_error": parki.error.ErrorEstimate,
    }
    for asked in (*([name] for name in kinds), ["return_error", "return_walltime"], list(kinds)[::-1]):
        for call in (parki.treecode.bldtt, parki.treecode.bltc):
            found = call(x, y, q, **COARSE, **dict.fromkeys(asked, True))
            assert [type(one) for one in found] == [np.ndarray, *(kinds[name] for name in kinds if name in asked)]
    np.testing.assert_array_equal(parki.treecode.bldtt(x, y, q, **COARSE, return_walltime=True)[0], u)
    times, p = parki.treecode.bldtt(x, y, q, **COARSE, return_walltime=True, return_params=True)[1:]
    assert (p.method, p.theta, p.degree, p.leaf_size, p.batch_size, p.tolerance) == ("dual", 0.9, 1, 20, 20, None)
    assert min(times.time[phase] for phase in ("tree", "lists", "pp", "upward")) > 0
    assert times.total == pytest.approx(sum(times.time.values()))
    for text in ("particle–particle", "upward pass", "total"):
        assert text in times.table()


def test_times_are_those_of_the_last_sum(q):
    plan = plan_of()
    before = dict(plan.walltime.time)
    assert before["tree"] > 0
    assert before["pp"] == 0
    plan(np.stack([q] * 5))
    first = dict(plan.walltime.time)
    plan.error()
    assert plan.walltime.time == first  # measuring is no sum of the caller's
    plan(q)
    assert plan.walltime.time["tree"] == before["tree"]
    assert 0 < plan.walltime.time["pp"] != first["pp"]


@pytest.mark.parametrize("kernel", ["coulomb", pytest.param("stresslet", marks=pytest.mark.slow)])
@pytest.mark.parametrize("options", [{}, {"layout": "nd"}])
def test_errors_are_measured(kernel, options, rng, sums):
    x, y = points()
    given = strengths(kernel, rng)
    exact = direct_sum(kernel, x, y, *given)
    if options:
        x, y, given = x.T, y.T, [a.T for a in given]
    plan = parki.treecode.plan(kernel, x, y, **COARSE, **options)
    with pytest.raises(ValueError, match="charges is missing: this plan has not been called"):
        plan.error()
    u = plan(*given)
    true = sums.relative(u.T if options and u.ndim == 2 else u, exact)
    every = plan.error(n=NT)
    assert (every.low, every.high, every.n) == (every.value, every.value, NT)
    assert every.value == pytest.approx(true, rel=1e-6)
    some = plan.error(n=150, seed=4)
    assert some.n == 150
    assert some.low < true < some.high
    call = parki.treecode.bldtt(
        x, y, given[0], kernel, normals=[*given, None][1], return_error=True, **COARSE, **options
    )
    assert call[1] == plan.error()
    assert call[1].n == 100
    with pytest.raises(ValueError, match="n is 0; expected a positive number of targets"):
        plan.error(n=0)


def test_errors_of_other_charges_and_many(rng, sums):
    plan = plan_of("coulomb", same=True)
    charges = rng.standard_normal((3, NS))
    x = points(True)[0]
    exact = np.stack([direct_sum("coulomb", x, x, one) for one in charges])
    true = sums.relative(plan(charges), exact)
    assert plan.error(n=NS).value == pytest.approx(true, rel=1e-6)
    one = sums.relative(plan(charges[1]), exact[1])
    assert plan.error(charges[1], n=NS).value == pytest.approx(one, rel=1e-6)
    with pytest.raises(ValueError, match="the sum is zero at all sampled targets"):
        plan.error(0 * charges)


# Right-hand sides, layouts, places of results -------------------------------------------------------------------------
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", ["coulomb", "stresslet"])
def test_right_hand_sides(kernel, method, rng):
    plan = plan_of(kernel, method=method)
    charges, *normals = strengths(kernel, rng, 3)
    u = plan(charges, *normals)
    assert u.shape == ((3, NT) if kernel == "coulomb" else (3, 3, NT))
    for one, right in zip(u, charges, strict=True):
        np.testing.assert_array_equal(one, plan(right, *normals))
    one = plan(charges[:1], *normals)
    assert one.shape == (1, *u.shape[1:])
    np.testing.assert_array_equal(one[0], u[0])


@pytest.mark.parametrize("kernel", ["coulomb", "stresslet"])
def test_one_point_a_row(kernel, rng):
    x, y = points()
    charges, *normals = strengths(kernel, rng, 2)
    u = parki.treecode.bldtt(x, y, charges, kernel, normals=(normals or [None])[0], **COARSE)
    turned = charges if kernel == "coulomb" else np.ascontiguousarray(charges.swapaxes(1, 2))
    found = parki.treecode.bldtt(
        x.T.copy(), y.T.copy(), turned, kernel, normals=normals[0].T.copy() if normals else None, layout="nd", **COARSE
    )
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, u if kernel == "coulomb" else u.swapaxes(1, 2))


def test_memory_order_and_input(rng):
    x, y = points()
    charges, normals = strengths("stresslet", rng)
    given = [x, y, charges]
    expected = parki.treecode.bldtt(*given, "stresslet", normals=normals, **COARSE)
    before = [a.copy() for a in (*given, normals)]
    for a in (*given, normals):
        a.flags.writeable = False
    for change in (np.asfortranarray, lambda a: np.repeat(a, 2, axis=1)[:, ::2], lambda a: a):
        moved = [change(a) for a in given]
        for method in METHODS:
            plan = parki.treecode.plan("stresslet", *moved[:2], method=method, **COARSE)
            u = plan(moved[2], change(normals))
            plan.error(n=10)
            if method == "dual":
                np.testing.assert_array_equal(u, expected)
    for a, kept in zip((*given, normals), before, strict=True):
        np.testing.assert_array_equal(a, kept)


def test_results_are_the_callers(q):
    plan = plan_of()
    u = plan(q)
    kept = u.copy()
    plan(2 * q)
    np.testing.assert_array_equal(u, kept)
    u[:] = 0
    np.testing.assert_array_equal(plan(q), kept)


def test_where_a_result_goes(q, rng):
    plan = plan_of()
    out = np.full(NT, np.nan)
    assert plan(q, out=out) is out
    np.testing.assert_array_equal(out, plan(q))
    y, f = points()[1].T, rng.standard_normal((2, NS, 3))
    vector = parki.treecode.plan("stokeslet", y, y, layout="nd", **COARSE)
    out = np.full((2, NS, 3), np.nan)
    assert vector(f, out=out) is out
    np.testing.assert_array_equal(out, vector(f))


@pytest.mark.parametrize(
    ("out", "text"),
    [
        (np.empty(NT + 1), r"out is a ndarray of shape \(351,\) and float64; expected an array like the result"),
        (np.empty(NT, np.float32), r"and float32; expected an array like the result, of \(350,\) and float64"),
        (np.empty((1, NT)), r"of shape \(1, 350\)"),
        ([0.0] * NT, "out is a list of shape None"),
    ],
)
def test_what_a_result_cannot_go_to(out, text, q):
    with pytest.raises(ValueError, match=text):
        plan_of()(q, out=out)


def test_results_do_not_overwrite_the_input(q):
    plan = plan_of(same=True)
    kept = q.copy()
    with pytest.raises(ValueError, match="out shares memory with charges"):
        plan(q, out=q)
    np.testing.assert_array_equal(q, kept)


# Kernels and gradients ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", ["coulomb", "yukawa"])
def test_gradients(kernel, method, q, sums):
    x, y = points()
    given = {"method": method} | COARSE | {"theta": 0.7} | ({"kappa": 2.0} if kernel == "yukawa" else {})
    both = parki.treecode.plan(kernel, x, y, gradient=True, **given)
    u, g = both(q)
    assert (u.shape, g.shape) == ((NT,), (3, NT))
    exact = direct_sum(find(kernel, kappa=given.get("kappa")).with_gradient(), x, y, q)
    assert sums.far_share(both) > 0.05
    assert 1e-6 < sums.relative(u, exact[0]) < 0.02
    assert 1e-6 < sums.relative(g, exact[1:]) < 0.05
    assert both.error(n=NT).value == pytest.approx(sums.relative(np.stack([u, *g]), exact), rel=1e-6)
    only = parki.treecode.plan(kernel, x, y, gradient="only", **given)
    assert sums.relative(only(q), exact[1:]) < 0.05


@pytest.mark.slow
def test_gradients_to_a_tolerance(sums):
    """Each result has the error asked for, at lengths where one of them is much larger than the other."""
    q = samples.charges(2500, 3)
    for scale in (1e-3, 1e3):
        x = scale * samples.uniform(2500, 4)
        plan = parki.treecode.plan("coulomb", x, x, gradient=True, tolerance=TOLERANCE, leaf_size=60, method="pc")
        u, g = plan(q)
        exact = direct_sum(plan.pair, x, x, q)
        assert sums.far_share(plan) > 0.05
        assert sums.relative(u, exact[0]) < TOLERANCE
        assert sums.relative(g, exact[1:]) < TOLERANCE


@pytest.mark.slow
def test_the_gradient_of_the_stokeslet(q, sums):
    u = plan_of("stokeslet", gradient="only")(np.stack([q, -q, 2 * q]))
    assert u.shape == (9, NT)
    assert sums.relative(u, direct_sum("stokes_grad", *points(), np.stack([q, -q, 2 * q]))) < 0.1


def test_gradients_of_many_right_hand_sides_and_rows(rng):
    x, y = points()
    charges = rng.standard_normal((2, NS))
    given = {"gradient": True} | COARSE
    u, g = parki.treecode.bldtt(x, y, charges, **given)
    assert (u.shape, g.shape) == ((2, NT), (2, 3, NT))
    one = parki.treecode.bldtt(x, y, charges[1], **given)
    np.testing.assert_array_equal(one[0], u[1])
    np.testing.assert_array_equal(one[1], g[1])
    (v, h), error = parki.treecode.bldtt(x.T, y.T, charges, layout="nd", return_error=True, **given)
    np.testing.assert_array_equal(v, u)
    np.testing.assert_array_equal(h, g.swapaxes(1, 2))
    assert 0 < error.value < 0.2


OWN = '''"""A pair of one's own: u = (q + 2 p) / (1 + r^2), and p."""

from typing import List

import pykokkos as pk

real = pk.double
NS = 2
NU = 2
NF = 1


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    u[0] += (s[0] + 2.0 * s[1]) / (1.0 + r2)
    u[1] += s[1]
'''


@pytest.mark.parametrize("method", METHODS)
def test_a_kernel_of_ones_own(method, rng, tmp_path_factory, sums):
    path = tmp_path_factory.getbasetemp() / "own.py"  # one file for all methods, compiled once
    path.write_text(OWN, "utf-8")
    x, y = samples.uniform(1000, 1), samples.uniform(1200, 2)
    s = rng.standard_normal((2, 1200))
    options = {"method": method, "tolerance": TOLERANCE, "leaf_size": 40}
    plan = parki.treecode.plan(path, x, y, **options)
    assert sums.far(plan) > 0
    r2 = np.sum((x[:, :, None] - y[:, None]) ** 2, axis=0)
    exact = np.array([(1 / (1 + r2)) @ (s[0] + 2 * s[1]), np.full(1000, s[1].sum())])
    u = plan(s)
    assert sums.relative(u[0], exact[0]) < TOLERANCE
    assert sums.relative(u, exact) < TOLERANCE
    np.testing.assert_array_equal(parki.treecode.plan(str(path), x, y, **options)(s), u)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_spheres_that_overlap(method, rng, sums):
    """RPY has another formula for spheres nearer than 2a: no cluster is far within that."""
    radius = 0.4
    x, y = points(same=True)
    f = rng.standard_normal((3, NS))
    plan = parki.treecode.plan("rpy", x, y, radius=radius, method=method, **COARSE)
    wide = parki.treecode.plan("rpy", x, y, radius=1e-3, method=method, **COARSE)
    assert 0 < sums.far_share(plan) < sums.far_share(wide)
    assert sums.relative(plan(f), direct_sum("rpy", x, y, f, radius=radius)) < 0.02
    all_overlap = parki.treecode.plan("rpy", x, y, radius=3.0, method=method, **COARSE)
    assert sums.far(all_overlap) == 0
    assert sums.relative(all_overlap(f), direct_sum("rpy", x, y, f, radius=3.0)) < 1e-13


# Options --------------------------------------------------------------------------------------------------------------
def test_defaults_are_those_of_the_published_treecode():
    p = parki.treecode.plan("coulomb", np.zeros((3, 1)), np.zeros((3, 1))).parameters
    assert (p.method, p.theta, p.degree, p.tolerance, p.far) == ("dual", 0.7, 8, None, "float64")
    assert p.batch_size == p.leaf_size > 20


@pytest.mark.parametrize("method", METHODS)
def test_sizes_of_leaves_and_batches(method):
    x, y = points()
    plan = parki.treecode.plan("coulomb", x, y, method=method, **COARSE | {"leaf_size": 30, "batch_size": 9})
    targets, sources = plan.stages.targets, plan.stages.sources
    most = {tree: tree_of.count[tree_of.leaves].max() for tree, tree_of in (("t", targets), ("s", sources))}
    clusters, batches = ("t", "s") if method == "cp" else ("s", "t")
    assert 9 < most[clusters] <= 30
    assert 4 < most[batches] <= 9


def test_precision_of_the_far_field(q, sums):
    plans = {far: plan_of(far_precision=far) for far in ("double", "single")}
    assert {far: plan.parameters.far for far, plan in plans.items()} == {"double": "float64", "single": "float32"}
    u, v = (plan(q) for plan in plans.values())
    assert u.dtype == v.dtype == np.float64
    assert 1e-10 < sums.relative(v, u) < 1e-6
    tolerant = [parki.treecode.plan("coulomb", *points(), tolerance=t).parameters.far for t in (1e-3, 1e-4)]
    assert tolerant == ["float32", "float32"]


@pytest.mark.parametrize("method", METHODS)
def test_single_precision(method, q, sums):
    x, y = points(dtype=np.float32)
    charges = q.astype(np.float32)
    u = parki.treecode.plan("coulomb", x, y, method=method, **COARSE)(charges)
    assert u.dtype == np.float32
    wide = [a.astype(np.float64) for a in (x, y, charges)]
    right = parki.treecode.plan("coulomb", *wide[:2], method=method, far_precision="single", **COARSE)(wide[2])
    assert sums.relative(u, right) < 3e-6
    assert sums.relative(u, direct_sum("coulomb", *wide)) > 1e-5


def test_parameters_are_logged_if_asked(caplog):
    with caplog.at_level(logging.INFO, "parki"):
        plan = plan_of(verbose=True)
    assert "θ 0.9, degree 1, leaves 20, batches 20" in caplog.text
    assert str(plan) == "laplace, dual, θ 0.9, degree 1, leaves 20, batches 20"
    assert repr(plan).startswith("<Plan: 400 sources, 350 targets, laplace")


@pytest.mark.parametrize("method", METHODS)
def test_results_depend_on_neither_threads_nor_space(method, rng):
    x, y = samples.plummer(3000, 1), samples.uniform(2500, 2)
    f = rng.standard_normal((3, 2500))
    given = {"method": method} | COARSE
    one = parki.treecode.plan("stokeslet", x, y, threads=1, **given)(f)
    np.testing.assert_array_equal(parki.treecode.plan("stokeslet", x, y, threads=2, **given)(f), one)
    if method == "dual":
        np.testing.assert_array_equal(parki.treecode.plan("stokeslet", x, y, execution_space="Serial", **given)(f), one)
