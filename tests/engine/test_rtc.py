"""GPU texts compiled by NVRTC without a GPU: cache, key, refusals, and the reported resources of a kernel."""

import json
import struct
import sys
import threading
import types
from dataclasses import replace

import pytest

from parki.engine.compile import cache, nvrtc, objects, rtc, usage
from parki.engine.errors import BuildError
from parki.engine.run import devices
from tests.engine import compiling as tools

folder = tools.folder

HEADER = """#pragma once
#define PK_TWICE(x) ((x) * 2)
struct pk_args { const double* x; double* u; int n; };
"""
SOURCE = """#include "pk_own.h"
extern "C" __global__ void __launch_bounds__(PK_BLOCK) k1(const pk_args a) {
  __shared__ double part[PK_BLOCK + 8];
  part[threadIdx.x] = a.x[threadIdx.x];
  __syncthreads();
  if (PK_WIDE ? threadIdx.x < 8 : threadIdx.x < 4) a.u[threadIdx.x] = PK_TWICE(part[PK_BLOCK - threadIdx.x]);
}
"""
# 96 doubles mixed in every step do not fit into the 64 registers per thread that 1024 threads leave.
SPILLS = """#include "pk_own.h"
extern "C" __global__ void __launch_bounds__(PK_BLOCK) k1(const pk_args a) {
  double r[96];
#pragma unroll
  for (int i = 0; i < 96; ++i) r[i] = a.x[threadIdx.x * 96 + i];
  for (int k = 0; k < a.n; ++k)
#pragma unroll
    for (int i = 0; i < 96; ++i) r[i] += r[(i * 7 + 1) % 96] * r[(i + 5) % 96];
  double s = 0;
#pragma unroll
  for (int i = 0; i < 96; ++i) s += r[i];
  a.u[threadIdx.x] = s;
}
"""
# The metadata of one kernel, made by clang 14 for gfx90a.
AMD = (
    b"\x7fELF\x00amdhsa.kernels\x91\x89\xb9.group_segment_fixed_size\xcd\x03 \xb8.max_flat_workgroup_size\xcd\x01\x00"
    b"\xbb.private_segment_fixed_size\xcd\th\xab.sgpr_count(\xb1.sgpr_spill_count\x00\xa7.symbol\xa4k.kd"
    b"\xab.vgpr_count6\xb1.vgpr_spill_count\x05\xaf.wavefront_size@\xadamdhsa.target"
)


@pytest.fixture(autouse=True)
def include(tmp_path, monkeypatch):
    """Use a separate folder of headers; return its path."""
    where = tmp_path / "include"
    where.mkdir()
    (where / "pk_own.h").write_text(HEADER)
    monkeypatch.setattr(objects, "INCLUDE", where)
    return where


@pytest.fixture
def compiler():
    """Skip without NVRTC, with the reason."""
    if why := devices.missing_compiler("Cuda"):
        pytest.skip(why)


@pytest.fixture
def counter(compiler, monkeypatch):
    """Return a list that receives the architecture of each compiled text."""
    seen, real = [], nvrtc.compile_text

    def note(text):
        seen.append(text.options[0])
        return real(text)

    monkeypatch.setattr(nvrtc, "compile_text", note)
    return seen


def make(**fields):
    base = rtc.GpuUnit("k1", "k1 (own, double)", SOURCE, ("pk_own.h",), "cuda", "sm_90", 128, False, "# L0\n")
    return replace(base, **fields)


def sections(code):
    """Return the sections of a 64-bit ELF file by name: their bytes, and the size in the header."""
    start, size, count, names = struct.unpack_from("<Q", code, 0x28) + struct.unpack_from("<HHH", code, 0x3A)
    heads = [struct.unpack_from("<IIQQQQIIQQ", code, start + k * size) for k in range(count)]
    text = heads[names][4]
    found = {}
    for head in heads:
        name = code[text + head[0] : code.index(b"\0", text + head[0])].decode()
        found[name] = (code[head[4] : head[4] + head[5]], head[5])
    return found


def attributes(section):
    """Yield (attribute, value) of the 8-byte entries of `.nv.info`, each a symbol's number and a value."""
    at = 0
    while at < len(section):
        form, attribute, size = struct.unpack_from("<BBH", section, at)
        at += 4
        if form == 4:
            if size == 8:
                yield attribute, struct.unpack_from("<II", section, at)[1]
            at += size


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_a_text_is_compiled_for_gpus_that_are_not_here(compiler, folder, arch):
    unit = make(arch=arch)
    (path,) = rtc.build_many([unit])
    assert path == folder / "v1" / rtc.key(unit)[:2] / rtc.key(unit) / "kernel.cubin"
    assert {file.name for file in path.parent.iterdir()} == {
        "kernel.cu",
        "kernel.cubin",
        "l0.py",
        "log.txt",
        "meta.json",
    }
    assert (path.with_name("kernel.cu").read_text(), path.with_name("l0.py").read_text()) == (SOURCE, "# L0\n")
    code = path.read_bytes()
    assert code.startswith(b"\x7fELF")
    assert struct.unpack_from("<H", code, 0x12) == (190,)  # EM_CUDA
    start, size, count = struct.unpack_from("<Q", code, 0x20) + struct.unpack_from("<HH", code, 0x36)
    assert len(code) >= start + size * count  # the file is whole, with the byte that CuPy cuts off
    meta = json.loads(path.with_name("meta.json").read_text())
    assert (meta["label"], meta["space"], meta["arch"]) == ("k1 (own, double)", "Cuda", arch)
    assert meta["version"].startswith("NVRTC 1")
    assert {"-DPK_BLOCK=128", "-DPK_WIDE=0", f"-arch={arch}"} <= set(meta["flags"])
    assert "fast" not in " ".join(meta["flags"])
    assert meta["version"] in path.with_name("log.txt").read_text()
    (entry,) = cache.entries()
    assert entry.label == "k1 (own, double)"


def test_usage_is_what_the_object_says(compiler):
    plain, spilling = make(), make(source=SPILLS, block=1024)
    for unit, path in zip((plain, spilling), rtc.build_many([plain, spilling]), strict=True):
        found = rtc.usage(path)
        parts = sections(path.read_bytes())
        info = dict(attributes(parts[".nv.info"][0]))
        assert found.registers == info[0x2F]  # EIATTR_REGCOUNT
        assert found.stack == info[0x11]  # EIATTR_FRAME_SIZE
        static = parts[".nv.shared.k1"][1] if ".nv.shared.k1" in parts else 0
        # From sm_90 on, the section includes 1 KiB per block that belongs to the system.
        assert found.shared in (static, static - 1024)
        if unit is plain:
            assert found == usage.Usage(found.registers, 8 * 136, 0, 0, 0)
        else:
            assert found.registers <= 64
            assert found.spill_loads >= found.spill_stores > 0
            assert found.stack > 0


def test_a_second_build_compiles_nothing(counter, monkeypatch):
    (path,) = rtc.build_many([make()])
    before = rtc.usage(path)
    tools.forget(monkeypatch)
    assert rtc.build_many([make(), make()]) == [path, path]
    assert counter == ["-arch=sm_90"]
    assert rtc.usage(path) == before


def test_damage_is_repaired(counter, monkeypatch):
    (path,) = rtc.build_many([make()])
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    assert rtc.build_many([make()]) == [path]
    assert path.read_bytes() == whole
    assert len(counter) == 2


def test_the_key_follows_everything_that_changes_the_object(compiler, include, monkeypatch):
    unit = make()
    keys = [
        rtc.key(unit),
        rtc.key(replace(unit, block=256)),
        rtc.key(replace(unit, wide=True)),
        rtc.key(replace(unit, arch="sm_80")),
        rtc.key(replace(unit, source=SPILLS)),
        rtc.key(replace(unit, headers=())),
    ]
    (include / "pk_own.h").write_text(HEADER + "// more\n")
    keys.append(rtc.key(unit))
    monkeypatch.setattr(rtc, "version", lambda backend: f"another {backend}")
    keys += [rtc.key(unit), rtc.key(replace(unit, backend="hip", arch="gfx942"))]
    assert len(set(keys)) == len(keys)
    assert rtc.key(replace(unit, name="other", label="other", l0="other")) == keys[-2]


def test_block_and_width_reach_the_text(compiler):
    small, large = rtc.build_many([make(), make(block=256, wide=True)])
    assert (rtc.usage(small).shared, rtc.usage(large).shared) == (8 * 136, 8 * 264)
    text = '#if PK_WIDE != 1\n#error "narrow"\n#endif\nextern "C" __global__ void k1() {}\n'
    assert rtc.build_many([make(source=text, wide=True)])
    with pytest.raises(BuildError, match="narrow"):
        rtc.build_many([make(source=text)])


def test_a_refused_text_raises_and_is_kept(counter, folder):
    bad = make(source='#line 12 "kernels/p2p.py"\nextern "C" __global__ void k1(int* a) { *a = nowhere; }\n')
    good = make(block=64)
    with pytest.raises(
        BuildError, match=r"NVRTC .*k1 \(own, double\): kernels/p2p\.py\(12\): error:.*nowhere"
    ) as caught:
        rtc.build_many([bad, good])
    kept = folder / "v1" / "failed" / rtc.key(bad)
    assert f"{kept} (kernel.cu, l0.py, log.txt)" in str(caught.value)
    assert (kept / "kernel.cu").read_text() == bad.source
    assert "nowhere" in (kept / "log.txt").read_text()
    assert [entry.key for entry in cache.entries()] == [rtc.key(good)]
    assert cache.find(rtc.key(bad), "kernel.cubin") is None


def test_an_unknown_architecture_is_refused(compiler):
    with pytest.raises(BuildError, match=r"gpu-architecture"):
        rtc.build_many([make(arch="sm_12")])


def test_a_missing_header_is_named(compiler):
    with pytest.raises(BuildError, match=r"the header 'pk_none\.h' is missing"):
        rtc.build_many([make(headers=("pk_none.h",))])


def test_a_second_text_goes_to_a_process_of_its_own(compiler, monkeypatch):
    elsewhere, real = [], nvrtc._elsewhere
    monkeypatch.setattr(nvrtc, "_elsewhere", lambda text: elsewhere.append(text.name) or real(text))
    text = nvrtc.DeviceSource("kernel.cu", SOURCE, {"pk_own.h": HEADER}, rtc.options(make()), False)
    here = nvrtc.compile_text(text)
    assert elsewhere == []
    with nvrtc._turn:  # as if another thread compiled here
        there = nvrtc.compile_text(text)
        wrong = nvrtc.compile_text(replace(text, source="int x = ;\n"))
    assert elsewhere == ["kernel.cu"] * 2
    assert there.code == here.code
    assert usage.from_log(there.log) == usage.from_log(here.log)
    assert wrong.code == b""
    assert "kernel.cu(1): error: expected an expression" in wrong.log
    assert not nvrtc._turn.locked()


def test_a_process_that_dies_is_reported(monkeypatch, tmp_path):
    tools.script(tmp_path / "python", "#!/bin/sh\necho 'Traceback' >&2\necho 'out of memory' >&2\nexit 3\n")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with nvrtc._turn:
        made = nvrtc.compile_text(nvrtc.DeviceSource("kernel.cu", "", {}, (), False))
    assert made == nvrtc.Made(b"", "error: the compiling process ended with status 3: out of memory")


def test_a_program_without_an_interpreter_waits_for_its_turn(monkeypatch):
    monkeypatch.setattr(sys, "executable", "")
    monkeypatch.setattr(nvrtc, "_compile", lambda text: nvrtc.Made(b"1", ""))
    nvrtc._turn.acquire()
    threading.Timer(0.1, nvrtc._turn.release).start()
    assert nvrtc.compile_text(nvrtc.DeviceSource("kernel.cu", "", {}, (), False)).code == b"1"


@pytest.fixture
def rocm(monkeypatch):
    """Install a stand-in for CuPy for ROCm; return the list of inputs to its hipRTC."""
    given = []

    def create(source, name, headers, names):
        given.append({"source": source, "name": name, "headers": dict(zip(names, headers, strict=True))})
        return 7

    rtcs = types.SimpleNamespace(
        NVRTCError=RuntimeError,
        getVersion=lambda: (9, 0),
        createProgram=create,
        compileProgram=lambda program, options: given[-1].update(options=options),
        getPTX=lambda program: AMD,
        getProgramLog=lambda program: "",
        destroyProgram=lambda program: given[-1].update(destroyed=program),
    )
    runtime = types.SimpleNamespace(is_hip=True, runtimeGetVersion=lambda: 70051831)
    module = types.ModuleType("cupy")
    module.cuda = types.ModuleType("cupy.cuda")
    module.cuda.nvrtc, module.cuda.runtime = rtcs, runtime
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setitem(sys.modules, "cupy.cuda", module.cuda)
    for answers in (devices._import, devices._ask):
        answers.cache_clear()
    yield given
    for answers in (devices._import, devices._ask):
        answers.cache_clear()


def test_hiprtc_gets_its_own_options(rocm):
    unit = make(backend="hip", arch="gfx942", wide=True)
    (path,) = rtc.build_many([unit])
    assert path.name == "kernel.hsaco"
    assert path.read_bytes() == AMD + b"\0"
    assert path.with_name("kernel.hip").read_text() == SOURCE
    (given,) = rocm
    assert given["name"] == "kernel.hip"
    assert given["headers"] == {b"pk_own.h": HEADER.encode()}
    assert given["destroyed"] == 7
    assert {"--offload-arch=gfx942", "-DPK_HIP", "-DPK_BLOCK=128", "-DPK_WIDE=1"} <= set(given["options"])
    assert json.loads(path.with_name("meta.json").read_text())["space"] == "HIP"
    assert "hipRTC 9.0, HIP 70051831" in path.with_name("log.txt").read_text()
    assert rtc.usage(path) == usage.Usage(54, 800, 2408, 20, 20)
    with pytest.raises(BuildError, match=r"no compiler for Cuda kernels: .*is built for ROCm"):
        rtc.build_many([make()])


def test_objects_without_numbers_have_no_usage(tmp_path):
    assert usage.from_log("ptxas info    : 0 bytes gmem\n") is None
    assert usage.from_code_object(b"\x7fELF nothing") is None
    with pytest.raises(BuildError, match=r"meta\.json does not say what the kernel uses"):
        rtc.usage(tmp_path / "kernel.cubin")


def test_of_several_kernels_the_largest_numbers_count():
    log = """ptxas info    : Function properties for one
ptxas         .     16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 512 bytes smem, 48 bytes cumulative stack size
ptxas info    : Function properties for two
ptxas         .     8 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers
"""
    assert usage.from_log(log) == usage.Usage(255, 512, 48, 24, 32)


def test_without_cupy_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(BuildError, match=r"no compiler for Cuda kernels: CuPy is not installed: pip install"):
        rtc.build_many([make()])


def test_a_backend_is_one_of_two():
    with pytest.raises(ValueError, match=r"backend is 'metal'; expected 'cuda' or 'hip'"):
        make(backend="metal")


def test_what_spills_is_compiled_again_for_fewer_threads():
    """Check a kernel that spills with 64 registers, as for eight blocks of 128 threads; 255 are enough."""
    bounds = "__launch_bounds__(PK_BLOCK, PK_RESIDENT / PK_BLOCK)"
    source = SPILLS.replace("__launch_bounds__(PK_BLOCK)", bounds).replace("96", "48")
    head = "#ifndef PK_RESIDENT\n#define PK_RESIDENT 1024\n#endif\n"
    path = rtc.build_many([make(source=head + source, block=128)])[0]
    assert rtc.usage(path).spill_stores == 0
    flags = json.loads(path.with_name(cache.META).read_text())["flags"]
    assert any(flag.startswith("-DPK_RESIDENT=") for flag in flags)
    log = path.with_name("log.txt").read_text()
    assert usage.from_log(log.partition("-DPK_RESIDENT")[0]).spill_stores > 0
