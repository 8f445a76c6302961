"""Grid of an Ewald sum in memory: margins, the box that is transformed, lengths along x.

A periodic direction has M points and margins for the windows, whose values are folded into the box and later copied
from the box.  A free direction has M intervals over the box's side and P more points; none of its points wraps, and all
are transformed.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from parki import engine
from parki.engine import Space
from parki.engine.steps import Handle, Step, state
from parki.ewald.choice.params import Parameters
from parki.ewald.stages.brick import Brick

LINE, SETS, WAYS = 64, 64, 8  # bytes of a line, sets, and lines of a set of most hosts' first-level caches
# Most numbers by which a row is padded, if an eighth of its length is less; a quarter is the most rows more in a plane.
PADDING = 32


class Mesh:
    """Places of grid, box and margins along each axis.

    Attributes
    ----------
    at
        First point of the box: after a margin, or 0 in a free direction.
    low, high
        Width of the margins that are images of points of this grid: 0 in a free direction, and along a cut axis.
    inside
        Points between the margins.
    extent
        Points that windows may touch.
    box
        Points that are transformed: along x the length of the transform, along z an even number.
    """

    def __init__(self, p: Parameters, period: int, brick: Brick | None = None) -> None:
        brick = brick or Brick.whole(p)
        counts = [end - first for first, end in zip(brick.first, brick.end, strict=True)]
        flags = brick.holds(p)
        self.at = [p.P // 2 * (axis < p.periodicity) for axis in range(3)]
        self.low = [p.P // 2 * flag for flag in flags]
        self.high = [(p.P - p.P // 2) * flag for flag in flags]
        behind = [p.P * (cut or flag) for cut, flag in zip(brick.cut, flags, strict=True)]
        self.extent = [n + margin for n, margin in zip(counts, behind, strict=True)]
        self.inside = [e - p.P * flag for e, flag in zip(self.extent, flags, strict=True)]
        self.box = [period, counts[1], counts[2] + counts[2] % 2]

    def grid(self, p: Parameters, components: int, space: Space) -> Handle:
        """Return the whole grid.

        Rows have even length, because some libraries take only strides of whole complex numbers.  On a GPU the box
        begins at one, so that it is transformed in place.
        """
        shape = [max(e, offset + n) for e, offset, n in zip(self.extent, self.at, self.box, strict=True)]
        shape[2] += shape[2] % 2  # whole complex numbers
        plane = shape[1:]
        if space.engine == "parki" and space.pick(True, False):  # PyKokkos is given copies of arrays with gaps
            plane = spread_out(*plane, p.P, np.dtype(p.far).itemsize)
        lead = self.at[2] % 2 if space.own_memory else 0
        memory = state("grid", (components, shape[0], plane[0], plane[1] + 2 * lead), p.far, zero=False)
        return memory[:, :, : shape[1], lead : lead + shape[2]]

    def touched(self, grid: Handle) -> Handle:
        """Return the part that windows may touch."""
        e0, e1, e2 = self.extent
        return grid[:, :e0, :e1, :e2]

    def transformed(self, grid: Handle) -> Handle:
        """Return the part that is transformed."""
        return grid[(slice(None), *(slice(a, a + n) for a, n in zip(self.at, self.box, strict=True)))]

    def emptied(self, grid: Handle, spread: Handle, overwrites: bool) -> list[Step]:
        """Return the steps that set a grid to zero, but for the points that spreading writes, if it `overwrites`."""
        if not overwrites:
            return [self.clear(grid)]
        e0, e1, e2 = self.extent
        parts = [grid[len(spread) :], spread[:, e0:], spread[:, :e0, e1:], spread[:, :e0, :e1, e2:]]
        return [self.clear(part) for part in parts if part.size]

    @staticmethod
    def clear(grid: Handle, phase: str = "p2g.kernel") -> Step:
        """Return the step that sets a grid to zero."""
        c, *extent = grid.shape
        args = {"grid": grid, **Mesh._numbers("e", extent)}
        return _step(phase, "halo_clear", c * extent[0] * extent[1], args)

    def fold(self, p: Parameters, grid: Handle) -> list[Step]:
        """Return the steps that add the margins to the points that they are images of."""
        if not any(self.high):
            return []
        args = self._numbers("low", self.low) | self._numbers("high", self.high) | self._numbers("m", self.inside)
        items = len(grid) * self.inside[0] * self.inside[1]
        return [_step("p2g.kernel", "halo_fold", items, {"grid": grid, **args})]

    def wrap(self, p: Parameters, grid: Handle) -> list[Step]:
        """Return the steps that fill the margins with the points that they are images of."""
        steps, (e0, e1, e2), (m0, m1, _) = [], self.extent, self.inside
        args = {"grid": grid, **self._numbers("low", self.low), **self._numbers("m", self.inside)}
        if self.low[2]:
            steps.append(_step("ifft", "halo_ends", len(grid) * m0 * m1, args | {"high2": self.high[2]}))
        if any(self.high[:2]):
            args = {name: value for name, value in args.items() if name not in ("low2", "m2")}
            steps.append(_step("ifft", "halo_rows", len(grid) * e0 * e1, args | {"e0": e0, "e1": e1, "e2": e2}))
        return steps

    @staticmethod
    def _numbers(name: str, values: list[int]) -> dict[str, int]:
        return {f"{name}{axis}": value for axis, value in enumerate(values)}


@lru_cache(maxsize=64)
def spread_out(rows: int, length: int, P: int, itemsize: int) -> tuple[int, int]:
    """Return the padded number of rows of a grid's plane in memory, and their padded length; the length stays even.

    The P x P rows that a window reaches should not crowd in a few sets of the first-level cache, as they do if rows or
    planes are almost multiples of 4 KiB apart.  The result has the least padding for which at most a tenth of their
    lines finds its set full, or as few as possible.
    """
    planes = np.arange(rows, rows + PADDING // 4)[:, None]
    tries = np.arange(length, length + max(PADDING, length // 8), 2)
    x, y = np.indices((P, P)).reshape(2, -1, 1, 1)
    first = (x * planes + y) * tries * itemsize // LINE
    lines = first[None] + np.arange(P * itemsize // LINE + 2)[:, None, None, None]
    counts = np.zeros((SETS, *lines.shape[2:]), np.int64)
    np.add.at(counts, (lines % SETS, *np.indices(lines.shape[2:])[:, None, None]), 1)
    excess = np.maximum(counts - WAYS, 0).sum(axis=0)
    good = excess <= max(excess.min(), 0.1 * lines[..., 0, 0].size)
    i, j = np.unravel_index(np.argmin(np.where(good, planes * tries, np.inf)), good.shape)
    return int(planes[i, 0]), int(tries[j])


def _step(phase: str, name: str, items: int, args: dict[str, Any]) -> Step:
    return Step(phase, engine.kernel("halo", name, real=args["grid"].dtype), items, args, lane="far")
