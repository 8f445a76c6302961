"""Choice of the compiler, and its properties of the machine."""

import importlib.util
import os
import platform
import sys
from dataclasses import replace

import pytest

from parki.engine.compile import compiler, objects
from parki.engine.errors import BuildError
from tests.engine import compiling as tools

folder, counter, make, value_of = tools.folder, tools.counter, tools.make, tools.value_of


def test_a_missing_compiler_is_said_with_the_remedies(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("PARKI_CXX", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setitem(sys.modules, "ziglang", None)
    with pytest.raises(
        BuildError, match=r"no C\+\+ compiler found \(looked for g\+\+, clang\+\+\)\. apt install g\+\+"
    ) as caught:
        compiler.find_compiler()
    assert "conda install cxx-compiler" in str(caught.value)
    assert "pip install 'parki[compiler]'" in str(caught.value)


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
    assert compiler.target("x86-64-v2").arch == "x86-64-v2"  # the argument takes precedence over the variable
    define = 'extern "C" int pk_value() { return PK_BYTES; }\n'
    assert value_of(objects.build(make(1, source=define))) == width


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
    assert asked[0] > asked[1] == 1  # the second process asks for --version only
    (stored,) = folder.glob("v1/probes/*.json")
    stored.write_text('{"flag": 3')  # damaged: the compiler is asked again
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


ZIG = """#!/bin/sh
# Zig that is g++ underneath
case "$1" in
  version) echo 0.99.0; exit 0 ;;
  c++) shift ;;
  *) echo "error: unknown command: $1" >&2; exit 1 ;;
esac
[ -d "$ZIG_GLOBAL_CACHE_DIR" ] && echo "$ZIG_GLOBAL_CACHE_DIR" >> HERE/caches
case "$*" in
  *--version*) echo "clang version 99.0 (somewhere)"; exit 0 ;;
  *-###*) echo ' "zig" "-cc1" "-triple" "x86_64-unknown-linux'${KERNEL:-6.1}'-gnu2.36"' \\
    '"-target-cpu" "'${CPU:-one}'"' >&2; exit 0 ;;
esac
for word; do
  shift
  case "$word" in
    -march=x86_64_v3) word=-march=x86-64-v3 ;;
    -march=x86-64-v3) echo "error: unknown CPU: 'x86'" >&2; exit 1 ;;
    -mprefer-vector-width=512) word=-DWIDE ;;
    -l*) [ "$word" = "$OMP" ] || { echo "error: unable to find $word" >&2; exit 1; }
      word=-DOMP ;;
    -Wl,-z,defs) [ -z "$OLD" ] || { echo "error: undefined symbol: __kmpc_new" >&2; exit 1; }
      word=-DDEFS ;;
  esac
  set -- "$@" "$word"
done
PATH='PATH_OF_REAL' exec REAL "$@"
"""


def stand_in(folder, name="zig"):
    folder.mkdir(parents=True)
    text = ZIG.replace("HERE", str(folder)).replace("PATH_OF_REAL", os.environ["PATH"])
    tools.script(folder / name, text.replace("REAL", compiler.find_compiler().path))
    return folder / name


@pytest.fixture
def only_zig(tmp_path, monkeypatch):
    """Return the program of a package ``ziglang``, where there is no other compiler."""
    program = stand_in(tmp_path / "site" / "ziglang")
    (program.parent / "__init__.py").touch()
    monkeypatch.delitem(sys.modules, "ziglang", raising=False)
    monkeypatch.syspath_prepend(tmp_path / "site")
    alone(monkeypatch, tmp_path)
    return program


def alone(monkeypatch, path):
    monkeypatch.setenv("PATH", str(path))
    for name in ("PARKI_CXX", "CXX"):
        monkeypatch.delenv(name, raising=False)


def test_the_package_ziglang_is_the_last_choice(only_zig, tmp_path, monkeypatch):
    found = compiler.find_compiler()
    assert found == compiler.Compiler(str(only_zig), "Zig 0.99.0, clang version 99.0", "clang++", compiler.ZIG)
    assert found.command[:2] == (str(only_zig), "c++")
    for name in ("ziglang", "zig", "zig c++"):
        monkeypatch.setenv("PARKI_CXX", name)
        assert compiler.find_compiler() == found
    monkeypatch.delenv("PARKI_CXX")
    other = stand_in(tmp_path / "bin")
    tools.script(other.with_name("clang++"), "#!/bin/sh\necho clang version 14\n")
    monkeypatch.setenv("PATH", str(other.parent))
    assert compiler.find_compiler() == compiler.Compiler(str(other.with_name("clang++")), "clang version 14", "clang++")
    monkeypatch.setenv("PARKI_CXX", "ziglang")
    assert compiler.find_compiler() == found
    monkeypatch.setenv("PARKI_CXX", "zig")
    assert compiler.find_compiler() == replace(found, path=str(other))


def test_an_absent_package_is_asked_for(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ziglang", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("zig", "ziglang"):
        monkeypatch.setenv("PARKI_CXX", name)
        with pytest.raises(BuildError, match=rf"PARKI_CXX='{name}' is not a .* pip install 'parki\[compiler\]'"):
            compiler.find_compiler()


def test_zig_builds_without_its_libraries_and_keeps_nothing(only_zig, monkeypatch, tmp_path):
    monkeypatch.setenv("ZIG_GLOBAL_CACHE_DIR", str(tmp_path))
    unit = make(3)
    assert not unit.target.openmp  # Zig comes without the runtime of OpenMP
    assert unit.space == "Serial"
    path = objects.build(unit)
    assert value_of(path) == 3
    log = path.with_name("log.txt").read_text()
    assert log.startswith(f"{only_zig} c++ -nostdlib -fno-sanitize=undefined -O3 ")
    assert "-fopenmp" not in log
    caches = only_zig.with_name("caches").read_text().split()
    assert len(caches) >= 3
    assert not any(os.path.exists(cache) for cache in caches)  # so the user's cache is not used either
    with pytest.raises(BuildError, match=r"clang\+\+ refused the generated code of k4 .*error"):
        objects.build(make(4, source="wrong"))


@pytest.mark.parametrize("library", ["-lomp", "-l:libomp.so.5"])
def test_zig_takes_an_openmp_runtime_that_is_here(only_zig, monkeypatch, library):
    monkeypatch.setenv("OMP", library)
    told = compiler.target()
    assert told.openmp
    assert library in told.flags
    assert "-Wl,-z,defs" not in told.flags  # generated code may call the C library of this process


def test_an_openmp_runtime_too_old_for_zig_is_not_taken(only_zig, monkeypatch):
    monkeypatch.setenv("OMP", "-lomp")
    monkeypatch.setenv("OLD", "1")
    told = compiler.target()
    assert not told.openmp
    assert "-lomp" not in told.flags


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names of x86-64 architectures")
def test_architectures_are_spelt_for_zig(only_zig, monkeypatch):
    assert compiler.target("x86-64-v3").flags == ("-march=x86_64_v3", "-DPK_BYTES=32")
    monkeypatch.setenv("PARKI_ARCH", "abacus")
    with pytest.raises(BuildError, match=r"PARKI_ARCH='abacus': .*zig cannot compile for it: .*error"):
        compiler.target()


def test_an_update_of_the_kernel_compiles_nothing_again(tmp_path, monkeypatch):
    told = []
    for number, (kernel, cpu) in enumerate([("6.1", "one"), ("6.18.44", "one"), ("6.1", "two")]):
        monkeypatch.delenv("PARKI_CXX", raising=False)
        program = stand_in(tmp_path / str(number))
        monkeypatch.setenv("PARKI_CXX", str(program))
        monkeypatch.setenv("KERNEL", kernel)
        monkeypatch.setenv("CPU", cpu)
        told.append(compiler.target().resolved)
    assert told[0].startswith("one-")
    assert told[0] == told[1] != told[2]


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="the package ziglang is not installed")
def test_the_real_zig_builds(tmp_path, monkeypatch):
    alone(monkeypatch, tmp_path)
    found = compiler.find_compiler()
    assert found.version.startswith("Zig ")
    assert "clang version" in found.version
    text = """
typedef double pk_v __attribute__((vector_size(PK_BYTES)));
extern "C" int pk_value() {
  pk_v v = {};
  int big = 1 << 30;
  for (int l = 0; l < (int)(PK_BYTES / sizeof(double)); l++) v[l] = l;
  v = v * v;
  return (int)v[1] + (big << 2);  // undefined, and no trap
}
"""
    assert value_of(objects.build(make(1, source=text))) == 1
    assert value_of(objects.build(make(1, source=text, flags=("-O0",)))) == 1
