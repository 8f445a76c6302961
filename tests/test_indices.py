"""Indices beyond int32 are refused before any sum."""

import numpy as np
import pytest

import parki
from parki import arrays
from parki.treecode import interactions
from parki.trees import lists


@pytest.fixture
def few(monkeypatch):
    """Pretend that indices end at 500."""
    monkeypatch.setattr(arrays, "INDICES", 500)


def test_numbers_beyond_int32():
    assert arrays.index32("the number", np.array([0, 2**31 - 1]), "").dtype == np.int32
    with pytest.raises(ValueError, match="the number reaches 2147483648; expected less than 2147483648"):
        arrays.index32("the number", np.array([3, 2**31]), "Take fewer.")
    assert arrays.index32("the number", np.empty(0, np.int64), "").shape == (0,)


def test_products_of_indices_are_not_int32():
    """Check 2.95 million clusters of 9³ points: node · 729 is beyond int32."""
    keys = np.array([(9 << 32) + 2_950_000], np.int64)
    with pytest.raises(ValueError, match="the number of proxy points reaches 2150550000; expected less than"):
        interactions._proxy_items(keys, np.array([0, 1], np.int32))


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda x: parki.treecode.plan("laplace", x, x, degree=4, leaf_size=20), "leaf_size"),
        (lambda x: parki.treecode.plan("laplace", x, x, method="cp", degree=4, leaf_size=20), "leaf_size"),
        (lambda x: parki.fmm.plan("laplace", x, x, method="chebyshev", order=4, leaf_size=5), "leaf"),
    ],
)
def test_plans_with_more_points_than_indices(call, advice, few, rng):
    x = np.concatenate([rng.random((3, 600)), 0.01 * rng.random((3, 300))], axis=1)
    with pytest.raises(ValueError, match=rf"reaches \d+; expected less than 500, .*{advice}"):
        call(x)


def test_lists_with_more_pairs_than_indices(few):
    rows = np.zeros(600, np.int32)
    with pytest.raises(ValueError, match="the number of pairs of clusters reaches 600"):
        lists.csr(rows, np.arange(600, dtype=np.int32), 1)
