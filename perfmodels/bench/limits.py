"""Shares of the roofline that phases of Ewald sums and kernels of treecodes reach: `parki bench roofline`."""

import argparse
from collections.abc import Sequence
from functools import partial

from parki.engine import Space, workers
from parki.ewald.stages import work as ewald_work
from parki.perfmodels import roofline
from parki.perfmodels.bench import trees
from parki.perfmodels.bench.measure import Row, row, turns
from parki.perfmodels.bench.models import ModelProblem, bound, host, made
from parki.perfmodels.bench.sums import KERNELS
from parki.perfmodels.bench.treecode import TreecodeCase
from parki.perfmodels.counts.totals import Counts
from parki.perfmodels.machine import Machine
from parki.perfmodels.roofline import Bound
from parki.treecode import work

WANTED = {"p2p": 0.7, "p2g": 0.6, "g2p": 0.6, "cnv": 0.8, "ranges": 0.7, "grids": 0.7}  # shares of the roofline
#: Cases of treecodes whose PP and PC are compared with the roofline.
LIMITED = (TreecodeCase("coulomb", "pc", 8), TreecodeCase("yukawa", "pc", 8))
ALONE = {"pp": "ranges", "pc": "grids"}  # phase of these cases → the only kernel in it


def rooflines(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time phases against the machine's roofline; `ratio` is the share of it that is reached.

    Phases of three Ewald sums are timed without packing and sorting back, and their work is counted from the cells that
    the points are in.  Of treecodes, PP and PC in double precision are timed, where there are any.
    """
    space, machine = host(args, space)
    return [*_of_ewald(args, space, machine), *of_treecodes(args, space, machine)]


def _of_ewald(args: argparse.Namespace, space: Space, machine: Machine) -> list[Row]:
    problems = [ModelProblem(kernel, 1, args.tolerance) for kernel in KERNELS]
    sums = [made(problem, args.n, space) for problem in problems]
    turns([partial(timed_plan.once, sorting=False) for timed_plan in sums], args.repeat)
    rows: list[Row] = []
    for problem, timed_plan in zip(problems, sums, strict=True):
        plan, points = timed_plan.plan, timed_plan.plan.structure.points
        counts_of_sum = ewald_work.count(plan.chosen.parameters, plan.chosen.variants, points.targets, points.sources)
        for name in Machine.PHASES:
            counts = counts_of_sum.counts[name]
            limit, amount = bound(plan, name, counts, machine), (args.n / 1e6, "M particles")
            rows.append(_row(problem.kernel, name, timed_plan.times((name,)), amount, counts, limit))
    return [r | {"threads": workers(space)} for r in rows]


def of_treecodes(args: argparse.Namespace, space: Space, machine: Machine) -> list[Row]:
    """Return the rows of treecodes."""
    rows: list[Row] = []
    for case in LIMITED:
        points = trees.cloud(args.n)
        plan, runs = trees.phases_of(case, *points, space, args.repeat, far_precision="double")
        counts = work.counts(plan.structure, plan.parameters, machine)
        for phase, name in ALONE.items():
            if counts[phase].amount:
                limit = roofline.time(counts[phase], machine, "float64", min(workers(space), machine.units))
                amount = plan.walltime.pairs[phase] / 1e9, "G pairs"
                rows.append(_row(case.kernel, name, [run[phase] for run in runs], amount, counts[phase], limit))
    return [r | {"threads": workers(space)} for r in rows]


def _row(
    kernel: str, phase: str, times: Sequence[float], amount: tuple[float, str], counts: Counts, limit: Bound
) -> Row:  # fmt: skip
    """Return the row of a phase that does some units of work, beside its limit."""
    level = limit.by if limit.by in counts.bytes else "dram"
    details = {"phase": phase, "kernel": kernel, "by": limit.by, "level": level}
    details |= {"limit": limit.seconds, "flops": counts.flops / min(times)}
    details |= {"bandwidth": counts.bytes.get(level, 0.0) / min(times), "ratio": limit.seconds / min(times)}
    return row(f"{kernel}, {phase}", times, *amount, against=f"{kernel}, {phase}: its limit", **details)


def rooflines_table(rows: Sequence[Row]) -> str:
    """Return rates, limits and shares, a phase a line.

    Bandwidth is that of the level of memory that sets the limit, or of memory itself where none does.
    """
    title = f"{'share of the roofline':<24}{'time':>11}{'limit':>11}{'Gop/s':>8}{'GB/s':>15}"
    lines = [f"{title}   {'limited by':<12}{'share':>5}"]
    for r in rows:
        target = f"   wanted {WANTED[r['phase']]:.0%}" if r["phase"] in WANTED else ""
        figures = f"{1e3 * r['seconds']:>8.2f} ms{1e3 * r['limit']:>8.2f} ms{1e-9 * r['flops']:>8.1f}"
        memory = f"{1e-9 * r['bandwidth']:>7.1f} of {r['level']:<5}"
        lines.append(f"{r['what']:<24}{figures}{memory}   {r['by']:<12}{r['ratio']:>5.0%}{target}")
    return "\n".join(lines)
