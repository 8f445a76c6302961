"""Measurements of benchmarks: runs that are compared take turns, and a row keeps all its times."""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from parki.arrays import Array
from parki.engine import Space, spaces

Row = dict[str, Any]
CUBE = (1.0, 1.0, 1.0)  # the box of most sums


def asked_space(args: argparse.Namespace) -> Space:
    """Return the space that a command is asked for, with the threads that it is asked for."""
    space = spaces.get(args.space)
    return replace(space, threads=args.threads) if args.threads else space


def require_host(space: Space) -> None:
    """Raise ValueError for a device."""
    if space.kind != "host":
        raise ValueError(f"space is {space.name}; this benchmark compares on a host: expected 'OpenMP' or 'Serial'.")


def clock(run: Callable[[], object], space: Space | None = None) -> Callable[[], float]:
    """Return a function that runs once, waits for a device, and returns the seconds."""
    device = spaces.array_module(space).cuda.Device() if space and space.kind == "device" else None

    def measure() -> float:
        start = time.perf_counter()
        run()
        if device is not None:
            device.synchronize()
        return time.perf_counter() - start

    return measure


def turns(measures: Sequence[Callable[[], float]], repeat: int, warm: bool = True) -> list[list[float]]:
    """Return `repeat` times of each of `measures`, functions that return seconds.

    They take turns, first, second, …, first, second, …, so that slow times of the machine affect all alike; with `warm`
    after one turn that does not count.
    """
    rounds = [[measure() for measure in measures] for _ in range(repeat + warm)]
    return [list(times) for times in zip(*rounds[warm:], strict=True)]


def row(
    title: str, times: Sequence[float], count: float, unit: str, reference: Row | None = None, **details: Any
) -> Row:
    """Return one measurement: `count` units in the least of `times`; against `reference` the ratio of the rates.

    `details` describes the measurement: n, tolerance, threads, error and values that a plot needs.
    """
    result = {
        "what": title,
        "seconds": min(times),
        "times": list(times),
        "rate": count / min(times),
        "unit": f"{unit}/s",
    }
    if reference is not None:
        result |= {"ratio": result["rate"] / reference["rate"], "against": reference["what"]}
    return result | details


def absent(title: str, advice: str) -> Row:
    """Return a row that was not measured, and advice on how to measure it."""
    return {"what": title, "absent": advice}


def spread(times: Sequence[float]) -> float:
    """Return the median over the fastest, less one: 0.1 if half of the runs took at least 10 % longer."""
    return statistics.median(times) / min(times) - 1.0


def table(rows: Sequence[Row]) -> str:
    """Return rows as text: the fastest time, the excess of the median, the rate, the error if it was measured.

    A row's ratio, if it has one, is its rate over that of the row it names.
    """
    width = max(58, *(len(r["what"]) for r in rows))
    lines = [f"{'what':<{width}}{'best':>12}{'median':>8}{'rate':>24}{'error':>10}   against"]
    for r in rows:
        if "absent" in r:
            lines.append(f"{r['what']:<{width}}  not measured: {r['absent']}")
            continue
        error = f"{r['error']:.1e}" if "error" in r else ""
        ratio = f"{r['ratio']:.2f} x {apart(r['against'], r['what'])[1]}" if "ratio" in r else ""
        noise = f"{spread(r['times']):+.0%}" if len(r["times"]) > 1 else ""
        figures = f"{1e3 * r['seconds']:>9.2f} ms{noise:>8}"
        figures += f"{r['rate']:>10.4g} {r['unit']:<13}{error:>10}"
        lines.append(f"{r['what']:<{width}}{figures}   {ratio}".rstrip())
    return "\n".join(lines)


def apart(other_title: str, title: str) -> tuple[str, str, str]:
    """Return the part that two names share before a colon or a comma, and the rest of each."""
    ends = [
        k for k in range(2, len(other_title)) if other_title[:k] == title[:k] and other_title[k - 2 : k] in (": ", ", ")
    ]
    end = max(ends, default=0)
    return other_title[: max(end - 2, 0)], other_title[end:], title[end:]


def cloud(n: int, seed: int | tuple[int, ...] = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return uniform points ``(3, n)`` in the unit box, densities ``(6, n)`` and unit normals ``(3, n)``."""
    rng = np.random.default_rng(seed)
    normals = rng.standard_normal((3, n))
    return rng.random((3, n)), rng.standard_normal((6, n)), normals / np.linalg.norm(normals, axis=0)


def strengths(kernel: str, dens: Array, normals: Array) -> tuple[Array, ...]:
    """Return the strengths for a call of ``"laplace"``, ``"stokes_sl"`` or ``"stokes_comb"`` on a cloud."""
    return {"laplace": (dens[0],), "stokes_sl": (dens[:3],), "stokes_comb": (dens, normals)}[kernel]


def on(space: Space, arrays: Sequence[np.ndarray]) -> list[Array]:
    """Return the arrays in memory that kernels of this space read."""
    return [spaces.array_module(space).asarray(a) for a in arrays]
