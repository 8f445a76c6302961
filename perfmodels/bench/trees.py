"""Measurements that treecodes and fast multipole sums share: calls by phase, predictions, and sizes of leaves."""

import argparse
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from parki import samples
from parki.arrays import Array
from parki.engine import Space, workers
from parki.perfmodels.bench import models, sweeps
from parki.perfmodels.bench.measure import Row, clock, row, turns
from parki.plan import Plan


class Planned(Protocol):
    """A case of a benchmark, which plans a sum at targets that are the sources."""

    def plan(self, x: Array, space: Space, **options: Any) -> Plan: ...  # noqa: D102


def one_core(args: argparse.Namespace, space: Space) -> Space:
    """Return the space; on a host, one core unless a number of threads is asked for."""
    return Space("Serial") if space.kind == "host" and not args.threads else space


def cloud(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points ``(3, n)`` uniform in the cube of side 2, and charges ``(n,)`` between -1 and 1."""
    return samples.uniform(n, seed=1), samples.charges(n, seed=2)


# Calls by phase ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class CallTimes:
    """Times of a loop, of whole calls, and of calls of a plan; `first` and `later` are the phases of the fastest."""

    plan: Plan
    loop: list[float]
    call: list[float]
    again: list[float]
    first: dict[str, float]
    later: dict[str, float]


def called(case: Planned, x: Array, q: Array, space: Space, loop: Callable[[], float], repeat: int) -> CallTimes:
    """Time a loop, the whole call of a case and its plan again, in turns."""
    plan = case.plan(x, space)
    phases: dict[str, list[dict[str, float]]] = {"call": [], "again": []}

    def run(name: str, plan: Plan) -> None:
        plan(q)
        phases[name].append(dict(plan.walltime.time))

    call = clock(lambda: run("call", case.plan(x, space)), space)
    times = turns([loop, call, clock(lambda: run("again", plan), space)], repeat)
    # the first turn does not count
    fastest = [
        phases[name][1 + int(np.argmin(times_of_run))] for name, times_of_run in zip(phases, times[1:], strict=True)
    ]
    return CallTimes(plan, *times, *fastest)


# Predicted and measured ----------------------------------------------------------------------------------------------
def phases_of(case: Planned, x: Array, q: Array, space: Space, repeat: int, **options: Any) -> tuple[Plan, list[Row]]:
    """Return the last plan, and seconds by phase of `repeat` plans and calls, after one that does not count."""
    runs = []
    for _ in range(repeat + 1):
        plan = case.plan(x, space, **options)
        plan(q)
        runs.append(dict(plan.walltime.time))
    return plan, runs[1:]


def predicted(
    case: Planned, seconds: Mapping[str, float], runs: Sequence[Mapping[str, float]], n: int, space: Space
) -> list[Row]:
    """Return a row for each phase that takes time, predicted and measured; the last row is the sum of the others."""
    parts = {name: (name,) for name, time in seconds.items() if time > 0}
    rows = []
    for part, phases in {**parts, "whole": tuple(parts)}.items():
        times = [sum(run[name] for name in phases) for run in runs]
        expected = sum(seconds[name] for name in phases)
        details = {"n": n, "threads": workers(space), "tolerance": 0.0, "case": str(case), "part": part}
        details |= {"predicted": expected, "ratio": expected / min(times), "against": f"{case}, {part}: predicted"}
        rows.append(row(f"{case}, {part}", times, n / 1e6, "M particles", **details))
    return rows


def predictions_table(rows: Sequence[Row], phases: Sequence[str]) -> str:
    """Return predicted over measured times, a case a line, and the number of close predictions."""
    width = max(20, *(len(r["case"]) for r in rows))
    names = (*phases, "whole")
    lines = [f"{'predicted / measured':<{width}}{'measured':>13}" + "".join(f"{name:>10}" for name in names)]
    for case in dict.fromkeys(r["case"] for r in rows):
        rows_by_part = {r["part"]: r for r in rows if r["case"] == case}
        figures = "".join(
            f"{rows_by_part[name]['ratio']:>10.2f}" if name in rows_by_part else f"{'–':>10}" for name in names
        )
        lines.append(f"{case:<{width}}{1e3 * rows_by_part['whole']['seconds']:>10.1f} ms{figures}")
    for title, is_whole in (("phases", False), ("sums", True)):
        ratios = [r["ratio"] for r in rows if (r["part"] == "whole") == is_whole]
        hits = sum(abs(ratio - 1) <= models.CLOSE for ratio in ratios)
        condition = f"within {models.CLOSE:.0%} of the measured time"
        lines.append(f"{hits} of {len(ratios)} {title} {condition} (median {statistics.median(ratios):.2f})")
    return "\n".join(lines)


# Sizes of leaves -----------------------------------------------------------------------------------------------------
def leaves_table(rows: Sequence[Row], sizes: Sequence[str] = ("leaf",)) -> str:
    """Return the choice and the best sizes of each case, a line each, and the number of close choices."""
    width = max(26, *(len(r["case"]) for r in rows))
    names = "".join(f"{name:>7}" for name in sizes)
    head = f"{'tried':>7}{'chosen, ms':>12}{names}{'best, ms':>12}{names}{'ratio':>8}"
    lines, ratios = [f"{'chosen and best of a sweep':<{width}}{head}"], []
    for best, choice in zip(rows[::2], rows[1::2], strict=True):
        ratios.append(1.0 / choice["ratio"])
        figures = ""
        for r in (choice, best):
            figures += f"{1e3 * r['seconds']:>12.1f}" + "".join(f"{r[name]:>7}" for name in sizes)
        lines.append(f"{choice['case']:<{width}}{choice['tried']:>7}{figures}{ratios[-1]:>8.2f}")
    return "\n".join([*lines, sweeps.closeness(ratios)])
