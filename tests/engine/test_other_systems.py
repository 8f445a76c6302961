"""Other systems than this one: compilers accepted there, and generated code compiled for them by Zig."""

import importlib.util
import logging
import subprocess

import pytest

from parki import engine
from parki.engine.calls import sim
from parki.engine.compile import compiler, objects
from parki.engine.errors import BuildError
from tests.engine import compiling as tools

MSVC = "clang version 99.0\\nTarget: x86_64-pc-windows-msvc\\n"
GNU = "g++ (GCC) 99.0\\nCopyright (C) Free Software Foundation, Inc.\\n"
# system: processor, bytes of a vector, whether GpuSim's threads are available
SYSTEMS = {
    "aarch64-linux-gnu": ("baseline", 16, True),
    "aarch64-macos": ("apple_m1", 16, True),
    "x86_64-macos": ("x86_64_v3", 32, True),
    "x86_64-windows-gnu": ("x86_64_v3", 32, False),
    "aarch64-windows-gnu": ("baseline", 16, False),
}


@pytest.mark.parametrize(
    ("name", "says", "windows", "why"),
    [("clang++", MSVC, True, "for MSVC"), ("g++", GNU, True, "aligns no stack"), ("g++", GNU, False, None)],
)
def test_compilers_that_serve_on_windows(tmp_path, monkeypatch, caplog, name, says, windows, why):
    tools.script(tmp_path / name, f"#!/bin/sh\nprintf '{says}'\n")
    monkeypatch.setenv("PARKI_CXX", str(tmp_path / name))
    monkeypatch.setattr(compiler, "WINDOWS", windows)
    if why is None:
        assert compiler.find_compiler().kind == name
        return
    with caplog.at_level(logging.INFO, "parki.engine"), pytest.raises(BuildError, match="is not a g"):
        compiler.find_compiler()
    assert why in caplog.text


def compile_for(system, unit, folder):
    """Compile a unit's text for another system with the options used here, without linking."""
    processor, width, _ = SYSTEMS[system]
    words = [word for word in compiler.ZIG if word != "-nostdlib"]  # -nostdlib removes headers, too
    own = ("-march", "-mprefer", "-DPK_BYTES", "-fopenmp", "-shared")
    flags = [flag for flag in objects.flags(unit) if not flag.startswith(own)]
    (folder / "kernel.cpp").write_text(unit.source, "utf-8")
    command = [compiler._packaged_zig(), *words, "-target", system, f"-mcpu={processor}", *flags]
    command += [f"-DPK_BYTES={width}", f"-I{objects.INCLUDE}", "-Werror", "-c", "kernel.cpp"]
    with compiler.settings((command[0], *compiler.ZIG)) as environment:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def units():
    """Return one kernel's units for hosts, for hosts with checks, and for GpuSim."""
    kernel = engine.kernel("direct", "direct_sum", real="double", pair="pair/stokeslet")
    layouts = kernel.default_layouts()
    return kernel.unit(layouts, False)[0], kernel.unit(layouts, True)[0], sim.unit(kernel, layouts)


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="the package ziglang is not installed")
@pytest.mark.parametrize("system", SYSTEMS)
def test_generated_code_compiles_for_other_systems(system, tmp_path):
    host, checked, simulated = units()
    for unit in (host, checked, simulated)[: 3 if SYSTEMS[system][2] else 2]:
        compile_for(system, unit, tmp_path)
