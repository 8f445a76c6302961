"""Tables of kernels with lengths: points that move a little keep the size of their boxes, and so the tables."""

import math

import numpy as np
import pytest

from parki import fmm, samples
from parki.direct import direct_sum
from parki.engine import Space
from parki.fmm import box_operators, chebyshev_m2l
from parki.trees import octree
from tests.methods.sums import relative

SERIAL = Space("Serial")


def width(x, **shape):
    """Return the side of the root of a tree."""
    return octree.build(x, None, 30, SERIAL, **shape).nodes.width


@pytest.mark.parametrize("fill", [None, 5.0, 12.0])
@pytest.mark.parametrize("scale", [1.0, 1.37, 3e-7, 2.9e12])
def test_rounded_sides_have_six_bits_and_hold_all_points(scale, fill):
    x = scale * samples.uniform(2000, 3)
    least, rounded = width(x, fill=fill), width(x, fill=fill, is_rounded=True)
    assert least <= rounded <= least * (1 + 2.0**-5)
    assert math.frexp(rounded)[0] * 2**6 % 1 == 0


def test_a_rounded_side_of_six_bits_stays():
    x = np.array([[0.0, 1.0 - 2.0**-30], [0.0, 0.5], [0.0, 0.25]])
    assert width(x, is_rounded=True) == 1.0


def counted(monkeypatch, module, name):
    """Count the calls of a function of a module."""
    calls, made = [], getattr(module, name)
    monkeypatch.setattr(module, name, lambda *arguments: calls.append(arguments) or made(*arguments))
    return calls


@pytest.mark.parametrize(
    ("method", "kernel", "parameters", "module", "name"),
    [
        ("kifmm", "yukawa", {"kappa": 1.2345}, box_operators, "_make"),
        ("chebyshev", "gaussian", {"width": 0.5432}, chebyshev_m2l, "factors"),
    ],
)
def test_moved_points_keep_tables(monkeypatch, tmp_path, method, kernel, parameters, module, name):
    monkeypatch.setenv("PARKI_CACHE_DIR", str(tmp_path))
    x, q = samples.plummer(1500, 5), samples.charges(1500, seed=6)
    side = float(np.ptp(x, axis=1).max())
    mantissa, exponent = math.frexp(side)
    x *= math.ldexp(math.floor(64 * mantissa) + 0.5, exponent - 6) / side  # half way between two rounded sides
    calls = counted(monkeypatch, module, name)

    def plan(points):
        made = fmm.plan(kernel, points, points, method=method, tolerance=1e-3, leaf_size=40, **parameters)
        assert relative(made(q), direct_sum(made.kernel, points, points, q)) < 1e-3
        return len(calls)

    first = plan(x)
    assert first > 0
    assert plan(1.001 * x) == first
    assert plan(0.999 * x) == first
    assert plan(1.1 * x) > first
