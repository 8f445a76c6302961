"""Tuning of a plan: what the model chooses, and what it would choose if a part of the sum cost more or less, measured.

So each candidate is the best of its kind, meets the tolerance and keeps to the budget of memory.
"""

import datetime
import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from parki import plans
from parki.arrays import Array
from parki.engine import forks
from parki.engine.runtime import devices
from parki.ewald import balance, error, predict, remembered, variants
from parki.ewald.options import named
from parki.ewald.params import Parameters
from parki.ewald.variants import Variants

if TYPE_CHECKING:
    from parki.ewald.plan import Plan

# What the near field, and spreading and gathering, are taken to cost over what the model says.
NEAR, WINDOW = (0.25, 0.4, 0.63, 1.6, 2.5, 4.0), (0.4, 2.5)
MOST = 6  # candidates
#: On GPUs, besides: one of these at a time.
SHAPES = (
    {"p2p_threads_x": 64}, {"p2p_method": "GM-2D"}, {"p2p_method": "SM-1D"}, {"p2g_method": "BLOCK"},
    {"p2g_method": "SOURCE"}, {"p2g_threads": 256}, {"g2p_threads": 64}, {"g2p_threads": 256},
)  # fmt: skip
LEAST_RUNS, MOST_RUNS, ENOUGH = 3, 20, 0.2  # runs that count, and the seconds that short sums run for
NOISE = 0.03  # what is faster by less is not

log = logging.getLogger("parki.ewald")
_turns = forks.lock()  # plans that were measured at once would slow each other


@dataclass(frozen=True)
class Trial:
    """A candidate: what parts are taken to cost over what the model says, variants by their options, what follows.

    `predicted` and `seconds` are of a sum, the least measured one; `ratio` is its time over that of the model's choice,
    of runs that took turns.
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
    """A choice, what the model chose, all candidates if they were measured now, and the day of the measurement.

    Lengths of the parameters are the caller's times 2^power.
    """

    choice: Trial
    model: Trial
    trials: tuple[Trial, ...] = ()
    power: int = 0
    day: str = field(default_factory=lambda: datetime.date.today().isoformat())

    def __str__(self) -> str:
        when = f"tuned, measured {self.day}" if not self.trials else f"tuned among {len(self.trials)} candidates"
        before, after = (one.parameters.scaled(-self.power) for one in (self.model, self.choice))
        told = [(f"{p.rc:.4g}", " × ".join(map(str, p.grid)), str(p.P)) for p in (before, after)]
        pairs = zip(("rc", "grid", "window"), *told, strict=True)
        rows = [f"{name} {was} → {now}" for name, was, now in pairs if was != now]
        rows += [f"{name} {value}" for name, value in self.choice.shape.items()]
        if not rows:
            return f"{when}: the model's choice stays"
        return f"{when}: {', '.join(rows)}; {1 / self.choice.ratio:.2f} times as fast as the model's choice"


def tune(plan: "Plan", trg: Array, src: Array, anew: bool = False) -> Tuned:
    """Return what is remembered of sums like a plan's, or measure it, also if `anew`.

    Points are in the coordinates of the plan's stages.  While candidates are measured, two are held at a time.
    """
    with _turns:
        asked = remembered.question(plan, trg is src)
        found = None if anew else _known(plan, remembered.recall(asked))
        if found is None:
            found = measure(plan, trg, src)
            best = found.choice
            if len(found.trials) > 1:
                keep = {"near": best.near, "window": best.window, "shape": dict(best.shape), "ratio": best.ratio}
                about = {"rc": best.parameters.rc / found.model.parameters.rc, "P": best.parameters.P, "day": found.day}
                remembered.remember(asked, keep | about)
    plans.say(log, plan.options.verbose, "%s: %s", plan.kernel, found)
    return found


def _known(plan: "Plan", found: Mapping[str, Any] | None) -> Tuned | None:
    """The choice that was found before, None if it is none that could have been."""
    shapes = {item for one in SHAPES for item in one.items()}
    try:
        near, window, shape, ratio = (found[name] for name in ("near", "window", "shape", "ratio"))
        if near in (1.0, *NEAR) and window in (1.0, *WINDOW) and shape.items() <= shapes and 0 < ratio <= 1:
            known = replace(trial(plan, near, window, shape), ratio=ratio)
            return Tuned(known, trial(plan), power=plan.geometry.power, day=str(found["day"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        pass
    return None


def trial(plan: "Plan", near: float = 1.0, window: float = 1.0, shape: Mapping[str, Any] | None = None) -> Trial:
    """The candidate that the model takes if parts of the sum cost so many times what it says."""
    options, costs = plan.options, predict.costs(plan.space)
    factors = {"near": near, "target": near, "spread": window, "gather": window}
    scaled = replace(costs, **{name: factor * getattr(costs, name) for name, factor in factors.items()})
    p = balance.chosen(plan, None, scaled)
    v = variants.choose(plan.space, plan.dtype.name, replace(options, **(shape or {})))
    predicted = predict.predict(p, plan.n_targets, plan.n_sources, plan.space, 0, plan.arrangement.crowding).seconds
    return Trial(near, window, shape or {}, p, v, predicted)


def candidates(plan: "Plan") -> list[Trial]:
    """The model's choice, then others, each of its own grid or window, the best predicted first."""
    first = trial(plan)
    others = [*(trial(plan, near=near) for near in NEAR), *(trial(plan, window=window) for window in WINDOW)]
    found = [first]
    for one in sorted(others, key=lambda one: one.predicted):
        if (one.parameters.grid, one.parameters.P) not in [(t.parameters.grid, t.parameters.P) for t in found]:
            found.append(one)
    return found[:MOST]


def measure(plan: "Plan", trg: Array, src: Array) -> Tuned:
    """Measure all candidates with random strengths, each in turns with the model's choice; on GPUs then shapes."""
    rng, k, n = np.random.default_rng(0), plan.kernel, plan.n_sources
    drawn = [rng.standard_normal(n if k.dens == 1 else (k.dens, n)), *([rng.standard_normal((3, n))] * k.normals)]
    given = [(plan.xp if plan.on_gpu else np).asarray(a.astype(plan.dtype)) for a in drawn]

    def made(one: Trial) -> "Plan":
        options = error.quiet(plan.options, layout="dn", **one.shape)
        return plan.like(k, trg, src, options, plan.dtype, one.parameters)

    first, *others = candidates(plan)
    shapes = [s for s in SHAPES if not any(named(getattr(plan.options, name)) for name in s)]
    shapes = shapes if plan.space.kind != "host" else []
    if not others and not shapes:
        return Tuned(first, first, (first,), plan.geometry.power)
    base, tried, usual = made(first), [], math.inf
    for one in others:
        done, was = _against(base, first, one, made, given)
        tried, usual = [*tried, done], min(usual, was)
    best = min([first, *(one for one in tried if one.ratio < 1 - NOISE)], key=lambda one: one.ratio)
    base = base if best is first or not shapes else made(best)
    for shape in shapes:
        done, was = _against(base, best, trial(plan, best.near, best.window, {**best.shape, **shape}), made, given)
        tried, usual = [*tried, done], min(usual, was if best is first else math.inf)
        if done.ratio < best.ratio * (1 - NOISE):
            best, base = done, None
            base = made(best)
    model = replace(first, seconds=usual)
    return Tuned(model if best is first else best, model, (model, *tried), plan.geometry.power)


def _against(
    base: "Plan", of: Trial, one: Trial, made: Callable[[Trial], "Plan"], given: list[Array]
) -> tuple[Trial, float]:
    """A candidate measured in turns with `base`, the plan of another one, and the seconds of that."""
    try:
        was, now, ratio = compare(base, made(one), given)
    except (RuntimeError, MemoryError) as failed:
        log.info("a candidate cannot be measured: %s", failed)
        return replace(one, ratio=math.inf), math.inf
    return replace(one, seconds=now, ratio=of.ratio * ratio), was


def compare(one: "Plan", other: "Plan", given: list[Array]) -> tuple[float, float, float]:
    """The least seconds of two plans that take turns, after a run of each that does not count; and their ratio.

    That of the least seconds, or of the median turn if that is worse for the other.
    """
    turns: list[list[float]] = []
    while len(turns) <= LEAST_RUNS or (len(turns) <= MOST_RUNS and sum(map(sum, turns[1:])) < 2 * ENOUGH):
        turns.append([seconds(plan, given) for plan in (one, other)])
    was, now = np.array(turns[1:]).T
    return float(was.min()), float(now.min()), float(max(now.min() / was.min(), np.median(now / was)))


def seconds(plan: "Plan", given: list[Array]) -> float:
    """Run a plan once, and return the seconds that it took."""
    began = time.perf_counter()
    plan(*given)
    if plan.space.kind == "device":
        devices.wait()
    return time.perf_counter() - began
