"""Picks of earlier sums of the process, which sums like them take without predictions of every method.

Sums that come again and again are worth tables that are kept, and looking at methods, which one sum is not: each takes
a share of that time, by which another method may become the fastest one.

A sum is like an earlier one if kernel, options, space and type are the same, points are even or not as they were,
numbers and extents are within a quarter of an octave, and the picked method is predicted to take about as long.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import NamedTuple

from cachetools import LRUCache

from parki.automatic.options import SumOptions
from parki.engine import forks
from parki.fmm import balance
from parki.freespace import FreeProblem
from parki.pairs import Pair

STEPS = 4  # ranges of numbers and of extents in an octave
ALIKE = 1.2  # predicted time over that of the earlier sum, or its inverse, at most
_KEPT: LRUCache[Hashable, Pick] = LRUCache(64)
_LOCK = forks.lock()


class Pick(NamedTuple):
    """Picked method, its predicted seconds without tables that are kept, the number of sums alike, and other methods.

    The numbers of sums alike from which others may take less time are `rivals`.
    """

    name: str
    seconds: float
    sums: int
    rivals: dict[str, float]

    @property
    def due(self) -> list[str]:
        """Return the methods that may take less time now."""
        return [name for name, sums in self.rivals.items() if sums <= self.sums]

    def suits(self, seconds: float) -> bool:
        """Tell whether a sum for which the method is predicted to take these seconds is like the earlier one."""
        return self.seconds <= ALIKE * seconds <= ALIKE**2 * self.seconds


def key(pair: Pair, options: SumOptions, problem: FreeProblem) -> Hashable:
    """Return the facts that sums alike share, but for the time of the picked method."""
    y = balance.Cloud(problem.sources)
    clouds = [y] if problem.same else [balance.Cloud(problem.targets), y]
    ranges = [round(STEPS * math.log2(cloud.n)) for cloud in clouds]
    if problem.extent:
        ranges.append(round(STEPS * (math.log2(problem.extent) - problem.power)))
    wishes = options.gradient, options.own_term, options.tolerance, options.calls
    place = options.execution_space, options.threads, problem.on_gpu, problem.dtype.name
    return pair, wishes, place, tuple(balance.even(cloud) for cloud in clouds), tuple(ranges)


def earlier(facts: Hashable) -> Pick | None:
    """Return the pick of an earlier sum with these facts, with the number of sums up to this one, None without one."""
    with _LOCK:
        if (pick := _KEPT.get(facts)) is not None:
            pick = _KEPT[facts] = pick._replace(sums=pick.sums + 1)
        return pick


def keep(facts: Hashable, pick: Pick) -> None:
    """Keep a pick for sums with these facts."""
    with _LOCK:
        _KEPT[facts] = pick


def forget() -> None:
    """Forget all picks."""
    with _LOCK:
        _KEPT.clear()
