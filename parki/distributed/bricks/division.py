"""The division of a grid into bricks, which are cut along y and z, and of planes of modes among their ranks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from parki.arrays import Array, module_of
from parki.ewald import geometry
from parki.ewald.choice.params import Parameters
from parki.ewald.stages import brick, multipliers
from parki.ewald.stages.brick import Brick

LEAST_ROWS = 2  # of a brick along y and z; along z bricks begin at even rows, as two rows are one complex number
LEAST_POINTS = 1000  # targets and sources for each rank that has a brick

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
        Likewise of the bricks of each strip.
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
            at = xp.flatnonzero(strip == i)
            owner[at] += xp.searchsorted(xp.asarray(np.array(cuts[1:-1])), row_z[at], side="right")
        return owner.astype(np.int32)

    @cached_property
    def modes(self) -> list[list[int]]:
        """Return the modes along x whose planes each rank has, by their work, the largest first."""
        every = [(c.rows * c.length, m) for c in multipliers.planes(self.p) for m in c.modes]
        load, dealt = np.zeros(self.size), [[] for _ in range(self.size)]
        for work, mode in sorted(every, key=lambda one: (-one[0], one[1])):
            rank = int(load.argmin())
            load[rank] += work * (2 if mode else 1)
            dealt[rank].append(mode)
        return [sorted(modes) for modes in dealt]


def grid_rows(p: Parameters, x: Array) -> Array:
    """Return the rows of the grid (3, N) that points of the stages' box begin their windows at."""
    xp, lattice = module_of(x), geometry.lattice(p, x)
    rows = [xp.clip((lattice[d] * x.dtype.type(1.0 / p.h[d])).astype(np.int64), 0, p.grid[d] - 1) for d in range(3)]
    return xp.stack(rows)


def shape(p: Parameters, ranks: int, points: int) -> tuple[int, int]:
    """Return how many bricks there are along y and z, of at most `ranks`, for a number of points.

    Of all pairs the one for which least travels: points within the cutoff, and margins of the grid.
    """
    most = max(1, min(ranks, -(-points // LEAST_POINTS)))
    _, n1, n2 = brick.rows(p)
    for count in range(most, 0, -1):
        pairs = [(py, count // py) for py in range(1, count + 1) if count % py == 0]
        fits = [(py, pz) for py, pz in pairs if n1 // py >= LEAST_ROWS and n2 // pz >= 2 * LEAST_ROWS]
        if fits:
            return min(fits, key=lambda pair: (_travels(p, pair, points), pair[1]))
    return 1, 1


def _travels(p: Parameters, pair: tuple[int, int], points: int) -> float:
    """Return the bytes that a rank sends: of ghosts and margins, for bricks alike."""
    py, pz = pair
    n0, n1, n2 = brick.rows(p)
    _, at_y, at_z = brick.reach(p)
    grown = (1 + 2 * at_y * py / p.box[1] * (py > 1)) * (1 + 2 * at_z * pz / p.box[2] * (pz > 1)) - 1
    ghosts = points / (py * pz) * grown * 8 * p.kernel.strengths
    ny, nz = n1 / py, n2 / pz
    margins = (ny + p.P * (py > 1)) * (nz + p.P * (pz > 1)) - ny * nz
    width = np.dtype(p.far).itemsize
    return ghosts + width * n0 * margins * (p.kernel.spread + p.kernel.result)


def balanced(weights: NDArray[np.float64], parts: int, step: int = 1) -> Cuts:
    """Cut rows into parts of weights as equal as can be, each of at least `LEAST_ROWS` rows in units of `step`.

    Returns the first row of each part, and the end of the last.
    """
    n, least = len(weights), LEAST_ROWS * step
    total = np.concatenate([[0.0], np.cumsum(weights)])
    if total[-1] <= 0:
        total = np.arange(n + 1.0)
    cuts = [0]
    for part in range(1, parts):
        wanted = total[-1] * part / parts
        at = int(np.searchsorted(total, wanted))
        if at and wanted - total[at - 1] < total[min(at, n)] - wanted:
            at -= 1
        at = round(at / step) * step
        cuts.append(int(min(max(at, cuts[-1] + least), n - (parts - part) * least)) // step * step)
    return (*cuts, n)
