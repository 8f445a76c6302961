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

    def n(self, most: int) -> int:
        """Return the number of points."""
        return max(1, round(self.share * most))

    def name(self, most: int) -> str:
        """Return a short description of the problem."""
        more = [f"periodic in {'xyz'[: self.periodicity]}"] * (self.periodicity < 3)
        more += [self.dtype] * (self.dtype != "float64") + ["half of the box empty"] * (self.filled < 1)
        return ", ".join((self.kernel, f"{self.n(most):,}", f"{self.tolerance:g}", *more))


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

    def once(self, whole: bool = True) -> float:
        """Run once more and return the seconds of all phases, with packing and sorting back if `whole`."""
        times, (dens, *normals) = PhaseTimes(TITLES, clock=self.clock), self.given
        out = np.empty((1, self.plan.kernel.result, self.plan.n_targets), self.plan.dtype)
        given = dens.reshape(1, -1, dens.shape[-1]), *(normals or [None])
        self.plan.sums[1].run(*given, out, times)
        seconds = {phase: times.time[phase] for phase in Machine.PHASES}
        if not whole:
            seconds |= {phase: seconds[phase] - times.time[f"{phase}.sort"] for phase in ("p2p", "p2g", "g2p")}
        self.runs.append(seconds)
        return sum(seconds.values())

    def times(self, phases: Iterable[str]) -> list[float]:
        """Return the seconds of some phases together, of every run but the first."""
        return [sum(seconds[name] for name in phases) for seconds in self.runs[1:]]


def made(problem: ModelProblem, most: int, space: Space) -> TimedPlan:
    """Return the problem's sum with the parameters that parki chooses."""
    x, *others = (a.astype(problem.dtype) for a in cloud(problem.n(most)))
    x[2] *= problem.filled
    options = {"box": CUBE, "tolerance": problem.tolerance, "periodicity": problem.periodicity}
    plan = api.plan(problem.kernel, x, x, execution_space=space, **options)
    return TimedPlan(
        plan, strengths(problem.kernel, *others), time.thread_time if workers(space) == 1 else time.perf_counter
    )


def host(asked: argparse.Namespace, space: Space) -> tuple[Space, Machine]:
    """Return the space to measure in, one core unless threads are asked for, and its rates, measured now if not stored.

    Raises
    ------
    ValueError
        For a space that is not on the host.
    """
    if space.kind != "host":
        raise ValueError(f"space: found {space.name}, expected one of the host: its rates can be measured")
    one = workers(space) == 1 or not asked.threads
    space = Space("Serial") if one else space
    return space, prediction.calibrated(space) or calibrate.measure(SECONDS)


def bound(plan: Plan, name: str, counts: Counts, machine: Machine, share: float = 1.0) -> Bound:
    """Return the roofline of a phase on the plan's threads, with the measured loss of cores that work together."""
    units = min(workers(plan.space), machine.units)
    return roofline.time(
        counts, machine, plan.chosen.parameters.type_of(name), units, share * machine.together(name, units)
    )


# Predicted and measured ----------------------------------------------------------------------------------------------
def predictions(asked: argparse.Namespace, space: Space) -> list[Row]:
    """Time the phases of twelve problems and predict them by `Plan.predict`, and by the roofline at mean shares.

    A row's `ratio` is the time of `Plan.predict` over the measured time, its `roofline` that of the limits over the
    shares of them that other sums reached.
    """
    space, machine = host(asked, space)
    sums = [made(problem, asked.n, space) for problem in PROBLEMS]
    turns([it.once for it in sums], asked.repeat)
    return [r for problem, it in zip(PROBLEMS, sums, strict=True) for r in _predicted(problem, it, asked.n, machine)]


def _predicted(problem: ModelProblem, it: TimedPlan, most: int, machine: Machine) -> list[Row]:
    plan, name, n = it.plan, problem.name(most), problem.n(most)
    chosen = plan.chosen
    counts = predict.counts(chosen.parameters, chosen.variants, (n, n), machine, chosen.question.crowding)
    modelled = {
        phase: bound(plan, phase, found, machine, machine.reached[phase]).seconds for phase, found in counts.items()
    }
    cost = plan.predict()
    rows = []
    for part, phases in {**predict.PARTS, "whole": Machine.PHASES}.items():
        times = it.times(phases)
        expected = cost.seconds if part == "whole" else getattr(cost, part)
        about = {"n": n, "tolerance": problem.tolerance, "threads": workers(plan.space), "problem": name, "part": part}
        about |= {"predicted": expected, "ratio": expected / min(times), "against": f"{name}, {part}: predicted"}
        about["roofline"] = sum(modelled[phase] for phase in phases) / min(times)
        rows.append(row(f"{name}, {part}", times, n / 1e6, "M particles", **about))
    return rows


def predictions_table(rows: Sequence[Row]) -> str:
    """Return predicted over measured times of both models, a problem a line, and the number of close predictions."""
    parts = (*predict.PARTS, "whole")
    width = max(len(r["problem"]) for r in rows)
    names = "".join(f"{part:>10}" for part in parts)
    lines = [f"{'predicted / measured, costs · roofline':<{width}}{'measured':>12} {names}"]
    for first in range(0, len(rows), len(parts)):
        some = rows[first : first + len(parts)]
        figures = "".join(f"{r['ratio']:>5.2f}·{r['roofline']:<4.2f}" for r in some)
        lines.append(f"{some[0]['problem']:<{width}}{1e3 * some[-1]['seconds']:>9.1f} ms {figures}")
    lines.append(f"within {CLOSE:.0%} of the measured time:")
    phases, whole = ([r for r in rows if (r["part"] == "whole") == it] for it in (False, True))
    for key, title in (("ratio", "costs"), ("roofline", "roofline")):
        close = [sum(abs(r[key] - 1) <= CLOSE for r in some) for some in (phases, whole)]
        middle = statistics.median(r[key] for r in whole)
        lines.append(
            f"  {title:<9} {close[0]} of {len(phases)} phases, {close[1]} of {len(whole)} sums (median {middle:.2f})"
        )
    return "\n".join(lines)


# Choices -------------------------------------------------------------------------------------------------------------
def selections(asked: argparse.Namespace, space: Space) -> list[Row]:
    """Time the chosen sums of twelve problems against the fastest of a sweep over cutoffs and windows.

    Each sum of the sweep is run once, after one turn that does not count; then the fastest of them take turns with the
    choice.
    """
    space, _ = host(asked, space)
    return [r for problem in PROBLEMS for r in _swept(problem, asked, space)]


def _swept(problem: ModelProblem, asked: argparse.Namespace, space: Space) -> list[Row]:
    chosen, n = made(problem, asked.n, space), problem.n(asked.n)
    parameters, others = chosen.plan.chosen.parameters, sweep(chosen.plan)

    def run(p: Parameters) -> Callable[[], float]:
        return (chosen if p is parameters else other(chosen, p)).once

    found = sweeps.sweep(parameters, others, run, asked.repeat, FINALISTS)
    about = {"n": n, "tolerance": problem.tolerance, "threads": workers(space), "problem": problem.name(asked.n)}
    about["tried"] = len(others) + 1
    return sweeps.rows(about["problem"], found, lambda p: {"rc": p.rc, "P": p.P, "grid": list(p.grid)}, about)


def other(it: TimedPlan, p: Parameters) -> TimedPlan:
    """Return the same sum with other parameters."""
    plan = it.plan
    problem = plan.problem.with_points(*plan.structure.originals())
    return replace(it, plan=Plan(plan.method, problem, replace(plan.chosen, parameters=p)), runs=[])


def sweep(plan: Plan) -> list[Parameters]:
    """Return parameters for cutoffs around the chosen one, each with the window chosen for it and with some others.

    Windows are not set, but made cheap or dear, so each of them would be chosen on some machine.
    """
    p, costs, found = plan.chosen.parameters, prediction.costs(plan.space), []
    most = params.most_cutoff(p.box, p.periodicity)
    for rc in sorted({min(most, p.rc * float(factor)) for factor in (*FACTORS, 1.0)}):
        for weight in WEIGHTS:
            priced = replace(costs, spread=weight * costs.spread, gather=weight * costs.gather)
            made = choose.parameters(replace(plan.chosen.question, rc=rc), priced)
            if made not in found and made != p:
                found.append(made)
    return found


def selections_table(rows: Sequence[Row]) -> str:
    """Return the choice and the best sum of each problem, a line each, and the number of close choices."""
    width = max(len(r["problem"]) for r in rows)
    head = f"{'tried':>7}{'chosen':>12}{'rc':>8}{'P':>4}{'best':>14}{'rc':>8}{'P':>4}{'time / best':>14}"
    lines, over = [f"{'chosen and best of a sweep':<{width}}{head}"], []
    for best, chosen in zip(rows[::2], rows[1::2], strict=True):
        over.append(1.0 / chosen["ratio"])
        figures = "".join(f"{1e3 * r['seconds']:>9.2f} ms{r['rc']:>8.4f}{r['P']:>4}  " for r in (chosen, best))
        lines.append(f"{chosen['problem']:<{width}}{chosen['tried']:>7}{figures}{over[-1]:>10.2f}")
    return "\n".join([*lines, sweeps.closeness(over)])
