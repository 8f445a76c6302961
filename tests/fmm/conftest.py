"""What the tests of whole sums share."""

import pytest

from tests.fmm import sums as _sums


@pytest.fixture(scope="session")
def sums():
    return _sums
