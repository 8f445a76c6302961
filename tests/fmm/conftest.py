"""What the tests of whole sums share."""

import importlib.util
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("fmm_sums", Path(__file__).with_name("sums.py"))
_sums = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_sums)


@pytest.fixture(scope="session")
def sums():
    return _sums
