"""Time lost by the method that `parki.sum` picks, against the fastest one: `parki bench regret`.

Every run has points of its own, moved by a thousandth, and makes its plan; tables that depend on the size of boxes are
mostly at hand, and runs are sums like earlier ones (`parki.automatic.picks`), as they are for moving points.  Methods
that are predicted to take more than `SLOW` times as long as the best one are not run.
"""

import argparse
import functools
import itertools
from typing import Any

import numpy as np

import parki
from parki import pairs, samples
from parki.arrays import Array
from parki.automatic import candidates, picks
from parki.automatic.options import SumOptions
from parki.engine import Space, workers
from parki.perfmodels.bench.measure import Row, clock, row

SLOW = 5.0  # times the least predicted time
KERNELS: dict[str, dict[str, float]] = {
    "coulomb": {}, "yukawa": {"kappa": 2.0}, "stokeslet": {}, "gaussian": {"width": 0.5},
    "multiquadric": {"width": 0.1},
}  # fmt: skip
CLOUDS = {"cube": samples.uniform, "sphere": samples.sphere, "plummer": samples.plummer}
TOLERANCES = (1e-3, 1e-6)
SIZES = 10 ** np.arange(2.0, 7.1, 0.5)  # numbers of points, up to that of the arguments


def regret(args: argparse.Namespace, space: Space) -> list[Row]:
    """Return a row for each kernel, cloud, tolerance and number of points: the pick, and its time over the least."""
    sizes = [int(n) for n in SIZES if n <= args.n]
    cases = itertools.product(KERNELS, CLOUDS, TOLERANCES, sizes)
    return [_measured(*case, space, args.repeat) for case in cases]


def _measured(kernel: str, cloud: str, tolerance: float, n: int, space: Space, repeat: int) -> Row:
    options = SumOptions(tolerance=tolerance, execution_space=space)
    pair = pairs.find(kernel, **KERNELS[kernel])
    x = CLOUDS[cloud](n, seed=1)
    picks.forget()
    costs = _costs(pair, x, options)
    names = ["auto", *(name for name, seconds in costs.items() if seconds < SLOW * min(costs.values()))]
    q = samples.charges(pair.dens * n, seed=2)
    q = q if pair.dens == 1 else q.reshape(pair.dens, n)
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(repeat + 1):
        for k, name in enumerate(names, len(names) * turn):
            points = (1.0 + 1e-3 * k) * x
            call = functools.partial(
                parki.sum, points, points, q, kernel, method=name, tolerance=tolerance, execution_space=space,
                **KERNELS[kernel],
            )  # fmt: skip
            seconds = clock(call, space)()
            if turn:  # the first run may compile
                times[name].append(seconds)
    pick = candidates.fastest(pair, points, points, options).name
    minima = {name: min(seconds) for name, seconds in times.items() if name != "auto"}
    fastest = min(minima, key=minima.__getitem__)
    facts: dict[str, Any] = {"n": n, "tolerance": tolerance, "threads": workers(space), "methods": minima}
    title = f"{kernel}, {cloud}, N = {n}, {tolerance:g}: {pick}"
    facts |= {"picked": pick, "fastest": fastest, "regret": min(times["auto"]) / minima[fastest]}
    return row(title, times["auto"], n / 1e6, "M points", **facts)


def _costs(pair: pairs.Pair, x: Array, options: SumOptions) -> dict[str, float]:
    """Return the predicted seconds of all methods that can sum the pair, by name."""
    costs: dict[str, float] = {}
    for name in candidates.names(pair, options):
        method, problem = candidates.quiet(name, pair, options, {"targets": x, "sources": x})
        try:
            costs[name] = method.cost(problem, method.choose(problem)).of(1)
        except (ValueError, MemoryError):
            continue
    return costs


def table(rows: list[Row]) -> str:
    """Return rows as text: the pick, the fastest method, their times and their ratio; a line with the shares of all."""
    width = max(len(r["what"]) for r in rows)
    lines = [f"{'sum: pick':<{width}}  {'seconds':>9}  {'fastest':>10}  {'seconds':>9}  regret"]
    for r in rows:
        seconds = r["methods"][r["fastest"]]
        lines.append(
            f"{r['what']:<{width}}  {r['seconds']:9.4f}  {r['fastest']:>10}  {seconds:9.4f}  {r['regret']:6.2f}"
        )
    ratios = np.array([r["regret"] for r in rows])
    share = (ratios <= 1.15).mean()
    return "\n".join([*lines, f"{share:.0%} of {len(rows)} within 15 %, the largest {ratios.max():.2f}"])
