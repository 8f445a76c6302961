"""Names of execution spaces, and messages about spaces that cannot run."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from parki.engine.compile import compiler, objects
from parki.engine.errors import SpaceUnavailable
from parki.engine.run import devices, spaces


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PARKI_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def no_openmp(tmp_path, monkeypatch):
    """Use a compiler without an OpenMP runtime; return its path."""
    real = compiler.find_compiler().path
    path = tmp_path / "g++"
    path.write_text(
        f'#!/bin/sh\ncase "$*" in *-fopenmp*) echo "error: no libomp" >&2; exit 1 ;; esac\nexec {real} "$@"\n'
    )
    path.chmod(0o755)
    monkeypatch.setenv("PARKI_CXX", str(path))
    return path


def test_names_are_read_in_any_case():
    assert spaces.get("serial") == spaces.Space("Serial")
    assert spaces.get(" SERIAL ").name == "Serial"
    if compiler.target().openmp:
        assert spaces.get("openmp").name == spaces.get("OPENMP").name == "OpenMP"


def test_the_best_host_space_is_the_default():
    best = "OpenMP" if compiler.target().openmp else "Serial"
    assert [spaces.get(name).name for name in (None, "CPU", "cpu", "Host")] == [best] * 4


def test_a_space_keeps_its_threads():
    assert spaces.get(spaces.Space("serial", threads=3)) == spaces.Space("Serial", threads=3)
    assert spaces.get("Serial").threads is None


@pytest.mark.parametrize("threads", [0, -1, 2.0, True, "2"])
def test_threads_must_be_a_count(threads):
    with pytest.raises(ValueError, match=r"threads=.*at least 1"):
        spaces.Space("OpenMP", threads)


@pytest.fixture
def no_gpu(monkeypatch):
    """Pretend that CuPy is built for CUDA on a machine without a driver."""
    reasons = {"Cuda": "No driver: install one.", "HIP": "CuPy is built for CUDA: change it."}
    monkeypatch.setattr(devices, "missing", reasons.get)
    monkeypatch.setattr(devices, "platform", lambda: "Cuda")


@pytest.fixture
def gpu(monkeypatch):
    """Pretend that there is one device of each kind, with CuPy for ROCm."""
    monkeypatch.setattr(devices, "missing", lambda kind: None)
    monkeypatch.setattr(devices, "platform", lambda: "HIP")
    monkeypatch.setattr(devices, "cupy", lambda: textwrap)
    device = devices.Device(0, "AMD", "gfx1100", 2**34, "HIP 7.0", 65536, 32, 96)
    monkeypatch.setattr(devices, "current", lambda: device)


@pytest.mark.parametrize(
    ("name", "reason"), [("Cuda", "No driver: install one."), ("hip", "CuPy is built for CUDA: change it.")]
)
def test_a_device_space_that_is_not_here_says_why(no_gpu, name, reason):
    with pytest.raises(SpaceUnavailable, match=rf"'{name}': {reason} Or use 'OpenMP' or 'Serial'") as caught:
        spaces.get(name)
    assert isinstance(caught.value, ValueError)


def test_gpu_stands_for_what_cupy_is_built_for(no_gpu):
    with pytest.raises(SpaceUnavailable, match=r"'GPU': No driver: install one\. Or use") as caught:
        spaces.get("GPU")
    assert "HIP" not in str(caught.value)


def test_gpu_without_cupy_names_both_remedies(monkeypatch):
    monkeypatch.setattr(devices, "missing", lambda kind: f"CuPy is not installed: get {kind}.")
    monkeypatch.setattr(devices, "platform", lambda: None)
    text = r"'gpu': Cuda: CuPy is not installed: get Cuda\. HIP: CuPy is not installed: get HIP\. Or use"
    with pytest.raises(SpaceUnavailable, match=text):
        spaces.get("gpu")


def test_a_device_space_that_is_here(gpu):
    assert spaces.get("GPU") == spaces.get("hip") == spaces.Space("HIP")
    assert spaces.get("HIP").warp == 32  # the warp of the device
    assert spaces.available()["Cuda"] is None
    assert spaces.array_module(spaces.get("GPU")) is textwrap


def test_kinds_and_warps(no_gpu, monkeypatch):
    monkeypatch.setattr(devices, "current", lambda: None)
    found = {name: (spaces.Space(name).kind, spaces.Space(name).warp) for name in spaces.NAMES}
    assert found == {
        "Serial": ("host", 1),
        "OpenMP": ("host", 1),
        "Cuda": ("device", 32),
        "HIP": ("device", 64),
        "GpuSim": ("sim", 32),
        "GpuSim64": ("sim", 64),
    }


def test_capabilities():
    found = {name: spaces.Space(name) for name in spaces.NAMES}
    assert [name for name, space in found.items() if space.native] == ["Serial", "OpenMP"]
    assert [name for name, space in found.items() if space.own_memory] == ["Cuda", "HIP"]
    assert [name for name, space in found.items() if space.checks_accesses] == ["GpuSim", "GpuSim64"]
    assert [name for name, space in found.items() if space.pick(True, False)] == ["Serial", "OpenMP"]


def test_simulated_gpus_are_where_a_compiler_is(monkeypatch):
    assert spaces.get("gpusim64") == spaces.Space("GpuSim64")
    assert spaces.array_module(spaces.get("GpuSim")) is np
    assert spaces.array_module(spaces.get()) is np
    monkeypatch.setenv("PARKI_CXX", "no-such-compiler")
    with pytest.raises(SpaceUnavailable, match="no-such-compiler"):
        spaces.get("GpuSim")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("OpenPM", "OpenMP"),
        ("omp", "OpenMP"),
        ("cdua", "Cuda"),
        ("serail", "Serial"),
        ("gpus", "GPU"),
        ("gpusim32", "GpuSim"),
    ],
)
def test_a_misspelt_name_gets_a_proposal(name, meant):
    with pytest.raises(SpaceUnavailable, match=f"Did you mean '{meant}'") as caught:
        spaces.get(name)
    for known in spaces.NAMES:
        assert known in str(caught.value)


def test_a_name_like_no_other_gets_the_list_only():
    with pytest.raises(
        SpaceUnavailable, match=r"expected one of Serial, OpenMP, Cuda, HIP, GpuSim, GpuSim64, CPU, GPU\.$"
    ):
        spaces.get("xyzzy")


def test_other_things_are_no_names():
    with pytest.raises(TypeError, match="found int"):
        spaces.get(1)


def test_the_table_has_every_space(no_gpu):
    table = spaces.available()
    assert tuple(table) == spaces.NAMES
    assert [table[name] for name in ("Serial", "GpuSim", "GpuSim64")] == [None] * 3
    assert table["Cuda"] == "No driver: install one."
    assert table["HIP"] == "CuPy is built for CUDA: change it."


def test_without_openmp_kernels_run_as_serial(no_openmp):
    assert spaces.get().name == "Serial"
    with pytest.raises(SpaceUnavailable, match=r"OpenMP programs do not compile.*libomp"):
        spaces.get("OpenMP")
    assert str(no_openmp) in spaces.available()["OpenMP"]
    unit = objects.Unit("k", "k (int)", 'extern "C" int f() { return 1; }\n', (), compiler.target())
    assert "-fopenmp" not in objects.flags(unit)
    assert unit.space == "Serial"
    assert objects.build(unit).exists()


def test_without_a_compiler_nothing_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("PARKI_CXX", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setitem(sys.modules, "ziglang", None)
    with pytest.raises(SpaceUnavailable, match=r"No C\+\+ compiler found.*conda install") as caught:
        spaces.get()
    assert str(caught.value).count("found") == 1


def test_threads_follow_the_variable_then_the_machine(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert spaces.threads() == 5
    monkeypatch.setenv("OMP_NUM_THREADS", "3,2")
    assert spaces.threads() == 3
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 2, 5, 7}, raising=False)
    for odd in ("", "many", "0", "-2"):
        monkeypatch.setenv("OMP_NUM_THREADS", odd)
        assert spaces.threads() == 4
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert spaces.threads() == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_knows_that_it_is_one():
    text = (
        "import os\nfrom parki.engine import spaces\nassert not spaces.forked()\npid = os.fork()\n"
        "if pid == 0:\n    os._exit(7 if spaces.forked() else 1)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), spaces.forked())\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "7 False\n"
