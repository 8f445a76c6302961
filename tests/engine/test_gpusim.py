"""GpuSim reports all planted faults and no others; the same texts compile for CUDA and HIP."""

import concurrent.futures
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from parki.engine.compile import compiler, objects
from parki.engine.errors import CheckedFault, Loc
from parki.engine.run.gpusim import HEADERS, Fault, GpuFault, explain, order_from_environment
from tests.engine import gpu_texts as texts

TEXTS = {"sums": texts.SUMS, "allowed": texts.ALLOWED, "faults": texts.FAULTS}
ORDERS = [*((seed, 0) for seed in range(8)), (0, 1), (0, 2)]
SCHEDULES = [(seed, order, warp) for seed, order in ORDERS for warp in (32, 64)]
SHAPES = [(1, 1), (1, 5), (2, 3), (4, 7), (32, 1), (16, 3), (1, 128), (8, 13), (32, 32)]
# mode: kind, sites (in either order), and other fields of the fault
PLANTED = {
    1: (1, {3, -1}, {"index": 1, "limit": 1, "block": 2, "thread": 5}),
    2: (1, {5, -1}, {"index": -1, "limit": 4096, "block": 2, "thread": 0}),
    3: (2, {6, -1}, {"index": 3, "limit": 3, "block": 0, "thread": 3}),
    4: (2, {7, -1}, {"index": -1, "limit": 3, "thread": 4}),
    5: (1, {8, -1}, {"index": 4096, "thread": 2}),
    6: (3, {1, -1}, {"index": 8000, "limit": 2048}),
    7: (4, {9, 10}, {"thread": 0, "other_thread": 3}),
    8: (4, {11, -1}, {"thread": 0, "other_thread": 5}),
    9: (4, {12, -1}, {"other_thread": 6}),
    10: (5, {15, 16}, {}),
    11: (5, {18}, {"index": 0}),
    12: (5, {21, 22}, {"index": 0}),
    13: (6, {24, 25}, {}),
    14: (6, {26}, {"index": 7}),
    15: (6, {27, 28}, {"index": 3}),
    16: (7, {29, -1}, {"limit": 64}),
    17: (7, {33, -1}, {"index": 7, "thread": 7}),
    18: (8, {34, -1}, {"index": 1, "limit": 4, "other_thread": 5}),
    19: (8, {36, 35}, {"index": 1, "other_thread": 6}),
    20: (8, {37, 38}, {"limit": 4}),
    21: (6, {39, 40}, {}),
    22: (6, {43}, {"index": 0}),
    25: (5, {48, 49}, {"index": 0}),
    26: (6, {50, 51}, {"index": 0}),
    27: (6, {52, 53}, {"index": 0}),
    28: (4, {54, -1}, {"other_thread": 5}),
    29: (8, {55, -1}, {"index": 1, "other_thread": 5}),
}


def compilers():
    """Return the compiler that parki uses, and other compilers of this machine."""
    found = {path for name in ("g++", "clang++") if (path := shutil.which(name))}
    return sorted({compiler.find_compiler().path, *found})


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Return all texts, compiled for the simulator."""
    folder = tmp_path_factory.mktemp("gpusim")
    cxx = compiler.find_compiler().path
    return {name: texts.compile_text(cxx, text, folder / f"{name}.so", "-DPK_SIM") for name, text in TEXTS.items()}


@pytest.fixture(scope="module")
def cuda(tmp_path_factory):
    """Return two texts compiled as CUDA reads pk_gpu.h (its other half), on fibres."""
    folder, cxx = tmp_path_factory.mktemp("cuda"), compiler.find_compiler().path
    flags = ("-fwrapv", "-fno-strict-aliasing", "-Wno-unknown-pragmas")
    parts = {
        name: (texts.CUDA_ON_HOST, TEXTS[name], texts.CUDA_ENTRY.replace("{name}", name))
        for name in ("sums", "allowed")
    }
    return {name: texts.compile_text(cxx, "".join(p), folder / f"{name}.so", *flags) for name, p in parts.items()}


def numbers(rng, count):
    return rng.uniform(-(2**30), 2**30, count)


def check_sums(u, x, block, grid):
    """Compare the results of SUMS with NumPy; integers wrap on both sides."""
    for name, kind in texts.TYPES.items():
        v = x.astype(kind).reshape(grid, block[1], block[0])
        got = u[name][: 8 * v.size].reshape(*v.shape, 8)
        flat = v.reshape(grid, -1)
        total = flat.sum(axis=1, dtype=kind)[:, None, None]
        before = (flat.cumsum(axis=1, dtype=kind) - flat).reshape(v.shape)
        row = v.sum(axis=2, keepdims=True, dtype=kind)
        row_before, positive = v.cumsum(axis=2, dtype=kind) - v, (v > 0).astype(kind)
        listed, count = positive.cumsum(axis=2, dtype=kind) - positive, positive.sum(axis=2, keepdims=True, dtype=kind)
        parts = row, total, before, total, row_before, row, listed, count
        want = np.stack(np.broadcast_arrays(*parts), axis=-1)
        if kind in (np.int32, np.int64):
            np.testing.assert_array_equal(got, want)
            continue
        np.testing.assert_allclose(got, want, rtol=0, atol=20 * np.finfo(kind).eps * np.abs(flat).sum(axis=1).max())
        assert (got[..., 0] == got[..., :1, 0]).all()  # the same bits in all lanes
        assert (got[..., 1] == got[:, :1, :1, 1]).all()
        assert (got[..., 3] == got[:, :1, :1, 3]).all()


@pytest.mark.parametrize("block", SHAPES)
def test_sums_and_scans_agree_with_numpy_and_never_depend_on_the_order(programs, rng, block):
    grid = 3
    x = numbers(rng, grid * block[0] * block[1])
    first = None
    for seed, order, warp in SCHEDULES:
        result = programs["sums"].run(block, grid, x, 8 * x.size, seed=seed, order=order, warp=warp)
        assert result.fault is None
        first = first or result
        for name, u in result.u.items():
            np.testing.assert_array_equal(u, first.u[name])
    check_sums(first.u, x, block, grid)


def check_allowed(u, x, block, grid, one_turn=False):
    lanes, rows = block
    threads = lanes * rows
    got = u["double"][: grid * threads * 8].reshape(grid, 8, threads)
    row = np.repeat(np.arange(rows), lanes)
    want = np.empty_like(got)
    want[:, 0] = x.reshape(grid, threads)
    want[:, 1], want[:, 2], want[:, 3], want[:, 4] = row, 2 * row + 1, 3 + threads, 0
    want[:, 5] = lanes * (1 if one_turn else 1 + row % 3)
    want[:, 6], want[:, 7] = 2**0.5 + 0.5 + 1 + 8, 1
    last = u["double"].size - threads
    want.reshape(-1)[last:] = 0
    np.testing.assert_allclose(got, want, rtol=1e-15)
    total, most = threads * (threads + 1) // 2, (np.arange(threads) * 7 % 50).max()
    for name in ("float", "int32_t", "int64_t"):
        np.testing.assert_array_equal(
            u[name][: 4 * grid].reshape(grid, 4), np.tile([total, -total, most, -most], (grid, 1))
        )
        assert not u[name][4 * grid :].any()


@pytest.mark.parametrize("block", [(1, 1), (4, 2), (2, 37), (32, 3), (8, 16)])
def test_correct_code_is_never_reported(programs, rng, block):
    grid = 3
    x = rng.standard_normal(grid * block[0] * block[1])
    size = (8 * grid + 1) * block[0] * block[1]
    for seed, order, warp in SCHEDULES:
        result = programs["allowed"].run(block, grid, x, size, seed=seed, order=order, warp=warp)
        assert result.fault is None, explain(result.fault, texts.SITES, "allowed")
        check_allowed(result.u, x, block, grid)


@pytest.mark.parametrize("block", SHAPES)
def test_the_cuda_side_computes_the_same_bits(programs, cuda, rng, block):
    x = numbers(rng, 3 * block[0] * block[1])
    for seed in range(3):
        want = programs["sums"].run(block, 3, x, 8 * x.size, seed=seed)
        got = cuda["sums"].run(block, 3, x, 8 * x.size, seed=seed)
        assert got.fault is None
        for name, u in got.u.items():
            np.testing.assert_array_equal(u, want.u[name])
        if x.size <= 400:
            size = (8 * 3 + 1) * block[0] * block[1]
            got = cuda["allowed"].run(block, 3, x, size, seed=seed, mode=1)
            assert got.fault is None
            check_allowed(got.u, x, block, 3, one_turn=True)


@pytest.mark.parametrize("mode", PLANTED)
def test_a_planted_fault_is_found_in_every_order(programs, mode):
    kind, sites, rest = PLANTED[mode]
    for seed, order, warp in SCHEDULES:
        fault = programs["faults"].run(grid=4, mode=mode, n=1000, seed=seed, order=order, warp=warp).fault
        assert fault is not None, (seed, order)
        assert (fault.kind, {fault.site, fault.other_site}) == (kind, sites), fault
        assert {name: getattr(fault, name) for name in rest} == rest
        words = explain(fault, texts.SITES, "faults")
        assert all(f"kernel.py:{site}" in words for site in sites - {-1})


@pytest.mark.parametrize("writer", range(8))
def test_a_reader_of_another_row_is_remembered(programs, writer):
    """Check a race with the last reader; reads of the row itself are ordered before its write."""
    for seed, order, warp in SCHEDULES:
        fault = programs["faults"].run(mode=23, n=writer, seed=seed, order=order, warp=warp).fault
        assert fault is not None
        assert (fault.kind, fault.site + fault.other_site) == (6, 45 + 47)
    # within one row there is no race
    assert programs["faults"].run(block=(8, 1), mode=23, n=writer).fault is None


def test_no_access_of_a_phase_is_forgotten(programs):
    """Check 1500 elements, whose marks are spread over a table that grows."""
    read = {k * (k + 1) // 2 % 4000 for k in range(1500)}
    for n in sorted(read)[::5]:
        fault = programs["faults"].run(mode=30, n=n, order=1).fault
        assert fault is not None, n
        assert (fault.kind, fault.site, fault.other_site, fault.index) == (6, 57, 56, n)
    assert programs["faults"].run(mode=30, n=4001, order=1).fault is None


def test_scratch_is_counted_piece_by_piece(programs):
    run = programs["faults"].run
    fault = run(mode=6, n=255).fault  # 2040 bytes, and 12 more
    assert (fault.kind, fault.site, fault.index, fault.limit) == (3, 2, 2064, 2048)
    fault = run(mode=6, n=-1).fault
    assert (fault.kind, fault.site, fault.index) == (3, 1, -1)
    assert run(mode=6, n=254).fault is None
    assert run(mode=0, shared=0).fault.kind == 3


def test_a_row_has_a_power_of_two_of_lanes(programs):
    fault = programs["faults"].run(block=(3, 2), mode=22).fault
    assert (fault.kind, fault.limit, fault.other_thread) == (8, 3, -1)
    assert "rows of 1, 2, 4, 8, 16 or 32 lanes, and there are 3" in explain(fault, texts.SITES, "k")
    assert programs["faults"].run(block=(64, 1), mode=22).fault.limit == 64


def test_the_first_fault_ends_the_launch(programs):
    """Check that two blocks of 8 threads have run, and 5 threads of the third."""
    result = programs["faults"].run(grid=4, mode=1, order=1, x=[1.0])
    assert (result.fault.block, result.fault.thread) == (2, 5)
    assert result.u["double"][:40].tolist() == [1.0] * 21 + [0.0] * 19
    assert programs["faults"].run(grid=2, mode=1, x=[1.0]).fault is None


def test_a_missing_barrier_changes_the_result_and_is_reported_all_the_same(programs):
    """Check a race: without views (mode 24) the result depends on the order, with views (mode 13) it is reported."""
    run = programs["faults"].run
    unchecked = [run(mode=24, seed=seed).u["double"][:8].tolist() for seed in range(8)]
    assert len({tuple(u) for u in unchecked}) > 1
    assert [run(mode=24, seed=seed).u["double"][:8].tolist() for seed in range(8)] == unchecked
    assert all(run(mode=13, seed=seed).fault.kind == 6 for seed in range(8))


def test_orders_are_what_they_say(programs):
    """Check mode 24, where a thread adds 1 to its neighbour's value: in descending order the sums accumulate."""
    run = programs["faults"].run
    assert run(mode=24, order=1).u["double"][:8].tolist() == [1, 1, 1, 1, 1, 1, 1, 2]
    assert run(mode=24, order=2).u["double"][:8].tolist() == [8, 7, 6, 5, 4, 3, 2, 1]


def test_launches_of_one_text_from_several_threads_wait_for_each_other(programs, rng):
    x = numbers(rng, 3 * 104)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(programs["sums"].run, (8, 13), 3, x, 8 * x.size, seed=seed) for seed in range(12)]
    for job in jobs:
        assert job.result().fault is None
        check_sums(job.result().u, x, (8, 13), 3)


@pytest.mark.parametrize("cxx", compilers())
@pytest.mark.parametrize("flags", [("-O2", "-DPK_FIBRE_UCONTEXT"), ("-O2", "-UPK_WIDE", "-DPK_WIDE=1")])
def test_other_compilers_and_switches(tmp_path, rng, cxx, flags):
    x = rng.standard_normal(3 * 74)
    program = texts.compile_text(cxx, TEXTS["allowed"], tmp_path / "allowed.so", "-DPK_SIM", *flags)
    for order in (0, 1, 2):
        result = program.run((2, 37), 3, x, 25 * 74, order=order)
        assert result.fault is None
        check_allowed(result.u, x, (2, 37), 3)


def test_the_list_of_headers_is_complete():
    found, left = set(), ["pk_gpu.h"]
    while left:
        name = left.pop()
        found.add(name)
        left += set(re.findall(r'^#include "(.+)"', (objects.INCLUDE / name).read_text("utf-8"), re.M)) - found
    assert found == set(HEADERS)


def test_faults_in_words():
    sites = [("tile", Loc("kernels/p2p.py", 50, 9)), ("tile", Loc("kernels/p2p.py", 58)), ("the barrier", "p2p.py:60")]
    write_read = Fault(5, 2, 1, 7, 0 + 4 * 1, 2, 5, 3)
    assert explain(write_read, sites, "p2p") == (
        "p2p: missing barrier: 'tile'[7] is written at kernels/p2p.py:50:9 and read at kernels/p2p.py:58:1 "
        "by threads 3 and 5 of block 2 without a barrier between."
    )
    assert "is written at p2p.py:60 and at kernels" in explain(Fault(6, 3, 1, 0, 1 + 4 * 1, 0, 1, 2), sites, "k")
    update_read = explain(Fault(6, 1, 2, 0, 0 + 4 * 2, 0, 1, 2), sites, "k")
    assert (
        "is atomically updated at kernels/p2p.py:58:1 and read at kernels/p2p.py:50:9 by threads 2 and 1" in update_read
    )
    assert "is written at kernels/p2p.py:50:9 by threads 1 and 2" in explain(Fault(5, 1, 1, 0, 5, 0, 1, 2), sites, "k")
    assert explain([4, 3, -1, 0, 0, 1, 0, 5], sites, "k") == (
        "k: divergent barrier: the barrier at p2p.py:60 is reached by thread 0 of block 1, but thread 5 has ended."
    )
    assert "but thread 5 waits at 'tile' at kernels/p2p.py:50:9" in explain([4, 3, 1, 0, 0, 1, 0, 5], sites, "k")
    assert "'tile'[9] is out of bounds at kernels/p2p.py:50:9" in explain([1, 1, -1, 9, 9, 0, 0, -1], sites, "k")
    assert "-2 elements of scratch" in explain([3, 1, -1, -2, 64, 0, 0, -1], sites, "k")
    assert "to 72 bytes of 64 requested" in explain([3, 1, -1, 72, 64, 0, 0, -1], sites, "k")
    assert "incomplete row" in explain([8, 3, -1, 0, 4, 0, 0, 1], sites, "k")
    assert "no memory" in explain([9, -1, -1, 0, 0, 0, 0, -1], sites, "k")
    assert "site 4" in explain([1, 4, -1, 9, 9, 0, 0, -1], sites, "k")
    assert issubclass(GpuFault, CheckedFault)


def test_seed_and_order_come_from_the_environment(monkeypatch):
    monkeypatch.delenv("PARKI_SIM_SEED", raising=False)
    monkeypatch.delenv("PARKI_SIM_ORDER", raising=False)
    assert order_from_environment() == (0, 0)
    monkeypatch.setenv("PARKI_SIM_SEED", "-17")
    for name, order in (("random", 0), ("ascending", 1), ("descending", 2)):
        monkeypatch.setenv("PARKI_SIM_ORDER", name)
        assert order_from_environment() == (-17, order)


@pytest.mark.parametrize(
    ("name", "value"), [("SEED", "1.5"), ("SEED", "many"), ("SEED", str(2**63)), ("ORDER", "up"), ("ORDER", "Random")]
)
def test_bad_settings_are_refused(monkeypatch, name, value):
    monkeypatch.delenv("PARKI_SIM_SEED", raising=False)
    monkeypatch.setenv(f"PARKI_SIM_{name}", value)
    with pytest.raises(ValueError, match=f"PARKI_SIM_{name}='{re.escape(value)}'"):
        order_from_environment()


# Device compilers -----------------------------------------------------------------------------------------------------
HEADER = (objects.INCLUDE / "pk_gpu.h").read_bytes()


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("name", TEXTS)
def test_texts_compile_for_cuda(name, arch):
    pytest.importorskip("cupy", reason="CuPy is not installed", exc_type=ImportError)
    from cupy.cuda import nvrtc

    try:
        nvrtc.getVersion()
    except RuntimeError as error:
        pytest.skip(f"NVRTC cannot be loaded: {error}")
    program = nvrtc.createProgram(TEXTS[name], f"{name}.cu", [HEADER], [b"pk_gpu.h"])
    try:
        nvrtc.compileProgram(program, [f"-arch={arch}", "-default-device", "--ptxas-options=-v", *texts.DEVICE_FLAGS])
    except nvrtc.NVRTCError as error:
        pytest.fail(f"{error}\n{nvrtc.getProgramLog(program)}")
    log = nvrtc.getProgramLog(program)
    assert f"Compiling entry function '{name}' for '{arch}'" in log
    assert "warning" not in log
    assert len(nvrtc.getCUBIN(program)) > 0
    nvrtc.destroyProgram(program)


@pytest.fixture(scope="module")
def hip():
    command = texts.hip_command()
    if isinstance(command, str):
        pytest.skip(f"no clang compiles HIP here: {command}")
    return command


@pytest.mark.parametrize(
    ("name", "arch"), [*((name, "gfx90a") for name in TEXTS), ("allowed", "gfx942"), ("allowed", "gfx1100")]
)
def test_texts_compile_for_hip(hip, name, arch):
    done = texts.compile_hip(hip, TEXTS[name], arch)
    if "invalid target ID" in done.stderr:
        pytest.skip(f"{hip[0]} does not know {arch}")
    assert done.returncode == 0, done.stderr
    assert "pk_gpu.h" not in done.stderr
    assert f".amdhsa_kernel {name}" in done.stdout


@pytest.mark.parametrize("name", TEXTS)
def test_texts_compile_with_hiprtc(tmp_path, name):
    """Compile in a separate process: the runtime may end badly where there is no device."""
    (tmp_path / "k.hip").write_text(TEXTS[name])
    options = ["--gpu-architecture=gfx90a", "-DPK_HIP", *texts.DEVICE_FLAGS]
    command = [sys.executable, "-c", texts.HIPRTC, str(tmp_path / "k.hip"), str(objects.INCLUDE / "pk_gpu.h"), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("hipRTC is not installed")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stdout
