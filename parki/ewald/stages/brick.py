"""Part of a sum's box and grid on one process: the whole, or a brick with whole lines along x."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from parki.arrays import Array, module_of
from parki.engine.steps import Call, Handle, Step
from parki.ewald import geometry
from parki.ewald.choice.params import Parameters
from parki.ewald.stages.multipliers import Some


@dataclass(frozen=True)
class Brick:
    """Rows first … end − 1 of the grid along each axis; `cut` axes continue in other bricks.

    Along a free axis the grid extends beyond the box by the points of a window.
    """

    first: tuple[int, int, int]
    end: tuple[int, int, int]
    cut: tuple[bool, bool, bool] = (False, False, False)

    @classmethod
    def whole(cls, p: Parameters) -> Brick:
        """Return the brick of the whole grid."""
        return cls((0, 0, 0), rows(p))

    def far(self, p: Parameters, x: Array) -> Array:
        """Map points of the stages' box that lie in the brick to the coordinates of its grid."""
        x = geometry.lattice(p, x)
        if not any(self.cut):
            return x
        coordinates = x.copy()
        for axis in np.flatnonzero(self.cut):
            low = x.dtype.type(self.first[axis] * p.h[axis])
            coordinates[axis] = module_of(x).maximum(x[axis] - low, 0)  # rounding must not leave the brick
        return coordinates

    def sides(self, p: Parameters) -> tuple[float, float, float]:
        """Return the side lengths of the brick in the coordinates of its grid."""
        inside = [min(end, m) - first for first, end, m in zip(self.first, self.end, p.grid, strict=True)]
        return tuple(
            max(n, 1) * h if cut else side
            for n, h, cut, side in zip(inside, p.h, self.cut, p.box, strict=True)
        )  # fmt: skip

    def holds(self, p: Parameters) -> tuple[bool, bool, bool]:
        """Tell for each axis whether the brick spans a periodic box, so that it is its own neighbour."""
        return tuple(axis < p.periodicity and not cut for axis, cut in enumerate(self.cut))


def rows(p: Parameters) -> tuple[int, int, int]:
    """Return the rows of the whole grid along each axis, in a free direction including those beyond the box."""
    return tuple(m + p.P * (axis >= p.periodicity) for axis, m in enumerate(p.grid))


def reach(p: Parameters) -> tuple[float, float, float]:
    """Return the reach of the cutoff along each axis in the coordinates of the grid."""
    t01, t02, t12 = p.skew or (0.0, 0.0, 0.0)
    l0, l1, _ = p.box
    # Gradients of lattice coordinates: y − x t01/l0, and z − x t02/l0 − (y − x t01/l0) t12/l1.
    along_y = math.hypot(1.0, t01 / l0)
    along_z = math.hypot(1.0, t12 / l1, (t02 - t01 * t12 / l1) / l0)
    return p.rc, p.rc * along_y, p.rc * along_z


@dataclass(frozen=True)
class NearBox:
    """Box in which the near field of a brick is summed: the brick with ghosts around, or the whole box.

    Attributes
    ----------
    low, sides : tuple of float
        Corner and sides, in the coordinates of the stages.
    periodic : tuple of bool
        Axes along which the box repeats.
    skew : tuple of float or None
        Tilts of the repeating box, as in `Parameters`.
    """

    low: tuple[float, float, float]
    sides: tuple[float, float, float]
    periodic: tuple[bool, bool, bool]
    skew: tuple[float, float, float] | None

    @classmethod
    def of(cls, p: Parameters, brick: Brick) -> NearBox:
        """Return the near box of a brick."""
        if not any(brick.cut):
            return cls((0.0, 0.0, 0.0), p.box, tuple(axis < p.periodicity for axis in range(3)), p.skew)
        spans = [(0.0, side) for side in p.box]
        for axis, (margin, cut) in enumerate(zip(reach(p), brick.cut, strict=True)):
            low = brick.first[axis] * p.h[axis] if cut else 0.0
            high = low + brick.sides(p)[axis]
            spans[axis] = (low - margin, high + margin) if cut or p.skew is not None else (low, high)
        periodic = tuple(flag and p.skew is None for flag in brick.holds(p))
        if p.skew is not None:
            spans = _around(p, spans)
        low = tuple(a for a, _ in spans)
        return cls(low, tuple(b - a for a, b in spans), periodic, None)

    def near(self, x: Array) -> Array:
        """Map points to the coordinates of the near field."""
        if not any(self.low):
            return x
        low = np.array(self.low, x.dtype)
        return module_of(x).maximum(x - module_of(x).asarray(low)[:, None], 0)


def _around(p: Parameters, spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the box around a range of lattice coordinates of a triclinic cell."""
    corners = np.array(np.meshgrid(*spans)).reshape(3, -1)
    positions = unwrapped(p, corners)
    return list(zip(positions.min(axis=1).tolist(), positions.max(axis=1).tolist(), strict=True))


def unwrapped(p: Parameters, x: Array) -> Array:
    """Return the positions of lattice coordinates (3, N), without wrapping into the cell."""
    if p.skew is None:
        return x
    t01, t02, t12 = (x.dtype.type(t) for t in p.skew)
    l0, l1 = (x.dtype.type(side) for side in p.box[:2])
    return module_of(x).stack([x[0], x[1] + x[0] * (t01 / l0), x[2] + x[0] * (t02 / l0) + x[1] * (t12 / l1)])


class Exchanges(Protocol):
    """Exchanges between bricks during a far field: steps that a brick by itself does not have.

    Attributes
    ----------
    modes : Some
        Modes of which this rank has whole planes, or with `single` lines along z, which slabs exchange.
    single : bool
    """

    modes: Some
    single: bool

    def fold(self, grid: Handle) -> list[Step | Call]:
        """Return the steps that add margins along cut axes to the bricks that own their points."""

    def fill(self, grid: Handle) -> list[Step | Call]:
        """Return the steps that fill margins along cut axes from the bricks that own their points."""

    def planes(self, components: int, dtype: str) -> tuple[Handle, tuple[int, int, int]]:
        """Return a grid for the lines of this rank's modes, and its numbers of points."""

    def there(self, box: Handle, planes: Handle | None) -> list[Step | Call]:
        """Return the steps that send lines to the ranks of their modes."""

    def back(self, planes: Handle | None, box: Handle) -> list[Step | Call]:
        """Return the steps that send lines back."""

    def beside(self, near: Step) -> tuple[list[Step | Call], list[Step | Call]]:
        """Return the steps of a near field before and after those of the far field, which may compute a part of it."""

    def total(self, values: Array) -> Any:
        """Return the sums of some numbers over all bricks."""


class Share(NamedTuple):
    """Brick of a rank, its exchanges with others, and the number of ghost sources around it."""

    brick: Brick
    others: Exchanges
    ghosts: int
