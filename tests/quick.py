"""Marks of slow cases: some cases of a test are in every run, the others run with the slow ones."""

import pytest


def every(n, cases):
    """Return the cases, with all but each n-th (from the first on) marked as slow."""
    several = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=[pytest.mark.slow] * (k % n > 0)) for k, case in enumerate(several)]


def but(*slow, of):
    """Return the cases, with the given ones marked as slow."""
    return [pytest.param(case, marks=[pytest.mark.slow] * (case in slow)) for case in of]


def half(rows, columns):
    """Return all pairs of both; every second one, and with them each row and column, is in every run."""
    return [
        pytest.param(a, b, marks=[pytest.mark.slow] * ((i + j) % 2))
        for i, a in enumerate(rows)
        for j, b in enumerate(columns)
    ]
