"""Which compiler is taken, and what it says of the machine."""

import importlib.util
import os
import platform
from dataclasses import replace
from pathlib import Path

import pytest

from parki.engine.errors import BuildError
from parki.engine.runtime import build, compiler

_spec = importlib.util.spec_from_file_location("compiling", Path(__file__).with_name("compiling.py"))
tools = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tools)
folder, counter, make, value_of = tools.folder, tools.counter, tools.make, tools.value_of


def test_a_missing_compiler_is_said_with_the_remedies(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("PARKI_CXX", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(
        BuildError, match=r"no C\+\+ compiler found \(looked for g\+\+, clang\+\+\)\. apt install g\+\+"
    ):
        compiler.find_compiler()


def test_which_compiler_is_taken(tmp_path, monkeypatch):
    real = compiler.find_compiler()
    assert real.kind in ("g++", "clang++")
    monkeypatch.delenv("PARKI_CXX", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    usual = tmp_path / "bin"
    usual.mkdir()
    for path in (usual / "g++", tmp_path / "mine"):
        tools.script(path, f'#!/bin/sh\nexec {real.path} "$@"\n')
    tools.script(tmp_path / "other", "#!/bin/sh\necho Another C++ 1.0\n")
    monkeypatch.setenv("PATH", f"{usual}{os.pathsep}{os.environ['PATH']}")
    found = compiler.find_compiler()
    assert found == replace(real, path=str(usual / "g++"))
    monkeypatch.setenv("CXX", f"ccache {tmp_path}/mine -m64")
    assert compiler.find_compiler().path == f"{tmp_path}/mine"
    monkeypatch.setenv("CXX", f"{tmp_path}/other")  # set for other programs: not a reason to fail
    assert compiler.find_compiler() == found
    monkeypatch.setenv("PARKI_CXX", f"{tmp_path}/mine")
    assert compiler.find_compiler().path == f"{tmp_path}/mine"
    for wrong in ("other", "absent"):
        monkeypatch.setenv("PARKI_CXX", f"{tmp_path}/{wrong}")
        with pytest.raises(BuildError, match=f"PARKI_CXX='.*{wrong}' is not a g"):
            compiler.find_compiler()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names of x86-64 architectures")
@pytest.mark.parametrize(("arch", "width"), [("x86-64", 16), ("x86-64-v3", 32), ("x86-64-v4", 64)])
def test_the_width_follows_the_architecture(monkeypatch, arch, width):
    monkeypatch.setenv("PARKI_ARCH", arch)
    told = compiler.target()
    assert (told.arch, told.vector_bytes) == (arch, width)
    assert told.flags[0] == f"-march={arch}"
    assert f"-DPK_BYTES={width}" in told.flags
    assert ("-mprefer-vector-width=512" in told.flags) == (width == 64)
    assert compiler.target("x86-64-v2").resolved != told.resolved
    assert compiler.target("x86-64-v2").arch == "x86-64-v2"  # the argument goes before the variable
    define = 'extern "C" int pk_value() { return PK_BYTES; }\n'
    assert value_of(build.build(make(1, source=define))) == width


def test_the_width_can_be_chosen(monkeypatch):
    monkeypatch.setenv("PARKI_VECTOR_BYTES", "16")
    assert compiler.target().vector_bytes == 16
    assert compiler.target(vector_bytes=32).vector_bytes == 32
    with pytest.raises(ValueError, match="vector_bytes=24: expected 16, 32 or 64"):
        compiler.target(vector_bytes=24)
    monkeypatch.setenv("PARKI_VECTOR_BYTES", "wide")
    with pytest.raises(ValueError, match="PARKI_VECTOR_BYTES='wide': expected 16, 32 or 64"):
        compiler.target()


def test_an_unknown_architecture_is_named(monkeypatch):
    monkeypatch.setenv("PARKI_ARCH", "abacus")
    with pytest.raises(BuildError, match=r"PARKI_ARCH='abacus': .* cannot compile for it: .*error"):
        compiler.target()


def test_answers_of_the_compiler_outlive_the_process(counter, folder):
    asked = []
    for _ in range(2):
        (child,) = tools.children(1, tools.source(1))
        out, _ = child.communicate(timeout=60)
        assert out == "1\n"
        asked.append(counter("probes") - sum(asked))
    assert asked[0] > asked[1] == 1  # of the second process, only --version
    (stored,) = folder.glob("v1/probes/*.json")
    stored.write_text('{"flag": 3')  # damaged: asked again
    (child,) = tools.children(1, tools.source(1))
    assert child.communicate(timeout=60)[0] == "1\n"
    assert counter("probes") - sum(asked) == asked[0]


def test_what_clang_resolves_is_read_from_its_own_command(tmp_path, monkeypatch):
    fake = """#!/bin/sh
case "$*" in
  --version) echo "Debian clang version 14.0.6"; exit 0 ;;
  *-###*) echo ' "/usr/bin/clang" "-cc1" "-triple" "x86_64" "-dir" "'$PWD'" "-target-cpu" "skylake" \
"-target-feature" "+'${FEATURE:-avx2}'"' >&2; exit 0 ;;
esac
exec REAL "$@"
"""
    told = {}
    for name, feature in (("a", "avx2"), ("b", "avx2"), ("c", "sse3")):
        (tmp_path / name).mkdir()
        real = compiler.find_compiler().path if not told else told["real"]
        told["real"] = real
        tools.script(tmp_path / name / "clang++", fake.replace("REAL", real))
        monkeypatch.setenv("FEATURE", feature)
        monkeypatch.setenv("PARKI_CXX", str(tmp_path / name / "clang++"))
        monkeypatch.chdir(tmp_path / name)
        assert compiler.find_compiler().kind == "clang++"
        told[name] = compiler.target().resolved
    assert told["a"].startswith("skylake-")
    assert told["a"] == told["b"] != told["c"]
