"""Distributions of points, errors, and the slow versions to compare with."""

import pytest

from tests.treecode import sums as _sums


@pytest.fixture(scope="session")
def sums():
    return _sums
