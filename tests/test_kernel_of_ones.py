"""Sums with a caller's kernel G = 1: all targets receive the sum of all charges, for any lists and expansions."""

import numpy as np
import pytest

import parki
from tests import own_pairs
from tests.trees import receiving

each_set = pytest.mark.parametrize("names", receiving.SETS, ids=receiving.IDS)


@pytest.fixture(scope="module")
def ones():
    return parki.pairs.Pair("ones", 1, 1, str(own_pairs.file("u[0] += s[0]")), singular=False)


def assert_number_of_sources(plan, y, rng):
    """Check that all targets get the number of sources for ones, and the sum of charges for charges."""
    n = y.shape[1]
    np.testing.assert_allclose(plan(np.ones(n)), n, rtol=1e-10)
    charges = rng.uniform(0.5, 1.5, n)
    np.testing.assert_allclose(plan(charges), charges.sum(), rtol=1e-10)


@each_set
@pytest.mark.parametrize("method", ["dual", "pc", "cp"])
@pytest.mark.parametrize(("leaf_size", "batch_size"), [(8, 8), (60, 9)])
def test_treecodes(names, method, leaf_size, batch_size, ones, rng):
    y, x = receiving.points(names, rng)
    options = {"theta": 0.7, "degree": 1, "leaf_size": leaf_size, "batch_size": batch_size, "far_precision": "double"}
    plan = parki.treecode.plan(ones, x, y, method=method, execution_space="Serial", **options)
    assert_number_of_sources(plan, y, rng)


@each_set
@pytest.mark.parametrize("leaf_size", [1, 8, 60])
def test_interpolation_on_octrees(names, leaf_size, ones, rng):
    y, x = receiving.points(names, rng)
    plan = parki.fmm.plan(ones, x, y, method="chebyshev", order=3, leaf_size=leaf_size, execution_space="Serial")
    assert_number_of_sources(plan, y, rng)


def test_the_sums_above_have_all_parts(ones, rng):
    """Check that no list is empty: clusters by kind of pair, octants U, V, W and X."""
    x = receiving.SHAPES["clustered"](rng, 700)
    options = {"theta": 0.7, "degree": 1, "leaf_size": 8, "batch_size": 8, "execution_space": "Serial"}
    evaluations = parki.treecode.plan(ones, x, x, **options).walltime.pairs
    assert min(evaluations.values()) > 0
    assert set(evaluations) == {"pp", "pc", "cp", "cc"}
    plan = parki.fmm.plan(ones, x, x, method="chebyshev", order=3, leaf_size=8, execution_space="Serial")
    assert min(len(getattr(plan.structure.lists, f"{name}_t")) for name in "uvwx") > 0
