"""Ratios of times of both trees, measured in turns: one after the other, in alternating order.

Load of the machine that lasts longer than a turn affects both; the median ratio leaves out shorter loads.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.house.cases import Case
from tests.house.inputs import Inputs

if TYPE_CHECKING:
    from tests.house.process import Tree

SHORTEST = 0.02  # seconds of a measurement, at least: shorter calls are repeated
PAUSE = 0.02  # seconds before a measurement: threads of the other process spin for some milliseconds after their work
WAYS = ("call", "move", "once")
DRAWS = 2000  # draws of the bootstrap


@dataclass(frozen=True)
class Benchmark:
    """Row of results: `way` is "call" (of a plan called before), "move" (and a call), or "once" (a one-shot call)."""

    case: Case
    way: str

    def __str__(self) -> str:
        number = f"{self.case.n:.0e}".replace("e+0", "e")
        words = [self.case.method, self.case.kernel, number, self.case.space, self.way]
        words += [f"tolerance={self.case.options['tolerance']:.0e}"] if "tolerance" in self.case.options else []
        return " ".join(words)


def benchmarks() -> list[Benchmark]:
    """Return every row."""
    box = {"box": (1.0, 1.0, 1.0)}
    sums = [
        *(("ewald", kernel, n, box | {"tolerance": 1e-7}) for kernel in ("laplace", "stokes_sl", "stokes_comb")
          for n in (10_000, 100_000)),
        ("ewald", "laplace", 100, box | {"tolerance": 1e-6}),
        *((method, "coulomb", n, {"tolerance": tolerance}) for n in (10_000, 100_000)
          for method, tolerance in (("bldtt", 1e-5), ("kifmm", 1e-6), ("chebyshev", 1e-4))),
        *(("direct", "laplace", n, {}) for n in (10_000, 100_000)),
    ]  # fmt: skip
    return [
        Benchmark(Case(method, kernel, way, space=space, n=n, options=options), way)
        for method, kernel, n, options in sums
        for space in ("OpenMP", "Serial")
        for way in (("once",) if method == "direct" else WAYS)
    ]


# In the process of a tree ---------------------------------------------------------------------------------------------
_action: list[Callable[[], Any]] = []


def prepare(benchmark: Benchmark) -> float:
    """Prepare the call of a benchmark, run it twice, and return the seconds of the second run."""
    _action[:] = [_made(benchmark)]
    _action[0]()
    return seconds(1)


def seconds(repeats: int) -> float:
    """Return the mean time of `repeats` runs of the prepared call."""
    time.sleep(PAUSE)
    began = time.perf_counter()
    for _ in range(repeats):
        _action[0]()
    return (time.perf_counter() - began) / repeats


def _made(benchmark: Benchmark) -> Callable[[], Any]:
    from tests.house import calls

    case = benchmark.case
    if benchmark.way == "once":
        return lambda: [step() for _, step in calls.once(case)]
    given = Inputs(case)
    places, strengths = [given.points(), given.points()], (given.density(), *given.normals())
    plan = calls.plan(case, given, places[0])
    if benchmark.way == "call":
        return lambda: plan(*strengths)

    def move() -> None:
        places.reverse()
        calls.move(plan, *places[0])
        plan(*strengths)

    return move


# In the driver --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Ratio:
    """Times of the old tree over those of the new one: above 1 the new one is faster.

    Attributes
    ----------
    median, low, high
        Median over the turns, and its 95 % interval by bootstrap.
    old, new
        Median seconds.
    """

    median: float
    low: float
    high: float
    old: float
    new: float


def measure(benchmark: Benchmark, old: "Tree", new: "Tree", turns: int) -> Ratio:
    """Return the ratio of a benchmark over `turns` turns."""
    shortest = min(tree.ask("prepare", benchmark) for tree in (old, new))
    repeats = max(1, math.ceil(SHORTEST / max(shortest, 1e-9)))
    pairs = [_turn(old, new, repeats, turn % 2 == 0) for turn in range(turns)]
    return ratio(np.array(pairs))


def _turn(old: "Tree", new: "Tree", repeats: int, old_first: bool) -> tuple[float, float]:
    if old_first:
        return old.ask("time", repeats), new.ask("time", repeats)
    later = new.ask("time", repeats)
    return old.ask("time", repeats), later


def ratio(pairs: np.ndarray) -> Ratio:
    """Return the median ratio of pairs (turns, 2) of times and its interval."""
    ratios = pairs[:, 0] / pairs[:, 1]
    drawn = np.random.default_rng(1).integers(len(ratios), size=(DRAWS, len(ratios)))
    low, high = np.quantile(np.median(ratios[drawn], axis=1), (0.025, 0.975))
    return Ratio(float(np.median(ratios)), float(low), float(high), *map(float, np.median(pairs, axis=0)))


def rows(benchmarks: list[Benchmark], old: "Tree", new: "Tree", turns: int) -> Iterator[tuple[Benchmark, Ratio]]:
    """Yield each benchmark and its ratio."""
    for benchmark in benchmarks:
        yield benchmark, measure(benchmark, old, new, turns)
