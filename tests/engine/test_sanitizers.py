"""Kernels once each under sanitizers of addresses and undefined behaviour: ``PARKI_DEBUG=asan``."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from parki import engine
from parki.engine.compile import compiler
from parki.engine.errors import BuildError
from tests.engine import kernel_cases as cases

RUN = """
import sys
import numpy as np
from parki import engine
from parki.engine import RangePolicy, TeamPolicy
from parki.engine.run.spaces import Space
from tests.engine import kernel_cases as cases

units = {name: case.unit(real) for name, (case, real) in cases.ALL.items()}
engine.compile_all(list(dict.fromkeys(units.values())))
for name, (case, _) in cases.ALL.items():
    unit = units[name]
    policy = (TeamPolicy if unit.ir.policy == "team" else RangePolicy)(Space("OpenMP", 2), case.league)
    print(name, file=sys.stderr, flush=True)
    engine.prepare(policy, unit, **case.fresh()).run()
print(len(cases.ALL))
"""
BEYOND = """
import numpy as np
from parki import engine

x, out = np.zeros((3, 8)), np.zeros((3, 4))
unit = engine.kernel("cells", "gather_points", real="double")
engine.parallel_for(engine.RangePolicy("Serial", 4), unit, x=x, order=np.full(4, 1000, np.int32), out=out)
print("not noticed")
"""


def runtime():
    """Return the library that has to be loaded first; skip with the reason where it is missing."""
    found = compiler.find_compiler()
    name = "libasan.so" if found.kind == "g++" else f"libclang_rt.asan-{os.uname().machine}.so"
    asked = [*found.command, f"-print-file-name={name}"]
    path = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    if not Path(path).is_absolute() or not Path(path).exists():
        pytest.skip(f"{found.path} has no {name}")
    return path


def sanitized(text, root, seconds):
    settings = {"PARKI_DEBUG": "asan", "LD_PRELOAD": runtime(), "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0"}
    return subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True, text=True, cwd=root, env=os.environ | settings, timeout=seconds, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_every_kernel_passes(root):
    done = sanitized(RUN, root, 3000)
    assert done.returncode == 0, done.stderr[-6000:]
    assert int(done.stdout) == len(cases.ALL)
    assert "runtime error" not in done.stderr


def test_what_is_beyond_an_array_is_found(root):
    done = sanitized(BEYOND, root, 300)
    assert done.returncode != 0
    assert "not noticed" not in done.stdout
    assert "AddressSanitizer" in done.stderr
    assert "pk_run" in done.stderr  # frames have names


def test_without_the_runtime_it_is_named(monkeypatch):
    if hasattr(ctypes.CDLL(None), "__asan_init"):
        pytest.skip("this process has the runtime")
    monkeypatch.setenv("PARKI_DEBUG", "asan")
    unit = engine.kernel("cells", "gather_points", real="double")
    with pytest.raises(BuildError, match=r"PARKI_DEBUG=asan: .*LD_PRELOAD=\$\(.*-print-file-name=lib"):
        unit.compiled(unit.default_layouts(), False)
