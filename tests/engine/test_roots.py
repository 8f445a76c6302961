"""Reciprocal roots of GPUs by a seed and its refinement, in the simulator, whose seeds have the largest errors."""

import numpy as np
import pytest

from parki import engine

TEXT = """import pykokkos as pk

real = pk.double


@pk.workunit
def roots(i: int, x: pk.View1D[real], y: pk.View1D[real]):
    y[i] = pk.rsqrt(x[i])
"""
COUNT = 20_000


@pytest.fixture
def roots(tmp_path):
    """Return a function that takes reciprocal roots in the simulator."""
    path = tmp_path / "work.py"
    path.write_text(TEXT)

    def call(x, hints=("finite_rsqrt",)):
        unit = engine.kernel(path, "roots", real={"f": "float", "d": "double"}[x.dtype.char], hints=hints)
        y = np.zeros_like(x)
        engine.parallel_for(engine.RangePolicy("GpuSim", len(x)), unit, x=x, y=y)
        return y

    return call


def errors(y, x):
    """Return errors in units of the last place."""
    exact = 1 / np.sqrt(x.astype(np.longdouble))
    return np.abs(y.astype(np.longdouble) / exact - 1) / np.finfo(x.dtype).eps


@pytest.mark.parametrize(("dtype", "exponents"), [(np.float64, 1000), (np.float32, 120)])
def test_normal_numbers(roots, rng, dtype, exponents):
    x = np.ldexp(rng.uniform(1, 4, COUNT), 2 * rng.integers(-exponents // 2, exponents // 2, COUNT)).astype(dtype)
    x[:4] = 1.0, 4.0, np.nextafter(dtype(1), dtype(0)), np.finfo(dtype).tiny
    assert errors(roots(x), x).max() < (1.0 if dtype is np.float64 else 1.5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_small_numbers_have_finite_results(roots, dtype):
    x = np.array([0.0, np.finfo(dtype).smallest_subnormal, np.finfo(dtype).tiny / 2], dtype)
    y = roots(x)
    assert np.all(np.isfinite(y) & (y > (1e150 if dtype is np.float64 else 1e18)))
    assert roots(x, hints=())[0] == np.inf
