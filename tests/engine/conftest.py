"""The stand-in for PyKokkos."""

import sys

import pytest

from parki.engine.run import upstream
from tests.engine import pykokkos_standin as standin


@pytest.fixture
def stand_in(monkeypatch):
    """The stand-in, in an environment that PyKokkos does not mind."""
    for name in upstream.CHANGING:
        monkeypatch.delenv(name, raising=False)
    fake = standin.StandIn()
    for name, module in standin.modules(fake).items():
        monkeypatch.setitem(sys.modules, name, module)
    return fake


@pytest.fixture
def pk(stand_in, monkeypatch, tmp_path):
    """The stand-in, with a cache of its own."""
    monkeypatch.setenv("PARKI_CACHE_DIR", str(tmp_path / "cache"))
    return stand_in
