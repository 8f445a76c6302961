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


def ewald(asked: argparse.Namespace, space: Space) -> list[Row]:
    """Time whole calls of the three kernels, with all work of a first call but compiling."""
    x, dens, normals = on(space, cloud(asked.n))
    options = {"box": CUBE, "tolerance": asked.tolerance, "execution_space": space}
    return [
        made
        for kernel in KERNELS
        for made in ewald_rows(kernel, x, strengths(kernel, dens, normals), options, asked.repeat)
    ]


def ewald_rows(kernel: str, x: Array, given: tuple[Array, ...], options: Row, repeat: int) -> list[Row]:
    """Time a whole call, the plan again, eight right-hand sides in one pass, and the plan's phases."""
    n, space = x.shape[1], options["execution_space"]
    call, count = getattr(parki.ewald, kernel), n / 1e6
    plan = parki.ewald.plan(kernel, x, x, **options)
    timed = parki.ewald.plan(kernel, x, x, return_walltime=True, **options)
    stacked = spaces.array_module(space).stack([given[0]] * RHS)
    phases: list[dict[str, float]] = []

    def by_phase() -> float:
        timed(*given)
        phases.append({name: getattr(timed.walltime, f"time_{name}")["tot"] for name in Machine.PHASES})
        return timed.walltime.time_ewald

    whole, again, many, _ = turns(
        [
            clock(lambda: call(x, x, *given, **options), space),
            clock(lambda: plan(*given), space),
            clock(lambda: plan(stacked, *given[1:]), space),
            by_phase,
        ],
        repeat,
    )
    name = f"{kernel}, N = {n:,}, {options['tolerance']:g}"
    rows = [row(f"{name}, whole call", whole, count, "M particles")]
    rows.append(row(f"{kernel}, the plan again", again, count, "M particles"))
    rows.append(row(f"{kernel}, {RHS} right-hand sides in one pass", many, RHS * count, "M particles", rows[-1]))
    parts = {p: [times[p] for times in phases[1:]] for p in Machine.PHASES}
    return rows + [row(f"{kernel}, {p}", times, count, "M particles") for p, times in parts.items()]


def scaling(asked: argparse.Namespace, space: Space) -> list[Row]:
    """Time whole calls for N from 10⁴ to --n, by factors of about three, or for --n alone if it is smaller.

    From 10⁵ on, rates are compared with that of 10⁵.
    """
    counts = numbers(asked.n)
    data = {n: on(space, cloud(n)) for n in counts}
    options = {"box": CUBE, "tolerance": asked.tolerance, "execution_space": space}
    rows: list[Row] = []
    for kernel in KERNELS:
        runs = [_call(kernel, data[n], options) for n in counts]
        first = None
        for n, times in zip(counts, turns([clock(run, space) for run in runs], asked.repeat), strict=True):
            name = f"{kernel}, N = {n:,}, {asked.tolerance:g}"
            rows.append(row(name, times, n / 1e6, "M particles", first, n=n, series=kernel))
            first = first or (rows[-1] if n >= min(FLAT, asked.n) else None)
    return rows


def numbers(n: int) -> list[int]:
    """Return 10⁴, 3·10⁴, 10⁵, … below `n`, and `n`; `n` alone if it is smaller."""
    steps = [m * 10**k for k in range(4, 12) for m in (1, 3)]
    return [*(step for step in steps if LEAST <= step < n), n]


def tolerances(asked: argparse.Namespace, space: Space) -> list[Row]:
    """Time whole calls for tolerances from 1e-3 to 1e-12, and measure their errors."""
    cloud_ = on(space, cloud(asked.n))
    rows: list[Row] = []
    for kernel in KERNELS:
        options = [{"box": CUBE, "tolerance": tolerance, "execution_space": space} for tolerance in TOLERANCES]
        runs = [_call(kernel, cloud_, given) for given in options]
        found = turns([clock(run, space) for run in runs], asked.repeat)
        for given, times in zip(options, found, strict=True):
            about = {"tolerance": given["tolerance"], "error": _error(kernel, cloud_, given), "series": kernel}
            name = f"{kernel}, N = {asked.n:,}, {given['tolerance']:g}"
            rows.append(row(name, times, asked.n / 1e6, "M particles", **about))
    return rows


def splits(asked: argparse.Namespace, space: Space) -> list[Row]:
    """Time whole calls with prolate and Gaussian splits, each at the best rc that is found around its chosen one."""
    cloud_ = on(space, cloud(asked.n))
    rows: list[Row] = []
    for kernel in KERNELS:
        runs, errors = [], []
        for split in ("gaussian", "prolate"):
            options = {"box": CUBE, "tolerance": asked.tolerance, "execution_space": space, "split": split}
            options["rc"] = fastest_radius(kernel, cloud_, options)
            runs.append(_call(kernel, cloud_, options))
            errors.append(_error(kernel, cloud_, options))
        found = turns([clock(run, space) for run in runs], asked.repeat)
        name, count = f"{kernel}, N = {asked.n:,}, {asked.tolerance:g}", asked.n / 1e6
        rows.append(row(f"{name}, gaussian", found[0], count, "M particles", error=errors[0]))
        rows.append(row(f"{name}, prolate", found[1], count, "M particles", rows[-1], error=errors[1]))
    return rows


def precisions(asked: argparse.Namespace, space: Space) -> list[Row]:
    """Time a plan's further calls with far fields in double and single precision, of sums in double precision."""
    cloud_ = on(space, cloud(asked.n))
    rows: list[Row] = []
    for kernel in KERNELS:
        given = strengths(kernel, *cloud_[1:])
        for tolerance in LOOSE:
            options = [
                {"box": CUBE, "tolerance": tolerance, "execution_space": space, "far_precision": name}
                for name in ("double", "single")
            ]
            plans = [_plan(kernel, cloud_, chosen) for chosen in options]
            found = turns([clock(functools.partial(plan, *given), space) for plan in plans], asked.repeat)
            errors = [plan.error(SAMPLE).value for plan in plans]
            name, count = f"{kernel}, N = {asked.n:,}, {tolerance:g}", asked.n / 1e6
            about = {"tolerance": tolerance}
            rows.append(row(f"{name}, double", found[0], count, "M particles", error=errors[0], **about))
            rows.append(row(f"{name}, single", found[1], count, "M particles", rows[-1], error=errors[1], **about))
    return rows


def crowds(asked: argparse.Namespace, space: Space) -> list[Row]:
    """Time whole calls for crowded points, with the rc of as many evenly spread ones and with their own."""
    rows: list[Row] = []
    x, *others = cloud(asked.n)
    options = {"box": CUBE, "tolerance": asked.tolerance, "execution_space": space}
    for kernel in KERNELS:
        even = _plan(kernel, on(space, [x]), options).parameters.rc
        for place, moved in CROWDS.items():
            points = on(space, [moved(x), *others])
            name = f"{kernel}, N = {asked.n:,}, {asked.tolerance:g}, {place}"
            runs = [_call(kernel, points, given) for given in (options | {"rc": even}, options)]
            found = turns([clock(run, space) for run in runs], asked.repeat)
            rows.append(row(f"{name}: rc of even points", found[0], asked.n / 1e6, "M particles"))
            rows.append(row(f"{name}: its own", found[1], asked.n / 1e6, "M particles", rows[-1]))
    return rows


def fastest_radius(kernel: str, cloud_: list[Array], options: Row) -> float:
    """Return the fastest rc of `RADII` times the chosen one, from two turns after one that does not count."""
    chosen = _plan(kernel, cloud_, options).parameters.rc
    radii = [radius for radius in (chosen * factor for factor in RADII) if radius <= min(CUBE)]
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
    plan, given = _plan(kernel, cloud_, options), strengths(kernel, *cloud_[1:])
    return plan.error(SAMPLE, density=given[0], normals=given[1] if len(given) > 1 else None).value
