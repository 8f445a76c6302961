"""Benchmark of machine code: hot loops of a GPU's kernels, their bounds and the work that they do."""

import argparse
from collections.abc import Iterator, Sequence

import numpy as np

from parki import fmm, treecode
from parki.engine import Space, Wanted, devices
from parki.ewald.choice import choose, variants
from parki.ewald.choice.question import Question
from parki.ewald.options import EwaldOptions
from parki.ewald.stages import sums
from parki.perfmodels.bench.measure import CUBE, Row, absent, cloud
from parki.perfmodels.machine import Machine
from parki.perfmodels.machinecode import nvidia
from parki.perfmodels.machinecode.bounds import CYCLES, SCHEDULERS, WARP
from parki.perfmodels.machinecode.instructions import by_pipe
from parki.perfmodels.machinecode.reading import HotLoop, hot_loops
from parki.perfmodels.models.ewald import ARCHES

GPU = "h200"
KERNELS = ("stokes_comb", "stokes_sl", "laplace")
FEW = 20_000  # points of trees: their kernels are the same for more
LEAST = 4  # arithmetic instructions of a turn; loops with fewer move data


def code(args: argparse.Namespace, space: Space) -> list[Row]:
    """Return a row for each hot loop of Ewald sums, a treecode and a fast multipole sum on a GPU.

    Raises
    ------
    ValueError
        For a machine that is no NVIDIA GPU.
    """
    name = (getattr(args, "device", None) or GPU).lower()
    if name not in ARCHES:
        raise ValueError(f"--device is {name!r}; expected one of {', '.join(ARCHES)}.")
    reason = devices.missing_compiler("Cuda")
    if reason is not None:
        return [absent("kernels of GPUs", reason)]
    if nvidia.disassembler() is None:
        return [absent("kernels of GPUs", f"pip install {nvidia.WHEEL}")]
    machine, arch = Machine.load(name), ARCHES[name]
    rows: dict[str, Row] = {}
    for title, requests in _sums(args.n, args.tolerance):
        for loop in hot_loops(requests, arch):
            counts = by_pipe(loop.turn)
            if counts["double"] + counts["single"] >= LEAST and loop.work:
                rows.setdefault(loop.unit.label, _row(title, loop, machine, arch))
    return list(rows.values())


def _sums(n: int, tolerance: float) -> Iterator[tuple[str, list[Wanted]]]:
    """Yield the names of sums and the workunits that they launch."""
    cuda = Space("Cuda")
    for kernel in KERNELS:
        p = choose.parameters(Question(kernel, CUBE, n, n, tolerance))
        v = variants.choose(cuda, p.dtype, EwaldOptions(box=CUBE))
        yield kernel, sums.SumSteps(p, v, (n, n, True), cuda).steps.units()
    x, dens, _ = cloud(min(n, FEW))
    for method in (treecode, fmm):
        plan = method.plan("coulomb", x, x, tolerance=tolerance, execution_space="Serial")
        plan(np.abs(dens[0]))
        yield f"{method.__name__.removeprefix('parki.')} coulomb", plan.sums[1].placed.steps.units()


def _row(title: str, loop: HotLoop, machine: Machine, arch: str) -> Row:
    """Return the row of a hot loop: its instructions by pipe, its bound, and the rate at the bound."""
    cycles = CYCLES[arch]["double"]
    clock = machine.operations["float64"]["fma"] * cycles / (machine.multiprocessors * SCHEDULERS * WARP)
    amount = loop.pairs or loop.work
    rate = amount * WARP * machine.multiprocessors * SCHEDULERS * clock / loop.bound.cycles / 1e9
    return {
        "what": f"{title}: {loop.unit.ir.name}",
        "seconds": 1.0 / rate,
        "times": [1.0 / rate],
        "rate": rate,
        "unit": "G pairs/s" if loop.pairs else "G operations/s",
        "label": loop.unit.label,
        "instructions": len(loop.turn),
        "pipes": dict(by_pipe(loop.turn)),
        "bound": loop.bound.by,
        "cycles": loop.bound.cycles,
        "pairs": loop.pairs,
        "useful": loop.useful,
        "registers": loop.registers,
        "spills": loop.spills,
    }


def table(rows: Sequence[Row]) -> str:
    """Return rows as text: a turn of each loop in instructions and cycles of a scheduler."""
    width = max(len(r["what"]) for r in rows)
    head = f"{'what':<{width}}  turn  double  memory  other  bound    cycles  pairs  useful  registers"
    lines = [head]
    for r in rows:
        if "absent" in r:
            lines.append(f"{r['what']:<{width}}  not read: {r['absent']}")
            continue
        pipes = r["pipes"]
        double, memory = pipes.get("double", 0), pipes.get("memory", 0) + pipes.get("atomic", 0)
        lines.append(
            f"{r['what']:<{width}}{r['instructions']:>6}{double:>8}{memory:>8}{r['instructions'] - double - memory:>7}"
            f"  {r['bound']:<8}{r['cycles']:>7.0f}{r['pairs'] or '':>7}{r['useful']:>8.0%}{r['registers']:>11}"
        )
    return "\n".join(lines)
