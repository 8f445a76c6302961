"""Fixtures with the stand-in for PyKokkos."""

import sys

import pytest

from parki.engine.run import upstream
from tests.engine import pykokkos_standin as standin


@pytest.fixture
def stand_in(monkeypatch):
    """Return the stand-in, without the environment variables that change PyKokkos."""
    for name in upstream.CHANGING:
        monkeypatch.delenv(name, raising=False)
    fake = standin.StandIn()
    for name, module in standin.modules(fake).items():
        monkeypatch.setitem(sys.modules, name, module)
    return fake


@pytest.fixture
def pk(stand_in, monkeypatch, tmp_path):
    """Return the stand-in, with an empty cache."""
    monkeypatch.setenv("PARKI_CACHE_DIR", str(tmp_path / "cache"))
    return stand_in
