"""Counts of spreading (P2G): every source adds to P³ grid points of each component.

Sorted sources find the grid points of their neighbours in the first level of memory: past this level go the grid points
that a column of cells touches, once for every column.  Sources in any order (BASE) find none: their P² rows of P points
are whole cache lines from memory and back.  HYBRID adds the sums of a run of sources, atomically past the first level;
GRID reads the sources again for every row of grid points that they reach, and writes each grid point once; TILE for
every tile.
"""

from dataclasses import dataclass

from parki.perfmodels.counts.totals import Counts, TextTotals, levels

LINE = 64  # bytes of a cache line
CACHE = 32e6  # bytes of a last level of cache, if no other number is known
VARIANTS = ("BASE", "SOURCE", "GRID", "HYBRID", "BLOCK", "TILE")


@dataclass(frozen=True)
class Spreading:
    """Points and a grid, between which values go by windows of P points per direction.

    Attributes
    ----------
    n
        Points: sources or targets.
    row
        Numbers of a source, of as many bytes as the grid's; of a target its three coordinates and the result.
    components
        Components of the grid.
    P
        Grid points of the window per direction.
    touched
        Grid points of a component, margins included.
    cells
        Width of a cell in grid points.
    itemsize
        Bytes of a number.
    """

    n: int
    row: int
    components: int
    P: int
    touched: int
    cells: tuple[float, float, float]
    itemsize: int = 8

    @property
    def taps(self) -> int:
        """Points of all windows, for one component."""
        return self.n * self.P**3

    @property
    def ends(self) -> int:
        """Bytes of all points."""
        return self.itemsize * self.n * self.row

    @property
    def grid(self) -> int:
        """Bytes of the grid."""
        return self.itemsize * self.components * self.touched

    @property
    def again(self) -> float:
        """Times that a grid point is met: once for every column of cells in reach."""
        return (1 + self.P / self.cells[0]) * (1 + self.P / self.cells[1])

    @property
    def lines(self) -> float:
        """Bytes of the cache lines of all windows; a row of P points begins anywhere in a line."""
        return self.components * self.n * self.P**2 * (self.P * self.itemsize + LINE - self.itemsize)


def counts(
    variant: str,
    text: TextTotals,
    s: Spreading,
    device: bool = False,
    fill: float = 1.0,
    launches: int = 1,
    cache: float = CACHE,
    looked_at: float = 0.0,
) -> Counts:
    """Count the spreading of all sources.

    Parameters
    ----------
    variant
        One of `VARIANTS`.
    text
        Totals of the kernel's text.
    s
        Sources and grid.
    device
        Whether scratch is apart from memory.
    fill
        Share of the lanes whose work counts: `filled` for BLOCK, `reached` for HYBRID, from `met` for TILE.
    launches
        One, or as many as there are colours of blocks.
    cache
        Bytes of the last level of cache: a larger grid is in memory.
    looked_at
        For TILE, sources that all tiles look at.

    Raises
    ------
    ValueError
        For a variant that is not in `VARIANTS`.
    """
    if variant not in VARIANTS:
        raise ValueError(f"variant: found {variant!r}, expected one of {', '.join(VARIANTS)}")
    dram = s.ends + 2 * s.grid
    l2 = s.ends + 2 * s.grid * s.again
    if variant == "BASE":
        l2 = s.ends + 2 * s.lines
        dram = l2 if s.grid > cache else dram
    elif variant == "HYBRID":
        l2 = s.ends + 2 * s.itemsize * text.atomics
    elif variant == "GRID":
        l2 = s.ends * (s.P + s.cells[0]) * (s.P + s.cells[1]) + s.grid
        dram = s.ends + s.grid
    elif variant == "TILE":
        l2 = s.itemsize * looked_at * s.row + s.grid
        dram = s.ends + s.grid
    return Counts(text.operations, levels(text, l2, dram, device), text.atomics, launches, fill)


def filled(P: int, lanes: int, halves: bool = True) -> float:
    """Return the share of lanes that P points fill: whole vectors and, on hosts, halves, quarters, … for the rest."""
    remainder = P % lanes
    pieces = P // lanes + (remainder.bit_count() if halves else remainder > 0)
    return P / (pieces * lanes)


def reached(P: int, lanes: int, nx: float, ny: float) -> float:
    """Return the share of lanes whose rows along z (P × P of nx × ny) a source reaches, if it reaches at least one.

    Lanes are neighbours along y, and then along x.
    """
    if lanes <= ny:
        return max(P / (P + lanes - 1), P / ny)
    return P / ny * max(P / (P + lanes / ny - 1), P / nx)


def met(P: int, lanes: int, line: int, rows: int) -> float:
    """Return the share of lanes whose rows a source reaches, if it reaches at least one of a warp in TILE.

    `line` lanes are neighbours along y, each with this number of rows, and then along x.
    """
    across = lanes // line
    warps = (P + across - 1) / across * (P + line * rows - 1) / (line * rows)
    return P * (P + rows - 1) / rows / lanes / warps
