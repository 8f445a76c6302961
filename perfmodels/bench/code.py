"""Benchmark of machine code: hot loops of a GPU's kernels, their bounds and the work that they do."""

import argparse
from collections.abc import Iterator, Sequence

import numpy as np

from parki import fmm, treecode
from parki.engine import Space, Wanted
from parki.ewald.choice import choose, variants
from parki.ewald.choice.question import Question
from parki.ewald.options import EwaldOptions
from parki.ewald.stages import sums
from parki.perfmodels.bench.measure import CUBE, Row, absent, cloud
from parki.perfmodels.machine import Machine
from parki.perfmodels.machinecode import table as machinecode
from parki.perfmodels.machinecode.compiled import missing
from parki.perfmodels.machinecode.reading import hot_loops
from parki.perfmodels.models.ewald import ARCHES, space_of

GPU = "h200"
KERNELS = ("stokes_comb", "stokes_sl", "laplace")
FEW = 20_000  # points of trees: their kernels are the same for more


def code(args: argparse.Namespace, space: Space) -> list[Row]:
    """Return a row for each hot loop of Ewald sums, a treecode and a fast multipole sum on a GPU.

    Raises
    ------
    ValueError
        For a machine that is no GPU.
    """
    name = (getattr(args, "device", None) or GPU).lower()
    if name not in ARCHES:
        raise ValueError(f"--device is {name!r}; expected one of {', '.join(ARCHES)}.")
    machine, arch = Machine.load(name), ARCHES[name]
    reason = missing(arch)
    if reason is not None:
        return [absent("kernels of GPUs", reason)]
    rows: dict[str, Row] = {}
    for title, requests in _sums(args.n, args.tolerance, machine):
        for row in machinecode.rows(title, hot_loops(requests, arch), machine, arch):
            rows.setdefault(row["label"], row)
    return list(rows.values())


def _sums(n: int, tolerance: float, machine: Machine) -> Iterator[tuple[str, list[Wanted]]]:
    """Yield the names of sums and the workunits that they launch on a machine."""
    space = space_of(machine)
    for kernel in KERNELS:
        p = choose.parameters(Question(kernel, CUBE, n, n, tolerance))
        v = variants.choose(space, p.dtype, EwaldOptions(box=CUBE), p, n, machine.scratch)
        yield kernel, sums.SumSteps(p, v, (n, n, True), space).steps.units()
    x, dens, _ = cloud(min(n, FEW))
    for method in (treecode, fmm):
        plan = method.plan("coulomb", x, x, tolerance=tolerance, execution_space="Serial")
        plan(np.abs(dens[0]))
        yield f"{method.__name__.removeprefix('parki.')} coulomb", plan.sums[1].placed.steps.units()


def table(rows: Sequence[Row]) -> str:
    """Return rows as text: a turn of each loop in instructions and cycles of a scheduler."""
    return machinecode.text(rows)
