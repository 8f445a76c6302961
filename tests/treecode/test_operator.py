"""Transposes of treecode sums, of every kind of lists."""

import pytest

import parki
from parki import samples
from parki.direct import direct_sum
from tests.methods.sums import NS, NT, TREECODES, relative
from tests.treecode import sums


def plan_of(kernel="coulomb", method="dual", **parameters):
    options = {"degree": 1, "theta": 0.9, "leaf_size": 20} | parameters
    return parki.treecode.plan(kernel, samples.uniform(NT, 2), samples.uniform(NS, 1), method=method, **options)


@pytest.mark.parametrize("method", TREECODES)
def test_transposes_of_every_method(method, rng):
    plan = plan_of(method=method)
    A, w = plan.operator(), rng.standard_normal(NT)
    x, y = samples.uniform(NT, 2), samples.uniform(NS, 1)
    assert sums.far(plan) > 0
    assert relative(A.rmatvec(w), direct_sum("coulomb", y, x, w)) < 0.05
    assert plan.transposed().parameters.method == {"dual": "dual", "pc": "cp", "cp": "pc"}[method]


def test_kernels_with_parameters(rng):
    plan, w = plan_of("gaussian", theta=0.6, leaf_size=10, width=2.0), rng.standard_normal(NT)
    assert sums.far(plan) > 0
    exact = direct_sum("gaussian", samples.uniform(NS, 1), samples.uniform(NT, 2), w, width=2.0)
    assert relative(plan.operator().rmatvec(w), exact) < 0.05
