"""Counts of interpolation (G2P): every target reads P³ grid points of each component.

As in spreading, sorted targets find the grid points of their neighbours in the first level of memory, and targets in
any order (BASE) find none.  Only the result is written.
"""

from parki.perfmodels.counts.p2g import CACHE, Spreading, filled
from parki.perfmodels.counts.totals import Counts, TextTotals, levels

VARIANTS = ("BASE", "TARGET")


def counts(
    variant: str, text: TextTotals, s: Spreading, device: bool = False, lanes: int = 1, cache: float = CACHE
) -> Counts:
    """Count the interpolation at all targets.

    Parameters
    ----------
    variant
        One of `VARIANTS`.
    text
        Totals of the text.
    s
        Targets and grid.
    device
        Whether scratch is apart from memory.
    lanes
        Lanes of a vector, for TARGET, where the window's points are the lanes.
    cache
        Bytes of the last level of cache: a larger grid is in memory.

    Raises
    ------
    ValueError
        For other variants.
    """
    if variant not in VARIANTS:
        raise ValueError(f"variant: found {variant!r}, expected one of {', '.join(VARIANTS)}")
    base = variant == "BASE"
    l2 = s.lines if base else s.grid * s.again
    dram = s.lines if base and s.grid > cache else s.grid
    fill = 1.0 if base else filled(s.P, lanes, not device)
    return Counts(text.operations, levels(text, s.ends + l2, s.ends + dram, device), text.atomics, 1, fill)
