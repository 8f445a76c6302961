"""Groups of points far apart: each group is summed as if it were alone."""

import numpy as np
import pytest

import parki
from parki import pairs


def error(found, exact):
    return np.linalg.norm(found - exact) / np.linalg.norm(exact)


SUMS = {
    "direct": lambda x, q, **more: parki.direct.direct_sum("laplace", x, x, q, **more),
    "bldtt": lambda x, q, **more: parki.treecode.bldtt(x, x, q, tolerance=1e-6, leaf_size=100, batch_size=100),
    "bltc": lambda x, q, **more: parki.treecode.bltc(x, x, q, tolerance=1e-6, leaf_size=100, batch_size=100),
    "kifmm": lambda x, q, **more: parki.fmm.kifmm(x, x, q, tolerance=1e-6),
    "chebyshev": lambda x, q, **more: parki.fmm.chebyshev(x, x, q, tolerance=1e-5),
}


@pytest.mark.parametrize("far", [1e6, 1e13, -1e15])
@pytest.mark.parametrize("method", SUMS)
def test_a_far_charge_of_zero_changes_nothing(method, far, rng):
    x, q = rng.random((3, 1500)), rng.standard_normal(1500)
    exact = SUMS["direct"](x, q)
    more = np.concatenate([x, np.full((3, 1), far)], axis=1)
    assert error(SUMS[method](more, np.append(q, 0.0))[:-1], exact) < 1e-5
    plan = parki.treecode.plan("laplace", more, more, tolerance=1e-6)
    plan(np.append(q, 0.0))
    assert plan.error().value < 1e-6


def test_a_grid_around_far_points_is_refused(rng):
    x = np.concatenate([rng.random((3, 500)), np.full((3, 1), 1e13)], axis=1)
    with pytest.raises(ValueError, match=r"trg and src extend .* expected points without distant ones"):
        parki.ewald.laplace(x, x, np.ones(501), periodicity=0)
    plan = parki.ewald.plan("laplace", x[:, :-1], x[:, :-1].copy(), periodicity=0, tolerance=1e-3)
    with pytest.raises(ValueError, match="expected points without distant ones"):
        plan.move(sources=x[:, 1:])
    exact = parki.direct.direct_sum("laplace", x[:, :-1], x[:, :-1], np.ones(500))
    assert error(plan(np.ones(500)), exact) < 1e-3  # unchanged by the refused move


@pytest.mark.parametrize("apart", [10.0, 300.0, 1e6, 1e12])
@pytest.mark.parametrize("method", ["bldtt", "bltc"])
def test_screened_groups_further_apart_than_they_see(method, apart, rng):
    """Check two unit cubes of ones, where the fields of all large clusters vanish."""
    x = np.concatenate([rng.random((3, 2000)), rng.random((3, 2000)) + apart], axis=1)
    q, kappa = np.ones(4000), 1.0
    exact = parki.direct.direct_sum("yukawa", x, x, q, kappa=kappa)
    call = getattr(parki.treecode, method)
    u, p = call(x, x, q, "yukawa", kappa=kappa, tolerance=1e-7, return_params=True)
    assert error(u, exact) < 1e-7
    assert p.degree < 16


@pytest.mark.parametrize("seed", range(4))
def test_screened_groups_of_any_size(seed):
    rng = np.random.default_rng(seed)
    kappa, apart, tolerance = 10 ** rng.uniform(-1, 3), 10 ** rng.uniform(0, 8), 10 ** rng.uniform(-9, -3)
    groups = [10 ** rng.uniform(-2, 1) * rng.random((3, 600)) + apart * rng.normal(size=(3, 1)) for _ in range(3)]
    x = np.concatenate(groups, axis=1)
    q = rng.standard_normal(x.shape[1])
    exact = parki.direct.direct_sum("yukawa", x, x, q, kappa=kappa)
    assert error(parki.treecode.bldtt(x, x, q, "yukawa", kappa=kappa, tolerance=tolerance), exact) < tolerance


def test_scales_below_all_clusters_are_many_enough():
    """Check groups 1e20 apart, where all fields of the first forty sizes of clusters vanish."""
    x = np.concatenate([np.random.default_rng(1).random((3, 800)), np.full((3, 3), 1e20)], axis=1)
    q = np.ones(803)
    u = parki.treecode.bldtt(x, x, q, "yukawa", kappa=1.0, tolerance=1e-6, leaf_size=50, batch_size=50)
    assert error(u, parki.direct.direct_sum("yukawa", x, x, q, kappa=1.0)) < 1e-6


@pytest.mark.parametrize("scale", [1e-160, 1e154, 1e-300])
@pytest.mark.parametrize("method", SUMS)
def test_lengths_whose_squares_are_no_doubles(method, scale, rng):
    x, q = rng.random((3, 300)), rng.standard_normal(300)
    exact = SUMS["direct"](x, q)
    assert error(SUMS[method](x * scale, q) * scale, exact) < 1e-5


def test_pairs_of_ones_own_that_say_nothing_are_summed_as_they_are():
    pair = pairs.Pair("mine", 1, 1, "pair/laplace")
    assert pair.law == pairs.PAIRS["laplace"].law  # recognised by its file
