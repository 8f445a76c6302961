"""Benchmarks of treecodes: phases beside a published code's loop, scaling with N, sizes of leaves, and FMM3D.

Everything is measured on one core unless threads are asked for, of points uniform in a cube at θ = 0.7.  Times of
another code are from another machine.  The rates of a plain loop over all pairs, as published treecodes have it, carry
them over to this one: published time × rate of the loop there / rate here.  The loop is timed here in the same turns.
Compilers turn Coulomb's loop into divisions and roots, or into estimates of reciprocal roots, which are several times
as fast.  Both are measured, and the faster one counts, which favours the other code.
"""

import argparse
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parki import samples
from parki.arrays import Array
from parki.direct import direct_sum
from parki.engine import Space, workers
from parki.perfmodels.bench import free, handwritten, models, sweeps, trees
from parki.perfmodels.bench.measure import Row, clock, on, row, spread, turns
from parki.perfmodels.bench.trees import cloud, one_core
from parki.perfmodels.counts import clusters
from parki.perfmodels.machine import Machine
from parki.plan import Plan
from parki.treecode import api, work
from parki.treecode.report import PHASES, PLANNED

KERNELS: dict[str, dict[str, float]] = {"coulomb": {}, "yukawa": {"kappa": 0.5}}
METHODS, DEGREES = ("dual", "pc"), (4, 8)
SAMPLE = 500  # targets at which errors are measured
LOOP, RUNS = (2048, 2000), 10  # targets and sources of the plain loop; its runs, of which the best counts
#: BaryTree 2.1 on one core with AVX-512, best sizes of leaves: seconds by method, degree and N; then the pairs per
#: second of its loop there.
BARYTREE = {
    ("pc", 8, 100_000): 2.2,
    ("pc", 8, 1_000_000): 46.0,
    ("dual", 8, 100_000): 3.2,
    ("dual", 8, 1_000_000): 49.0,
    ("dual", 4, 100_000): 0.89,
    ("dual", 4, 1_000_000): 11.4,
}
BARYTREE_LOOP = 2.8e9
FEWER, SHAPES = (100, 10, 1), ("uniform", "sphere")  # divisors of N; in a cube, and on a sphere
SIZES = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8)  # points of leaves in a sweep, over the chosen number
BATCHES = (0.5, 1.0, 2.0)  # targets of a batch, over the points of a leaf of sources


@dataclass(frozen=True)
class TreecodeCase:
    """A sum of a kernel, by a method, to a degree."""

    kernel: str
    method: str
    degree: int

    def plan(self, x: Array, space: Space, **options: Any) -> Plan:
        """Make the plan for targets that are the sources."""
        options |= KERNELS[self.kernel]
        return api.plan(self.kernel, x, x, method=self.method, degree=self.degree, execution_space=space, **options)

    def __str__(self) -> str:
        return f"{self.kernel}, {self.method}, degree {self.degree}"


CASES = tuple(TreecodeCase(kernel, method, degree) for kernel in KERNELS for method in METHODS for degree in DEGREES)


def treecode(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time the plain loop, the whole call, and the plan again, for two kernels, two methods and two degrees."""
    space = one_core(args, space)
    x, q = on(space, cloud(args.n))
    return [r for case in CASES for r in sums(case, x, q, space, args.repeat)]


def sums(case: TreecodeCase, x: Array, q: Array, space: Space, repeat: int) -> list[Row]:
    """Return the rows of one case; phases are those of its fastest run."""
    times_of_calls, n = trees.called(case, x, q, space, plain(case.kernel), repeat), x.shape[1]
    plan, rate = times_of_calls.plan, math.prod(LOOP) / min(times_of_calls.loop)
    details = {"n": n, "threads": workers(space), "case": str(case), "kernel": case.kernel, "method": case.method}
    details |= {"degree": case.degree, "tolerance": 0.0}
    results = {
        "pairs": plan.walltime.pairs,
        "loop": rate,
        "far": plan.parameters.far,
        "leaf": plan.parameters.leaf_size,
    }
    results |= {"error": plan.error(SAMPLE, density=q).value, "memory": plan.memory}
    loop, count = 1e-9 * math.prod(LOOP), n / 1e6
    rows = [row(f"{case}: published loop", times_of_calls.loop, loop, "G pairs", **details | {"threads": 1})]
    call = row(
        f"{case}: whole call",
        times_of_calls.call,
        count,
        "M particles",
        phases=times_of_calls.first,
        **details | results,
    )
    if seconds := barytree(case, n, workers(space)):
        call |= {
            "ratio": seconds * BARYTREE_LOOP / rate / min(times_of_calls.call),
            "against": "BaryTree, carried by its loop",
        }
    phases = {name: seconds_of_phase for name, seconds_of_phase in times_of_calls.later.items() if name not in PLANNED}
    rows += [
        call,
        row(f"{case}: plan(charges)", times_of_calls.again, count, "M particles", phases=phases, **details | results),
    ]
    return rows


def barytree(case: TreecodeCase, n: int, threads: int) -> float | None:
    """Return the seconds of BaryTree for this sum on its machine, or None if they are not known."""
    return BARYTREE.get((case.method, case.degree, n)) if case.kernel == "coulomb" and threads == 1 else None


def plain(kernel: str) -> Callable[[], float]:
    """Return a function that times the plain loop, the best run of its forms; these agree with the direct sum."""
    nt, ns = LOOP
    (x, _), (y, q), u = cloud(nt), (samples.uniform(ns, seed=3), samples.charges(ns, seed=4)), np.empty(nt)
    src, kappa = np.ascontiguousarray(np.vstack([y, q])), KERNELS[kernel].get("kappa", 0.0)
    exact = direct_sum(kernel, x, y, q, execution_space="Serial", **KERNELS[kernel])
    measures = []
    for k, text in enumerate(handwritten.TREECODES[kernel]):
        flags = () if "pk_host.h" in text else handwritten.FAST
        run = handwritten.compiled(f"bench_treecode_{kernel}_{k}", text, flags)
        measures.append(clock(functools.partial(handwritten.call, run, x, nt, src, ns, kappa, u)))
        measures[-1]()
        if not np.allclose(u, exact, rtol=1e-9, atol=1e-9 * np.abs(exact).max()):
            raise RuntimeError(f"the direct sum of {kernel} and the loop written by hand disagree")
    return lambda: min(measure() for _ in range(RUNS) for measure in measures)


def table(rows: Sequence[Row]) -> str:
    """Return times, evaluations by kind, rates over the plain loop's, error and memory, a case a line; and phases."""
    calls = [r for r in rows if r["what"].endswith(": whole call")]
    rows_again = [r for r in rows if r["what"].endswith(": plan(charges)")]
    width = max(len(r["case"]) for r in rows)
    kinds = ("pp", "pc", "cp", "cc")
    head = "".join(f"{kind.upper():>9}" for kind in kinds)
    lines = [
        f"{'times in ms, pairs in millions':<{width}}{'call':>10}{'median':>8}{'again':>10}{head}"
        f"{'G pairs/s':>11}{'x loop':>8}{'error':>10}{'MB':>8}   over BaryTree"
    ]
    for call, plan in zip(calls, rows_again, strict=True):
        evaluations = sum(plan["pairs"].values())
        rate = evaluations / plan["seconds"]
        counts = "".join(f"{1e-6 * plan['pairs'].get(kind, 0.0):>9.4g}" for kind in kinds)
        noise = f"{spread(call['times']):+.0%}" if len(call["times"]) > 1 else ""
        ratio = f"   {call['ratio']:.2f}" if "ratio" in call else ""
        lines.append(
            f"{call['case']:<{width}}{1e3 * call['seconds']:>10.1f}{noise:>8}{1e3 * plan['seconds']:>10.1f}{counts}"
            f"{1e-9 * rate:>11.2f}{rate / plan['loop']:>8.2f}{call['error']:>10.1e}{1e-6 * call['memory']:>8.1f}{ratio}"
        )
    lines += ["", f"{'phases of the call, ms':<{width}}" + "".join(f"{name:>10}" for name in PHASES)]
    for call in calls:
        lines.append(f"{call['case']:<{width}}" + "".join(f"{1e3 * call['phases'][name]:>10.2f}" for name in PHASES))
    loops = {r["kernel"]: 0.0 for r in rows}
    for r in rows:
        loops[r["kernel"]] = max(loops[r["kernel"]], r["rate"] if r["unit"] == "G pairs/s" else 0.0)
    lines += ["", "published loop, one thread: " + ", ".join(f"{k} {v:.2f} G pairs/s" for k, v in loops.items())]
    return "\n".join(lines)


# By N ----------------------------------------------------------------------------------------------------------------
def scaling(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time whole calls of the dual traversal for N / 100, N / 10 and N points; ratios are of the rates."""
    space = one_core(args, space)
    rows: list[Row] = []
    for shape in SHAPES:
        for degree in DEGREES:
            case, first = TreecodeCase("coulomb", "dual", degree), None
            for n in (args.n // divisor for divisor in FEWER):
                x, q = on(space, (getattr(samples, shape)(n, seed=1), samples.charges(n, seed=2)))
                plans: list[Plan] = []

                def run(case: TreecodeCase = case, x: Array = x, q: Array = q, plans: list[Plan] = plans) -> None:
                    plans[:] = [case.plan(x, space)]
                    plans[0](q)

                # The largest N needs no turn to warm up: smaller ones have compiled its kernels.
                [times] = turns([clock(run, space)], args.repeat, warm=n < args.n)
                details = {"n": n, "threads": workers(space), "tolerance": 0.0, "shape": shape, "degree": degree}
                details |= {"pairs": sum(plans[0].walltime.pairs.values()), "memory": plans[0].memory}
                name = f"{case}, {shape}, N = {n:,}"
                rows.append(row(name, times, n / 1e6, "M particles", first, **details))
                first = first or rows[-1]
    return rows


def scaling_table(rows: Sequence[Row]) -> str:
    """Return the time and pairs of a particle, a line for each N, and their ratios to those of the fewest points."""
    width = max(len(r["what"]) for r in rows)
    lines = [f"{'':<{width}}{'s':>9}{'ns/point':>10}{'over':>6}{'pairs/point':>13}{'over':>6}{'MB':>8}"]
    for r in rows:
        if "ratio" not in r:
            first = r
        growth, pairs = 1 / r.get("ratio", 1.0), r["pairs"] / r["n"]
        pair_growth = pairs / (first["pairs"] / first["n"])
        lines.append(
            f"{r['what']:<{width}}{r['seconds']:>9.3g}{1e9 * r['seconds'] / r['n']:>10.0f}{growth:>6.2f}"
            f"{pairs:>13.0f}{pair_growth:>6.2f}{1e-6 * r['memory']:>8.0f}"
        )
    return "\n".join(lines)


# Sizes of leaves -----------------------------------------------------------------------------------------------------
def leaves(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time whole calls with the chosen sizes of leaves and batches, against the fastest of a sweep."""
    space = one_core(args, space)
    x, q = on(space, cloud(args.n))
    return [r for case in CASES for r in swept(case, x, q, space, args.repeat)]


def swept(case: TreecodeCase, x: Array, q: Array, space: Space, repeat: int) -> list[Row]:
    """Return the best of the sweep, and the choice of the library."""
    p = case.plan(x, space).parameters
    choice, n = (p.leaf_size, p.batch_size), x.shape[1]

    def run(sizes: tuple[int, int]) -> Callable[[], float]:
        options = {"leaf_size": sizes[0], "batch_size": sizes[1]}
        return clock(lambda: case.plan(x, space, **options)(q), space)

    alternatives = [sizes for sizes in grid(choice, case.method) if sizes != choice]
    details = {"n": n, "threads": workers(space), "case": str(case), "tried": len(alternatives) + 1, "tolerance": 0.0}
    result = sweeps.sweep(choice, alternatives, run, repeat, sweeps.FINALISTS)
    return sweeps.rows(str(case), result, lambda sizes: {"leaf": sizes[0], "batch": sizes[1]}, details)


def grid(choice: tuple[int, int], method: str) -> list[tuple[int, int]]:
    """Return sizes of leaves and batches around the chosen ones; in a dual traversal they are the same."""
    leaf, _ = choice
    sizes = {
        (max(1, round(leaf * factor)), max(1, round(leaf * factor * ratio)))
        for factor in SIZES
        for ratio in (BATCHES if method == "pc" else (1.0,))
    }
    return sorted(sizes)


def leaves_table(rows: Sequence[Row]) -> str:
    """Return the choice and the best sizes of each case, a line each, and the number of close choices."""
    return trees.leaves_table(rows, ("leaf", "batch"))


# Predicted and measured ----------------------------------------------------------------------------------------------
def predictions(args: argparse.Namespace, space: Space) -> list[Row]:
    """Predict and time the phases of plans and of their sums, for all cases of `parki bench treecode`."""
    space, machine = models.host(args, space)
    return [r for case in CASES for r in predicted(case, args, space, machine)]


def predicted(case: TreecodeCase, args: argparse.Namespace, space: Space, machine: Machine) -> list[Row]:
    """Return the rows of one case, without phases that take no time; the last row is the whole call."""
    plan, runs = trees.phases_of(case, *cloud(args.n), space, args.repeat)
    times = work.times(plan.structure, plan.parameters, plan.dtype, machine, min(workers(space), machine.units))
    seconds = {name: phase.bound.seconds for name, phase in times.items()}
    return trees.predicted(case, seconds, runs, args.n, space)


def predictions_table(rows: Sequence[Row]) -> str:
    """Return predicted over measured times, a case a line, and the number of close predictions."""
    return trees.predictions_table(rows, clusters.PHASES)


# Against FMM3D -------------------------------------------------------------------------------------------------------
def _dual(x: np.ndarray, q: np.ndarray, tolerance: float, space: Space) -> np.ndarray:
    return api.bldtt(x, x, q, tolerance=tolerance, execution_space=space)


def against_fmm(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time whole calls of the dual traversal against FMM3D, Laplace: see `free`."""
    return free.over_trees(args, one_core(args, space), [free.Ours("parki.treecode", "coulomb", _dual)])
