"""Availability of PyKokkos as a second engine, and the reasons where it cannot be used."""

import os
import sys
from types import SimpleNamespace

import pytest

from parki.engine import LaunchError, RangePolicy
from parki.engine.run import devices, upstream
from tests.engine.pykokkos_standin import gather, prepare


def test_available_with_the_stand_in(pk):
    assert upstream.available() is None


def test_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "pykokkos", None)
    assert "cannot be imported: ModuleNotFoundError" in upstream.available()
    unit, args = gather()
    with pytest.raises(LaunchError, match="cannot be imported"):
        prepare(RangePolicy("Serial", 4), unit, args)
    with pytest.raises(LaunchError, match="cannot be imported"):
        upstream.translate(unit)


def test_where_there_is_no_gpu_it_does_not_see_cupy(monkeypatch, tmp_path):
    """Check that CuPy is hidden: PyKokkos asks CuPy for the current GPU while it is imported."""
    if any(devices.find(kind) for kind in devices.PLATFORMS):
        pytest.skip("a GPU is here")
    (tmp_path / "pykokkos.py").write_text(
        "try:\n    import cupy\nexcept ImportError:\n    pass\nelse:\n    raise RuntimeError('insufficient driver')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    cupy = SimpleNamespace()
    for name, module in (("cupy", cupy), ("pykokkos", None)):
        monkeypatch.setitem(sys.modules, name, module)
    del sys.modules["pykokkos"]
    assert "does not know @pk.workunit(scratch=[…])" in upstream.available()
    assert sys.modules["cupy"] is cupy
    del sys.modules["pykokkos"], sys.modules["cupy"]
    assert "does not know" in upstream.available()
    assert "cupy" not in sys.modules


@pytest.mark.parametrize("name", upstream.CHANGING)
def test_environment_that_changes_kernels_is_refused(pk, name, monkeypatch):
    monkeypatch.setenv(name, "")
    assert f"while {name} is set" in upstream.available()
    unit, args = gather()
    with pytest.raises(LaunchError, match=name):
        prepare(RangePolicy("Serial", 4), unit, args)


def test_versions_without_scratch_are_refused(pk):
    pk.workunit = lambda f=None, **options: f or (lambda g: g)
    assert "does not know @pk.workunit(scratch=[…])" in upstream.available()
    pk.workunit = lambda f: f
    assert "does not know @pk.workunit(scratch=[…])" in upstream.available()


def test_importing_parki_leaves_pykokkos_alone():
    code = "import sys, parki.engine.run.upstream; sys.exit('pykokkos' in sys.modules)"
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", code]) == 0
