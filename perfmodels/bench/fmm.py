"""Benchmarks of fast multipole sums: phases beside published codes, sizes of leaves, models, and FMM3D.

Everything is measured on one core unless threads are asked for, with charges of both signs.  Times of other codes are
from another machine.  The rates of a sum over all pairs on both machines carry them over to this one: published time ×
rate of their loop there / rate here.  Here a loop with vectors written by hand and parki's own are timed in the same
turns.  The faster of both counts, which favours the other codes.
"""

import argparse
import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parki import direct, samples
from parki.arrays import Array
from parki.engine import Space, workers
from parki.fmm import api, balance, work
from parki.fmm.report import PHASES, PLANNED
from parki.pairs import find
from parki.perfmodels.bench import free, handwritten, models, sweeps, trees
from parki.perfmodels.bench.measure import Row, clock, on, row, spread
from parki.perfmodels.bench.trees import one_core
from parki.perfmodels.counts import fmm
from parki.perfmodels.machine import Machine
from parki.plan import Plan

KAPPA = {"yukawa": {"kappa": 0.5}}
KERNELS = ("coulomb", "stokes_sl")  # kernels that FMM3D has, too
SAMPLE = 1000  # targets at which errors are measured
RUNS = 20  # runs of a sum over all pairs, of which the best counts
PAIRS = 2048, 2000  # targets and sources of such a sum
LOOP = 4.6e9  # pairs a second of PVFMM's loop over all pairs, where the other codes were measured
SIZES = (0.35, 0.5, 0.6, 0.7, 0.85, 1.0, 1.2, 1.4, 1.7, 2.0, 2.8)  # points of a leaf in a sweep, over the chosen number


@dataclass(frozen=True)
class FmmCase:
    """A sum of a kernel to an order, at uniform points or others of `samples`."""

    kernel: str
    order: int
    gradient: bool = False
    points: str = "uniform"
    method: str = "kifmm"

    def given(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return points (3, n) and strengths (n,) or (3, n), between -1 and 1."""
        components = find(self.kernel, **KAPPA.get(self.kernel, {})).dens
        q = samples.charges(components * n, seed=2)
        return getattr(samples, self.points)(n, seed=1), q if components == 1 else q.reshape(components, n)

    def plan(self, x: Array, space: Space, **options: Any) -> Plan:
        """Make the plan for targets that are the sources."""
        options |= KAPPA.get(self.kernel, {}) | {"execution_space": space, "gradient": self.gradient}
        return api.plan(self.kernel, x, x, method=self.method, order=self.order, **options)

    def __str__(self) -> str:
        words = [f"order {self.order}", "gradient" * self.gradient, self.points * (self.points != "uniform")]
        words.append(self.method * (self.method != "kifmm"))
        return ", ".join([self.kernel, *filter(None, words)])


CASES = (
    *(FmmCase("coulomb", order) for order in (6, 8, 10)),
    *(FmmCase("coulomb", order, gradient=True) for order in (6, 8)),
    *(FmmCase("stokes_sl", order) for order in (5, 7, 9)),
    FmmCase("yukawa", 7),
    *(FmmCase("coulomb", 6, points=points) for points in ("plummer", "sphere")),
    *(FmmCase(kernel, order, method="chebyshev") for kernel, order in (("coulomb", 5), ("stokes_sl", 5))),
)
SURFACES = tuple(case for case in CASES if case.method == "kifmm")
SWEPT = tuple(case for case in SURFACES if not case.gradient)


@dataclass(frozen=True)
class Peer:
    """Another code on one core with AVX-512: its error, seconds of a whole call, and of a call with the tree kept."""

    name: str
    error: float
    call: float
    again: float | None = None


PEERS = {
    (FmmCase("coulomb", 6), 100_000): (Peer("PVFMM", 2.3e-6, 0.259, 0.137),),
    (FmmCase("coulomb", 8), 100_000): (Peer("PVFMM", 4.6e-8, 0.299, 0.174),),
    (FmmCase("coulomb", 10), 100_000): (Peer("PVFMM", 2.4e-9, 0.380, 0.242),),
    (FmmCase("coulomb", 6), 1_000_000): (Peer("PVFMM", 3.3e-6, 3.29, 1.81),),
    (FmmCase("coulomb", 8), 1_000_000): (Peer("PVFMM", 7e-8, 3.64, 2.25),),
    (FmmCase("coulomb", 10), 1_000_000): (Peer("PVFMM", 3.6e-9, 4.17, 2.79),),
    (FmmCase("coulomb", 6, gradient=True), 100_000): (Peer("exafmm-t", 2.3e-6, 0.26),),
    (FmmCase("coulomb", 8, gradient=True), 100_000): (Peer("exafmm-t", 4.6e-8, 0.33),),
    (FmmCase("stokes_sl", 5), 100_000): (Peer("PVFMM", 8e-5, 0.51),),
    (FmmCase("stokes_sl", 7), 100_000): (Peer("PVFMM", 5e-7, 1.25),),
    (FmmCase("stokes_sl", 9), 100_000): (Peer("PVFMM", 1.4e-9, 2.23),),
    (FmmCase("yukawa", 7), 100_000): (Peer("exafmm-t", 3e-6, 0.77), Peer("DMK", 2e-7, 0.52)),
    (FmmCase("coulomb", 6, points="plummer"), 100_000): (Peer("PVFMM", 4e-6, 0.39),),
    (FmmCase("coulomb", 6, points="sphere"), 100_000): (Peer("PVFMM", 1.3e-6, 0.26),),
}


def sums(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time the whole call with new points, and the plan again, for all cases."""
    space = one_core(args, space)
    return [r for case in CASES for r in measured(case, args.n, space, args.repeat)]


def measured(case: FmmCase, n: int, space: Space, repeat: int) -> list[Row]:
    """Return two rows of one case; phases are those of its fastest run."""
    x, q = on(space, case.given(n))
    times = trees.called(case, x, q, space, _all_pairs(), repeat)
    plan, rate = times.plan, math.prod(PAIRS) / min(times.loop)
    details = {"n": n, "threads": workers(space), "tolerance": 0.0, "case": str(case), "loop": rate}
    details |= {"error": plan.error(SAMPLE, density=q).value, "memory": plan.memory, "leaf": plan.parameters.leaf_size}
    details |= {"boxes": plan.structure.tree.nodes.n, "pairs": dict(plan.walltime.pairs)}
    rows = []
    for title, times_of_call, phases in (
        ("whole call", times.call, times.first),
        ("plan(charges)", times.again, times.later),
    ):
        phases = {name: seconds for name, seconds in phases.items() if title == "whole call" or name not in PLANNED}
        peers = _carried(case, n, workers(space), title, rate / LOOP * min(times_of_call))
        r = row(f"{case}: {title}", times_of_call, n / 1e6, "M particles", phases=phases, peers=peers, **details)
        if peers:
            r |= {"ratio": peers[0]["ratio"], "against": f"{peers[0]['name']}, carried by its loop"}
        rows.append(r)
    return rows


def _all_pairs() -> Callable[[], float]:
    """Return a function that times a sum over all pairs: the best run of the loop by hand and of the direct sum."""
    x, y = (samples.uniform(n, seed=n) for n in PAIRS)
    direct_times = clock(lambda: direct.direct_sum("coulomb", x, y, y[0], execution_space="Serial"))
    return lambda: min([*handwritten.yardstick(RUNS), *(direct_times() for _ in range(RUNS))])


def _carried(case: FmmCase, n: int, threads: int, title: str, seconds: float) -> list[Row]:
    """Return the times of other codes, where known, over `seconds`."""
    peers = PEERS.get((case, n), ()) if threads == 1 else ()
    times = [(peer, peer.call if title == "whole call" else peer.again) for peer in peers]
    return [{"name": peer.name, "error": peer.error, "ratio": s / seconds} for peer, s in times if s is not None]


def table(rows: Sequence[Row]) -> str:
    """Return times, error, near pairs, memory and ratios of other codes' times, a case a line; and phases."""
    width = max(len(r["case"]) for r in rows)
    lines = [
        f"{'times in ms':<{width}}{'call':>10}{'median':>8}{'again':>10}{'error':>10}{'leaf':>6}{'boxes':>8}"
        f"{'G pairs/s':>11}{'B/point':>9}   over it (call, again, at error)"
    ]
    for call, plan in zip(rows[::2], rows[1::2], strict=True):
        noise = f"{spread(call['times']):+.0%}" if len(call["times"]) > 1 else ""
        rate = plan["pairs"].get("near", 0.0) / plan["phases"]["near"] if plan["phases"]["near"] else 0.0
        lines.append(
            f"{call['case']:<{width}}{1e3 * call['seconds']:>10.1f}{noise:>8}{1e3 * plan['seconds']:>10.1f}"
            f"{call['error']:>10.1e}{call['leaf']:>6}{call['boxes']:>8}{1e-9 * rate:>11.2f}"
            f"{call['memory'] / call['n']:>9.0f}   {_peers(call, plan)}".rstrip()
        )
    lines += ["", f"{'phases of the call, ms':<{width}}" + "".join(f"{name:>10}" for name in PHASES)]
    for call in rows[::2]:
        lines.append(f"{call['case']:<{width}}" + "".join(f"{1e3 * call['phases'][name]:>10.2f}" for name in PHASES))
    rates = [1e-9 * r["loop"] for r in rows]
    lines += ["", f"all pairs, one thread: {min(rates):.2f} to {max(rates):.2f} G pairs/s"]
    return "\n".join(lines)


def _peers(call: Row, plan: Row) -> str:
    peer_of_plan = {peer["name"]: peer for peer in plan["peers"]}
    texts = []
    for peer in call["peers"]:
        ratio_of_plan = f", {peer_of_plan[peer['name']]['ratio']:.2f}" if peer["name"] in peer_of_plan else ""
        texts.append(f"{peer['name']} {peer['ratio']:.2f}{ratio_of_plan} ({peer['error']:.1e})")
    return "; ".join(texts)


# Against FMM3D -------------------------------------------------------------------------------------------------------
def against_fmm(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time whole calls against FMM3D, potentials of charges and flows of forces: see `free`."""

    def ours(kernel: str) -> free.Ours:
        def sum_(x: np.ndarray, q: np.ndarray, tolerance: float, space: Space) -> np.ndarray:
            return api.kifmm(x, x, q, kernel, tolerance=tolerance, execution_space=space)

        return free.Ours("parki.fmm", kernel, sum_)

    return free.over_trees(args, one_core(args, space), [ours(kernel) for kernel in KERNELS])


# Sizes of leaves -----------------------------------------------------------------------------------------------------
def leaves(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time whole calls with the chosen points per leaf, against the fastest of a sweep."""
    space = one_core(args, space)
    return [r for case in SWEPT for r in swept(case, args.n, space, args.repeat)]


def swept(case: FmmCase, n: int, space: Space, repeat: int) -> list[Row]:
    """Return the best of the sweep, and the choice of the library.

    For evenly spread points the mean number of points of a leaf is swept, which gives the boxes across the cube.  For
    other points the largest number of points of a leaf is swept.
    """
    x, q = on(space, case.given(n))
    p = case.plan(x, space).parameters
    choice = p.leaf_size if p.fill is None else round(n / p.fill**3)

    def run(size: int) -> Callable[[], float]:
        def whole() -> None:
            with contextlib.nullcontext() if size == choice else _wishing(size):
                case.plan(x, space)(q)

        return clock(whole, space)

    alternatives = sorted({max(1, round(choice * factor)) for factor in SIZES} - {choice})
    for size in (choice, *alternatives):
        run(size)()  # compiles kernels and makes operators
    result = sweeps.sweep(choice, alternatives, run, repeat, sweeps.FINALISTS, warm=False)
    details = {"n": n, "threads": workers(space), "case": str(case), "tried": len(alternatives) + 1, "tolerance": 0.0}
    return sweeps.rows(str(case), result, lambda size: {"leaf": size}, details)


@contextlib.contextmanager
def _wishing(size: int) -> Iterator[None]:
    """Make all plans within this context for `size` points of a leaf, regardless of their cost."""
    leaves_before = balance.leaves
    balance.leaves = lambda x, y, size_given, cost, *limit: leaves_before(x, y, size, None, *limit)
    try:
        yield
    finally:
        balance.leaves = leaves_before


# Predicted and measured ----------------------------------------------------------------------------------------------
def predictions(args: argparse.Namespace, space: Space) -> list[Row]:
    """Predict and time the phases of plans and of their sums, for the cases of `parki bench fmm` with surfaces."""
    space, machine = models.host(args, space)
    return [r for case in SURFACES for r in predicted(case, args, space, machine)]


def predicted(case: FmmCase, args: argparse.Namespace, space: Space, machine: Machine) -> list[Row]:
    """Return the rows of one case, without phases that take no time; the last row is the sum of the others."""
    plan, runs = trees.phases_of(case, *on(space, case.given(args.n)), space, args.repeat)
    times = work.times(plan.structure, plan.parameters, plan.dtype, machine, min(workers(space), machine.units))
    seconds = fmm.by_phase({name: step.bound for name, step in times.items()})
    return trees.predicted(case, seconds, runs, args.n, space)


def predictions_table(rows: Sequence[Row]) -> str:
    """Return predicted over measured times, a case a line, and the number of close predictions."""
    return trees.predictions_table(rows, fmm.PHASES)
