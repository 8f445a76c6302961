"""Cell lists: points sorted by cell, stably, so that the result does not depend on the number of threads.

On hosts the sort is a counting sort in chunks, on GPUs the array module's own.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import DTypeLike, NDArray

from parki import engine
from parki.arrays import Array, module_of
from parki.engine import RangePolicy, Space, TeamPolicy
from parki.engine.steps import Handle, placed

CHUNK = 1 << 15  # points per chunk of the counting sort, at least
MAX_CHUNKS = 16  # chunks at most, because each counts all cells
PER_BATCH = 8  # uniform points per cube as wide as a column of cells
FAR_SIDES = 10.0  # sides of the box, beyond the reach of any cutoff
TILE = (6, 6, 96)  # cells per tile and axis: the sources and grid points near a tile stay in a cache
# Workunits of every list, and of the counting sort of hosts.
OF_POINTS = {"index": "cell_index", "gather": "gather_points", "bounds": "batch_bounds"}
SORTING = {"count": "chunk_count", "scan": "count_scan", "begin": "chunk_begin", "place": "chunk_place"}
Z_CUTS = 4  # cells per width of a column along z, so that runs of targets are compact


@dataclass(frozen=True)
class CellGrid:
    """A box cut into cells: `shape` cells per side, the last axis numbered fastest."""

    box: tuple[float, float, float]
    shape: tuple[int, int, int]

    @classmethod
    def for_points(
        cls,
        box: tuple[float, float, float],
        n: int,
        rc: float,
        per_batch: int = PER_BATCH,
        periodic: Sequence[bool] = (True, True, True),
    ) -> "CellGrid":
        """Return a grid of columns as wide as a cube of `per_batch` of `n` uniform points, and at least rc/8.

        Columns are cut finely along z.  A direction that is not periodic ends with a gap of empty cells wider than rc,
        so that it may be treated as periodic.
        """
        width = max((per_batch * math.prod(box) / max(n, 1)) ** (1 / 3), rc / 8)
        columns = (max(1, round(side / width)) for side in box[:2])
        shape = [*columns, max(1, round(Z_CUTS * box[2] / width))]
        sides = list(box)
        for axis in (axis for axis, is_periodic in enumerate(periodic) if not is_periodic):
            step = box[axis] / shape[axis]
            shape[axis] += int(rc / step) + 1
            sides[axis] = shape[axis] * step
        return cls(tuple(sides), tuple(shape))

    @property
    def widths(self) -> tuple[float, float, float]:
        """Side lengths of a cell."""
        return tuple(side / n for side, n in zip(self.box, self.shape, strict=True))

    @property
    def count(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    @property
    def cuts(self) -> int:
        """Pieces that a column is cut into along z."""
        return max(1, round(self.shape[2] / TILE[2]))

    def coloured(self, counts: Sequence[int]) -> tuple[NDArray[np.int32], list[int]]:
        """Return boxes of cells in eight colours, `counts` along each axis; the largest of a colour is its first.

        Two different boxes of one colour are a whole box apart in some direction, across the faces of a periodic box
        if the counts are even.

        Returns
        -------
        boxes : array (B, 6) of int32
            First cell and end along x, y, z.
        starts : list of int
            First box of each colour, and the number of boxes.
        """
        edges = [[n * i // count for i in range(count + 1)] for n, count in zip(self.shape, counts, strict=True)]
        boxes: dict[tuple[int, ...], list[list[int]]] = {colour: [] for colour in itertools.product((0, 1), repeat=3)}
        for index in itertools.product(*map(range, counts)):
            box = [x for e, i in zip(edges, index, strict=True) for x in (e[i], e[i + 1])]
            boxes[tuple(i % 2 for i in index)].append(box)
        for group in boxes.values():  # threads that share a colour end together
            group.sort(key=lambda b: -(b[1] - b[0]) * (b[3] - b[2]) * (b[5] - b[4]))
        starts = np.cumsum([0, *(len(group) for group in boxes.values())])
        return np.array([box for group in boxes.values() for box in group], np.int32), [int(n) for n in starts]

    def most_runs(self, n: int, size: int) -> int:
        """Return the most runs of `size` neighbours that there can be of `n` points, wherever they are."""
        return min(n, (n + self.shape[0] * self.shape[1] * self.cuts * (size - 1)) // size)

    def pieces(self) -> NDArray[np.int64]:
        """Return the first cell and the end of all pieces of columns, (2, pieces), one tile after another."""
        n0, n1, n2 = self.shape
        x, y, z = np.indices((n0, n1, self.cuts)).reshape(3, -1)
        order = np.lexsort((z, y, x, z, y // TILE[1], x // TILE[0]))
        column = n2 * (n1 * x + y)[order]
        return column + n2 * np.array([z, z + 1])[:, order] // self.cuts


class SortedCells:
    """Points of a box in the order of their cells.

    Attributes
    ----------
    n : int
        Number of points.
    order : array (N,) of int32
        order[j] is the point at place j.
    begin : array (cells + 1,) of int32
        Cell c holds the places begin[c] … begin[c + 1] − 1.
    points : array (3, N)
        The points in that order.

    All arrays, also those of `runs`, keep their memory when the points move.
    """

    def __init__(self, x: Array, grid: CellGrid, space: Space) -> None:
        xp = module_of(x)
        self.grid, self.space, self.n = grid, space, x.shape[1]
        self.order, self.begin = xp.empty(self.n, np.int32), xp.empty(grid.count + 1, np.int32)
        self.points = xp.empty((3, self.n), x.dtype)
        self._pieces = xp.asarray(grid.pieces())
        self._runs: dict[int, tuple[Array, Array, int]] = {}
        self.move(x)

    def move(self, x: Array) -> None:
        """Sort new points ``(3, N)``, as many as before."""
        sort = self.space.pick(_counting_sort, _library_sort)
        sort(_cell_index(x, self.grid, self.space), self.grid, self.space, self.order, self.begin)
        gather = workunits(x.dtype.name, self.space)["gather"]
        engine.parallel_for(RangePolicy(self.space, self.n), gather, x=x, order=self.order, out=self.points)
        for size, (batch, bound, _) in self._runs.items():
            self._runs[size] = batch, bound, self._cut(size, batch, bound)

    def batches(self, size: int) -> tuple[Array, Array]:
        """Return runs of at most `size` neighbouring points of one (x, y) column of cells, tile by tile.

        Returns
        -------
        batch : array (B, 2) of int32
            First place and end of each run.
        bound : array (B, 6)
            Lowest x, y, z and highest x, y, z of its points.
        """
        self.runs(size)
        batch, bound, count = self._runs[size]
        return batch[:count], bound[:count]

    def runs(self, size: int) -> tuple[Array, Array]:
        """Return `batches`, padded with empty runs to the largest number that any move can need."""
        if size not in self._runs:
            xp, capacity = module_of(self.points), self.grid.most_runs(self.n, size)
            batch, bound = xp.empty((capacity, 2), np.int32), xp.empty((capacity, 6), self.points.dtype)
            self._runs[size] = batch, bound, self._cut(size, batch, bound)
        return self._runs[size][:2]

    @property
    def held(self) -> list[Array]:
        """Return the arrays of `runs`, and the pieces of columns that they are cut from."""
        return [self._pieces, *(a for batch, bound, _ in self._runs.values() for a in (batch, bound))]

    def _cut(self, size: int, batch: Array, bound: Array) -> int:
        """Fill the arrays of `runs`; return the number of runs that are not empty."""
        xp = module_of(self.points)
        first, last = self.begin[self._pieces].astype(np.int64)
        counts = (last - first + size - 1) // size
        ends = xp.cumsum(counts)
        count = int(ends[-1])  # the only number that is read back
        index = xp.arange(count)
        piece = xp.searchsorted(ends, index, side="right")
        begin = first[piece] + size * (index - ends[piece] + counts[piece])
        end = xp.minimum(begin + size, last[piece])
        batch[:count] = xp.stack([begin, end], axis=1).astype(np.int32)
        kernel = workunits(self.points.dtype.name, self.space)["bounds"]
        views = {"batch": batch[:count], "bound": bound[:count]}
        engine.parallel_for(RangePolicy(self.space, count), kernel, x=self.points, **views)
        # Bounds from high to low: no cell is within reach of an empty run.
        batch[count:], bound[count:, :3], bound[count:, 3:] = (
            0,
            FAR_SIDES * max(self.grid.box),
            -FAR_SIDES * max(self.grid.box),
        )
        return count


class SortedCellHandles:
    """Handles of the arrays of a `SortedCells` of `n` points, under the same names, before there are points."""

    def __init__(self, name: str, n: int, grid: CellGrid, dtype: DTypeLike) -> None:
        self.name, self.n, self.grid = name, n, grid
        self.order = placed(f"order of {name}", (n,), np.int32)
        self.begin = placed(f"cells of {name}", (grid.count + 1,), np.int32)
        self.points = placed(name, (3, n), dtype)
        self._runs: dict[int, tuple[Handle, Handle]] = {}

    def runs(self, size: int) -> tuple[Handle, Handle]:
        """Return runs of at most `size` neighbours and their bounds, as `SortedCells.runs`."""
        if size not in self._runs:
            capacity = self.grid.most_runs(self.n, size)
            batch = placed(f"runs of {self.name}", (capacity, 2), np.int32)
            self._runs[size] = batch, placed(f"bounds of {self.name}", (capacity, 6), self.points.dtype)
        return self._runs[size]

    @property
    def handles(self) -> list[Handle]:
        """Handles of the arrays."""
        return [self.order, self.begin, self.points, *(h for pair in self._runs.values() for h in pair)]

    def arrays(self, cells: SortedCells) -> dict[Handle, Array]:
        """Return the arrays of a list by handle."""
        result = {self.order: cells.order, self.begin: cells.begin, self.points: cells.points}
        for size, handles in self._runs.items():
            result |= zip(handles, cells.runs(size), strict=True)
        return result


@lru_cache(maxsize=16)
def workunits(real: str, space: Space) -> dict[str, engine.Workunit]:
    """Return every workunit that cell lists launch in a space, by its key in `OF_POINTS` or `SORTING`."""
    typed = {key: engine.kernel("cells", name, real=real) for key, name in OF_POINTS.items()}
    return typed | {key: engine.kernel("cells", name) for key, name in space.pick(SORTING, {}).items()}


def _cell_index(x: Array, grid: CellGrid, space: Space) -> Array:
    """Return the cell of every point."""
    n = x.shape[1]
    cell = module_of(x).empty(n, np.int32)
    shape = {f"n{d}": m for d, m in enumerate(grid.shape)}
    scale = {f"s{d}": 1.0 / w for d, w in enumerate(grid.widths)}
    kernel = workunits(x.dtype.name, space)["index"]
    engine.parallel_for(RangePolicy(space, n), kernel, x=x, cell=cell, **shape, **scale)
    return cell


def _library_sort(cell: Array, grid: CellGrid, space: Space, order: Array, begin: Array) -> None:
    """Sort by the array module's stable sort, and find the beginnings of cells."""
    xp = module_of(cell)
    order[...] = xp.argsort(cell, kind="stable").astype(np.int32)
    begin[...] = xp.searchsorted(cell[order], xp.arange(grid.count + 1, dtype=np.int32)).astype(np.int32)


def _counting_sort(cell: Array, grid: CellGrid, space: Space, order: Array, begin: Array) -> None:
    """Sort by counting: each chunk of points counts its cells, a scan gives places, each chunk places its points."""
    n = len(cell)
    chunks = min(MAX_CHUNKS, max(1, -(-n // CHUNK)))
    chunk = -(-n // chunks)
    count = np.zeros((chunks, grid.count), np.int32)
    teams, cells = TeamPolicy(space, chunks), RangePolicy(space, grid.count)
    kernels = workunits("float64", space)  # workunits that sort have no reals
    engine.parallel_for(teams, kernels["count"], cell=cell, count=count, n=n, chunk=chunk)
    scan = kernels["scan"]
    begin[-1] = engine.parallel_reduce(cells, scan, count=count, begin=begin, chunks=chunks)
    engine.parallel_for(cells, kernels["begin"], count=count, begin=begin, chunks=chunks)
    engine.parallel_for(teams, kernels["place"], cell=cell, at=count, order=order, n=n, chunk=chunk)
