"""Benchmarks of the treecode's models: predicted against measured phases, and shares of the roofline.

All run on one core unless threads are asked for, with the machine's stored rates, or rates measured now.
"""

import argparse
import statistics
from collections.abc import Sequence

from parki.engine import Space, workers
from parki.perfmodels import bench_models, clusters, roofline
from parki.perfmodels.bench_treecode import CASES, TreecodeCase, cloud
from parki.perfmodels.machine import Machine
from parki.perfmodels.measure import Row, row
from parki.plan import Plan
from parki.treecode import work

#: Cases whose PP and PC are compared with the roofline.
LIMITED = (TreecodeCase("coulomb", "pc", 8), TreecodeCase("yukawa", "pc", 8))
KERNELS = {"pp": "ranges", "pc": "grids"}  # phase of these cases → the only kernel in it


def predictions(asked: argparse.Namespace, space: Space) -> list[Row]:
    """Predict and time the phases of plans and of their sums, for all cases of `parki bench treecode`."""
    space, machine = bench_models.host(asked, space)
    return [made for case in CASES for made in predicted(case, asked, space, machine)]


def predicted(case: TreecodeCase, asked: argparse.Namespace, space: Space, machine: Machine) -> list[Row]:
    """Return the rows of one case, without phases that take no time; the last row is the whole call."""
    plan, runs = _runs(case, asked, space)
    counts, dtypes = work.counts(plan.structure, plan.parameters, machine), (plan.dtype.name, plan.parameters.far)
    bounds = clusters.predict(counts, machine, *dtypes, min(workers(space), machine.units))
    parts = {name: (name,) for name in clusters.PHASES if bounds[name].seconds > 0}
    rows = []
    for part, phases in {**parts, "whole": tuple(parts)}.items():
        times = [sum(run[name] for name in phases) for run in runs]
        expected = sum(bounds[name].seconds for name in phases)
        about = {"n": asked.n, "threads": workers(space), "tolerance": 0.0, "case": str(case), "part": part}
        about |= {"predicted": expected, "ratio": expected / min(times), "against": f"{case}, {part}: predicted"}
        rows.append(row(f"{case}, {part}", times, asked.n / 1e6, "M particles", **about))
    return rows


def _runs(
    case: TreecodeCase, asked: argparse.Namespace, space: Space, **options: str
) -> tuple[Plan, list[dict[str, float]]]:
    """Return the last plan, and seconds by phase of `asked.repeat` plans and calls, after one that does not count."""
    x, q = cloud(asked.n)
    runs = []
    for _ in range(asked.repeat + 1):
        plan = case.plan(x, space, **options)
        plan(q)
        runs.append(dict(plan.walltime.time))
    return plan, runs[1:]


def predictions_table(rows: Sequence[Row], phases: Sequence[str] = clusters.PHASES) -> str:
    """Return predicted over measured times, a case a line, and the number of close predictions."""
    width = max(20, *(len(r["case"]) for r in rows))
    names = (*phases, "whole")
    lines = [f"{'predicted / measured':<{width}}{'measured':>13}" + "".join(f"{name:>10}" for name in names)]
    for case in dict.fromkeys(r["case"] for r in rows):
        some = {r["part"]: r for r in rows if r["case"] == case}
        figures = "".join(f"{some[name]['ratio']:>10.2f}" if name in some else f"{'–':>10}" for name in names)
        lines.append(f"{case:<{width}}{1e3 * some['whole']['seconds']:>10.1f} ms{figures}")
    for title, whole in (("phases", False), ("sums", True)):
        ratios = [r["ratio"] for r in rows if (r["part"] == "whole") == whole]
        close = sum(abs(ratio - 1) <= bench_models.CLOSE for ratio in ratios)
        within = f"within {bench_models.CLOSE:.0%} of the measured time"
        lines.append(f"{close} of {len(ratios)} {title} {within} (median {statistics.median(ratios):.2f})")
    return "\n".join(lines)


def rooflines(asked: argparse.Namespace, space: Space) -> list[Row]:
    """Time PP and PC of two kernels in double precision, where there are any, against the machine's roofline."""
    space, machine = bench_models.host(asked, space)
    rows = []
    for case in LIMITED:
        plan, runs = _runs(case, asked, space, far_precision="double")
        found = work.counts(plan.structure, plan.parameters, machine)
        for phase, name in KERNELS.items():
            counts, times = found[phase], [run[phase] for run in runs]
            if not counts.amount:
                continue
            limit = roofline.time(counts, machine, "float64", min(workers(space), machine.units))
            level = limit.by if limit.by in counts.bytes else "dram"
            about = {"threads": workers(space), "phase": name, "kernel": case.kernel, "by": limit.by, "level": level}
            about |= {"limit": limit.seconds, "flops": counts.flops / min(times)}
            about |= {"bandwidth": counts.bytes.get(level, 0.0) / min(times), "ratio": limit.seconds / min(times)}
            what = f"{case.kernel}, {name}"
            pairs = plan.walltime.pairs[phase] / 1e9
            rows.append(row(what, times, pairs, "G pairs", against=f"{what}: its limit", **about))
    return rows
