"""Checks of each row of a table of bad input: the error names the argument, and the input is unchanged."""

import numpy as np
import pytest

NAN, INF = float("nan"), float("inf")
N = 9
_RNG = np.random.default_rng(0)
X, Q, V = _RNG.random((3, N)), _RNG.random(N), _RNG.random((3, N))
X4, Q4 = X.astype("f4"), Q.astype("f4")
KEPT = [(a, a.copy()) for a in (X, Q, V, X4, Q4)]
BOX = {"box": (1, 1, 1), "tolerance": 1e-3}


def refused(call, message):
    """Check that a call raises an expected error with this message, and leaves its input unchanged."""
    with pytest.raises((ValueError, TypeError, MemoryError), match=f"(?s){message}"):
        call()
    for array, before in KEPT:
        np.testing.assert_array_equal(array, before)


def rows(*table):
    """Return the parameters of a table of (call, message), with messages as names."""
    return pytest.mark.parametrize(("call", "message"), table, ids=[f"{i}: {row[1]}" for i, row in enumerate(table)])
