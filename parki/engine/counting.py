"""Counts of the compilations and preparations in this process: a loop over the same plan must add to neither."""

from typing import NamedTuple

from parki.engine import forks


class Counters(NamedTuple):
    """Count the objects that a compiler has made, and the launches that were prepared.

    Parameters
    ----------
    builds, prepares : int
        The two counts of this process.

    See Also
    --------
    parki.engine.counters : Return the counts so far.

    Examples
    --------
    >>> from parki.engine.counting import Counters
    >>> Counters(builds=2, prepares=5).prepares
    5
    """

    builds: int
    prepares: int


_lock = forks.lock()
_counts = {"builds": 0, "prepares": 0}


def add(name: str) -> None:
    """Add one to a count."""
    with _lock:
        _counts[name] += 1


def counters() -> Counters:
    """Return the counts of compiled objects and prepared launches of this process so far.

    Returns
    -------
    Counters
        A tuple of the two numbers, `builds` and `prepares`.

    See Also
    --------
    prepare : Prepare a launch once, so that repeats are not counted.

    Examples
    --------
    >>> import numpy as np
    >>> from parki import engine
    >>> unit, before = engine.kernel("cells", "gather_points", real="double"), engine.counters()
    >>> x, order, out = np.zeros((3, 1)), np.zeros(1, np.int32), np.zeros((3, 1))
    >>> launch = engine.prepare(engine.RangePolicy("Serial", 1), unit, x=x, order=order, out=out)
    >>> launch.run(), launch.run(), engine.counters().prepares - before.prepares
    (None, None, 1)
    """
    with _lock:
        return Counters(**_counts)
