"""How often the engine has compiled and prepared in this process: what a loop over the same plan must not do again."""

from typing import NamedTuple

from parki.engine import forks


class Counters(NamedTuple):
    """Objects that a compiler has made, and launches that were prepared."""

    builds: int
    prepares: int


_lock = forks.lock()
_counts = {"builds": 0, "prepares": 0}


def add(name: str) -> None:
    """Count one more."""
    with _lock:
        _counts[name] += 1


def counters() -> Counters:
    """Return the counts of this process so far."""
    with _lock:
        return Counters(**_counts)
