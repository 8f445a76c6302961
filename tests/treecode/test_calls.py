"""Forms of a call of treecodes: options, gradients, precision, threads."""

import numpy as np
import pytest

import parki
from parki import samples
from parki.direct import direct_sum
from parki.engine import workunit
from parki.engine.compile import objects
from parki.pairs import find

METHODS = ("dual", "pc", "cp")
#: Options of most sums: one kernel to compile for all sums over proxy points.
COARSE = {"degree": 1, "theta": 0.9, "leaf_size": 20}
TOLERANCE = 1e-2
NT, NS = 350, 400


def points(same=False, dtype=np.float64, seed=1):
    """Return targets and sources."""
    y = samples.uniform(NS, seed).astype(dtype)
    return (y if same else samples.uniform(NT, seed + 1).astype(dtype)), y


def plan_of(kernel="coulomb", same=False, **options):
    """Return a plan of few proxy points, which has far pairs."""
    return parki.treecode.plan(kernel, *points(same), **(COARSE | options))


@pytest.fixture
def q(rng):
    return rng.standard_normal(NS)


# Calls and their results ----------------------------------------------------------------------------------------------
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
    """Each method has its kinds of PP, PC, CP and CC alone."""
    x, y = points()
    for method, kinds in (("pc", {"pp", "pc"}), ("cp", {"pp", "cp"}), ("dual", {"pp", "pc", "cp", "cc"})):
        pairs = parki.treecode.plan("coulomb", x, y, method=method, **COARSE).walltime.pairs
        assert set(pairs) == {"pp", "pc", "cp", "cc"}
        assert {kind for kind, n in pairs.items() if n} <= kinds
        assert sum(n for kind, n in pairs.items() if kind != "pp") > 0


def test_parameters_and_times(q):
    x, y = points()
    times, p = parki.treecode.bldtt(x, y, q, **COARSE, return_walltime=True, return_params=True)[1:]
    assert (p.method, p.theta, p.degree, p.leaf_size, p.batch_size, p.tolerance) == ("dual", 0.9, 1, 20, 20, None)
    assert min(times.time[phase] for phase in ("tree", "lists", "pp", "upward")) > 0
    for text in ("particle–particle", "upward pass", "total"):
        assert text in times.table()


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
    errors = sums.relative(u, exact[0]), sums.relative(g, exact[1:])
    assert 1e-6 < errors[0] < 0.02
    assert 1e-6 < errors[1] < 0.05
    assert both.error(n=NT).value == pytest.approx(max(errors), rel=1e-6)
    only = parki.treecode.plan(kernel, x, y, gradient="only", **given)
    assert sums.relative(only(q), exact[1:]) < 0.05


@pytest.mark.slow
def test_gradients_to_a_tolerance(sums):
    """Potential and gradient each meet the tolerance, at lengths where one is much larger than the other."""
    q = samples.charges(2500, 3)
    for scale in (1e-3, 1e3):
        x = scale * samples.uniform(2500, 4)
        plan = parki.treecode.plan("coulomb", x, x, gradient=True, tolerance=TOLERANCE, leaf_size=60, method="pc")
        u, g = plan(q)
        exact = direct_sum(plan.kernel, x, x, q)
        assert sums.far_share(plan) > 0.05
        assert sums.relative(u, exact[0]) < TOLERANCE
        assert sums.relative(g, exact[1:]) < TOLERANCE


@pytest.mark.slow
def test_the_gradient_of_the_stokeslet(q, sums):
    u = plan_of("stokeslet", gradient="only")(np.stack([q, -q, 2 * q]))
    assert u.shape == (9, NT)
    assert sums.relative(u, direct_sum("stokes_grad", *points(), np.stack([q, -q, 2 * q]))) < 0.1


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
    """RPY has another formula for spheres nearer than 2a: no cluster is far within that distance."""
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


@pytest.mark.parametrize("options", [COARSE, {"tolerance": 1e-3, "leaf_size": 30, "layout": "nd"}])
def test_a_first_sum_compiles_in_two_batches(options, monkeypatch, rng):
    """Trees and samples of the kernel are compiled first, then all steps."""
    sizes, build_many = [], objects.build_many

    def counted(units):
        units = list(units)
        sizes.append(len(units))
        return build_many(units)

    monkeypatch.setattr(objects, "build_many", counted)
    workunit._of.cache_clear()
    x = np.concatenate([samples.uniform(NS, 1), np.tile([[2.0], [0], [0]], 80)], axis=1)  # many sources at one point
    y = x if options is COARSE else x.T
    parki.treecode.plan("stokeslet", y, y, **options)(rng.standard_normal((3, NS + 80) if y is x else (NS + 80, 3)))
    assert len([n for n in sizes if n]) == 2


@pytest.mark.parametrize("method", METHODS)
def test_sizes_of_leaves_and_batches(method):
    x, y = points()
    plan = parki.treecode.plan("coulomb", x, y, method=method, **COARSE | {"leaf_size": 30, "batch_size": 9})
    targets, sources = plan.structure.targets, plan.structure.sources
    most = {tree: tree_of.nodes.count[tree_of.nodes.leaves].max() for tree, tree_of in (("t", targets), ("s", sources))}
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


def test_what_plans_say():
    assert str(plan_of()).splitlines()[1] == "dual, θ 0.9, degree 1, leaves 20, batches 20"


@pytest.mark.parametrize("method", METHODS)
def test_results_depend_on_neither_threads_nor_space(method, rng):
    x, y = samples.plummer(3000, 1), samples.uniform(2500, 2)
    f = rng.standard_normal((3, 2500))
    given = {"method": method} | COARSE
    one = parki.treecode.plan("stokeslet", x, y, threads=1, **given)(f)
    np.testing.assert_array_equal(parki.treecode.plan("stokeslet", x, y, threads=2, **given)(f), one)
    if method == "dual":
        np.testing.assert_array_equal(parki.treecode.plan("stokeslet", x, y, execution_space="Serial", **given)(f), one)
