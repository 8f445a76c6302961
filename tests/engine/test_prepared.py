"""Caches on machines without a compiler, and messages about caches, disks and compilers that cannot be used."""

import ctypes
import json
import os
import types

import numpy as np
import pytest

from parki import cli, engine
from parki.engine.compile import answers, cache, compiler, loading, objects
from parki.engine.errors import BuildError
from parki.engine.run import spaces
from parki.engine.workunit import load
from tests.engine import compiling as tools

folder, make = tools.folder, tools.make


@pytest.fixture
def no_compiler(tmp_path, monkeypatch):
    """Return a function that removes the compilers, and the answers that this process remembers."""

    def remove():
        monkeypatch.setenv("PATH", str(tmp_path))
        for name in ("PARKI_CXX", "CXX"):
            monkeypatch.delenv(name, raising=False)
        for known in (compiler._find, compiler._probe, compiler._target):
            known.cache_clear()
        tools.forget(monkeypatch)

    yield remove
    for known in (compiler._find, compiler._probe, compiler._target):
        known.cache_clear()


@pytest.fixture(autouse=True)
def asked_now():
    """Forget the compiler's answers from other tests, which are not in this test's cache."""
    compiler._probe.cache_clear()
    compiler._target.cache_clear()


def gathered():
    """Return the result of a small kernel, compiled or found."""
    unit = engine.kernel("cells", "gather_points", real="double")
    x, out = np.arange(6.0).reshape(3, 2), np.zeros((3, 2))
    policy = engine.RangePolicy("OpenMP" if compiler.target().openmp else "Serial", 2)
    unit.objects.clear()
    engine.parallel_for(policy, unit, x=x, order=np.array([1, 0], np.int32), out=out)
    return out[0].tolist()


@pytest.mark.parametrize("missing", ["", "/nowhere/g++"])
@pytest.mark.parametrize("arch", ["native", "x86-64"])
def test_a_prepared_cache_needs_no_compiler(monkeypatch, no_compiler, capsys, arch, missing):
    if arch != "native":
        if not compiler.target().resolved or not answers._cpu_flags():
            pytest.skip("flags of other processors are not known here")
        monkeypatch.setenv("PARKI_ARCH", arch)
    assert gathered() == [1.0, 0.0]
    built = compiler.target()
    monkeypatch.delenv("PARKI_ARCH", raising=False)
    no_compiler()
    if missing:
        monkeypatch.setenv("PARKI_CXX", missing)
    with pytest.raises(BuildError):
        compiler.find_compiler()
    assert compiler.target() == built
    assert gathered() == [1.0, 0.0]
    assert all(why is None for name, why in spaces.available().items() if name in ("Serial", "OpenMP"))
    assert cli.main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "missing  " in said.partition("prepared")[0]
    assert "fit this processor and run; others cannot be compiled" in said
    with pytest.raises(BuildError, match=r"(?s)g\+\+.*has no object of k9 .*that fits this processor"):
        objects.build(make(9, target=built))


def test_an_object_for_another_processor_is_not_run(folder, monkeypatch, no_compiler):
    assert gathered() == [1.0, 0.0]
    (kept,) = folder.glob("v1/probes/*.json")
    told = json.loads(kept.read_text())
    told["answer"]["needs"], told["processor"] = ["avx4096"], "another"
    kept.write_text(json.dumps(told))
    no_compiler()
    with pytest.raises(BuildError, match=r"no C\+\+ compiler found"):
        compiler.target()
    told["answer"]["needs"] = told["answer"]["needs"][:0]
    kept.write_text(json.dumps(told))
    assert compiler.target().resolved == told["answer"]["resolved"]


def test_the_flags_that_code_needs_are_those_of_its_macros():
    common = {"__SSE2__", "__linux__", "__MMX__"}
    more = {"__SSE3__", "__AVX512F__", "__AVX512VNNI__", "__FP_FAST_FMA", "__skylake__", "__BMI__", "__LZCNT__"}
    assert answers.needs(common | more, common) == ("abm", "avx512_vnni", "avx512f", "bmi1", "pni")


@pytest.mark.skipif(not answers._cpu_flags(), reason="/proc/cpuinfo lists no flags")
def test_this_processor_has_what_native_code_needs(folder):
    compiler.target()
    (kept,) = answers.prepared()
    assert set(kept.answer.needs) <= answers._cpu_flags()
    assert (compiler.target().vector_bytes < 64) or "avx512f" in kept.answer.needs


LEAVES = {
    "nothing": ("exit 0", "no file"),
    "an empty file": ("touch kernel.so; exit 0", "an empty file"),
    "text": ("echo hello > kernel.so; exit 0", "no shared object"),
    "a part": ('{real} "$@" && head -c 5000 kernel.so > cut && mv cut kernel.so; exit 0', "cut off"),
}


@pytest.mark.parametrize("name", LEAVES)
def test_what_a_compiler_leaves_that_is_no_object_is_not_kept(folder, tmp_path, monkeypatch, name):
    deed, why = LEAVES[name]
    real = compiler.find_compiler().path
    deed = deed.replace("{real}", real)
    tools.script(tmp_path / "g++", f'#!/bin/sh\ncase "$*" in *kernel.cpp*) {deed} ;; esac\nexec {real} "$@"\n')
    monkeypatch.setenv("PARKI_CXX", str(tmp_path / "g++"))
    with pytest.raises(BuildError, match=rf"ended without an error and left .*{why}") as caught:
        objects.build(make(1))
    assert "no working compiler" in str(caught.value)
    assert "parki's engine" not in str(caught.value)
    assert cache.entries() == []
    assert list(folder.rglob("kernel.so")) == []
    monkeypatch.undo()
    monkeypatch.setenv("PARKI_CACHE_DIR", str(folder))
    assert tools.value_of(objects.build(make(1))) == 1


def test_an_object_without_its_function_is_removed():
    unit = engine.kernel("cells", "gather_points", real="double")
    made, lowered = unit.unit(unit.default_layouts(), False)
    other = objects.build(make(1, source='extern "C" int other() { return 1; }\n', label=made.label))
    with pytest.raises(BuildError, match=r"no usable object of gather_points.*pk_run.*removed"):
        load(other, lowered)
    assert cache.entries() == []


@pytest.mark.skipif(not hasattr(os, "ST_NOEXEC"), reason="the system does not say it")
def test_a_cache_from_which_nothing_may_be_run_is_named(folder, monkeypatch):
    path = objects.build(make(1))

    def refuse(name):
        raise OSError(f"{name}: failed to map segment from shared object")

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    monkeypatch.setattr(os, "statvfs", lambda path: types.SimpleNamespace(f_flag=os.ST_NOEXEC | os.ST_NOSUID))
    with pytest.raises(
        BuildError, match=r"k1 .*cannot be loaded: the cache folder .*noexec.*PARKI_CACHE_DIR"
    ) as caught:
        loading.load(path)
    assert str(folder) in str(caught.value)
    assert path.exists()


def test_a_missing_library_does_not_cost_the_object(monkeypatch):
    path = objects.build(make(1))

    def refuse(name):
        raise OSError("libgomp.so.1: cannot open shared object file: No such file or directory")

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    with pytest.raises(BuildError, match=r"k1 .*cannot be loaded from .*libgomp\.so\.1"):
        loading.load(path)
    assert path.exists()


def test_a_disk_that_is_full_for_the_compiler_is_named(tmp_path, monkeypatch):
    real = compiler.find_compiler().path
    said = 'echo "kernel.cpp:1: fatal error: error writing to x.s: No space left on device"; exit 1'
    tools.script(tmp_path / "g++", f'#!/bin/sh\ncase "$*" in *kernel.cpp*) {said} ;; esac\nexec {real} "$@"\n')
    monkeypatch.setenv("PARKI_CXX", str(tmp_path / "g++"))
    with pytest.raises(BuildError, match=r"No space left on device\nFree some space in .*PARKI_CACHE_DIR") as caught:
        objects.build(make(1))
    assert "parki's engine" not in str(caught.value)


def test_a_killed_compiler_is_no_fault_of_the_engine(tmp_path, monkeypatch):
    real = compiler.find_compiler().path
    tools.script(tmp_path / "g++", f'#!/bin/sh\ncase "$*" in *kernel.cpp*) kill -9 $$ ;; esac\nexec {real} "$@"\n')
    monkeypatch.setenv("PARKI_CXX", str(tmp_path / "g++"))
    with pytest.raises(BuildError, match=r"signal 9.*memory") as caught:
        objects.build(make(1))
    assert "parki's engine" not in str(caught.value)
