"""Sweeps: the sum with the parameters that the library chooses, beside the fastest of sums with others."""

import math
import statistics
from collections.abc import Callable, Sequence
from typing import TypeVar

from parki.perfmodels.bench.measure import Row, row, turns

FINALISTS, WITHIN = 4, 1.10  # sums that are measured again; largest time of a close choice over the best
T = TypeVar("T")


def sweep(
    chosen: T, others: Sequence[T], run: Callable[[T], Callable[[], float]], repeat: int, most: int, warm: bool = True
) -> dict[str, tuple[T, list[float]]]:
    """Return the best parameters of a sweep and the chosen ones, each with its times.

    Others are measured once, with `warm` after one turn that does not count; then the fastest take turns with the
    choice.

    Parameters
    ----------
    chosen, others
        Parameters.
    run : callable
        Takes parameters and returns a function that measures their sum once and returns the seconds.
    repeat : int
        Turns of the fastest.
    most : int
        Number of the fastest.
    warm : bool
    """
    quick = [(min(turns([run(other)], 1, warm)[0]), k) for k, other in enumerate(others)]
    finalists = [chosen, *(others[k] for _, k in sorted(quick)[:most])]
    times = turns([run(finalist) for finalist in finalists], repeat)
    best = min(range(len(times)), key=lambda k: min(times[k]))
    return {"best of the sweep": (finalists[best], times[best]), "chosen": (chosen, times[0])}


def rows(name: str, swept: dict[str, tuple[T, list[float]]], says: Callable[[T], Row], about: Row) -> list[Row]:
    """Return the row of the best and that of the choice, for ``about["n"]`` points."""
    found: list[Row] = []
    for title, (parameters, times) in swept.items():
        other = found[-1] if found else None
        more = about | says(parameters)
        found.append(row(f"{name}: {title}", times, about["n"] / 1e6, "M particles", other, **more))
    return found


def closeness(ratios: Sequence[float]) -> str:
    """Return a line on the times of choices over the best of their sweeps."""
    close, mean = sum(ratio <= WITHIN for ratio in ratios), math.exp(statistics.fmean(map(math.log, ratios)))
    return f"{close} of {len(ratios)} within {WITHIN - 1:.0%} of the best; mean {mean:.2f}, most {max(ratios):.2f}"
