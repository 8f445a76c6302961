"""Loops, turns and bounds of machine code; budgets of kernels of a GPU, which are compiled without one."""

import argparse
from collections import Counter

import numpy as np
import pytest

from parki import cli, engine, fmm, treecode
from parki.engine import Space, devices
from parki.ewald.choice import choose, variants
from parki.ewald.choice.question import Question
from parki.ewald.options import EwaldOptions
from parki.ewald.stages import sums
from parki.perfmodels.bench import code
from parki.perfmodels.counts.totals import Counts
from parki.perfmodels.machinecode import nvidia
from parki.perfmodels.machinecode.bounds import bound
from parki.perfmodels.machinecode.instructions import Instruction, by_pipe
from parki.perfmodels.machinecode.launch import bodies, launch_totals
from parki.perfmodels.machinecode.loops import innermost, loops
from parki.perfmodels.machinecode.reading import hot_loops
from parki.perfmodels.models import ewald as models
from parki.perfmodels.models.by_code import CodeTime, by_code
from parki.perfmodels.roofline import Bound, Phase
from tests.quick import but

BOX = (1.0, 1.0, 1.0)


def listing(text):
    """Return instructions from lines of an opcode, a pipe and the lines that may be next ("." is the next one)."""
    lines = [line.split() for line in text.strip().splitlines()]
    return [
        Instruction(
            opcode,
            "",
            pipe,
            tuple(i + 1 if j == "." else int(j) for j in successors),
            "call" if opcode.startswith("CALL") else "",
        )
        for i, (opcode, pipe, *successors) in enumerate(lines)
    ]


NESTED = listing("""
    MOV      other   .
    IADD3    integer .
    DADD     double  .
    LDG      memory  .
    DFMA     double  .
    BRA      other   . 3
    ISETP    integer .
    BRA      other   . 1
    EXIT     other
""")
BRANCHES = listing("""
    LDG      memory  .
    DSETP    double  .
    BRA      other   . 8
    MUFU.RSQ special .
    BRA      other   . 7
    MOV      other   .
    CALL.REL other   .
    DFMA     double  .
    BRA      other   . 0
    EXIT     other
""")


def opcodes(turn):
    return [instruction.opcode for instruction in turn]


def test_nested_loops():
    outer, inner = loops(NESTED)
    assert (outer.head, outer.members, outer.ends) == (1, set(range(1, 8)), {7})
    assert (inner.head, inner.members, inner.ends) == (3, {3, 4, 5}, {5})
    assert innermost(NESTED) == [inner]
    assert opcodes(inner.longest) == ["LDG", "DFMA", "BRA"]
    assert opcodes(outer.longest) == ["IADD3", "DADD", "LDG", "DFMA", "BRA", "ISETP", "BRA"]


def test_turns_with_branches_and_calls():
    (loop,) = loops(BRANCHES)
    assert loop.slow == {5, 6}
    assert opcodes(loop.longest) == ["LDG", "DSETP", "BRA", "MUFU.RSQ", "BRA", "DFMA", "BRA"]
    assert opcodes(loop.shortest) == ["LDG", "DSETP", "BRA", "BRA"]


def test_code_without_loops():
    assert loops(listing("MOV other .\n EXIT other")) == []


def test_totals_of_a_launch():
    """Add up instructions of loops outside the loops within; routines of the compiler are not reached."""
    assert [opcodes(part) for part in bodies(NESTED)] == [
        ["MOV", "EXIT"], ["IADD3", "DADD", "ISETP", "BRA"], ["LDG", "DFMA", "BRA"]
    ]  # fmt: skip
    total = launch_totals(NESTED, [2.0, 10.0, 50.0], "sm_90")
    assert total.instructions == {"other": 4 + 10 + 50, "integer": 20, "double": 10 + 50, "memory": 50}
    assert total.cycles == 2 * 2 + 10 * 4 + 50 * 4
    assert "CALL.REL" not in opcodes(bodies(BRANCHES)[1])
    with pytest.raises(ValueError, match="turns: found 2 numbers, expected 3"):
        launch_totals(NESTED, [1.0, 1.0], "sm_90")


def test_bounds():
    turn = [i for i in BRANCHES if i.pipe != "other"]
    limits = bound(turn, "sm_90").limits
    assert limits == {"double": 4, "single": 0, "integer": 0, "special": 8, "memory": 4, "issue": 4}
    assert (bound(turn, "sm_90").by, bound(turn, "sm_90").share("double")) == ("special", 0.5)
    assert bound(turn * 3, "sm_80").limits["double"] == 24
    with pytest.raises(ValueError, match="arch is 'sm_35'; expected one of sm_80"):
        bound(turn, "sm_35")


# Kernels of parki ----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def compiled():
    """Return a function that reads hot loops for sm_90; skip where there is no compiler or disassembler."""
    reason = devices.missing_compiler("Cuda")
    if reason is not None:
        pytest.skip(reason)
    if nvidia.disassembler() is None:
        pytest.skip(f"nvdisasm is missing: pip install {nvidia.WHEEL}")
    return lambda wanted: {loop.unit.ir.name: loop for loop in hot_loops(wanted, "sm_90")}


def of_ewald(kernel, **options):
    p = choose.parameters(Question(kernel, BOX, 1_000_000, 1_000_000, 1e-9))
    v = variants.choose(Space("Cuda"), p.dtype, EwaldOptions(box=BOX, **options), p, 1_000_000)
    return sums.SumSteps(p, v, (1_000_000, 1_000_000, True), Space("Cuda")).steps.units()


def near_field(kernel):
    return [entry for entry in of_ewald(kernel) if entry[0].ir.name.startswith("p2p_")]


def of_trees(method, kernel="coulomb", **parameters):
    x, q = np.random.default_rng(0).random((3, 3000)), np.ones(3000)
    plan = method.plan(kernel, x, x, tolerance=1e-6, execution_space="Serial", **parameters)
    plan(q)
    return plan.sums[1].placed.steps.units()


# Double instructions, loads and stores of a pair (of a turn where there are no pairs), and registers, as read.
BUDGETS = {
    "stokes_comb": {"p2p_list_2d": (122, 12, 112), "p2g_tile": (66, 17, 128), "g2p_tile": (147, 122, 95)},
    "stokes_sl": {"p2p_list_2d": (69, 9, 76)},
    "laplace": {"p2p_gm_1d": (30, 2, 70), "p2g_tile": (36, 9, 125)},
    "treecode": {"ranges": (13, 2, 64)},
    "treecode yukawa": {"ranges": (25, 4, 56)},
    "fmm": {"fields": (12, 4, 64), "check_values": (16, 2, 56)},
}
TREES = {
    "treecode": {"method": treecode},
    "treecode yukawa": {"method": treecode, "kernel": "yukawa", "kappa": 1.0},
    "fmm": {"method": fmm},
}
WORSE = 1.1  # of a budget, at most


@pytest.mark.parametrize("name", but("stokes_comb", "stokes_sl", "treecode yukawa", of=BUDGETS))
def test_budgets(compiled, name):
    wanted = of_trees(**TREES[name]) if name in TREES else of_ewald(name)
    read = compiled([entry for entry in wanted if entry[0].ir.name in BUDGETS[name]])
    for kernel, (double, memory, registers) in BUDGETS[name].items():
        loop = read[kernel]
        counts, pairs = by_pipe(loop.turn), loop.pairs or 1
        found = counts["double"] / pairs, (counts["memory"] + counts["atomic"]) / pairs, loop.registers
        assert all(a <= WORSE * b for a, b in zip(found, (double, memory, registers), strict=True)), (kernel, found)
        assert loop.spills == 0
        assert not any(instruction.role == "call" for instruction in loop.turn)


def test_near_fields_are_bound_by_arithmetic(compiled):
    for kernel in ("stokes_comb", "stokes_sl"):
        loop = compiled(near_field(kernel))["p2p_list_2d"]
        assert (loop.bound.by, loop.pairs) == ("double", 1)
        assert loop.useful > 0.9


def test_translations_are_bound_by_arithmetic(compiled):
    """Check M2L and the small matrices, which read neighbours of rows at once."""
    for entry in of_trees(fmm, far_precision="double"):
        if entry[0].ir.name in ("products", "solve", "forward"):
            (loop,) = compiled([entry]).values()
            assert loop.bound.by == "double", entry[0].label
            assert loop.useful > 0.95
            assert loop.spills == 0


def test_products_in_single_precision(compiled):
    (entry,) = (entry for entry in of_trees(fmm, far_precision="single") if entry[0].ir.name == "products")
    (loop,) = compiled([entry]).values()
    assert loop.bound.by == "issue"
    assert loop.bound.share("single") > 0.55
    assert loop.spills == 0


def test_a_thread_for_each_target(compiled):
    """Check a pair of GM-1D, which has no list: all its loads are those of a source."""
    for kernel, (double, memory, registers) in {"stokes_comb": (119, 6, 92), "stokes_sl": (66, 3, 72)}.items():
        wanted = [entry for entry in of_ewald(kernel, p2p_method="GM-1D") if entry[0].ir.name == "p2p_gm_1d"]
        loop = compiled(wanted)["p2p_gm_1d"]
        counts = by_pipe(loop.turn)
        found = counts["double"], counts["memory"], loop.registers
        assert (loop.bound.by, loop.spills) == ("double", 0)
        assert all(a <= WORSE * b for a, b in zip(found, (double, memory, registers), strict=True)), found


def test_interpolation_by_tiles_takes_half_of_all_slots_for_arithmetic(compiled):
    """Check a turn of TILE: two targets of a warp, all taps of their windows from scratch."""
    loop = compiled([entry for entry in of_ewald("stokes_comb") if entry[0].ir.name == "g2p_tile"])["g2p_tile"]
    assert by_pipe(loop.turn)["double"] >= len(loop.turn) / 2
    assert not any(instruction.opcode.startswith("LDG") for instruction in loop.turn)


@pytest.mark.parametrize(
    ("pair", "hints", "fewer"),
    [("pair/laplace", ("finite_rsqrt",), 3), ("pair/yukawa", ("finite_rsqrt", "rounded_exp"), 20)],
)
def test_functions_have_no_slow_code(compiled, pair, hints, fewer):
    """Compare the pair of a loop with and without the hints that leave out zeros and infinity."""
    units = [engine.kernel("direct", "direct_sum", real="double", pair=pair, hints=h) for h in ((), hints)]
    general, finite = (compiled([(unit, unit.default_layouts(), 128)])["direct_sum"] for unit in units)
    assert general.pairs
    assert finite.pairs
    assert len(finite.turn) / finite.pairs < len(general.turn) / general.pairs - fewer
    assert not Counter(opcodes(finite.turn)).keys() & {"BSSY", "CALL.REL.NOINC"}


def test_rows_of_the_benchmark(compiled, monkeypatch):
    p2p = near_field("stokes_sl")
    monkeypatch.setattr(code, "_sums", lambda n, tolerance, machine: iter([("stokes_sl", p2p)]))
    (row,) = code.code(argparse.Namespace(n=1000, tolerance=1e-9, device="H200"), Space("Serial"))
    assert (row["what"], row["bound"], row["pairs"], row["unit"]) == (
        "stokes_sl: p2p_list_2d",
        "double",
        1,
        "G pairs/s",
    )
    assert row["rate"] == pytest.approx(14.9e12 / 16.73e12 * 132 * 4 * 32 * 1.98 / row["cycles"], rel=0.02)
    assert row["rate"] * row["seconds"] == pytest.approx(1.0)
    head, line = code.table([row]).splitlines()
    assert head.split()[:2] == ["what", "turn"]
    assert line.split()[:4] == ["stokes_sl:", "p2p_list_2d", str(row["instructions"]), str(row["pipes"]["double"])]
    with pytest.raises(ValueError, match="--device is 'xeon'; expected one of h200"):
        code.code(argparse.Namespace(n=1000, tolerance=1e-9, device="xeon"), Space("Serial"))


def test_files_that_are_no_objects(compiled, tmp_path):
    path = tmp_path / "kernel.cubin"
    path.write_bytes(b"text")
    with pytest.raises(ValueError, match="nvdisasm refuses it"):
        nvidia.kernel(path)


def test_a_missing_disassembler(monkeypatch, tmp_path):
    monkeypatch.setattr(nvidia, "disassembler", lambda: None)
    with pytest.raises(FileNotFoundError, match="nvdisasm is missing; expected the wheel nvidia-cuda-nvdisasm"):
        nvidia.kernel(tmp_path / "kernel.cubin")


def test_code_of_a_model(compiled, capsys, monkeypatch):
    monkeypatch.setattr(models, "_launched", lambda model: near_field("laplace"))
    monkeypatch.setattr(models, "resident", lambda model, arch: {})
    assert cli.main(["model", "ewald", "--kernel", "laplace", "--n", "1000", "--device", "h200", "--code"]) == 0
    head, line, _, title, *phases, total, about = capsys.readouterr().out.splitlines()[-12:]
    assert head.split()[:3] == ["what", "turn", "double"]
    assert line.startswith("laplace: p2p_gm_1d")
    assert title.split()[:4] == ["phase", "kernel", "bound", "by"]
    assert [phase.split()[0] for phase in phases] == ["P2P", "P2G", "FFT", "CNV", "IFFT", "G2P"]
    assert phases[0].split()[1] == "p2p_gm_1d"
    assert "not read" in phases[1]
    assert total.startswith("total")
    assert "0.75" in about


def test_times_by_code(compiled):
    """Check a phase that arithmetic bounds, one that memory bounds, and one whose kernel was not read."""
    loops = list(compiled(near_field("stokes_sl")).values())
    parts = {"compute": 3.0, "dram": 1.0, "launch": 0.5}
    phases = {
        "p2p": Phase(Counts(), Bound(5.5, "compute", parts), 0.6),
        "p2g": Phase(Counts(), Bound(7.0, "compute", parts), 0.5),
    }
    times = by_code(phases, loops)
    useful = loops[0].useful
    assert times["p2p"] == CodeTime("p2p_list_2d", useful, "double", pytest.approx(3.0 / useful / 0.75 + 0.5))
    assert times["p2g"] == CodeTime("", 1.0, "compute", 7.0)
    slow = {"p2p": Phase(Counts(), Bound(20.5, "dram", parts | {"dram": 10.0}), 0.5)}
    assert by_code(slow, loops)["p2p"] == CodeTime("p2p_list_2d", useful, "dram", 20.5)
    assert by_code(slow, [])["p2p"].kernel == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ewald", "--device", "xeon"], "--code: found with --device xeon: expected one of h200, h100"),
        (["fmm", "--device", "h200"], "--code: found with fmm, expected with ewald; parki bench code reads trees"),
    ],
)
def test_code_that_cannot_be_read(words, message, capsys):
    assert cli.main(["model", *words, "--n", "1000", "--code"]) != 0
    assert message in capsys.readouterr().err
