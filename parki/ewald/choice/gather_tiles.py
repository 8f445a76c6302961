"""Tiles of grid points for interpolation by `kernels/g2p_tile.py`: their sides, lanes, and places in scratch."""

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

BANKS = 128  # bytes that a multiprocessor's scratch gives in a clock, from banks of 4
HALF, WARP = 16, 32  # lanes that share a target: one wide load of doubles, or of floats, takes as many
DENSITY = 0.03  # targets of a grid point, about as many as there are where near and far field take equal times
SPREAD = 1.3  # of numbers of targets around the mean, of which scratch has windows at once
PIECE = 128  # targets that a team tests at once
LONGEST = 40  # grid points of a tile along an axis, at most
PAST = 6.0  # time of a byte past the first level of memory over that of a byte of scratch
ALIGNED = 16  # bytes: pieces of scratch begin at multiples
LARGEST_SHARE = 0.5  # of a window's taps that the copies of grid points for a target may be


@dataclass(frozen=True)
class Tile:
    """A tile, its lanes, and scratch.

    Attributes
    ----------
    sides
        Grid points that hold the first taps of a team's targets.
    lanes
        Lanes that share a window along y and z.
    row
        Elements of scratch from one row of grid points along z to the next.
    capacity
        Targets whose windows fit in scratch.
    P, parts, sloped
        Taps of the window, results of a target and component, and whether windows have slopes.
    """

    sides: tuple[int, int, int]
    lanes: tuple[int, int]
    row: int
    capacity: int
    P: int
    parts: int
    sloped: bool

    @property
    def taps(self) -> tuple[int, int, int]:
        """Return the taps along each axis, with those of idle lanes."""
        y, z = (-(-self.P // lanes) * lanes for lanes in self.lanes)
        return self.P, y, z

    @property
    def extent(self) -> tuple[int, int, int]:
        """Return the grid points of the tile with its margins along each axis."""
        x, y, z = (side + taps - 1 for side, taps in zip(self.sides, self.taps, strict=True))
        return x, y, z

    @property
    def row_lanes(self) -> int:
        """Return the lanes of a team's row, a power of two."""
        return HALF if math.prod(self.lanes) <= HALF else WARP

    @property
    def fill(self) -> float:
        """Return the share of the lanes of a row that share a window."""
        return math.prod(self.lanes) / self.row_lanes

    def wide(self, itemsize: int) -> float:
        """Return the clocks in which scratch serves a row of lanes, over those in which its bytes could pass."""
        return max(1.0, BANKS / (self.row_lanes * itemsize))

    @property
    def copied(self) -> int:
        """Return the elements of scratch that hold the grid points of a tile."""
        return self.extent[0] * self.extent[1] * self.row

    @property
    def copies(self) -> float:
        """Return the grid points that are copied for each point of the grid."""
        return math.prod(self.extent) / math.prod(self.sides)

    def nbytes(self, itemsize: int) -> int:
        """Return the bytes of scratch for numbers of `itemsize` bytes."""
        windows = sum(self.taps) * (1 + self.sloped)
        results = self.parts * (math.prod(self.lanes) // 2 * 2 + 1)
        numbers = (self.capacity * windows, self.copied, self.capacity * results)
        sizes = (*(n * itemsize for n in numbers), *2 * (4 * (self.capacity + PIECE),))
        return sum(-(-size // ALIGNED) * ALIGNED for size in sizes)

    def slots(self) -> dict[str, int]:
        """Return the slots of `kernels/g2p_tile.py`."""
        names = ("BX", "BY", "BZ", "YL", "ZL", "ROW", "CAP", "PIECE")
        return dict(zip(names, (*self.sides, *self.lanes, self.row, self.capacity, PIECE), strict=True))


@lru_cache(maxsize=64)
def best(P: int, itemsize: int, parts: int, sloped: bool, scratch: int) -> Tile | None:
    """Return the tile with least traffic for a target, None if none fits in `scratch` bytes."""
    tiles = (
        Tile((side, side, z), lanes, row, _capacity(side * side * z), P, parts, sloped)
        for lanes in _lanes(P, itemsize)
        for z in range(1, LONGEST + 1)
        for row in (_row(z - 1 + -(-P // lanes[1]) * lanes[1], lanes, itemsize),)
        for side in range(1, LONGEST + 1)
    )
    return min((t for t in tiles if t.nbytes(itemsize) <= scratch), key=lambda t: _traffic(t, itemsize), default=None)


def pays(tile: Tile, density: float) -> bool:
    """Tell whether the copies for a target are few beside its taps, for this many targets of a grid point."""
    return density > 0 and tile.copies / density <= LARGEST_SHARE * tile.P**3


def _lanes(P: int, itemsize: int) -> list[tuple[int, int]]:
    """Return the numbers of lanes along y and z for which a warp loads least."""
    pairs = [(y, z) for y, z in itertools.product(range(1, P + 1), repeat=2) if y * z <= WARP]
    loads = {pair: _loads(P, pair, itemsize) for pair in pairs}
    return [pair for pair in pairs if loads[pair] <= min(loads.values())]


def _loads(P: int, lanes: tuple[int, int], itemsize: int) -> int:
    """Return the clocks in which scratch gives a window's taps to its lanes."""
    y, z = lanes
    wide = 1 if y * z <= HALF else WARP * itemsize // BANKS
    return P * -(-P // y) * -(-P // z) * wide


def _capacity(points: int) -> int:
    """Return the number of targets of a tile of some grid points at once, in whole rows of lanes."""
    return 8 * math.ceil((SPREAD * DENSITY * points + 4) / 8)


@lru_cache(maxsize=1024)
def _row(length: int, lanes: tuple[int, int], itemsize: int) -> int:
    """Return the least distance of rows of this length at which lanes read from different banks."""
    banks = BANKS // itemsize
    y, z = np.indices(lanes).reshape(2, -1)
    pieces = range(0, y.size, banks)
    tries = (
        n for n in range(length, length + banks) if all(_differ((y * n + z)[i : i + banks] % banks) for i in pieces)
    )
    return next(tries, length)


def _differ(places: np.ndarray) -> bool:
    return len(np.unique(places)) == len(places)


def _traffic(tile: Tile, itemsize: int) -> float:
    """Return the bytes of scratch for a target and component, and as many as take the time of those past it."""
    copies = (tile.copied + PAST * math.prod(tile.extent)) / (DENSITY * math.prod(tile.sides))
    return itemsize * copies + BANKS * _loads(tile.P, tile.lanes, itemsize)
