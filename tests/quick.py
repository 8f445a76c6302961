"""Cases of which every run of the tests has some, and runs of the slow ones all."""

import pytest


def every(n, cases):
    """Return cases of which each n-th, from the first on, is in every run."""
    several = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=[pytest.mark.slow] * (k % n > 0)) for k, case in enumerate(several)]


def but(*slow, of):
    """Return cases of which some run with the slow ones."""
    return [pytest.param(case, marks=[pytest.mark.slow] * (case in slow)) for case in of]
