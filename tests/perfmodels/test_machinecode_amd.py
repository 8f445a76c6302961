"""Machine code of AMD GPUs: instructions from assembly, bounds, and budgets of kernels where a clang compiles HIP."""

import argparse

import pytest

from parki import engine
from parki.engine import BuildError, Space
from parki.ewald.choice import choose, variants
from parki.ewald.choice.question import Question
from parki.ewald.options import EwaldOptions
from parki.ewald.stages import sums
from parki.perfmodels.bench import code
from parki.perfmodels.machine import Machine
from parki.perfmodels.machinecode import amd
from parki.perfmodels.machinecode.bounds import bound
from parki.perfmodels.machinecode.compiled import missing
from parki.perfmodels.machinecode.instructions import by_pipe
from parki.perfmodels.machinecode.loops import loops
from parki.perfmodels.machinecode.reading import hot_loops
from parki.perfmodels.models.ewald import space_of

BOX = (1.0, 1.0, 1.0)
TEXT = """\
\t.text
helper:                                 ; @helper
\ts_setpc_b64 s[30:31]
.Lfunc_end0:
k:                                      ; @k
; %bb.0:
\ts_load_dwordx2 s[0:1], s[2:3], 0x0
\ts_waitcnt lgkmcnt(0)
.LBB1_1:                                ; =>This Inner Loop Header: Depth=1
\tglobal_load_dwordx4 v[0:3], v[4:5], off
\tds_read_b64 v[6:7], v8
\tv_cmp_lt_f64_e32 vcc, v[0:1], v[2:3]
\ts_and_saveexec_b64 s[4:5], vcc
\ts_cbranch_execz .LBB1_3
; %bb.2:                                ;   in Loop: Header=BB1_1 Depth=1
\tv_rsq_f64_e32 v[0:1], v[0:1]
\tv_fmac_f64_e32 v[2:3], v[0:1], v[0:1]
\tv_pk_fma_f32 v[2:3], v[0:1], v[0:1], v[2:3]
\tv_lshl_add_u64 v[4:5], v[4:5], 0, s[0:1]
\ts_swappc_b64 s[30:31], s[0:1]
.LBB1_3:                                ;   in Loop: Header=BB1_1 Depth=1
\ts_or_b64 exec, exec, s[4:5]
\ts_nop 0
\tv_mov_b32_e32 v9, v0
\tglobal_atomic_add_f64 v[4:5], v[0:1], off
\ts_cbranch_scc1 .LBB1_1
; %bb.4:
\ts_endpgm
.Lfunc_end1:
\t.amdhsa_kernel k
\t.end_amdhsa_kernel
\t.amdgpu_metadata
amdhsa.kernels:
  - .agpr_count:     8
    .group_segment_fixed_size: 256
    .private_segment_fixed_size: 16
    .vgpr_count:     40
    .vgpr_spill_count: 3
\t.end_amdgpu_metadata
"""


def test_instructions():
    kernel = amd.kernel(TEXT)
    assert [i.opcode for i in kernel if i.role == "call"] == ["s_swappc_b64"]
    assert [i.opcode for i in kernel if i.role == "root"] == ["v_rsq_f64_e32"]
    assert [i.opcode for i in kernel if i.role == "sum"] == ["v_fmac_f64_e32", "v_pk_fma_f32"]
    assert not any("waitcnt" in i.opcode or "nop" in i.opcode for i in kernel)
    assert kernel[-1].successors == ()
    assert kernel[5].successors == (6, 11)  # passes over the branch where no lane takes it
    (loop,) = loops(kernel)
    assert (loop.head, loop.ends) == (1, {14})
    assert loop.slow == {6, 7, 8, 9, 10}
    pipes = by_pipe(kernel)
    assert pipes == {
        "memory": 1, "scratch": 1, "double": 2, "single": 1, "special": 1, "integer": 1, "other": 1, "atomic": 1,
        "scalar": 7,
    }  # fmt: skip


def test_resources():
    found = amd.usage(TEXT)
    assert (found.registers, found.shared, found.stack, found.spill_stores) == (40, 256, 16, 12)


@pytest.mark.parametrize("kernels", ["", "\t.amdhsa_kernel a\n\t.amdhsa_kernel b\n"])
def test_other_numbers_of_kernels(kernels):
    with pytest.raises(ValueError, match=r"holds the kernels (none|a, b); expected one"):
        amd.kernel(kernels)


def test_bounds():
    """Vector instructions share a way of issue; loads, scratch and numbers of a wave have their own."""
    found = bound(amd.kernel(TEXT), "gfx942")
    assert found.limits == {
        "double": 8, "single": 4, "integer": 4, "special": 16, "other": 4, "memory": 32, "scratch": 8, "scalar": 28,
        "issue": 36,
    }  # fmt: skip
    assert (found.cycles, found.by) == (36, "issue")


def test_no_clang(monkeypatch):
    monkeypatch.setattr(amd, "command", lambda: "no clang++")
    unit = engine.gpu_unit(*direct_sum(), engine.devices.Device(0, "", "gfx90a", 0, "", 0, 64, 1), 128)
    with pytest.raises(FileNotFoundError, match="no clang compiles HIP here: no clang"):
        amd.assembly(unit)
    assert missing("gfx90a") == "no clang compiles HIP here: no clang++"
    (row,) = code.code(argparse.Namespace(n=1000, tolerance=1e-6, device="mi300x"), Space("Serial"))
    assert "no clang" in row["absent"]


def direct_sum():
    unit = engine.kernel("direct", "direct_sum", real="double", pair="pair/laplace", hints=("finite_rsqrt",))
    return unit, unit.default_layouts()


# Kernels of parki ----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def read():
    """Return a function that reads hot loops by the names of workunits; skip where no clang compiles HIP."""
    reason = missing("gfx90a")
    if reason is not None:
        pytest.skip(reason)
    return lambda wanted, arch: {loop.unit.ir.name: loop for loop in hot_loops(wanted, arch)}


def of_ewald(kernel, machine):
    p = choose.parameters(Question(kernel, BOX, 1_000_000, 1_000_000, 1e-9))
    space, options = space_of(machine), EwaldOptions(box=BOX)
    v = variants.choose(space, p.dtype, options, p, 1_000_000, machine.scratch)
    return sums.SumSteps(p, v, (1_000_000, 1_000_000, True), space).steps.units()


# Double instructions, loads and stores of a turn, scratch apart, and registers, as read with clang 19.
BUDGETS = {
    "stokes_comb": {"p2p_list_2d": (122, 37, 5, 160), "p2g_tile": (66, 0, 18, 130), "g2p_tile": (36, 0, 16, 98)},
    "laplace": {"p2p_gm_1d": (30, 10, 0, 126), "p2g_tile": (36, 0, 10, 116)},
}
WORSE = 1.1  # of a budget, at most


@pytest.mark.parametrize("kernel", BUDGETS)
def test_budgets(read, kernel):
    wanted = [entry for entry in of_ewald(kernel, Machine.load("mi250x")) if entry[0].ir.name in BUDGETS[kernel]]
    found = read(wanted, "gfx90a")
    assert found.keys() == BUDGETS[kernel].keys()
    for name, budget in BUDGETS[kernel].items():
        loop = found[name]
        counts = by_pipe(loop.turn)
        numbers = counts["double"], counts["memory"] + counts["atomic"], counts["scratch"], loop.registers
        assert all(a <= WORSE * b for a, b in zip(numbers, budget, strict=True)), (name, numbers)
        assert loop.spills == 0
        assert not any(instruction.role == "call" for instruction in loop.turn)


def test_rows_of_the_benchmark(read, monkeypatch):
    monkeypatch.setattr(code, "_sums", lambda n, tolerance, machine: iter([("direct", [(*direct_sum(), 128)])]))
    (row,) = code.code(argparse.Namespace(n=1000, tolerance=1e-9, device="MI250X"), Space("Serial"))
    assert (row["what"], row["unit"]) == ("direct: direct_sum", "G pairs/s")
    assert row["pairs"] >= 1
    assert row["rate"] == pytest.approx(row["pairs"] * 110 * 4 * 64 * 1.7 / row["cycles"], rel=0.02)


def test_refused_texts(read):
    unit = engine.gpu_unit(*direct_sum(), engine.devices.Device(0, "", "gfx1", 0, "", 0, 64, 1), 128)
    with pytest.raises(BuildError, match="does not compile for gfx1"):
        amd.assembly(unit)
