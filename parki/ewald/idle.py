"""Stages of sums that are done, kept for the next sum with the same parameters, which has points of its own.

A program that sums the points of one small cloud after another would spend most of its time on tables and launches
that it has just had.
"""

from collections import OrderedDict
from collections.abc import Hashable

from parki.engine import forks
from parki.ewald.stages.sums import Stages

EACH_BYTES = 8 << 20  # of stages that are kept
ALL_BYTES = 32 << 20  # of all stages together, those used last

_lock = forks.lock()
_kept: OrderedDict[Hashable, tuple[Stages, int]] = OrderedDict()


def take(key: Hashable) -> Stages | None:
    """Return stages that were kept under a key, which are the caller's from now on; None where there are none."""
    with _lock:
        return _kept.pop(key, (None, 0))[0]


def keep(key: Hashable, stages: Stages) -> None:
    """Keep stages that nobody uses any more, if they are small."""
    size = sum(a.nbytes for a in stages.arrays)
    if size > EACH_BYTES:
        return
    with _lock:
        _kept[key] = stages, size
        _kept.move_to_end(key)
        while sum(nbytes for _, nbytes in _kept.values()) > ALL_BYTES:
            _kept.popitem(last=False)
