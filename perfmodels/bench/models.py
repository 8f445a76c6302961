"""Benchmarks of the models of Ewald sums: predicted against measured times, and choices against a sweep.

`model` and `selection` take twelve problems: three kernels, two numbers of points, tolerances from 1e-4 to 1e-10, one
with all points in half of the box, two periodic along one axis, one in single precision.  Both run on one core unless
threads are asked for.  One thread is timed by its processor time, which stands still while others have the core, more
threads by the clock.  Sums that are compared take turns, and the fastest turn counts.  The arrays of all sums that take
turns are held at once.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from parki import prediction
from parki.engine import Space, workers
from parki.ewald import api, predict
from parki.ewald.choice import choose, params
from parki.ewald.choice.params import Parameters
from parki.ewald.report import TITLES
from parki.perfmodels import roofline
from parki.perfmodels.bench import calibrate, sweeps
from parki.perfmodels.bench.measure import CUBE, Row, cloud, row, strengths, turns
from parki.perfmodels.counts.totals import Counts
from parki.perfmodels.machine import Machine
from parki.perfmodels.roofline import Bound
from parki.plan import Plan
from parki.timing import PhaseTimes

SECONDS = 4.0  # of a calibration, where none is stored
CLOSE = 0.25  # share of the measured time by which a good prediction may be off
FACTORS = np.geomspace(0.6, 1.6, 9)  # cutoffs that a selection is compared with, over the chosen rc
WEIGHTS = (1.0, 0.25, 4.0)  # factors of a window's cost: these give the chosen width, wider ones, narrower ones
FINALISTS = 5  # sums of a sweep that are measured again


@dataclass(frozen=True)
class ModelProblem:
    """A sum to be made, of a share of the points asked for; `filled` is the part of the box that has points."""

    kernel: str
    share: float
    tolerance: float
    periodicity: int = 3
    dtype: str = "float64"
    filled: float = 1.0

    def n(self, largest: int) -> int:
        """Return the number of points."""
        return max(1, round(self.share * largest))

    def name(self, largest: int) -> str:
        """Return a short description of the problem."""
        words = [f"periodic in {'xyz'[: self.periodicity]}"] * (self.periodicity < 3)
        words += [self.dtype] * (self.dtype != "float64") + ["half of the box empty"] * (self.filled < 1)
        return ", ".join((self.kernel, f"{self.n(largest):,}", f"{self.tolerance:g}", *words))


PROBLEMS = (
    ModelProblem("laplace", 1 / 3, 1e-4),
    ModelProblem("laplace", 1, 1e-7),
    ModelProblem("laplace", 1, 1e-10),
    ModelProblem("laplace", 1, 1e-4, dtype="float32"),
    ModelProblem("stokes_sl", 1 / 3, 1e-7),
    ModelProblem("stokes_sl", 1, 1e-4),
    ModelProblem("stokes_sl", 1, 1e-10),
    ModelProblem("stokes_sl", 1, 1e-7, periodicity=1),
    ModelProblem("stokes_comb", 1 / 3, 1e-10),
    ModelProblem("stokes_comb", 1, 1e-4, filled=0.5),
    ModelProblem("stokes_comb", 1, 1e-7),
    ModelProblem("stokes_comb", 1 / 3, 1e-7, periodicity=1),
)


@dataclass
class TimedPlan:
    """A plan that is run and timed phase by phase; `runs` are the seconds of every run, by phase."""

    plan: Plan
    given: Sequence[np.ndarray]
    clock: Callable[[], float]
    runs: list[dict[str, float]] = field(default_factory=list)

    def once(self, sorting: bool = True) -> float:
        """Run once more and return the seconds of all phases, with packing and sorting back if `sorting`."""
        times, (dens, *normals) = PhaseTimes(TITLES, clock=self.clock), self.given
        out = np.empty((1, self.plan.kernel.result, self.plan.n_targets), self.plan.dtype)
        arguments = dens.reshape(1, -1, dens.shape[-1]), *(normals or [None])
        self.plan.sums[1].run(*arguments, out, times)
        seconds = {phase: times.time[phase] for phase in Machine.PHASES}
        if not sorting:
            seconds |= {phase: seconds[phase] - times.time[f"{phase}.sort"] for phase in ("p2p", "p2g", "g2p")}
        self.runs.append(seconds)
        return sum(seconds.values())

    def times(self, phases: Iterable[str]) -> list[float]:
        """Return the seconds of some phases together, of every run but the first."""
        return [sum(seconds[name] for name in phases) for seconds in self.runs[1:]]


def made(problem: ModelProblem, largest: int, space: Space) -> TimedPlan:
    """Return the problem's sum with the parameters that parki chooses."""
    x, *strengths_of_cloud = (a.astype(problem.dtype) for a in cloud(problem.n(largest)))
    x[2] *= problem.filled
    options = {"box": CUBE, "tolerance": problem.tolerance, "periodicity": problem.periodicity}
    plan = api.plan(problem.kernel, x, x, execution_space=space, **options)
    return TimedPlan(
        plan,
        strengths(problem.kernel, *strengths_of_cloud),
        time.thread_time if workers(space) == 1 else time.perf_counter,
    )


def host(args: argparse.Namespace, space: Space) -> tuple[Space, Machine]:
    """Return the space to measure in, one core unless threads are asked for, and its rates, measured now if not stored.

    Raises
    ------
    ValueError
        For a space that is not on the host.
    """
    if space.kind != "host":
        raise ValueError(f"space: found {space.name}, expected one of the host: its rates can be measured")
    is_serial = workers(space) == 1 or not args.threads
    space = Space("Serial") if is_serial else space
    return space, prediction.calibrated(space) or calibrate.measure(SECONDS)


def bound(plan: Plan, name: str, counts: Counts, machine: Machine, share: float = 1.0) -> Bound:
    """Return the roofline of a phase on the plan's threads, with the measured loss of cores that work together."""
    units = min(workers(plan.space), machine.units)
    return roofline.time(
        counts, machine, plan.chosen.parameters.type_of(name), units, share * machine.together(name, units)
    )


# Predicted and measured ----------------------------------------------------------------------------------------------
def predictions(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time the phases of twelve problems and predict them by `Plan.predict`, and by the roofline at mean shares.

    A row's `ratio` is the time of `Plan.predict` over the measured time, its `roofline` that of the limits over the
    shares of them that other sums reached.
    """
    space, machine = host(args, space)
    sums = [made(problem, args.n, space) for problem in PROBLEMS]
    turns([timed_plan.once for timed_plan in sums], args.repeat)
    return [
        r
        for problem, timed_plan in zip(PROBLEMS, sums, strict=True)
        for r in _predicted(problem, timed_plan, args.n, machine)
    ]


def _predicted(problem: ModelProblem, timed_plan: TimedPlan, largest: int, machine: Machine) -> list[Row]:
    plan, name, n = timed_plan.plan, problem.name(largest), problem.n(largest)
    choice = plan.chosen
    counts = predict.counts(choice.parameters, choice.variants, (n, n), machine, choice.question.crowding)
    model = {
        phase: bound(plan, phase, counts_of_phase, machine, machine.reached[phase]).seconds
        for phase, counts_of_phase in counts.items()
    }
    cost = plan.predict()
    rows = []
    for part, phases in {**predict.PARTS, "whole": Machine.PHASES}.items():
        times = timed_plan.times(phases)
        expected = cost.seconds if part == "whole" else getattr(cost, part)
        details = {
            "n": n,
            "tolerance": problem.tolerance,
            "threads": workers(plan.space),
            "problem": name,
            "part": part,
        }
        details |= {"predicted": expected, "ratio": expected / min(times), "against": f"{name}, {part}: predicted"}
        details["roofline"] = sum(model[phase] for phase in phases) / min(times)
        rows.append(row(f"{name}, {part}", times, n / 1e6, "M particles", **details))
    return rows


def predictions_table(rows: Sequence[Row]) -> str:
    """Return predicted over measured times of both models, a problem a line, and the number of close predictions."""
    parts = (*predict.PARTS, "whole")
    width = max(len(r["problem"]) for r in rows)
    names = "".join(f"{part:>10}" for part in parts)
    lines = [f"{'predicted / measured, costs · roofline':<{width}}{'measured':>12} {names}"]
    for first in range(0, len(rows), len(parts)):
        rows_of_sum = rows[first : first + len(parts)]
        figures = "".join(f"{r['ratio']:>5.2f}·{r['roofline']:<4.2f}" for r in rows_of_sum)
        lines.append(f"{rows_of_sum[0]['problem']:<{width}}{1e3 * rows_of_sum[-1]['seconds']:>9.1f} ms {figures}")
    lines.append(f"within {CLOSE:.0%} of the measured time:")
    phases, sums = ([r for r in rows if (r["part"] == "whole") == is_whole] for is_whole in (False, True))
    for key, title in (("ratio", "costs"), ("roofline", "roofline")):
        hits = [sum(abs(r[key] - 1) <= CLOSE for r in rows_of_sum) for rows_of_sum in (phases, sums)]
        middle = statistics.median(r[key] for r in sums)
        lines.append(
            f"  {title:<9} {hits[0]} of {len(phases)} phases, {hits[1]} of {len(sums)} sums (median {middle:.2f})"
        )
    return "\n".join(lines)


# Choices -------------------------------------------------------------------------------------------------------------
def selections(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time the chosen sums of twelve problems against the fastest of a sweep over cutoffs and windows.

    Each sum of the sweep is run once, after one turn that does not count; then the fastest of them take turns with the
    choice.
    """
    space, _ = host(args, space)
    return [r for problem in PROBLEMS for r in _swept(problem, args, space)]


def _swept(problem: ModelProblem, args: argparse.Namespace, space: Space) -> list[Row]:
    choice, n = made(problem, args.n, space), problem.n(args.n)
    parameters, alternatives = choice.plan.chosen.parameters, sweep(choice.plan)

    def run(p: Parameters) -> Callable[[], float]:
        return (choice if p is parameters else other(choice, p)).once

    result = sweeps.sweep(parameters, alternatives, run, args.repeat, FINALISTS)
    details = {"n": n, "tolerance": problem.tolerance, "threads": workers(space), "problem": problem.name(args.n)}
    details["tried"] = len(alternatives) + 1
    return sweeps.rows(details["problem"], result, lambda p: {"rc": p.rc, "P": p.P, "grid": list(p.grid)}, details)


def other(timed_plan: TimedPlan, p: Parameters) -> TimedPlan:
    """Return the same sum with other parameters."""
    plan = timed_plan.plan
    problem = plan.problem.with_points(*plan.structure.originals())
    return replace(timed_plan, plan=Plan(plan.method, problem, replace(plan.chosen, parameters=p)), runs=[])


def sweep(plan: Plan) -> list[Parameters]:
    """Return parameters for cutoffs around the chosen one, each with the window chosen for it and with some others.

    Windows are not set, but made cheap or dear, so each of them would be chosen on some machine.
    """
    p, costs, candidates = plan.chosen.parameters, prediction.costs(plan.space), []
    largest = params.most_cutoff(p.box, p.periodicity)
    for rc in sorted({min(largest, p.rc * float(factor)) for factor in (*FACTORS, 1.0)}):
        for weight in WEIGHTS:
            weighted_costs = replace(costs, spread=weight * costs.spread, gather=weight * costs.gather)
            candidate = choose.parameters(replace(plan.chosen.question, rc=rc), weighted_costs)
            if candidate not in candidates and candidate != p:
                candidates.append(candidate)
    return candidates


def selections_table(rows: Sequence[Row]) -> str:
    """Return the choice and the best sum of each problem, a line each, and the number of close choices."""
    width = max(len(r["problem"]) for r in rows)
    head = f"{'tried':>7}{'chosen':>12}{'rc':>8}{'P':>4}{'best':>14}{'rc':>8}{'P':>4}{'time / best':>14}"
    lines, ratios = [f"{'chosen and best of a sweep':<{width}}{head}"], []
    for best, choice in zip(rows[::2], rows[1::2], strict=True):
        ratios.append(1.0 / choice["ratio"])
        figures = "".join(f"{1e3 * r['seconds']:>9.2f} ms{r['rc']:>8.4f}{r['P']:>4}  " for r in (choice, best))
        lines.append(f"{choice['problem']:<{width}}{choice['tried']:>7}{figures}{ratios[-1]:>10.2f}")
    return "\n".join([*lines, sweeps.closeness(ratios)])
