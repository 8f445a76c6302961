"""Counts of interpolation (G2P): every target reads P³ grid points of each component.

As in spreading, sorted targets find the grid points of their neighbours in the first level of memory, and targets in
any order (BASE) find none.  TILE copies tiles with their margins to scratch, and reads windows there.  Only the result
is written.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

from parki.perfmodels.counts.p2g import CACHE, Spreading, filled
from parki.perfmodels.counts.totals import Counts, TextTotals, levels

VARIANTS = ("BASE", "TARGET", "TILE")
SECTOR = 32  # bytes that a GPU's second level gives at least


@dataclass(frozen=True)
class Tiles:
    """Tiles that a grid is copied in.

    Attributes
    ----------
    sides, extent
        Grid points of a tile along each axis, without and with its margins.
    fill
        Share of the lanes of a row that have taps.
    wide
        Clocks in which scratch serves a row of lanes, over those in which its bytes could pass.
    """

    sides: tuple[int, int, int]
    extent: tuple[int, int, int]
    fill: float
    wide: float


def counts(
    variant: str, text: TextTotals, s: Spreading, device: bool = False, lanes: int = 1, cache: float = CACHE,
    tiles: Tiles | None = None,
) -> Counts:  # fmt: skip
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
    tiles
        Tiles of TILE.

    Raises
    ------
    ValueError
        For other variants.
    """
    if variant not in VARIANTS:
        raise ValueError(f"variant: found {variant!r}, expected one of {', '.join(VARIANTS)}")
    if variant == "TILE" and tiles is not None:
        return _tiled(text, s, device, cache, tiles)
    base = variant == "BASE"
    l2 = s.lines if base else s.grid * s.again
    dram = s.lines if base and s.grid > cache else s.grid
    fill = 1.0 if base else filled(s.P, lanes, not device)
    return Counts(text.operations, levels(text, s.ends + l2, s.ends + dram, device), text.atomics, 1, fill)


@lru_cache(maxsize=64)
def clocks(P: int, lanes: int = 16) -> int:
    """Return the loads of a lane for a window, where y × z of some lanes share its rows along y and z."""
    return P * min(-(-P // y) * -(-P // (lanes // y)) for y in range(1, lanes + 1))


def _tiled(text: TextTotals, s: Spreading, device: bool, cache: float, tiles: Tiles) -> Counts:
    """Count TILE: rows of tiles are whole sectors, and a slab of tiles meets the planes of the slab before it again."""
    rows = math.prod(tiles.extent) / math.prod(tiles.sides)
    sectors = 1 + (SECTOR / s.itemsize - 1) / tiles.extent[2]
    tests = math.prod(1 + cell / side for cell, side in zip(s.cells, tiles.sides, strict=True))
    again = tiles.extent[0] / tiles.sides[0] if s.grid > cache else 1.0
    traffic = levels(text, s.ends * tests + s.grid * rows * sectors, s.ends + s.grid * again, device)
    traffic |= {"shared": traffic["shared"] * tiles.wide} if device else {}
    return Counts(text.operations, traffic, text.atomics, 1, tiles.fill)
