"""Benchmarks that measure all methods alike: time against accuracy, growth with N, phases, and threads.

A run makes a plan, calls it, and calls it again: both calls are timed.  Points are uniform, in a periodic box for Ewald
sums and in a cube of free space for all others, and targets are the sources.  `Plan.error` measures the errors: of
Ewald sums against a second sum that shares no parameter, of all others against the direct sum at some targets.
"""

import argparse
import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import parki
from parki import pairs, samples
from parki.arrays import Array
from parki.engine import Space, workers
from parki.perfmodels.bench.measure import CUBE, Row, clock, cloud, on, row, strengths, turns
from parki.perfmodels.bench.sums import numbers
from parki.plan import Plan

SAMPLE = 200  # targets at which errors are measured
TOLERANCES = (1e-3, 1e-5, 1e-7, 1e-9, 1e-11)
MOST_DIRECT = 30_000  # points up to which all pairs are summed
PLANS: dict[str, Callable[..., Plan]] = {
    "ewald": lambda *given, **options: parki.ewald.plan(*given, box=CUBE, **options),
    "bldtt": lambda *given, **options: parki.treecode.plan(*given, method="dual", **options),
    "bltc": lambda *given, **options: parki.treecode.plan(*given, method="pc", **options),
    "kifmm": lambda *given, **options: parki.fmm.plan(*given, method="kifmm", **options),
    "direct": lambda *given, tolerance, **options: parki.direct.plan(*given, **options),
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

    def __init__(self, one: MethodSum, n: int, tolerance: float, space: Space, **options: Any) -> None:
        self.space, (x, self.given) = space, one.given(n, space)
        self.make = functools.partial(one.plan, x, tolerance, space, **options)
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


def chosen(asked: argparse.Namespace, known: tuple[MethodSum, ...]) -> list[MethodSum]:
    """Return the sums that --only names, or all without --only.

    Raises
    ------
    ValueError
        For a name that no sum has.
    """
    names, only = [str(one) for one in known], getattr(asked, "only", None)
    for name in only or ():
        if name not in names:
            raise ValueError(f"--only is {name!r}; expected some of {', '.join(names)}.")
    return [one for one in known if not only or str(one) in only]


def accuracy(asked: argparse.Namespace, space: Space) -> list[Row]:
    """Time the sums for tolerances from 1e-3 down to --tolerance, by factors of 100, and measure their errors."""
    tolerances = [tolerance for tolerance in TOLERANCES if tolerance >= asked.tolerance] or [asked.tolerance]
    rows: list[Row] = []
    for one in chosen(asked, TOLERANT):
        for tolerance in tolerances:
            run = PlanRuns(one, asked.n, tolerance, space)
            [times] = turns([run], asked.repeat)  # not in turns with the next sum, whose operators would evict these
            rows += _both(one, run, times, n=asked.n, tolerance=tolerance, error=run.error())
    return rows


def growth(asked: argparse.Namespace, space: Space) -> list[Row]:
    """Time the sums for N from 10⁴ to --n, by factors of about three; all pairs only up to `MOST_DIRECT`.

    Rates are compared with that of the smallest N.
    """
    rows: list[Row] = []
    for one in chosen(asked, (*TOLERANT, DIRECT)):
        first: list[Row] = []
        for n in numbers(asked.n):
            if one == DIRECT and n > MOST_DIRECT:
                continue
            run = PlanRuns(one, n, asked.tolerance, space)
            # The largest N needs no turn to warm up: smaller ones have compiled its kernels.
            [times] = turns([run], asked.repeat, warm=n < asked.n or not first)
            rows += _both(one, run, times, first, n=n, tolerance=asked.tolerance)
            first = first or rows[-2:]
    return rows


def _both(one: MethodSum, run: PlanRuns, times: list[float], first: list[Row] | None = None, **about: Any) -> list[Row]:
    """Return the rows of a plan with its first call, and of its next call, against those of `first`."""
    assert run.plan is not None
    name, count = f"{one}, N = {about['n']:,}, {about['tolerance']:g}", about["n"] / 1e6
    about |= {"series": str(one), "memory": run.plan.memory}
    found = {"plan and call": times, "call again": run.again[-len(times) :]}
    others = first or (None, None)
    return [
        row(f"{name}: {part}", seconds, count, "M particles", other, part=part, **about)
        for (part, seconds), other in zip(found.items(), others, strict=True)
    ]


def phases(asked: argparse.Namespace, space: Space) -> list[Row]:
    """Time the phases of a plan and its first call; the last rows are the rest of the time, and the whole.

    The choice of parameters takes most of the rest.
    """
    rows: list[Row] = []
    for one in chosen(asked, TOLERANT):
        timed = {"return_walltime": True} if one.method == "ewald" else {}
        run = PlanRuns(one, asked.n, asked.tolerance, space, **timed)
        [whole] = turns([run], asked.repeat)
        assert run.plan is not None
        walltime, counted = run.plan.walltime, run.phases[-len(whole) :]
        titles = {name: title for name, title in walltime.phases.items() if "." not in name}
        titles.pop(walltime.whole_phase or "", None)
        parts = {title: [found[name] for found in counted] for name, title in titles.items()}
        spent = [sum(times) for times in zip(*parts.values(), strict=True)]
        parts["other"] = [all_ - known for all_, known in zip(whole, spent, strict=True)]
        parts["plan and call"] = whole
        about = {"n": asked.n, "tolerance": asked.tolerance, "series": str(one)}
        rows += [
            row(f"{one}: {part}", times, asked.n / 1e6, "M particles", part=part, **about)
            for part, times in parts.items()
            if min(times) > 0
        ]
    return rows


def threads(asked: argparse.Namespace, space: Space) -> list[Row]:
    """Time a plan's further calls on 1, 2, 4, … threads, up to the number that is available or asked for."""
    most, rows = workers(space), []
    counts = sorted({most, *(2**k for k in range(most.bit_length()) if 2**k <= most)})
    for one in chosen(asked, (*TOLERANT, DIRECT)):
        n = min(asked.n, MOST_DIRECT) if one == DIRECT else asked.n
        x, given = one.given(n, space)
        plans = [one.plan(x, asked.tolerance, replace(space, threads=count)) for count in counts]
        found = turns([clock(functools.partial(plan, *given), space) for plan in plans], asked.repeat)
        first: Row | None = None
        for count, times in zip(counts, found, strict=True):
            about = {"n": n, "threads": count, "series": str(one)}
            name = f"{one}, N = {n:,}, {asked.tolerance:g}: {count} thread{'s' * (count > 1)}"
            rows.append(row(name, times, n / 1e6, "M particles", first, **about))
            first = first or rows[-1]
    return rows
