"""Options of fast multipole methods, counts of their pairs, sizes of leaves."""

import numpy as np
import pytest

import parki
from parki import samples
from tests.fmm import sums
from tests.methods.sums import COARSE, FMM, NS, NT, points


def plan_of(method, **options):
    return parki.fmm.plan("coulomb", *points(method), method=method, **(COARSE[method] | options))


def test_defaults():
    x = np.zeros((3, 1))
    plan = parki.fmm.plan("coulomb", x, x)
    assert (plan.method.name, plan.parameters.method, plan.parameters.tolerance) == ("kifmm", "kifmm", 1e-6)
    assert parki.fmm.plan("coulomb", x, x, order=7).parameters.tolerance is None
    plain, both = (parki.fmm.plan("coulomb", x, x, tolerance=1e-3, gradient=g).parameters.order for g in (False, True))
    assert both == plain + 1


@pytest.mark.parametrize("method", FMM)
def test_pairs_are_counted(method):
    plan = plan_of(method)
    near = (1 - sums.far_share(plan)) * NT * NS
    assert plan.walltime.pairs["near"] == pytest.approx(near)
    assert plan.walltime.pairs["p2l_m2p"] > 0
    assert 0 < sums.far_share(plan) < 1


@pytest.mark.parametrize("method", FMM)
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
