"""Instructions of the near field with lists of targets: turns counted in GpuSim times instructions of machine code."""

import math
from pathlib import Path

import numpy as np
import pytest

from parki import engine, kernels
from parki.cells import CellGrid, SortedCells
from parki.engine import Space, TeamPolicy, devices, gpu_unit, kernel_constant, rtc
from parki.ewald.choice import choose, variants
from parki.ewald.choice.question import Question
from parki.ewald.options import EwaldOptions
from parki.ewald.stages import loop_counts, near, sums, work
from parki.perfmodels.machinecode import nvidia
from parki.perfmodels.machinecode.bounds import bound
from parki.perfmodels.machinecode.launch import bodies, launch_totals
from parki.perfmodels.machinecode.loops import innermost, loops
from tests.quick import every

BOX, N, WITHIN = (1.0, 1.0, 1.0), 30_000, 192  # sources within rc
RC = (WITHIN / N * 3 / (4 * math.pi)) ** (1 / 3)
TURNS = ("g", "source", "test", "full", "pair")  # of warps, that the text below counts
COUNTED = {  # statements of the kernel file, and the same with additions to the counts
    "lattice: pk.View1D[real], tiny: real,": "lattice: pk.View1D[real], turns: pk.View1D[pk.int32], tiny: real,",
    "                def list_source(": """                def count_run():
                    pk.atomic_add(turns, [0], 1)
                    pk.atomic_add(turns, [1], (n_places + LANES - 1) // LANES)

                pk.single(pk.PerThread(team), count_run)

                def list_source(""",
    "                        def stream(": """                        def count_sums():
                            pk.atomic_add(turns, [3], 1)
                            pk.atomic_add(turns, [4], (some + LANES - 1) // LANES)

                        pk.single(pk.PerThread(team), count_sums)

                        def stream(""",
    "                    def keep(": """                    def count_test():
                        pk.atomic_add(turns, [2], 1)

                    pk.single(pk.PerThread(team), count_test)

                    def keep(""",
}


def parameters(kernel, dtype="float64", tolerance=1e-9):
    return choose.parameters(Question(kernel, BOX, N, N, tolerance, dtype, rc=RC))


def selected(p, **options):
    return variants.choose(Space("Cuda"), p.dtype, EwaldOptions(box=BOX, **options))


@pytest.fixture(scope="module")
def points():
    """Return a function that sorts uniform points for batches of some size."""
    x = np.random.default_rng(0).random((3, N))
    return lambda size: SortedCells(x, CellGrid.for_points(BOX, N, RC, size), Space("Serial"))


@pytest.fixture(scope="module")
def executed(points, tmp_path_factory):
    """Return batches, targets and turns of warps of LIST-2D, counted in GpuSim for some batches of the points."""
    text = (Path(kernels.__path__[0]) / "p2p_list_2d.py").read_text("utf-8")
    for statement, counted in COUNTED.items():
        assert text.count(statement) == 1, statement
        text = text.replace(statement, counted)
    path = tmp_path_factory.mktemp("kernels") / "counted.py"
    path.write_text(text)
    p = parameters("laplace")
    v = selected(p, p2p_method="LIST-2D")
    cells = points(v.targets)
    batch, bounds = cells.batches(v.targets)
    batch, bounds = (np.ascontiguousarray(a[:: len(a) // 40]) for a in (batch, bounds))
    slots = {"pair": "pair/laplace", "SCREENED": True, "TERMS": 2, "TARGETS": v.targets}
    unit = engine.kernel(path, "p2p_list_2d", **slots)
    turns = np.zeros(len(TURNS), np.int32)
    args = {
        "xt": cells.points, "xs": cells.points, "src": np.concatenate([cells.points, np.ones((1, N))]).T.copy(),
        "u": np.zeros((1, N)), "batch": batch, "bound": bounds, "cell_begin": cells.begin, "coef": np.zeros(2),
        "cells": np.array([*cells.grid.shape, 2], np.int32), "turns": turns, "tiny": 0.0,
        "lattice": np.array([*BOX, 0.0, 0.0, 0.0, *cells.grid.widths, RC]),
    }  # fmt: skip
    engine.parallel_for(TeamPolicy("GpuSim", len(batch), near.ROWS, v.lanes), unit, **args)
    return len(batch), int((batch[:, 1] - batch[:, 0]).sum()), dict(zip(TURNS, turns.tolist(), strict=True))


@pytest.fixture(scope="module")
def code():
    """Return a function that compiles a near field for sm_90 and reads its instructions."""
    reason = devices.missing_compiler("Cuda")
    if reason is not None:
        pytest.skip(reason)
    if nvidia.disassembler() is None:
        pytest.skip(f"nvdisasm is missing: pip install {nvidia.WHEEL}")

    def read(p, v):
        units = sums.SumSteps(p, v, (N, N, True), Space("Cuda")).steps.units()
        unit, layouts, threads = next(entry for entry in units if entry[0].ir.name.startswith("p2p_"))
        device = devices.Device(0, "", "sm_90", 0, "", 227 << 10, 32, 1)
        return nvidia.kernel(rtc.build_many([gpu_unit(unit, layouts, device, threads)])[0])

    return read


def of_loops(kernel, batches, targets, turns, columns):
    """Return the turns of warps of each loop of LIST-2D, and the number of warps; one list and one pass are assumed."""
    nest = sorted(loops(kernel), key=lambda loop: loop.head)
    hot = max(innermost(kernel), key=lambda loop: sum(loop.head in other.members for other in nest))
    around = sorted((loop for loop in nest if hot.head in loop.members), key=lambda loop: len(loop.members))
    passes, lists = around[-1], around[-2]
    of_target, of_test = around[-3], around[-4]
    warps = float(near.ROWS * batches)
    result = [warps]
    for loop in nest:
        if loop.head == hot.head:
            result.append(turns["pair"])
        elif loop in (passes, lists):
            result.append(warps)
        elif loop is of_test:
            result.append(turns["test"])
        elif loop in around and loop is not of_target:
            result.append(turns["full"])
        elif loop is of_target or loop.head not in passes.members:  # clears and adds up the sums of lanes, too
            result.append(targets)
        elif loop.head in lists.members:
            # full turns of many sources are within the loop over runs, and few runs have them
            result.append(turns["g"] if any(other.head in loop.members - {loop.head} for other in nest) else 0.0)
        else:
            within = any(other.head in loop.members - {loop.head} for other in nest)
            result.append(batches * (1.0 if within else math.ceil(columns / 32)))
    return result


@pytest.fixture(scope="module")
def totals(code, executed, points):
    """Return a function that gives the totals of LIST-2D by target."""

    def per_target(p):
        v = selected(p, p2p_method="LIST-2D")
        cells, (batches, targets, turns) = points(v.targets), executed
        n = work.meets(p, v, cells, cells)
        columns = n.rows / n.batches * max(n.runs / n.columns, 1.0)
        instructions = code(p, v)
        by_loop = of_loops(instructions, batches, targets, turns, columns)
        return launch_totals(instructions, [count / targets for count in by_loop], "sm_90")

    return per_target


def thread_per_target(code, points, p):
    """Return the cycles of a scheduler for a target in GM-1D: pairs, sources that no lane reaches, columns."""
    v = selected(p, p2p_method="GM-1D")
    cells = points(v.targets)
    n, kernel_code = work.meets(p, v, cells, cells), code(p, v)
    hot = max(innermost(kernel_code), key=lambda loop: _pairs(loop.longest))
    prologue, _, column, run, *_ = (bound(part, "sm_90").cycles for part in bodies(kernel_code))
    near, far = (bound(turn, "sm_90").cycles / _pairs(hot.longest) for turn in (hot.longest, hot.shortest))
    cycles = prologue * n.batches + column * n.rows + run * n.runs + near * n.listed + far * (n.met - n.listed)
    return cycles / n.n_targets


def _pairs(turn):
    return sum(instruction.opcode.startswith("MUFU.RSQ") for instruction in turn)


def test_turns_are_those_that_are_executed(executed, points):
    p = parameters("laplace")
    v = selected(p, p2p_method="LIST-2D")
    cells, (batches, _, turns) = points(v.targets), executed
    n = work.meets(p, v, cells, cells)
    of = loop_counts.near("LIST-2D", n, 4, 1, v.targets, v.lanes, all_lanes=True).of
    once = of["first_run"] * of["q_first"]
    tests = once * of["t"] * of["test"]
    counts = {"g": once * of["q_first:g"], "test": tests, "full": tests * of["is_full"]}
    counts |= {"pair": counts["full"] * of["lane:q"]}
    for name, count in counts.items():
        assert turns[name] / batches == pytest.approx(count, rel=0.1), name
    assert n.within / n.n_targets == pytest.approx(WITHIN, rel=0.02)


# Double-precision instructions of a target, and cycles of a scheduler for one, as read.
READ = {"stokes_comb": (868, 3290), "stokes_sl": (544, 2820)}
MOST = 1000  # double-precision instructions of a target
WORSE = 1.1  # of what was read, at most


@pytest.mark.parametrize("kernel", READ)
def test_instructions_of_a_target(totals, kernel):
    total = totals(parameters(kernel))
    double, cycles = READ[kernel]
    assert total.instructions["double"] <= min(WORSE * double, MOST), total
    assert total.cycles <= WORSE * cycles, total


@pytest.mark.parametrize(
    ("kernel", "dtype", "tolerance"),
    every(
        3,
        [
            ("laplace", "float32", 1e-4),
            ("laplace", "float64", 1e-4),
            ("stokes_sl", "float64", 1e-4),
            ("stokes_sl", "float64", 1e-9),
            ("stokes_comb", "float32", 1e-4),
            ("stokes_comb", "float64", 1e-9),
        ],
    ),
)
def test_the_default_has_the_lower_bound(totals, code, points, kernel, dtype, tolerance):
    p = parameters(kernel, dtype, tolerance)
    cycles = {"LIST-2D": totals(p).cycles, "GM-1D": thread_per_target(code, points, p)}
    assert min(cycles, key=cycles.__getitem__) == variants.choose(Space("Cuda"), dtype, p=p).p2p, cycles


def test_scratch_has_room_for_tests():
    lanes, tests, full, cap = (kernel_constant("p2p_list_2d", name) for name in ("LANES", "TESTS", "FULL", "CAP"))
    assert tests % lanes == full % lanes == cap % tests == 0
