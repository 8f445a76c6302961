"""The stand-in for PyKokkos."""

import sys

import pytest

from parki.engine import upstream
from tests.engine import pykokkos_standin as standin


@pytest.fixture
def pk(monkeypatch, tmp_path):
    """The stand-in, with a cache of its own, in an environment that it does not mind."""
    for name in upstream.CHANGING:
        monkeypatch.delenv(name, raising=False)
    fake = standin.StandIn()
    for name, module in standin.modules(fake).items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("PARKI_CACHE_DIR", str(tmp_path / "cache"))
    return fake
