"""CellList: points sorted into cells at least a cutoff wide, every cell padded to the same number of slots.

The public, padded form, for scripts with loops of their own.  parki's sums use the compact one of `parki.cells`.
"""

import math
import numbers
from collections.abc import Sequence
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki import arrays, memory
from parki.arrays import AnyArray, Array
from parki.engine import Space, spaces
from parki.names import SpaceName
from parki.utils import round_up

CELL = 28  # bytes per cell: its beginning, its count of particles, its index among the non-empty cells
MOST_CELLS = 2**31 - 1  # cells, and points, at most: their numbers are int32


class CellList:
    """Sort particles by cell: non-empty cell c holds the slots ``c * cell_size`` to ``(c + 1) * cell_size - 1``.

    The box is cut into as many equal cells as are at least `cutoff` wide (one where a side is shorter), numbered with
    the last axis fastest, independent of the particles: two lists of one box and cutoff number their cells alike.
    Within a cell particles keep their order.  A particle on an upper face is in the last cell.

    Parameters
    ----------
    particles : array (d, N)
        Points in ``[0, box]``, d from 1 to 3, float32 or float64: NumPy or CuPy arrays, or anything with DLPack.
    cutoff : float
        Distance in the points' unit of length: particles closer than that are in the same or in neighbouring cells.
    box : sequence of d positive numbers
        Side lengths.
    execution_space : str or Space, optional
        Place of the result's arrays; by default that of `particles`.
    forces : array (N,), (k, N) or (r, k, N), or a tuple of such, optional
        Numbers that go with the particles.
    padding_factor : int, default 1
        Divisor of `cell_size`, which is rounded up to a multiple.
    skip_empty_cells : bool, default True
        False counts every cell among the non-empty ones, also those without particles.
    periodicity : int, default 0
        Number of periodic axes, the first ones.
    build_nonempty_neighbors : bool, default True
        False leaves `nonempty_neighbors` None.

    Attributes
    ----------
    cell_grid_shape : tuple of d ints
        Cells along each axis.
    num_cells, num_nonempty_cells : int
        All cells, and those that have slots.
    cell_size : int
        Slots of each non-empty cell: the particles of the fullest cell, rounded up.
    nonempty_cells : array (num_nonempty_cells,) of int32
        Number of the cell among all, ascending.
    nonempty_cell_index : array (num_cells,) of int32
        The inverse; −1 for cells that have no slots.
    counter : array (num_nonempty_cells,) of int32
        Particles of each; they fill its first slots.
    particle_index : array (slots,) of int32
        The particle in each slot; −1 in slots that pad a cell.
    particle_list : array (d, slots)
        The particles in their slots; zeros in slots that pad a cell.
    force_list : array (r, k, slots), tuple of such, or None
        The forces in their slots, r and k one where they were not given; zeros in slots that pad a cell.
    nonempty_neighbors : array (num_cells, 3**d) of int32, or None
        Index among the non-empty cells of each neighbour of each cell, itself in the middle: steps −1, 0, 1 along each
        axis, the last fastest, wrapped on periodic axes.  −1 for cells that have no slots or are outside the box.  On
        a periodic axis of one or two cells a neighbour is listed once for each image.
    particles, cutoff, box, execution_space, forces, padding_factor, skip_empty_cells, periodicity, \
build_nonempty_neighbors
        Checked arguments: the box as a tuple of floats, arrays in `execution_space`, which is a space object.

    Raises
    ------
    ValueError
        For input that does not fit, naming the argument, the value found and the value expected.

    See Also
    --------
    parki.utils.wrap : Move points into a box.
    parki.plan.Plan.near_pairs : Return the near pairs of a plan.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x = np.array([[0.1, 0.9, 0.2], [0.1, 0.1, 0.1], [0.1, 0.1, 0.1]])
    >>> cells = parki.CellList(x, cutoff=0.5, box=(1, 1, 1))
    >>> cells.cell_grid_shape, cells.nonempty_cells.tolist(), cells.counter.tolist()
    ((2, 2, 2), [0, 4], [2, 1])
    >>> cells.particle_index.tolist()
    [0, 2, 1, -1]
    """

    def __init__(
        self,
        particles: AnyArray,
        cutoff: float,
        box: Sequence[float] | NDArray[Any],
        execution_space: SpaceName | Space | None = None,
        forces: AnyArray | tuple[AnyArray, ...] | None = None,
        padding_factor: int = 1,
        skip_empty_cells: bool = True,
        periodicity: int = 0,
        build_nonempty_neighbors: bool = True,
    ) -> None:
        is_tuple = isinstance(forces, tuple)
        named_forces = dict(_named_forces(forces))
        self.execution_space = arrays.space_of(execution_space, particles=particles, **named_forces)
        xp = spaces.array_module(self.execution_space)
        self.particles = _particles(particles, xp)
        dimension, n = self.particles.shape
        checked = [_forces(name, f, n, xp) for name, f in named_forces.items()]
        self.forces = tuple(checked) if is_tuple else next(iter(checked), None)
        self.box = _box(box, dimension)
        self.periodicity = _integer("periodicity", periodicity, 0, dimension)
        self.padding_factor = _integer("padding_factor", padding_factor, 1)
        self.skip_empty_cells = _flag("skip_empty_cells", skip_empty_cells)
        self.build_nonempty_neighbors = _flag("build_nonempty_neighbors", build_nonempty_neighbors)
        self.cutoff = _cutoff(cutoff, self.box[: self.periodicity])
        self.cell_grid_shape = _grid_shape(self.cutoff, self.box)
        self.num_cells = math.prod(self.cell_grid_shape)
        bytes_per_cell = CELL + 4 * 3**dimension * self.build_nonempty_neighbors
        if not self.execution_space.own_memory:
            memory.require(
                bytes_per_cell * self.num_cells, f"a list of {self.num_cells} cells", "A longer cutoff takes less."
            )
        _check_inside(self.particles, self.box, xp)

        cell = _cells(self.particles, self.box, self.cell_grid_shape, xp)
        order = xp.argsort(cell, kind="stable")
        cell = cell[order]
        begin = xp.searchsorted(cell, xp.arange(self.num_cells + 1))
        count = begin[1:] - begin[:-1]
        self._number_cells(count, xp)
        self.counter = count[self.nonempty_cells].astype(np.int32)
        self.cell_size = round_up(int(count.max()), self.padding_factor)

        slot = self.nonempty_cell_index[cell].astype(np.int64) * self.cell_size + xp.arange(n) - begin[cell]
        slots = self.num_nonempty_cells * self.cell_size
        self.particle_index = xp.zeros(slots, np.int32) - xp.asarray(1, np.int32)
        self.particle_index[slot] = order.astype(np.int32)
        self.particle_list = _in_slots(self.particles, order, slot, slots, xp)
        lists = [_in_slots(_three_axes(f), order, slot, slots, xp) for f in checked]
        self.force_list = tuple(lists) if is_tuple else next(iter(lists), None)
        self.nonempty_neighbors = self._neighbors(xp) if self.build_nonempty_neighbors else None

    def _number_cells(self, count: Array, xp: ModuleType) -> None:
        """Number the cells that have slots."""
        has_slots = count > 0 if self.skip_empty_cells else count >= 0
        ends = xp.cumsum(has_slots.astype(np.int64))
        self.num_nonempty_cells = int(ends[-1])
        self.nonempty_cells = xp.searchsorted(ends, xp.arange(1, self.num_nonempty_cells + 1)).astype(np.int32)
        self.nonempty_cell_index = xp.where(has_slots, ends - 1, -1).astype(np.int32)

    def _neighbors(self, xp: ModuleType) -> Array:
        """Return the table of neighbours, one column after another."""
        cells = xp.arange(self.num_cells)
        columns = []
        for steps in product((-1, 0, 1), repeat=len(self.box)):
            cell, is_inside, stride = cells - cells, cells >= 0, self.num_cells
            for axis, (step, n) in enumerate(zip(steps, self.cell_grid_shape, strict=True)):
                stride //= n
                place = cells // stride % n + step
                if axis >= self.periodicity:
                    is_inside = is_inside & (place >= 0) & (place < n)
                cell = cell + place % n * stride
            columns.append(xp.where(is_inside, self.nonempty_cell_index[cell], -1).astype(np.int32))
        return xp.stack(columns, axis=1)

    def __repr__(self) -> str:
        cells = " × ".join(map(str, self.cell_grid_shape))
        nonempty = f"{self.num_nonempty_cells} with {self.cell_size} slots each"
        return f"<CellList: {self.particles.shape[1]} particles, {cells} cells, {nonempty}>"


def _cells(x: Array, box: tuple[float, ...], shape: tuple[int, ...], xp: ModuleType) -> Array:
    """Return the cell of every particle."""
    cell = xp.zeros(x.shape[1], np.int64)
    for axis, (n, side) in enumerate(zip(shape, box, strict=True)):
        # In double precision, so that rounding moves faces of cells no further than rounding of a float64 does.
        place = (x[axis].astype(np.float64) * (n / side)).astype(np.int64)
        cell = cell * n + xp.minimum(place, n - 1)
    return cell


def _in_slots(values: Array, order: Array, slot: Array, slots: int, xp: ModuleType) -> Array:
    """Return values (…, N) of the particles in their slots, with zeros in the rest."""
    result = xp.zeros((*values.shape[:-1], slots), values.dtype)
    result[..., slot] = values[..., order]
    return result


def _three_axes(force: Array) -> Array:
    return force.reshape((1,) * (3 - force.ndim) + force.shape)


def _particles(particles: Any, xp: ModuleType) -> Array:
    x = arrays.taken("particles", particles)
    if x.ndim != 2 or not 1 <= x.shape[0] <= 3:
        text = f"particles has shape {x.shape}; expected (d, N) with d from 1 to 3."
        raise ValueError(text + (" Pass particles.T." if x.ndim == 2 and 1 <= x.shape[1] <= 3 else ""))
    if x.shape[1] > MOST_CELLS:
        raise ValueError(f"particles has {x.shape[1]} points; expected at most {MOST_CELLS}.")
    return xp.asarray(x)


def _named_forces(forces: Any) -> list[tuple[str, Any]]:
    if isinstance(forces, tuple):
        return [(f"forces[{i}]", force) for i, force in enumerate(forces)]
    return [] if forces is None else [("forces", forces)]


def _forces(name: str, value: Any, n: int, xp: ModuleType) -> Array:
    force = arrays.taken(name, value)
    if not 1 <= force.ndim <= 3 or force.shape[-1] != n:
        text = f"{name} has shape {force.shape}; expected ({n},), (k, {n}) or (r, k, {n}), for {n} particles."
        raise ValueError(text + (f" Pass {name}.T." if force.ndim == 2 and force.shape[0] == n else ""))
    return xp.asarray(force)


def _box(box: Any, dimension: int) -> tuple[float, ...]:
    sides = np.asarray(box) if isinstance(box, list | tuple | np.ndarray) else np.empty(0)
    real = sides.shape == (dimension,) and sides.dtype.kind in "iuf"
    if not real or not ((sides > 0) & np.isfinite(sides)).all():
        raise ValueError(f"box is {box!r}; expected {dimension} positive, finite side lengths.")
    return tuple(float(side) for side in sides)


def _cutoff(cutoff: Any, periodic: tuple[float, ...]) -> float:
    real = isinstance(cutoff, numbers.Real) and not isinstance(cutoff, bool)
    if not real or not 0 < cutoff < math.inf:
        raise ValueError(f"cutoff is {cutoff!r}; expected a positive, finite number.")
    if periodic and cutoff > min(periodic):
        raise ValueError(
            f"cutoff is {cutoff!r}, longer than a periodic side of the box, {min(periodic):.6g}; expected at most that "
            "side, because neighbours are at most one image away."
        )
    return float(cutoff)


def _grid_shape(cutoff: float, box: tuple[float, ...]) -> tuple[int, ...]:
    ratios = [side / cutoff for side in box]
    if math.prod(max(1.0, ratio) for ratio in ratios) >= MOST_CELLS:
        raise ValueError(
            f"cutoff is {cutoff!r} in a box {box}, which gives {math.prod(ratios):.3g} cells; expected at most "
            f"{MOST_CELLS}. Pass a longer cutoff."
        )
    return tuple(max(1, math.floor(ratio)) for ratio in ratios)


def _integer(name: str, value: Any, minimum: int, maximum: int | None = None) -> int:
    integral = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not integral or value < minimum or (maximum is not None and value > maximum):
        expected = f"an integer of at least {minimum}" if maximum is None else f"an integer from {minimum} to {maximum}"
        raise ValueError(f"{name} is {value!r}; expected {expected}.")
    return int(value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_ | int) or value not in (0, 1):
        raise ValueError(f"{name} is {value!r}; expected True or False.")
    return bool(value)


def _check_inside(x: Array, box: tuple[float, ...], xp: ModuleType) -> None:
    # Faces in the particles' own precision, so that x == side is inside.
    is_inside = (x >= 0) & (x <= xp.asarray(box, x.dtype)[:, None])
    if bool(is_inside.all()):
        return
    is_inside, x = arrays.to_host(is_inside), arrays.to_host(x)
    places = np.flatnonzero(~is_inside.all(axis=0))
    first = int(places[0])
    region = " × ".join(f"[0, {side:.6g}]" for side in box)
    raise ValueError(
        f"particles has {len(places)} of {x.shape[1]} points that lie outside the box {region} or are not finite "
        f"(first: index {first}, {x[:, first].tolist()}); expected all inside."
    )
