"""Arrangement of points: crystals and clusters are told from random points, and parameters follow."""

import numpy as np
import pytest

import parki
from parki.ewald.choice import arrangement, choose
from parki.ewald.choice.arrangement import Arrangement
from parki.ewald.choice.question import Question
from parki.perfmodels import select
from parki.perfmodels.machine import Costs
from tests.quick import every

CUBE, LONG = (1.0, 1.0, 1.0), (1.0, 2.0, 3.0)


def grid_points(m, box=CUBE):
    return np.array(box)[:, None] * np.indices((m, m, m)).reshape(3, -1) / m


@pytest.mark.parametrize("m", [2, 3, 10, 40])
def test_lattices_are_regular(rng, m):
    x, sides = grid_points(m, LONG), np.array(LONG)[:, None]
    sample = x[:, rng.integers(m**3, size=1024)] if m > 10 else x
    assert arrangement.regularity(sample, LONG, m**3) == pytest.approx(1.0, abs=1e-3)
    shaken = sample + 0.05 / m * sides * rng.standard_normal(sample.shape)
    assert arrangement.regularity(shaken % sides, LONG, m**3) == pytest.approx(0.9, abs=0.1)


@pytest.mark.parametrize("n", [1, 2, 5, 40, 1000])
def test_random_points_are_not_regular(rng, n):
    found = [arrangement.regularity(rng.random((3, n)), CUBE, n) for _ in range(60)]
    assert np.mean(np.array(found) > 0) < 0.15
    if n >= 40:
        assert np.mean(found) > -0.2
        assert arrangement.regularity((0.3 + 0.06 * rng.standard_normal((3, n))) % 1.0, CUBE, n) < -0.7


@pytest.mark.parametrize("n", [3, 200, 5000, 100_000])
@pytest.mark.parametrize("box", [CUBE, LONG, (8.0, 1.0, 1.0)])
def test_crowding_of_evenly_spread_points_is_one(rng, n, box):
    x, y = (np.array(box)[:, None] * rng.random((3, n)) for _ in range(2))
    for targets in (x, y, x.copy()):
        found = Arrangement.of(targets, x, box)
        assert set(found.crowding) <= {1.0}
        assert found.same == (targets is not y)


def test_crowding_of_clusters(rng):
    x = 0.25 * rng.random((3, 300_000))
    found = Arrangement.of(x, x, CUBE).crowding
    assert len(found) > 3
    assert found[0] == 8.0
    assert 40.0 < found[-2] <= found[-1] < 70.0
    layer = rng.random((3, 300_000)) * np.array([[1.0], [1.0], [0.25]])
    assert Arrangement.of(layer, layer, CUBE).crowding[:4] == pytest.approx((2.0, 4.0, 4.0, 4.0), rel=0.3)
    speck = 0.5 + 1e-3 * rng.random((3, 3000))  # inside one bin until bins are as small: a shorter rc saves nothing
    assert Arrangement.of(speck, speck, CUBE).crowding[:6] == tuple(8.0**k for k in range(1, 7))
    assert Arrangement.of(x, np.concatenate([x[:, :2000], rng.random((3, 298_000))], axis=1), CUBE).crowding[-1] < 2.0
    apart = Arrangement.of(0.75 + x, x, CUBE)
    assert apart.crowding[-1] < 0.2
    assert not apart.same
    lattice = grid_points(16)
    assert set(Arrangement.of(lattice, lattice, CUBE).crowding) == {1.0}


def test_pairs_are_predicted_where_points_crowd(rng):
    """Compare the model's number of pairs within rc to a count."""
    n = 4000
    for x in (0.4 * rng.random((3, n)), (0.5 + 0.08 * rng.standard_normal((3, n))) % 1.0):
        domain = select.Domain(CUBE, crowding=Arrangement.of(x, x, CUBE).crowding)
        for rc in (0.06, 0.12, 0.3):
            d = x[:, :400, None] - x[:, None]
            there = np.count_nonzero(np.square(d - np.rint(d)).sum(axis=0) < rc**2) / 400
            assert 4 * np.pi / 3 * domain.crowd(n, rc) == pytest.approx(there, rel=0.5)


def test_cutoffs_are_shorter_where_points_crowd():
    even, dense, sparse = (
        choose.parameters(
            Question("stokes_sl", CUBE, 10**5, 10**5, 1e-6, arrangement=Arrangement(0.0, crowding, True)), Costs()
        )
        for crowding in ((), (8.0, 64.0, 64.0), (0.0625, 0.0625))
    )
    assert dense.rc < 0.7 * even.rc
    assert sparse.rc > 1.2 * even.rc
    assert dense.rc * dense.kmax == pytest.approx(dense.c)


@pytest.mark.parametrize(
    ("kernel", "tolerance"),
    every(6, [(k, t) for k in ("laplace", "laplace_grad", "stokes_comb") for t in (1e-4, 1e-10)]),
)
def test_targets_away_from_as_many_sources(rng, kernel, tolerance):
    """Targets see little of a nearly neutral cluster, and are not taken for its sources because they are as many."""
    n = 8000
    src = (0.5 + 0.05 * rng.standard_normal((3, n))) % 1.0
    trg = rng.random((3, n))
    plan = parki.ewald.plan(kernel, trg, src, box=CUBE, tolerance=tolerance, threads=1)
    dens = rng.standard_normal((plan.kernel.dens, n))
    dens -= dens.mean(axis=1, keepdims=True)
    plan(dens, *([rng.standard_normal((3, n))] if kernel == "stokes_comb" else []))
    assert plan.error(50).value < tolerance


def test_the_height_of_points_in_a_slab(rng):
    x = rng.random((3, 500)) * np.array([1.0, 1.0, 0.4])[:, None]
    y = x + np.array([0.0, 0.0, 0.5])[:, None]
    box = (1.0, 1.0, 2.0)
    assert Arrangement.of(x, x, box).height == pytest.approx(0.2, rel=0.02)
    assert Arrangement.of(x, y, box).height == pytest.approx(0.45, rel=0.02)


@pytest.mark.parametrize("split", ["prolate", "gaussian"])
def test_a_tight_cluster_in_a_tall_slab_meets_the_tolerance(split, rng):
    """The flow of its net force over the whole free side is larger than any that its points see."""
    x = np.array([0.5, 0.5, 6.0])[:, None] + 0.06 * rng.standard_normal((3, 400))
    f = rng.standard_normal((3, 400))
    options = {"box": (1, 1, 11), "periodicity": 2}
    exact = parki.ewald.stokes_sl(x, x, f, tolerance=1e-8, **options)
    found = parki.ewald.stokes_sl(x, x, f, tolerance=1e-3, split=split, **options)
    assert np.linalg.norm(found - exact) < 1e-3 * np.linalg.norm(exact)
