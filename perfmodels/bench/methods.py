"""Benchmarks that measure all methods alike: time against accuracy, growth with N, phases, and threads.

A run makes a plan, calls it, and calls it again: both calls are timed.  Points are uniform, in a periodic box for Ewald
sums and in a cube of free space for all others, and targets are the sources.  `Plan.error` measures the errors: of
Ewald sums against a second sum that shares no parameter, of all others against the direct sum at some targets.
"""

import argparse
import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import parki
from parki import pairs, samples
from parki.arrays import Array
from parki.engine import Space, workers
from parki.perfmodels.bench.measure import CUBE, Row, clock, cloud, on, row, strengths, turns
from parki.perfmodels.bench.sums import numbers
from parki.plan import Plan

Named = TypeVar("Named")

SAMPLE = 200  # targets at which errors are measured
TOLERANCES = (1e-3, 1e-5, 1e-7, 1e-9, 1e-11)
MOST_DIRECT = 30_000  # points up to which all pairs are summed
PLANS: dict[str, Callable[..., Plan]] = {
    "ewald": lambda *arguments, **options: parki.ewald.plan(*arguments, box=CUBE, **options),
    "bldtt": lambda *arguments, **options: parki.treecode.plan(*arguments, method="dual", **options),
    "bltc": lambda *arguments, **options: parki.treecode.plan(*arguments, method="pc", **options),
    "kifmm": lambda *arguments, **options: parki.fmm.plan(*arguments, method="kifmm", **options),
    "direct": lambda *arguments, tolerance, **options: parki.direct.plan(*arguments, **options),
}


@dataclass(frozen=True)
class MethodSum:
    """A kernel summed by a method of `PLANS`."""

    method: str
    kernel: str

    def __str__(self) -> str:
        return f"{self.method}-{self.kernel}"

    def given(self, n: int, space: Space) -> tuple[Array, tuple[Array, ...]]:
        """Return points ``(3, n)``, and the strengths that a call of the plan takes."""
        if self.method == "ewald":
            x, dens, normals = on(space, cloud(n))
            return x, strengths(self.kernel, dens, normals)
        components = pairs.find(self.kernel).dens
        q = samples.charges(components * n, seed=2)
        x, q = on(space, (samples.uniform(n, seed=1), q if components == 1 else q.reshape(components, n)))
        return x, (q,)

    def plan(self, x: Array, tolerance: float, space: Space, **options: Any) -> Plan:
        """Make the plan for targets that are the sources."""
        return PLANS[self.method](self.kernel, x, x, tolerance=tolerance, execution_space=space, **options)


TOLERANT = (
    MethodSum("ewald", "laplace"),
    MethodSum("ewald", "stokes_sl"),
    MethodSum("ewald", "stokes_comb"),
    MethodSum("bldtt", "coulomb"),
    MethodSum("bltc", "coulomb"),
    MethodSum("kifmm", "coulomb"),
    MethodSum("kifmm", "stokes_sl"),
)
DIRECT = MethodSum("direct", "coulomb")


class PlanRuns:
    """Runs of one sum: seconds of a plan and its first call, of the next call, and of the phases of the first."""

    def __init__(self, method_sum: MethodSum, n: int, tolerance: float, space: Space, **options: Any) -> None:
        self.space, (x, self.given) = space, method_sum.given(n, space)
        self.make = functools.partial(method_sum.plan, x, tolerance, space, **options)
        self.plan: Plan | None = None
        self.again: list[float] = []
        self.phases: list[dict[str, float]] = []

    def __call__(self) -> float:
        """Make one run and return the seconds of the plan and its first call."""
        self.plan = None  # gives back its memory before the clock starts
        seconds = clock(self._first, self.space)()
        assert self.plan is not None
        self.phases.append(dict(self.plan.walltime.time))
        self.again.append(clock(functools.partial(self.plan, *self.given), self.space)())
        return seconds

    def _first(self) -> None:
        self.plan = self.make()
        self.plan(*self.given)

    def error(self) -> float:
        """Return the relative RMS error of the last result, measured."""
        assert self.plan is not None
        density, *normals = self.given
        return self.plan.error(SAMPLE, density=density, normals=normals[0] if normals else None).value


def chosen(args: argparse.Namespace, method_sums: tuple[Named, ...]) -> list[Named]:
    """Return the sums that --only names, or all without --only.

    Raises
    ------
    ValueError
        For a name that no sum has.
    """
    names, names_asked = [str(method_sum) for method_sum in method_sums], getattr(args, "only", None)
    for name in names_asked or ():
        if name not in names:
            raise ValueError(f"--only is {name!r}; expected some of {', '.join(names)}.")
    return [method_sum for method_sum in method_sums if not names_asked or str(method_sum) in names_asked]


def accuracy(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time the sums for tolerances from 1e-3 down to --tolerance, by factors of 100, and measure their errors."""
    tolerances = [tolerance for tolerance in TOLERANCES if tolerance >= args.tolerance] or [args.tolerance]
    rows: list[Row] = []
    for method_sum in chosen(args, TOLERANT):
        for tolerance in tolerances:
            run = PlanRuns(method_sum, args.n, tolerance, space)
            [times] = turns([run], args.repeat)  # not in turns with the next sum, whose operators would evict these
            rows += _both(method_sum, run, times, n=args.n, tolerance=tolerance, error=run.error())
    return rows


def growth(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time the sums for N from 10⁴ to --n, by factors of about three; all pairs only up to `MOST_DIRECT`.

    Rates are compared with that of the smallest N.
    """
    rows: list[Row] = []
    for method_sum in chosen(args, (*TOLERANT, DIRECT)):
        first: list[Row] = []
        for n in numbers(args.n):
            if method_sum == DIRECT and n > MOST_DIRECT:
                continue
            run = PlanRuns(method_sum, n, args.tolerance, space)
            # The largest N needs no turn to warm up: smaller ones have compiled its kernels.
            [times] = turns([run], args.repeat, warm=n < args.n or not first)
            rows += _both(method_sum, run, times, first, n=n, tolerance=args.tolerance)
            first = first or rows[-2:]
    return rows


def _both(
    method_sum: MethodSum, run: PlanRuns, times: list[float], first: list[Row] | None = None, **details: Any
) -> list[Row]:
    """Return the rows of a plan with its first call, and of its next call, against those of `first`."""
    assert run.plan is not None
    name, count = f"{method_sum}, N = {details['n']:,}, {details['tolerance']:g}", details["n"] / 1e6
    details |= {"series": str(method_sum), "memory": run.plan.memory}
    times_of_parts = {"plan and call": times, "call again": run.again[-len(times) :]}
    references = first or (None, None)
    return [
        row(f"{name}: {part}", seconds, count, "M particles", reference, part=part, **details)
        for (part, seconds), reference in zip(times_of_parts.items(), references, strict=True)
    ]


def phases(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time the phases of a plan and its first call; the last rows are the rest of the time, and the whole.

    The choice of parameters takes most of the rest.
    """
    rows: list[Row] = []
    for method_sum in chosen(args, TOLERANT):
        options = {"return_walltime": True} if method_sum.method == "ewald" else {}
        run = PlanRuns(method_sum, args.n, args.tolerance, space, **options)
        [durations] = turns([run], args.repeat)
        assert run.plan is not None
        walltime, phases_of_runs = run.plan.walltime, run.phases[-len(durations) :]
        titles = {name: title for name, title in walltime.phases.items() if "." not in name}
        titles.pop(walltime.whole_phase or "", None)
        parts = {title: [run_phases[name] for run_phases in phases_of_runs] for name, title in titles.items()}
        totals = [sum(times) for times in zip(*parts.values(), strict=True)]
        parts["other"] = [all_ - total for all_, total in zip(durations, totals, strict=True)]
        parts["plan and call"] = durations
        details = {"n": args.n, "tolerance": args.tolerance, "series": str(method_sum)}
        rows += [
            row(f"{method_sum}: {part}", times, args.n / 1e6, "M particles", part=part, **details)
            for part, times in parts.items()
            if min(times) > 0
        ]
    return rows


def threads(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time a plan's further calls on 1, 2, 4, … threads, up to the number that is available or asked for."""
    available, rows = workers(space), []
    counts = sorted({available, *(2**k for k in range(available.bit_length()) if 2**k <= available)})
    for method_sum in chosen(args, (*TOLERANT, DIRECT)):
        n = min(args.n, MOST_DIRECT) if method_sum == DIRECT else args.n
        x, arguments = method_sum.given(n, space)
        plans = [method_sum.plan(x, args.tolerance, replace(space, threads=count)) for count in counts]
        times_of_plans = turns([clock(functools.partial(plan, *arguments), space) for plan in plans], args.repeat)
        first: Row | None = None
        for count, times in zip(counts, times_of_plans, strict=True):
            details = {"n": n, "threads": count, "series": str(method_sum)}
            name = f"{method_sum}, N = {n:,}, {args.tolerance:g}: {count} thread{'s' * (count > 1)}"
            rows.append(row(name, times, n / 1e6, "M particles", first, **details))
            first = first or rows[-1]
    return rows
