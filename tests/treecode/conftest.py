"""Fixture of the helpers of `sums`: points, errors, slow versions."""

import pytest

from tests.treecode import sums as _sums


@pytest.fixture(scope="session")
def sums():
    return _sums
