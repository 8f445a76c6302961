"""Fixture of the tests of whole sums."""

import pytest

from tests.fmm import sums as _sums


@pytest.fixture(scope="session")
def sums():
    return _sums
