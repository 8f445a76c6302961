"""Cache of stages of finished sums, for the next sum with the same parameters and other points.

Without this cache, a program that sums over one small cloud of points after another would spend most of its time on
making the same tables and launches again.
"""

from collections import OrderedDict
from collections.abc import Hashable

from parki.engine import forks
from parki.ewald.stages.sums import Stages

EACH_BYTES = 8 << 20  # bytes, at most, of stages that are kept
ALL_BYTES = 32 << 20  # bytes, at most, of all kept stages; the least recently used are dropped

_lock = forks.lock()
_kept: OrderedDict[Hashable, tuple[Stages, int]] = OrderedDict()


def take(key: Hashable) -> Stages | None:
    """Remove and return the stages that were kept under a key; None if there are none."""
    with _lock:
        return _kept.pop(key, (None, 0))[0]


def keep(key: Hashable, stages: Stages) -> None:
    """Keep stages that are no longer in use, if they are small."""
    size = sum(a.nbytes for a in stages.arrays)
    if size > EACH_BYTES:
        return
    with _lock:
        _kept[key] = stages, size
        _kept.move_to_end(key)
        while sum(nbytes for _, nbytes in _kept.values()) > ALL_BYTES:
            _kept.popitem(last=False)
