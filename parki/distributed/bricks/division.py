"""Division of a grid into bricks, cut along y and z, and of modes among their ranks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from parki.arrays import Array, module_of
from parki.ewald import geometry
from parki.ewald.choice.params import Parameters
from parki.ewald.stages import brick, multipliers
from parki.ewald.stages.brick import Brick

LEAST_ROWS = 2  # least rows of a brick along y and z; along z first rows are even, as two rows are one complex number
LEAST_POINTS = 1000  # targets and sources of each rank that has a brick, at least

Cuts = tuple[int, ...]


@dataclass(frozen=True)
class Division:
    """Bricks of the first ranks: strips along y, each cut along z.

    Attributes
    ----------
    p : Parameters
    y : tuple of int
        First rows of the strips, and the end of the last.
    z : tuple of tuples of int
        The same for the bricks of each strip.
    """

    p: Parameters
    y: Cuts
    z: tuple[Cuts, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of bricks along y and z."""
        return len(self.z), len(self.z[0]) - 1

    @property
    def size(self) -> int:
        """Number of bricks."""
        return self.shape[0] * self.shape[1]

    def brick(self, rank: int) -> Brick | None:
        """Return the brick of a rank, None for ranks without one."""
        if rank >= self.size:
            return None
        i, j = divmod(rank, self.shape[1])
        first, end = (0, self.y[i], self.z[i][j]), (brick.rows(self.p)[0], self.y[i + 1], self.z[i][j + 1])
        return Brick(first, end, (False, *(n > 1 for n in self.shape)))

    @cached_property
    def bricks(self) -> list[Brick]:
        """Return every brick."""
        return [self.brick(rank) for rank in range(self.size)]

    def owners(self, x: Array) -> Array:
        """Return the ranks of the bricks that hold points of the stages' box."""
        xp, (_, row_y, row_z) = module_of(x), grid_rows(self.p, x)
        strip = xp.searchsorted(xp.asarray(np.array(self.y[1:-1])), row_y, side="right")
        owner = strip * self.shape[1]
        for i, cuts in enumerate(self.z):
            index = xp.flatnonzero(strip == i)
            owner[index] += xp.searchsorted(xp.asarray(np.array(cuts[1:-1])), row_z[index], side="right")
        return owner.astype(np.int32)

    @property
    def single(self) -> bool:
        """Tell whether lines of modes along z travel, not whole planes: see `slabs`."""
        return slabs(self.p, self.shape)

    @cached_property
    def waves(self) -> NDArray[np.int64]:
        """Return the indices (lines, 2) along x and y of single lines."""
        return multipliers.disc(self.p)

    @cached_property
    def modes(self) -> list[NDArray[np.int64]]:
        """Return the modes of each rank; for each mode its rank also has the image (mode 0 is its own image).

        For planes these are modes along x, dealt by their work, largest first; for single lines, their numbers in runs.
        """
        classes = multipliers.planes(self.p)
        if self.single:
            lengths = np.concatenate([np.full(len(c.modes), c.length) for c in classes])
            work_sums = np.cumsum(lengths[self.waves[:, 0]])
            return np.split(
                np.arange(len(work_sums)),
                np.searchsorted(work_sums, work_sums[-1] * np.arange(1, self.size) / self.size),
            )
        modes_by_work = [(c.rows * c.length, m) for c in classes for m in c.modes]
        load, mode_lists = np.zeros(self.size), [[] for _ in range(self.size)]
        for work, mode in sorted(modes_by_work, key=lambda item: (-item[0], item[1])):
            rank = int(load.argmin())
            load[rank] += work * (2 if mode else 1)
            mode_lists[rank].append(mode)
        return [np.array(sorted(modes), np.int64) for modes in mode_lists]

    @property
    def lines(self) -> list[int]:
        """Return the number of lines that each rank gets of every brick: of its modes, and of their images."""
        return [2 * len(modes) - int((modes == 0).sum()) for modes in self.modes]


def grid_rows(p: Parameters, x: Array) -> Array:
    """Return the rows of the grid (3, N) at which the windows of points of the stages' box begin."""
    xp, lattice = module_of(x), geometry.lattice(p, x)
    rows = [xp.clip((lattice[d] * x.dtype.type(1.0 / p.h[d])).astype(np.int64), 0, p.grid[d] - 1) for d in range(3)]
    return xp.stack(rows)


def slabs(p: Parameters, pair: tuple[int, int]) -> bool:
    """Tell whether bricks have whole lines along y, too, and the grid is periodic along y.

    Then lines along y are transformed before the exchange, which carries lines along z of a disc of modes.
    """
    return pair[0] == 1 < pair[1] and p.periodicity >= 2 and p.skew is None


@lru_cache(maxsize=64)
def lines_across(p: Parameters, pair: tuple[int, int], disc: bool = True) -> tuple[int, float]:
    """Return the number of lines that each brick exchanges, images among them, and the rows along y of a line.

    Without a `disc` slabs exchange whole planes, too.
    """
    if disc and slabs(p, pair):
        return 2 * len(multipliers.disc(p)) - 1, 1
    return sum(2 - (m == 0) for c in multipliers.planes(p) for m in c.modes), brick.rows(p)[1] / pair[0]


def shape(p: Parameters, ranks: int, points: int, disc: bool = True) -> tuple[int, int]:
    """Return the numbers of bricks along y and z, at most `ranks` in all, for a number of points.

    Of all `pairs`, the pair for which the fewest bytes travel.
    """
    return min(pairs(p, ranks, points), key=lambda pair: (travels(p, pair, points, disc), pair[1]))


def pairs(p: Parameters, ranks: int, points: int) -> list[tuple[int, int]]:
    """Return possible numbers of bricks along y and z: pairs for as many ranks as can have a brick."""
    limit = max(1, min(ranks, -(-points // LEAST_POINTS)))
    _, n1, n2 = brick.rows(p)
    for count in range(limit, 0, -1):
        shapes = [(py, count // py) for py in range(1, count + 1) if count % py == 0]
        fits = [(py, pz) for py, pz in shapes if n1 // py >= LEAST_ROWS and n2 // pz >= 2 * LEAST_ROWS]
        if fits:
            return fits
    return [(1, 1)]


def travels(p: Parameters, pair: tuple[int, int], points: int, disc: bool = True) -> float:
    """Return the bytes that a rank sends with equal bricks: points within the cutoff, margins and modes."""
    py, pz = pair
    n0, n1, n2 = brick.rows(p)
    _, at_y, at_z = brick.reach(p)
    growth = (1 + 2 * at_y * py / p.box[1] * (py > 1)) * (1 + 2 * at_z * pz / p.box[2] * (pz > 1)) - 1
    ghosts = points / (py * pz) * growth * 8 * p.kernel.strengths
    ny, nz = n1 / py, n2 / pz
    margins = (ny + p.P * (py > 1)) * (nz + p.P * (pz > 1)) - ny * nz
    lines, n_columns = lines_across(p, pair, disc)
    volume = lines * n_columns * nz * (1 - 1 / (py * pz))
    width = np.dtype(p.far).itemsize
    return ghosts + width * (n0 * margins + volume) * (p.kernel.spread + p.kernel.fields)


def balanced(weights: NDArray[np.float64], parts: int, step: int = 1) -> Cuts:
    """Cut rows into parts of weights as equal as possible, each of at least `LEAST_ROWS` rows in units of `step`.

    Returns the first row of each part, and the end of the last.
    """
    n, least_rows = len(weights), LEAST_ROWS * step
    total = np.concatenate([[0.0], np.cumsum(weights)])
    if total[-1] <= 0:
        total = np.arange(n + 1.0)
    cuts = [0]
    for part in range(1, parts):
        goal = total[-1] * part / parts
        row = int(np.searchsorted(total, goal))
        if row and goal - total[row - 1] < total[min(row, n)] - goal:
            row -= 1
        row = round(row / step) * step
        cuts.append(int(min(max(row, cuts[-1] + least_rows), n - (parts - part) * least_rows)) // step * step)
    return (*cuts, n)
