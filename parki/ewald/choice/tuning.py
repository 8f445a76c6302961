"""Tuning of a sum: measure the model's choice, and its choices for a higher or lower cost of one part.

Each candidate is thus the best of its kind, meets the tolerance and keeps to the budget of memory.
"""

import datetime
import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from parki import prediction, ranks, saying
from parki.arrays import Array
from parki.engine import forks, spaces
from parki.ewald import predict
from parki.ewald.choice import choose, tuning_cache, variants
from parki.ewald.choice.params import Parameters
from parki.ewald.choice.question import Question
from parki.ewald.choice.variants import Variants
from parki.ewald.options import EwaldOptions, named, quiet
from parki.plan import Plan

# Factors of the model's costs: of the near field, and of spreading and gathering.
NEAR, WINDOW = (0.25, 0.4, 0.63, 1.6, 2.5, 4.0), (0.4, 2.5)
MOST_CANDIDATES = 6
#: Variants that are also tried on GPUs, one at a time.
SHAPES = (
    {"p2p_threads_x": 16}, {"p2p_method": "GM-1D"}, {"p2p_method": "GM-2D"}, {"p2p_method": "LIST-2D"},
    {"p2p_method": "SM-1D"}, {"p2g_method": "HYBRID"}, {"p2g_method": "BLOCK"}, {"p2g_method": "SOURCE"},
    {"g2p_method": "TARGET"}, {"p2g_threads": 256}, {"g2p_threads": 64}, {"g2p_threads": 256},
)  # fmt: skip
LEAST_RUNS, MOST_RUNS, ENOUGH_SECONDS = 3, 20, 0.2  # runs that count; seconds for which short sums are repeated
NOISE = 0.03  # fraction of the time: smaller gains do not count

log = logging.getLogger("parki.ewald")
_turns = forks.lock()  # held while measuring, because plans measured at once slow each other down


@dataclass(frozen=True)
class Trial:
    """Candidate: factors of the model's costs, variants by their options, and the parameters that follow.

    `predicted` and `seconds` are the predicted and the least measured time of a sum; `ratio` is its time over that of
    the model's choice, from alternating runs.
    """

    near: float
    window: float
    shape: Mapping[str, Any]
    parameters: Parameters
    variants: Variants
    predicted: float
    seconds: float = math.nan
    ratio: float = 1.0


@dataclass(frozen=True)
class Tuned:
    """Result of tuning: choice, model's choice, all candidates if measured now, and the day of the measurement.

    Lengths of the parameters are the caller's times 2^power.
    """

    choice: Trial
    model: Trial
    trials: tuple[Trial, ...] = ()
    power: int = 0
    day: str = field(default_factory=lambda: datetime.date.today().isoformat())

    def __str__(self) -> str:
        head = f"tuned, measured {self.day}" if not self.trials else f"tuned among {len(self.trials)} candidates"
        old_parameters, new_parameters = (entry.parameters.scaled(-self.power) for entry in (self.model, self.choice))
        texts = [(f"{p.rc:.4g}", " × ".join(map(str, p.grid)), str(p.P)) for p in (old_parameters, new_parameters)]
        pairs = zip(("rc", "grid", "window"), *texts, strict=True)
        rows = [f"{name} {old_text} → {new_text}" for name, old_text, new_text in pairs if old_text != new_text]
        rows += [f"{name} {value}" for name, value in self.choice.shape.items()]
        if not rows:
            return f"{head}: the model's choice stays"
        return f"{head}: {', '.join(rows)}; {1 / self.choice.ratio:.2f} times as fast as the model's choice"


@dataclass(frozen=True)
class Bench:
    """Sum that can be measured with other parameters.

    Attributes
    ----------
    question : Question
    options : EwaldOptions
        Options that name variants and libraries.
    make : function
        ``make(options, parameters)`` returns a plan.
    xp : module
        Module of the arrays of calls, NumPy or CuPy.
    power : int
        Lengths of the question are the caller's times 2^power.
    same : bool
        True if targets and sources are one array.
    comm : Comm, optional
        Communicator of a sum over ranks, all of which measure the same candidates in the same order.
    own : int, optional
        Number of sources of this rank.
    model : Parameters, optional
        The model's choice, if it depends on more than the costs of one process.
    about : tuple
        Further facts on which the best parameters depend, such as the number of ranks.
    """

    question: Question
    options: EwaldOptions
    make: Callable[[EwaldOptions, Parameters], Plan[Any]]
    xp: Any
    power: int
    same: bool
    comm: Any = None
    own: int | None = None
    model: Parameters | None = None
    about: tuple[Any, ...] = ()

    def slowest(self, seconds: float) -> float:
        """Return the longest of all ranks' times."""
        return seconds if self.comm is None else float(self.comm.allreduce(seconds, "max"))

    def plan(self, candidate: Trial) -> Plan[Any]:
        """Return the plan of a candidate."""
        return self.make(quiet(self.options, layout="dn", **candidate.shape), candidate.parameters)

    def arguments(self) -> list[Array]:
        """Return random densities and, if the kernel takes them, normals."""
        rng, k = np.random.default_rng(0), self.question.kernel
        n = self.question.n_sources if self.own is None else self.own
        draws = [rng.standard_normal(n if k.dens == 1 else (k.dens, n)), *([rng.standard_normal((3, n))] * k.normals)]
        return [self.xp.asarray(a.astype(self.question.dtype)) for a in draws]


def tune(bench: Bench, refresh: bool = False) -> Tuned:
    """Return the remembered result of similar sums, or measure one if there is none or if `refresh`.

    While candidates are measured, two are held at a time.
    """
    with _turns:
        result = None if refresh else ranks.of_first(bench.comm, "recalling a tuned sum", lambda: _known(bench))
        if result is None:
            new_result = measure(bench)
            result = ranks.of_first(bench.comm, "remembering a tuned sum", lambda: _remembered(bench, new_result))
    saying.say(log, bench.options.verbose, "%s: %s", bench.question.kernel, result)
    return result


def _key(bench: Bench) -> list[Any]:
    return tuning_cache.key(bench.question, bench.options, bench.same, bench.about)


def _remembered(bench: Bench, result: Tuned) -> Tuned:
    """Remember a result that had several candidates, and return the result."""
    best = result.choice
    if len(result.trials) > 1:
        factors = {"near": best.near, "window": best.window, "shape": dict(best.shape), "ratio": best.ratio}
        facts = {"rc": best.parameters.rc / result.model.parameters.rc, "P": best.parameters.P, "day": result.day}
        tuning_cache.remember(_key(bench), factors | facts)
    return result


def _known(bench: Bench) -> Tuned | None:
    """Return the choice of an earlier result; None if there is none, or if no tuning could have produced it."""
    result = tuning_cache.recall(_key(bench))
    question, options = bench.question, bench.options
    shapes = {item for shape in SHAPES for item in shape.items()}
    try:
        near, window, shape, ratio = (result[name] for name in ("near", "window", "shape", "ratio"))
        if near in (1.0, *NEAR) and window in (1.0, *WINDOW) and shape.items() <= shapes and 0 < ratio <= 1:
            choice = replace(trial(question, options, near, window, shape, bench.model), ratio=ratio)
            first = trial(question, options, model=bench.model)
            return Tuned(choice, first, power=bench.power, day=str(result["day"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        pass
    return None


def trial(
    question: Question, options: EwaldOptions, near: float = 1.0, window: float = 1.0,
    shape: Mapping[str, Any] | None = None, model: Parameters | None = None,
) -> Trial:  # fmt: skip
    """Return the candidate that the model chooses if parts of the sum cost `near` and `window` times its costs.

    With factors of 1 the parameters are `model`, if given.
    """
    costs = prediction.costs(question.space)
    factors = {"near": near, "target": near, "spread": window, "gather": window}
    scaled = replace(costs, **{name: factor * getattr(costs, name) for name, factor in factors.items()})
    p = model if model is not None and near == window == 1 else choose.parameters(question, scaled)
    counts = question.n_targets, question.n_sources
    v = variants.choose(question.space, question.dtype, replace(options, **(shape or {})), p, question.n_targets)
    predicted = predict.predict(p, v, counts, question.space, 0, question.crowding).seconds
    return Trial(near, window, shape or {}, p, v, predicted)


def candidates(question: Question, options: EwaldOptions, model: Parameters | None = None) -> list[Trial]:
    """Return the model's choice, then candidates with another grid or window, the fastest by the model first."""
    counts = question.n_targets, question.n_sources

    def costs(t: Trial) -> float:
        return sum(predict.as_chosen(t.parameters, counts, question.space, question.crowding).values())

    alternatives = [trial(question, options, near=near) for near in NEAR]
    alternatives += [trial(question, options, window=window) for window in WINDOW]
    trials = [trial(question, options, model=model)]
    for t in sorted(alternatives, key=costs):
        if (t.parameters.grid, t.parameters.P) not in [(u.parameters.grid, u.parameters.P) for u in trials]:
            trials.append(t)
    return trials[:MOST_CANDIDATES]


def measure(bench: Bench) -> Tuned:
    """Measure all candidates with random strengths, alternating with the model's choice; on GPUs then variants."""
    question, options, arguments = bench.question, bench.options, bench.arguments()
    work = partial(candidates, question, options, bench.model)
    first, *alternatives = ranks.of_first(bench.comm, "choosing candidates", work)
    shapes = [s for s in SHAPES if not any(named(getattr(options, name)) for name in s)]
    shapes = question.space.pick([], shapes)
    if not alternatives and not shapes:
        return Tuned(first, first, (first,), bench.power)
    base, measurements, usual = bench.plan(first), [], math.inf
    for alternative in alternatives:
        measurement, base_seconds = _against(base, first, alternative, bench, arguments)
        measurements, usual = [*measurements, measurement], min(usual, base_seconds)
    best = min([first, *(t for t in measurements if t.ratio < 1 - NOISE)], key=lambda t: t.ratio)
    base = base if best is first or not shapes else bench.plan(best)
    for shape in shapes:
        work = partial(trial, question, options, best.near, best.window, {**best.shape, **shape}, bench.model)
        alternative = ranks.of_first(bench.comm, "choosing a candidate", work)
        measurement, base_seconds = _against(base, best, alternative, bench, arguments)
        measurements, usual = [*measurements, measurement], min(usual, base_seconds if best is first else math.inf)
        if measurement.ratio < best.ratio * (1 - NOISE):
            best, base = measurement, None
            base = bench.plan(best)
    model = replace(first, seconds=usual)
    return Tuned(model if best is first else best, model, (model, *measurements), bench.power)


def _against(
    base: Plan[Any], base_trial: Trial, candidate: Trial, bench: Bench, arguments: list[Array]
) -> tuple[Trial, float]:  # fmt: skip
    """Measure a candidate alternating with `base`, the plan of `base_trial`; return it and the seconds of `base`."""
    try:
        base_seconds, new_seconds, ratio = compare(base, bench.plan(candidate), arguments, bench.slowest)
    except (RuntimeError, MemoryError) as error:
        log.info("a candidate cannot be measured: %s", error)
        return replace(candidate, ratio=math.inf), math.inf
    return replace(candidate, seconds=new_seconds, ratio=base_trial.ratio * ratio), base_seconds


def compare(
    base: Plan[Any], candidate: Plan[Any], arguments: list[Array], slowest: Callable[[float], float] = float
) -> tuple[float, float, float]:
    """Return the least seconds of two alternating plans, after a run of each that does not count, and their ratio.

    The ratio is that of the least seconds, or of the median turn if this is worse for the other plan.  Seconds of a run
    are those of the `slowest` rank.
    """
    turns: list[list[float]] = []
    while len(turns) <= LEAST_RUNS or (len(turns) <= MOST_RUNS and sum(map(sum, turns[1:])) < 2 * ENOUGH_SECONDS):
        turns.append([slowest(seconds(plan, arguments)) for plan in (base, candidate)])
    old, new = np.array(turns[1:]).T
    return float(old.min()), float(new.min()), float(max(new.min() / old.min(), np.median(new / old)))


def seconds(plan: Plan[Any], arguments: list[Array]) -> float:
    """Run a plan once, and return its seconds."""
    start = time.perf_counter()
    plan(*arguments)
    if (wait := spaces.waiter(plan.space)) is not None:
        wait()
    return time.perf_counter() - start
