"""Leaves that meet each other once, where targets are the sources: sums are those of leaves that meet all sources."""

import numpy as np
import pytest

import parki
from parki.fmm import expansion
from tests.quick import every

N = 20000
CASES = {
    "coulomb": {},
    "gradient": {"gradient": True},
    "yukawa": {"kappa": 2.0},
    "regularised_coulomb": {"epsilon": 1e-4},
    "spline_coulomb": {"epsilon": 0.02},
}


@pytest.fixture
def plans(monkeypatch):
    """Return a function that makes plans of one sum, whose leaves meet once, and twice."""

    def make(kernel, x, y=None, **options):
        given = {"tolerance": 1e-6, "execution_space": "Serial"} | options
        made = []
        for fewest in (0, np.inf):
            monkeypatch.setattr(expansion, "FEWEST_PAIRS", fewest)
            made.append(parki.fmm.plan(kernel, x, x if y is None else y, **given))
        return made

    return make


def names(plan):
    """Return the names of a plan's workunits."""
    return [launch.step.unit.ir.name for launch in plan.sums[1].placed.launches]


def parts(result):
    """Return the arrays of a result."""
    return result if isinstance(result, tuple) else (result,)


def points(shape, rng):
    """Return points of a shape."""
    x = rng.random((3, N))
    if shape == "sphere":
        x = rng.standard_normal((3, N))
        x /= np.linalg.norm(x, axis=0)
    elif shape == "clusters":
        x[:, : N // 2] = 0.3 + 0.05 * rng.standard_normal((3, N // 2))
        x[:, 1:10] = x[:, :1]
    return x


@pytest.mark.parametrize(
    ("shape", "real"),
    every(
        5,
        [
            ("cube", "float64"), ("cube", "float32"), ("sphere", "float32"), ("sphere", "float64"),
            ("clusters", "float64"), ("clusters", "float32"),
        ],
    ),
)  # fmt: skip
@pytest.mark.parametrize("case", CASES)
def test_sums(case, shape, real, plans, rng):
    options = CASES[case] | {"tolerance": 1e-6 if real == "float64" else 1e-4, "leaf_size": 60}
    kernel = "coulomb" if case == "gradient" else case
    once, twice = plans(kernel, points(shape, rng).astype(real), **options)
    assert "mutual" in names(once)
    assert "mutual" not in names(twice)
    q = rng.standard_normal(N).astype(real)
    found, expected = (np.concatenate([np.atleast_2d(part) for part in parts(plan(q))]) for plan in (once, twice))
    error = np.linalg.norm(found - expected, axis=1)
    assert np.all(error <= 100 * np.finfo(real).eps * np.linalg.norm(expected, axis=1))


@pytest.mark.parametrize("method", ["kifmm", "chebyshev"])
def test_moved_points(method, plans, rng):
    once, twice = plans("coulomb", points("cube", rng), method=method)
    assert "mutual" in names(once)
    x, q = points("clusters", rng), rng.standard_normal(N)
    for plan in (once, twice):
        plan.move(x)
    np.testing.assert_allclose(once(q), twice(q), rtol=0, atol=1e-12 * np.abs(twice(q)).max())


def test_results_do_not_depend_on_threads(plans, rng, monkeypatch):
    x, q = points("clusters", rng), rng.standard_normal(N)
    results = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        once, _ = plans("coulomb", x, execution_space="OpenMP", leaf_size=60)
        assert "mutual" in names(once)
        results.append(once(q))
    assert all(np.array_equal(results[0], other) for other in results)


@pytest.mark.parametrize(
    ("kernel", "options"),
    [("stokes_sl", {}), ("coulomb", {"schedule": "drain"}), ("coulomb", {"method": "chebyshev", "schedule": "drain"})],
)
def test_other_sums_meet_twice(kernel, options, plans, rng):
    once, _ = plans(kernel, points("cube", rng), **options)
    if "schedule" not in options:
        assert "mutual" not in names(once)


def test_targets_apart_from_sources_meet_twice(plans, rng):
    once, _ = plans("coulomb", points("cube", rng), points("cube", rng))
    assert "mutual" not in names(once)
