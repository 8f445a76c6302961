"""Sweeps: the sum with the parameters that the library chooses, beside the fastest of sums with others."""

import math
import statistics
from collections.abc import Callable, Sequence
from typing import TypeVar

from parki.perfmodels.bench.measure import Row, row, turns

FINALISTS, WITHIN = 4, 1.10  # sums that are measured again; largest time of a close choice over the best
T = TypeVar("T")


def sweep(
    choice: T,
    alternatives: Sequence[T],
    run: Callable[[T], Callable[[], float]],
    repeat: int,
    limit: int,
    warm: bool = True,
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
    limit : int
        Number of the fastest.
    warm : bool
    """
    ranking = [(min(turns([run(alternative)], 1, warm)[0]), k) for k, alternative in enumerate(alternatives)]
    finalists = [choice, *(alternatives[k] for _, k in sorted(ranking)[:limit])]
    times = turns([run(finalist) for finalist in finalists], repeat)
    best = min(range(len(times)), key=lambda k: min(times[k]))
    return {"best of the sweep": (finalists[best], times[best]), "chosen": (choice, times[0])}


def rows(name: str, results: dict[str, tuple[T, list[float]]], describe: Callable[[T], Row], details: Row) -> list[Row]:
    """Return the row of the best and that of the choice, for ``details["n"]`` points."""
    result: list[Row] = []
    for title, (parameters, times) in results.items():
        reference = result[-1] if result else None
        extras = details | describe(parameters)
        result.append(row(f"{name}: {title}", times, details["n"] / 1e6, "M particles", reference, **extras))
    return result


def closeness(ratios: Sequence[float]) -> str:
    """Return a line on the times of choices over the best of their sweeps."""
    number, mean = sum(ratio <= WITHIN for ratio in ratios), math.exp(statistics.fmean(map(math.log, ratios)))
    return f"{number} of {len(ratios)} within {WITHIN - 1:.0%} of the best; mean {mean:.2f}, most {max(ratios):.2f}"
