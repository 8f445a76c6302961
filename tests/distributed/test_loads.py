"""Sums over rectangles of rows against sums over the points in them."""

import numpy as np
import pytest

import parki
from parki.distributed.bricks import loads
from parki.distributed.bricks.loads import Rows
from parki.ewald.stages import brick


@pytest.mark.parametrize("most", [1024, 5])
@pytest.mark.parametrize("periodicity", [3, 2, 0])
def test_rectangles(periodicity, most, monkeypatch):
    monkeypatch.setattr(loads, "MOST", most)
    x = np.random.default_rng(0).random((3, 500)) * 0.8
    plan = parki.ewald.plan("laplace", x, x, box=(1, 1, 1), periodicity=periodicity, tolerance=1e-4)
    p, rng = plan.chosen.parameters, np.random.default_rng(1)
    n1, n2 = brick.rows(p)[1:]
    y, z, w = rng.integers(0, n1, 300), rng.integers(0, n2, 300), rng.random(300)
    rows = Rows.of(p, Rows.counts((n1, n2), y, z, w))
    size = [loads.group(n) for n in (n1, n2)]
    y0, y1, z0, z1 = np.array([[0, n1, 0, n2], [0, size[0], 0, size[1]], [0, 2 * size[0], size[1], n2]]).T
    expected = [w[(y >= a) & (y < b) & (z >= c) & (z < d)].sum() for a, b, c, d in zip(y0, y1, z0, z1, strict=True)]
    np.testing.assert_allclose(rows.sums(y0, y1, z0, z1), expected, rtol=1e-12, atol=1e-12)
    every = rows.sums_between(np.arange(n1 + 1), np.arange(n2 + 1))
    assert every.shape == (n1, n2)
    assert every.sum() == pytest.approx(w.sum())
    assert rows.sums_between(np.array([0, size[0], n1]), np.array([0, size[1]]))[0] == pytest.approx(expected[1])
    around = rows.sums(*(np.array([a], float) for a in (-n1, 2 * n1, -n2, 2 * n2)))
    images = 3 ** ((periodicity > 1) + (periodicity > 2))
    assert around[0] == pytest.approx(images * w.sum())
    odd = rows.sums(*(np.array([a], float) for a in (-2.5, -0.5, 0, n2)))
    last = np.interp([n1 - 2.5, n1 - 0.5], rows.edges[0], rows.below[:, -1])
    assert odd[0] == pytest.approx(last[1] - last[0] if periodicity > 1 else 0.0)
