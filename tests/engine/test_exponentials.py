"""Exponentials of GPUs without slow code, in the simulator, whose seeds have the largest errors."""

import numpy as np
import pytest

from parki import engine
from parki.engine.workunit import HINTS

TEXT = """import pykokkos as pk

real = pk.double


@pk.workunit
def exponentials(i: int, x: pk.View1D[real], y: pk.View1D[real]):
    y[i] = pk.exp(x[i])
"""
COUNT = 20_000
EXP = ("rounded_exp", "short_exp", "shorter_exp", "shortest_exp")
#: Least and largest arguments with normal results, and the error of the seed in units of the last place.
RANGES = {np.float64: (-708.0, 708.0, 0.0), np.float32: (-87.0, 88.0, 2.0)}


@pytest.fixture
def exponentials(tmp_path):
    """Return a function that takes exponentials in the simulator."""
    path = tmp_path / "work.py"
    path.write_text(TEXT)

    def call(x, hints=("rounded_exp",)):
        unit = engine.kernel(path, "exponentials", real={"f": "float", "d": "double"}[x.dtype.char], hints=hints)
        y = np.full_like(x, 77)
        engine.parallel_for(engine.RangePolicy("GpuSim", len(x)), unit, x=x, y=y)
        return y

    return call


def arguments(rng, dtype):
    """Return arguments of all sizes, most of them negative, and both ends of their range."""
    least, most, _ = RANGES[dtype]
    x = np.r_[rng.uniform(least, 0, COUNT), rng.uniform(-1, 1, COUNT), rng.uniform(0, most, COUNT // 4)]
    x = np.r_[x, -np.exp(rng.uniform(-40, 0, COUNT)), least, most, 0.0, -0.0]
    return x.astype(dtype)


def relative_errors(y, x):
    """Return relative errors."""
    return np.abs(y.astype(np.longdouble) / np.exp(x.astype(np.longdouble)) - 1)


@pytest.mark.parametrize("dtype", RANGES)
def test_rounded(exponentials, rng, dtype):
    x = arguments(rng, dtype)
    ulps = relative_errors(exponentials(x), x) / np.finfo(dtype).eps
    assert (ulps - 0.6 * np.abs(x)).max() < 1.0 + RANGES[dtype][2]
    assert ulps[np.abs(x) < 1].max() < 1.5 + RANGES[dtype][2]


@pytest.mark.parametrize(("count", "error"), [(2, 7.8e-13), (3, 1.9e-9), (4, 7.6e-8)])
def test_short(exponentials, rng, count, error):
    x = arguments(rng, np.float64)
    errors = relative_errors(exponentials(x, EXP[:count]), x)
    assert 0.9 * error < (errors - np.abs(x) * np.finfo(np.float64).eps).max() < error


@pytest.mark.parametrize("dtype", RANGES)
@pytest.mark.parametrize("count", range(1, 5))
def test_far_arguments_and_nan(exponentials, dtype, count):
    """Check that underflow is exactly 0, that results below the least normal number are 0 or right, and NaN."""
    single = dtype is np.float32
    far = [-104, -1e3, -1e9, -1e20] if single else [-746, -1e3, -2e9, -5e9, -1e10, -1e15, -1e16, -1e19, -1e60]
    x = np.array([*far, np.nan, -np.nan], dtype)
    np.testing.assert_array_equal(exponentials(x, EXP[:count]), [0] * (len(x) - 2) + [np.nan] * 2)
    x = -np.arange(*((87, 90, 0.01) if single else (707, 711, 0.01))).astype(dtype)
    y, tiny = exponentials(x, EXP[:count]), np.finfo(dtype).tiny
    assert np.all((y == 0) | (relative_errors(y, x) < 1e-5))
    assert np.all(y[np.exp(x) > 2 * tiny] > 0)
    assert np.all(np.diff(y) <= 0)


def test_other_workunits_are_compiled_without_hints(exponentials):
    """Check that a hint about a function that a workunit does not call does not make another object."""
    pair = engine.kernel("direct", "direct_sum", pair="pair/laplace", hints=HINTS)
    assert pair.gpu_macros == ("-DPK_RSQRT_FINITE",)
    pair = engine.kernel("direct", "direct_sum", pair="pair/yukawa", hints=HINTS)
    assert {*pair.gpu_macros} == {flag for hint in ("finite_rsqrt", *EXP) for flag in HINTS[hint]}
