"""Benchmarks of whole Ewald sums: phases, N, tolerances, splits, precisions, and crowded points."""

import argparse
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtri

import parki
from parki.arrays import Array
from parki.engine import Space, spaces
from parki.perfmodels.bench.measure import CUBE, Row, clock, cloud, on, row, strengths, turns
from parki.perfmodels.machine import Machine
from parki.plan import Plan

KERNELS = ("laplace", "stokes_sl", "stokes_comb")
RHS = 8
SAMPLE = 200  # targets at which errors are measured
LEAST, FLAT = 10_000, 100_000  # smallest N of the scaling; N from which the rate should be constant
TOLERANCES = [10.0**-digits for digits in range(3, 13)]
#: Name → function that moves points of the box so that they crowd.
CROWDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "in a layer, a quarter of the box": lambda x: x * np.array([[1.0], [1.0], [0.25]]),
    "in a 64th of the box": lambda x: 0.25 * x,
    "in a Gaussian cluster": lambda x: (0.5 + 0.1 * ndtri(x)) % 1.0,
}
LOOSE = (1e-3, 1e-4, 1e-5)  # tolerances of far fields in single precision
RADII = (0.8, 0.9, 1.0, 1.12, 1.25)  # cutoffs that are tried for each split, over the chosen rc


def ewald(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time whole calls of the three kernels, with all work of a first call but compiling."""
    x, dens, normals = on(space, cloud(args.n))
    options = {"box": CUBE, "tolerance": args.tolerance, "execution_space": space}
    return [
        r for kernel in KERNELS for r in ewald_rows(kernel, x, strengths(kernel, dens, normals), options, args.repeat)
    ]


def ewald_rows(kernel: str, x: Array, strengths_: tuple[Array, ...], options: Row, repeat: int) -> list[Row]:
    """Time a whole call, the plan again and for moved points, eight right-hand sides in one pass, and its phases."""
    n, space = x.shape[1], options["execution_space"]
    call, count = getattr(parki.ewald, kernel), n / 1e6
    plan = parki.ewald.plan(kernel, x, x, **options)
    timed_plan = parki.ewald.plan(kernel, x, x, return_walltime=True, **options)
    densities = spaces.array_module(space).stack([strengths_[0]] * RHS)
    point_sets = [x, *on(space, cloud(n, seed=3)[:1])]
    phases: list[dict[str, float]] = []

    def by_phase() -> float:
        timed_plan(*strengths_)
        phases.append({name: getattr(timed_plan.walltime, f"time_{name}")["tot"] for name in Machine.PHASES})
        return timed_plan.walltime.time_ewald

    def moved() -> None:
        point_sets.reverse()
        plan.move(point_sets[0])
        plan(*strengths_)

    times_of_call, times_again, times_moved, times_of_many, _ = turns(
        [
            clock(lambda: call(x, x, *strengths_, **options), space),
            clock(lambda: plan(*strengths_), space),
            clock(moved, space),
            clock(lambda: plan(densities, *strengths_[1:]), space),
            by_phase,
        ],
        repeat,
    )
    name = f"{kernel}, N = {n:,}, {options['tolerance']:g}"
    rows = [row(f"{name}, whole call", times_of_call, count, "M particles")]
    rows.append(row(f"{kernel}, the plan again", times_again, count, "M particles", error=plan.error(SAMPLE).value))
    rows.append(
        row(f"{kernel}, {RHS} right-hand sides in one pass", times_of_many, RHS * count, "M particles", rows[-1])
    )
    rows.append(row(f"{kernel}, points moved, and the plan again", times_moved, count, "M particles"))
    parts = {p: [times[p] for times in phases[1:]] for p in Machine.PHASES}
    return rows + [row(f"{kernel}, {p}", times, count, "M particles") for p, times in parts.items()]


def scaling(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time whole calls for N from 10⁴ to --n, by factors of about three, or for --n alone if it is smaller.

    From 10⁵ on, rates are compared with that of 10⁵.
    """
    counts = numbers(args.n)
    data = {n: on(space, cloud(n)) for n in counts}
    options = {"box": CUBE, "tolerance": args.tolerance, "execution_space": space}
    rows: list[Row] = []
    for kernel in KERNELS:
        runs = [_call(kernel, data[n], options) for n in counts]
        first = None
        for n, times in zip(counts, turns([clock(run, space) for run in runs], args.repeat), strict=True):
            name = f"{kernel}, N = {n:,}, {args.tolerance:g}"
            rows.append(row(name, times, n / 1e6, "M particles", first, n=n, series=kernel))
            first = first or (rows[-1] if n >= min(FLAT, args.n) else None)
    return rows


def numbers(n: int) -> list[int]:
    """Return 10⁴, 3·10⁴, 10⁵, … below `n`, and `n`; `n` alone if it is smaller."""
    steps = [m * 10**k for k in range(4, 12) for m in (1, 3)]
    return [*(step for step in steps if LEAST <= step < n), n]


def tolerances(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time whole calls for tolerances from 1e-3 to 1e-12, and measure their errors."""
    cloud_ = on(space, cloud(args.n))
    rows: list[Row] = []
    for kernel in KERNELS:
        options = [{"box": CUBE, "tolerance": tolerance, "execution_space": space} for tolerance in TOLERANCES]
        runs = [_call(kernel, cloud_, options_) for options_ in options]
        times_of_runs = turns([clock(run, space) for run in runs], args.repeat)
        for options_, times in zip(options, times_of_runs, strict=True):
            details = {"tolerance": options_["tolerance"], "error": _error(kernel, cloud_, options_), "series": kernel}
            name = f"{kernel}, N = {args.n:,}, {options_['tolerance']:g}"
            rows.append(row(name, times, args.n / 1e6, "M particles", **details))
    return rows


def splits(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time whole calls with prolate and Gaussian splits, each at the best rc that is found around its chosen one."""
    cloud_ = on(space, cloud(args.n))
    rows: list[Row] = []
    for kernel in KERNELS:
        runs, errors = [], []
        for split in ("gaussian", "prolate"):
            options = {"box": CUBE, "tolerance": args.tolerance, "execution_space": space, "split": split}
            options["rc"] = fastest_radius(kernel, cloud_, options)
            runs.append(_call(kernel, cloud_, options))
            errors.append(_error(kernel, cloud_, options))
        times_of_runs = turns([clock(run, space) for run in runs], args.repeat)
        name, count = f"{kernel}, N = {args.n:,}, {args.tolerance:g}", args.n / 1e6
        rows.append(row(f"{name}, gaussian", times_of_runs[0], count, "M particles", error=errors[0]))
        rows.append(row(f"{name}, prolate", times_of_runs[1], count, "M particles", rows[-1], error=errors[1]))
    return rows


def precisions(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time a plan's further calls with far fields in double and single precision, of sums in double precision."""
    cloud_ = on(space, cloud(args.n))
    rows: list[Row] = []
    for kernel in KERNELS:
        arguments = strengths(kernel, *cloud_[1:])
        for tolerance in LOOSE:
            options = [
                {"box": CUBE, "tolerance": tolerance, "execution_space": space, "far_precision": name}
                for name in ("double", "single")
            ]
            plans = [_plan(kernel, cloud_, options_) for options_ in options]
            times_of_plans = turns([clock(functools.partial(plan, *arguments), space) for plan in plans], args.repeat)
            errors = [plan.error(SAMPLE).value for plan in plans]
            name, count = f"{kernel}, N = {args.n:,}, {tolerance:g}", args.n / 1e6
            details = {"tolerance": tolerance}
            rows.append(row(f"{name}, double", times_of_plans[0], count, "M particles", error=errors[0], **details))
            rows.append(
                row(f"{name}, single", times_of_plans[1], count, "M particles", rows[-1], error=errors[1], **details)
            )
    return rows


def crowds(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time whole calls for crowded points, with the rc of as many evenly spread ones and with their own."""
    rows: list[Row] = []
    x, *strengths_ = cloud(args.n)
    options = {"box": CUBE, "tolerance": args.tolerance, "execution_space": space}
    for kernel in KERNELS:
        radius = _plan(kernel, on(space, [x]), options).parameters.rc
        for place, mapping in CROWDS.items():
            points = on(space, [mapping(x), *strengths_])
            name = f"{kernel}, N = {args.n:,}, {args.tolerance:g}, {place}"
            runs = [_call(kernel, points, options_) for options_ in (options | {"rc": radius}, options)]
            times_of_runs = turns([clock(run, space) for run in runs], args.repeat)
            rows.append(row(f"{name}: rc of even points", times_of_runs[0], args.n / 1e6, "M particles"))
            rows.append(row(f"{name}: its own", times_of_runs[1], args.n / 1e6, "M particles", rows[-1]))
    return rows


def fastest_radius(kernel: str, cloud_: list[Array], options: Row) -> float:
    """Return the fastest rc of `RADII` times the chosen one, from two turns after one that does not count."""
    choice = _plan(kernel, cloud_, options).parameters.rc
    radii = [radius for radius in (choice * factor for factor in RADII) if radius <= min(CUBE)]
    runs = [_call(kernel, cloud_, options | {"rc": radius}) for radius in radii]
    times = turns([clock(run, options["execution_space"]) for run in runs], 2)
    return min(zip(map(min, times), radii, strict=True))[1]


def _plan(kernel: str, cloud_: list[Array], options: dict[str, Any]) -> Plan:
    return parki.ewald.plan(kernel, cloud_[0], cloud_[0], **options)


def _call(kernel: str, cloud_: list[Array], options: dict[str, Any]) -> Callable[[], Array]:
    """Return a whole call of a kernel for a cloud."""
    x, dens, normals = cloud_
    return functools.partial(getattr(parki.ewald, kernel), x, x, *strengths(kernel, dens, normals), **options)


def _error(kernel: str, cloud_: list[Array], options: dict[str, Any]) -> float:
    """Return the relative RMS error at some targets, measured by a second sum of other parameters."""
    plan, arguments = _plan(kernel, cloud_, options), strengths(kernel, *cloud_[1:])
    return plan.error(SAMPLE, density=arguments[0], normals=arguments[1] if len(arguments) > 1 else None).value
