"""Helpers for tests of building: trivial kernels, a cache for each test, and a compiler that counts its calls."""

import ctypes
import subprocess
import sys
from dataclasses import replace

import pytest

from parki.engine.compile import cache, compiler, objects

WRAPPER = """#!/bin/sh
# g++ that counts its kernels, and waits while a file says so
case "$*" in
  *kernel.cpp*)
    echo x >> "{folder}/count"
    if [ -e "{folder}/slow" ]; then touch "{folder}/begun"; exec sleep 60; fi ;;
  *) echo x >> "{folder}/probes" ;;
esac
exec {real} "$@"
"""
CHILD = """
import ctypes, sys
from parki.engine.compile import objects, compiler
unit = objects.Unit("race", "race (int)", sys.argv[1], (), compiler.target())
print(ctypes.CDLL(str(objects.build(unit))).pk_value())
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Use an empty cache for each test; return its folder."""
    monkeypatch.setenv("PARKI_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("PARKI_ARCH", "PARKI_VECTOR_BYTES", "PARKI_QUIET"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache"


@pytest.fixture
def counter(tmp_path, monkeypatch):
    """Return a function that counts the compiled kernels; its `folder` holds the wrapper's files."""
    where = tmp_path / "wrapper"
    where.mkdir()
    script(where / "g++", WRAPPER.format(folder=where, real=compiler.find_compiler().path))
    monkeypatch.setenv("PARKI_CXX", str(where / "g++"))

    def count(name="count"):
        return len((where / name).read_text().split()) if (where / name).exists() else 0

    count.folder = where
    return count


def script(path, text):
    path.write_text(text)
    path.chmod(0o755)


def source(value):
    return f'extern "C" int pk_value() {{ return {value}; }}\n'


def make(value=1, **fields):
    base = objects.Unit(
        f"k{value}", f"k{value} (int, double)", source(value), (), compiler.target(), l0=f"# L0 {value}\n"
    )
    return replace(base, **fields)


def value_of(path):
    return ctypes.CDLL(str(path)).pk_value()


def children(count, text):
    command = [sys.executable, "-W", "error", "-c", CHILD, text]
    return [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        for _ in range(count)
    ]


def forget(monkeypatch):
    """Forget which objects this process has checked, as if it were a new one."""
    monkeypatch.setattr(cache, "_checked", {})
