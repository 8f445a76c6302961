"""Points of an Ewald sum in the order of their cells, and handles of their arrays."""

import math

import numpy as np

from parki import cells
from parki.arrays import Array, module_of
from parki.cells import CellGrid, SortedCellHandles, SortedCells
from parki.engine import Space
from parki.engine.steps import Handle, placed
from parki.ewald import geometry
from parki.ewald.choice.params import Parameters
from parki.ewald.choice.variants import Variants
from parki.ewald.stages.brick import Brick, NearBox, unwrapped

COINCIDENT = 8  # units of rounding in a coordinate, at most, after wrapping, rotation or recomputation


class Points:
    """Points of a sum, in ``[0, box)``, in the order of their cells.

    Parameters
    ----------
    p : Parameters
    trg, src : array (3, Nt), (3, Ns)
        One array if they are the same points.
    space : Space
    v : Variants
    brick : Brick, optional
        Part of the box that holds the points.
    ghosts : array (3, any), optional
        Sources around the brick, within reach of the near field.

    Attributes
    ----------
    targets, sources : SortedCells
        Cells for the near field; one list if targets are the sources.
    spreading : SortedCells
        Sources for P2G: the same list, or in a triclinic cell or a brick one in the coordinates of the grid.
    gather : array (3, Nt)
        Input of G2P: the sorted targets, in a triclinic cell in lattice coordinates; for BASE in the caller's order.
    base : array (3, Ns), optional
        Sources in the caller's order, for P2G by BASE.
    tiny : float
        Squared distance up to which points coincide, see `coincident`.

    All arrays stay where they are when the points move.
    """

    def __init__(
        self, p: Parameters, trg: Array, src: Array, space: Space, v: Variants, brick: Brick | None = None,
        ghosts: Array | None = None,
    ) -> None:  # fmt: skip
        self.p, self.same, self.g2p, self.tiny = p, trg is src, v.g2p, coincident(p, 0.0)
        self._brick = brick or Brick.whole(p)
        near, all_sources = trg, src
        if brick is not None:
            near_box, inner = NearBox.of(p, brick), self._near(src)
            all_sources = near_box.near(module_of(src).concatenate([inner, ghosts], axis=1))
            near = near_box.near(inner if self.same else self._near(trg))
        near_cells, far_cells = cell_grids(p, all_sources.shape[1], src.shape[1], space, v, brick)
        self.sources = SortedCells(all_sources, near_cells, space)
        has_far_cells = far_cells is not near_cells or p.skew is not None
        self.spreading = SortedCells(self._far(src), far_cells, space) if has_far_cells else self.sources
        self.targets = self.sources if self.same and brick is None else SortedCells(near, near_cells, space)
        sorts = self.g2p != "BASE" and not has_far_cells
        self.gather = self.targets.points if sorts else self._gathered(trg).copy()
        self.base = self._far(src).copy() if v.p2g == "BASE" else None

    def _near(self, x: Array) -> Array:
        """Map points of the stages' box for the near field of a brick: into the cell if the brick is cut."""
        return unwrapped(self.p, geometry.lattice(self.p, x)) if any(self._brick.cut) else x

    def _far(self, x: Array) -> Array:
        return self._brick.far(self.p, x)

    def _gathered(self, trg: Array) -> Array:
        x = self._far(trg)
        return x if self.g2p == "BASE" else x[:, self.targets.order]

    def move(self, trg: Array | None = None, src: Array | None = None) -> None:
        """Sort new targets, sources or both, of the same numbers; if targets are the sources, one array suffices."""
        if self.same:
            trg = src = trg if src is None else src
        if src is not None:
            self.sources.move(src)
            if self.spreading is not self.sources:
                self.spreading.move(self._far(src))
            if self.base is not None:
                self.base[...] = self._far(src)
        if trg is not None:
            if not self.same:
                self.targets.move(trg)
            if self.gather is not self.targets.points:
                self.gather[...] = self._gathered(trg)

    def wrapped_from(self, reach: float) -> None:
        """Set the distance up to which points coincide, if coordinates were up to `reach` before wrapping."""
        self.tiny = coincident(self.p, reach)

    def originals(self) -> tuple[Array, Array]:
        """Return the sorted targets and sources in the caller's order, one array if they are the same."""
        src = _original(self.sources)
        return src if self.same else _original(self.targets), src

    @property
    def arrays(self) -> list[Array]:
        """Return all arrays."""
        lists = (self.targets, self.sources, self.spreading)
        sorted_arrays = [a for c in lists for a in (c.order, c.begin, c.points, *c.held)]
        return [*sorted_arrays, self.gather, *([] if self.base is None else [self.base])]


def _original(cells: SortedCells) -> Array:
    x = module_of(cells.points).empty(cells.points.shape, cells.points.dtype)
    x[:, cells.order] = cells.points
    return x


def cell_grids(
    p: Parameters, near: int, far: int, space: Space, v: Variants, brick: Brick | None = None
) -> tuple[CellGrid, CellGrid]:
    """Return the cells for `near` sources of the near field and `far` ones of the far field, equal without a brick."""
    per_batch, own_brick = space.pick(cells.PER_BATCH, v.targets), brick or Brick.whole(p)
    near_box = NearBox.of(p, own_brick)
    near_cells = CellGrid.for_points(near_box.sides, near, p.rc, per_batch, near_box.periodic)
    if brick is None:
        return near_cells, near_cells
    return near_cells, CellGrid.for_points(brick.sides(p), far, p.rc, per_batch, brick.holds(p))


class PointHandles:
    """Handles of the arrays of `Points`, under the same names.

    Parameters
    ----------
    p, v, space
        As for `Points`.
    n_targets, n_sources : int
    same : bool
        True if the targets are the sources.
    brick : Brick, optional
    ghosts : int
        Number of sources around the brick.
    """

    def __init__(
        self, p: Parameters, n_targets: int, n_sources: int, is_same: bool, space: Space, v: Variants,
        brick: Brick | None = None, ghosts: int = 0,
    ) -> None:  # fmt: skip
        near_cells, far_cells = cell_grids(p, n_sources + ghosts, n_sources, space, v, brick)
        has_far_cells = far_cells is not near_cells or p.skew is not None
        self.sources = SortedCellHandles("sources", n_sources + ghosts, near_cells, p.dtype)
        self.spreading = (
            SortedCellHandles("spreading", n_sources, far_cells, p.dtype) if has_far_cells else self.sources
        )
        one_set = is_same and brick is None
        self.targets = self.sources if one_set else SortedCellHandles("targets", n_targets, near_cells, p.dtype)
        sorts = v.g2p != "BASE" and not has_far_cells
        self.gather = self.targets.points if sorts else placed("points of G2P", (3, n_targets), p.dtype)
        self.base = placed("points of P2G", (3, n_sources), p.dtype) if v.p2g == "BASE" else None

    def arrays(self, points: Points) -> dict[Handle, Array]:
        """Return the arrays of points by handle."""
        arrays = {self.gather: points.gather} | ({} if self.base is None else {self.base: points.base})
        for name in ("sources", "spreading", "targets"):
            arrays |= getattr(self, name).arrays(getattr(points, name))
        return arrays

    @property
    def nbytes(self) -> int:
        """Return the bytes of all arrays."""
        lists = (self.sources, self.spreading, self.targets)
        handles = {h for sorted_cells in lists for h in sorted_cells.handles} | {self.gather} | ({self.base} - {None})
        return sum(h.nbytes for h in handles)


def coincident(p: Parameters, reach: float) -> float:
    """Return the squared distance up to which points coincide, due to rounding of their coordinates.

    `reach` is the largest coordinate of points that were wrapped into the box, 0 if none was; it is rounded up to a
    power of two.  Points of float32 that were not wrapped coincide only if they are equal.
    """
    reach = 2.0 ** math.ceil(math.log2(reach)) if reach else 0.0
    size = max(reach, 0.0 if p.dtype == "float32" else max(p.box))
    return (COINCIDENT * float(np.finfo(p.dtype).eps) * size) ** 2
