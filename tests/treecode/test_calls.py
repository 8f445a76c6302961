"""Options of treecodes, kinds of their pairs, gradients to a tolerance, precision of the far field."""

import numpy as np
import pytest

import parki
from parki import samples
from parki.direct import direct_sum
from parki.engine import workunit
from parki.engine.compile import objects
from tests.methods.sums import COARSE as COARSE_OF
from tests.methods.sums import NS, TREECODES, far_share, points, relative

COARSE = COARSE_OF["dual"]
TOLERANCE = 1e-2


def test_kinds_of_sums():
    """Each method has its kinds of PP, PC, CP and CC alone."""
    x, y = points("dual")
    for method, kinds in (("pc", {"pp", "pc"}), ("cp", {"pp", "cp"}), ("dual", {"pp", "pc", "cp", "cc"})):
        pairs = parki.treecode.plan("coulomb", x, y, method=method, **COARSE).walltime.pairs
        assert set(pairs) == {"pp", "pc", "cp", "cc"}
        assert {kind for kind, n in pairs.items() if n} <= kinds
        assert sum(n for kind, n in pairs.items() if kind != "pp") > 0


@pytest.mark.slow
def test_gradients_to_a_tolerance():
    """Potential and gradient each meet the tolerance, at lengths where one is much larger than the other."""
    q = samples.charges(2500, 3)
    for scale in (1e-3, 1e3):
        x = scale * samples.uniform(2500, 4)
        plan = parki.treecode.plan("coulomb", x, x, gradient=True, tolerance=TOLERANCE, leaf_size=60, method="pc")
        u, g = plan(q)
        exact = direct_sum(plan.kernel, x, x, q)
        assert far_share(plan) > 0.05
        assert relative(u, exact[0]) < TOLERANCE
        assert relative(g, exact[1:]) < TOLERANCE


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


@pytest.mark.parametrize("method", TREECODES)
def test_sizes_of_leaves_and_batches(method):
    plan = parki.treecode.plan("coulomb", *points(method), method=method, **COARSE | {"leaf_size": 30, "batch_size": 9})
    targets, sources = plan.structure.targets, plan.structure.sources
    most = {tree: tree_of.nodes.count[tree_of.nodes.leaves].max() for tree, tree_of in (("t", targets), ("s", sources))}
    clusters, batches = ("t", "s") if method == "cp" else ("s", "t")
    assert 9 < most[clusters] <= 30
    assert 4 < most[batches] <= 9


def test_precision_of_the_far_field(rng):
    given, q = points("dual"), rng.standard_normal(NS)
    plans = {far: parki.treecode.plan("coulomb", *given, far_precision=far, **COARSE) for far in ("double", "single")}
    assert {far: plan.parameters.far for far, plan in plans.items()} == {"double": "float64", "single": "float32"}
    u, v = (plan(q) for plan in plans.values())
    assert u.dtype == v.dtype == np.float64
    assert 1e-10 < relative(v, u) < 1e-6
    tolerant = [parki.treecode.plan("coulomb", *given, tolerance=t).parameters.far for t in (1e-3, 1e-4)]
    assert tolerant == ["float32", "float32"]
