"""Exchanges of the far field between bricks: margins of the grid, and lines for whole planes of modes or along z."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from parki import engine
from parki.arrays import Array, module_of
from parki.distributed.bricks.division import Division
from parki.distributed.bricks.overlap import Meanwhile
from parki.distributed.comm import Comm
from parki.engine.spaces import Space
from parki.engine.steps import Call, Context, Handle, Number, Step, constant, state
from parki.ewald.stages import brick, multipliers
from parki.ewald.stages.brick import Brick
from parki.ewald.stages.mesh import Mesh
from parki.ewald.stages.multipliers import Planes, Some

Part = tuple[slice, slice, slice]  # of a grid, along x, y and z
Pieces = dict[int, list[tuple[Part, Part]]]  # by rank


class GridExchanges:
    """The exchanges of one rank: see `parki.ewald.stages.brick.Exchanges`.

    Parameters
    ----------
    division : Division
    comm : Comm
        Of which the first ranks have bricks.
    space : Space
    tiny : float
        Squared distance up to which points coincide.
    wire : dtype, optional
        Of numbers in messages, by default that of the grid.

    Attributes
    ----------
    modes : Some
        Of which this rank has whole planes, or single lines along z.
    single : bool
    meanwhile : Meanwhile or None
        The near field, where parts of it are summed while messages are under way.
    """

    meanwhile: Meanwhile | None

    def __init__(self, division: Division, comm: Comm, space: Space, tiny: float, wire: str | None = None) -> None:
        self._space, self._tiny, self.meanwhile = space, tiny, None
        self.division, self._comm, self._p = division, comm, division.p
        self._wire, self.single = np.dtype(wire or division.p.far), division.single
        self._period = multipliers.period(self._p)
        self._meshes = [Mesh(self._p, self._period, one) for one in division.bricks]
        self._own = division.bricks[comm.rank]
        mine = division.modes[comm.rank]
        place = {m: i for i, m in enumerate(mine[mine > 0].tolist(), 1)}
        if 0 in mine:
            place[0] = 0
        self.modes = Some(self._classes(mine), place)

    def _classes(self, mine: np.ndarray) -> Sequence[Planes]:
        """Return the classes of some modes."""
        if self.single:
            return multipliers.columns(self._p, self.division.waves[mine], mine)
        every = [replace(c, modes=tuple(m for m in c.modes if m in mine)) for c in multipliers.planes(self._p)]
        return [c for c in every if c.modes]

    # Margins ----------------------------------------------------------------------------------------------------------
    @cached_property
    def _margins(self) -> dict[int, list[tuple[Part, Part]]]:
        """Return parts of this rank's grid that belong to other bricks, and theirs, by rank; images of its own, too."""
        rank = self._comm.rank
        return {q: found for q in range(self.division.size) if (found := self._pieces(rank, q))}

    @cached_property
    def _margins_of_others(self) -> dict[int, list[tuple[Part, Part]]]:
        """Return parts of other grids that belong to this rank's brick, and its own, by rank."""
        rank = self._comm.rank
        return {q: found for q in range(self.division.size) if (found := self._pieces(q, rank))}

    def _pieces(self, a: int, b: int) -> list[tuple[Part, Part]]:
        """Return where the grid of brick a, outside of the brick, meets brick b or images of it: parts of both."""
        (one, mesh), (other, to) = ((self.division.bricks[q], self._meshes[q]) for q in (a, b))
        axes = [self._along(axis, (one, mesh), (other, to)) for axis in range(3)]
        found = []
        for x, (y, image_y), (z, image_z) in ((x, y, z) for x, _ in axes[0] for y in axes[1] for z in axes[2]):
            if a != b or image_y or image_z:
                found.append(((x[0], y[0], z[0]), (x[1], y[1], z[1])))
        return found

    def _along(self, axis: int, a: tuple[Brick, Mesh], b: tuple[Brick, Mesh]) -> list[tuple[tuple[slice, slice], int]]:
        """Return where two grids meet along an axis: ranges of both, and the image of the second."""
        (one, mesh), (other, to) = a, b
        if not one.cut[axis]:
            ranges = [slice(m.at[axis], m.at[axis] + one.end[axis]) for m in (mesh, to)]
            return [((ranges[0], ranges[1]), 0)]
        n, low, found = self._p.grid[axis], mesh.at[axis], []
        begin = one.first[axis] - low
        most = -(-self._p.P // n) + 1 if axis < self._p.periodicity else 0
        for image in range(-most, most + 1):
            first = max(begin, other.first[axis] + image * n)
            end = min(begin + mesh.extent[axis], other.end[axis] + image * n)
            if first < end:
                there = first - other.first[axis] - image * n + to.at[axis]
                found.append(((slice(first - begin, end - begin), slice(there, there + end - first)), image))
        return found

    def fold(self, grid: Handle) -> list[Step | Call]:
        """Return the steps that add margins along cut axes to the bricks that they belong to."""
        return self._halo(grid, self._margins, self._margins_of_others, add=True)

    def fill(self, grid: Handle) -> list[Step | Call]:
        """Return the steps that fill margins along cut axes from the bricks that they belong to."""
        theirs, own = ({q: [(b, a) for a, b in found] for q, found in pieces.items()}
                       for pieces in (self._margins_of_others, self._margins))  # fmt: skip
        return self._halo(grid, theirs, own, add=False)

    def _halo(self, grid: Handle, send: Pieces, receive: Pieces, *, add: bool) -> list[Step | Call]:
        """Return the steps that send the first of each pair of parts, and copy or add those that come to the second."""
        if self.division.size == 1:
            return []
        out = [(q, grid[(slice(None), *part)]) for q, parts in send.items() for part, _ in parts]
        into = [(q, grid[(slice(None), *part)]) for q, parts in receive.items() for _, part in parts]
        (sent, packed), (come, parts) = (
            self._buffer(name, [(q, part.shape) for q, part in some])
            for name, some in (("margins", out), ("margins that come", into))
        )
        packs = [self._lines("ghost_grid", a, b) for (_, a), (_, b) in zip(out, packed, strict=True)]
        unpacks = [self._lines("ghost_grid", a, b, add=add) for (_, a), (_, b) in zip(parts, into, strict=True)]
        return [*packs, self._exchange("ghost_grid", sent, come, packed, parts), *unpacks]

    def _buffer(
        self, name: str, shapes: Sequence[tuple[int, tuple[int, ...]]]
    ) -> tuple[Handle, list[tuple[int, Handle]]]:
        """Return an array for parts one behind the other, and these with the ranks that they are of."""
        dtype = self._wire
        sizes = [math.prod(shape) for _, shape in shapes]
        whole = state(name, (max(1, sum(sizes)),), dtype, zero=False)
        firsts = [int(at) * dtype.itemsize for at in np.cumsum([0, *sizes])]
        return whole, [(q, whole.view(at, shape, dtype)) for (q, shape), at in zip(shapes, firsts, strict=False)]

    def _exchange(
        self, phase: str, sent: Handle, come: Handle, out: list[tuple[int, Handle]], into: list[tuple[int, Handle]]
    ) -> Call:
        """Return the call that sends parts by rank and receives others, each rank's one behind the other."""
        function = partial(self._carry, phase, _by_rank(out), _by_rank(into))
        return Call(phase, function, [sent], [come], lane="far", capturable=False)

    def _carry(
        self, phase: str, send: dict[int, slice], receive: dict[int, slice], context: Context, sent: Array, come: Array
    ) -> None:
        """Send parts of one array, receive those of another, and work on the near field meanwhile."""
        given, taken = ({q: a[at] for q, at in parts.items()} for a, parts in ((sent, send), (come, receive)))
        pending = self._comm.exchange(given, taken, phase)
        if self.meanwhile is None:
            pending.finish()
        else:
            self.meanwhile.until(pending, phase)

    def _lines(
        self, phase: str, a: Handle, out: Handle, source: Sequence[int] | None = None,
        target: Sequence[int] | None = None, *, add: bool = False,
    ) -> Step:  # fmt: skip
        """Return the step that copies, or adds, lines of one grid to those of another: all if none are named.

        They are named as in `kernels/bricks.py`.
        """
        rows = a.shape[2], out.shape[2]
        source, target = (
            np.arange(b.shape[1]) * b.shape[2] if at is None else at for at, b in ((source, a), (target, out))
        )
        lines = [constant("lines", np.array(at, np.int32)) for at in (source, target)]
        n1, n2 = min(rows), out.shape[3]
        args = {"a": a, "out": out, "source": lines[0], "target": lines[1]}
        args |= {"lines": len(lines[0]), "n1": n1, "n2": n2, "source_rows": rows[0], "target_rows": rows[1]}
        unit = engine.kernel("bricks", "lines_to_lines", real=a.dtype, wire=out.dtype, ADD=add)
        return Step(phase, unit, len(out) * len(lines[0]) * n1, args, lane="far")

    # Modes ------------------------------------------------------------------------------------------------------------
    def planes(self, components: int, dtype: str) -> tuple[Handle, tuple[int, int, int]]:
        """Return a grid of the lines that belong to this rank's modes, and its numbers of points."""
        _, n1, n2 = brick.rows(self._p)
        points = (self._points, 1 if self.single else n1, n2 + n2 % 2)
        return state("lines of modes", (components, *points), dtype, zero=False), points

    def there(self, box: Handle, planes: Handle | None) -> list[Step | Call]:
        """Return the steps that send lines to the ranks of their modes."""
        out, into = self._others(box, planes)
        packs = [self._lines("exchange", box, a, self._lines_of(q, box)) for q, a in out[1]]
        own = self._own_lines("there", box, planes)
        unpacks = [self._lines("exchange", a, part, None, self._places(part))
                   for q, a in into[1] for part in [self._part(planes, q)]]  # fmt: skip
        return [*packs, self._exchange("exchange", out[0], into[0], out[1], into[1]), *own, *unpacks]

    def back(self, planes: Handle | None, box: Handle) -> list[Step | Call]:
        """Return the steps that send lines back."""
        into, out = self._others(box, planes)
        packs = [self._lines("exchange", part, a, self._places(part))
                 for q, a in out[1] for part in [self._part(planes, q)]]  # fmt: skip
        own = self._own_lines("back", box, planes)
        unpacks = [self._lines("exchange", a, box, None, self._lines_of(q, box)) for q, a in into[1]]
        return [*packs, self._exchange("exchange", out[0], into[0], out[1], into[1]), *own, *unpacks]

    def _own_lines(self, way: str, box: Handle, planes: Handle | None) -> list[Step]:
        """Return the step between this rank's brick and the lines of its own modes."""
        if planes is None:
            return []
        rank = self._comm.rank
        part, lines = self._part(planes, rank), self._lines_of(rank, box)
        if way == "there":
            return [self._lines("exchange", box, part, lines, self._places(part))]
        return [self._lines("exchange", part, box, self._places(part), lines)]

    def _others(
        self, box: Handle, planes: Handle | None
    ) -> tuple[tuple[Handle, list[tuple[int, Handle]]], tuple[Handle, list[tuple[int, Handle]]]]:
        """Return arrays for this brick's lines of others' modes, and for others' lines of its modes."""
        rank, components = self._comm.rank, len(box)
        counts = self.division.lines
        away = [(q, (components, n, *self._across(self._own))) for q, n in enumerate(counts) if q != rank and n]
        others = [q for q in range(self.division.size) if q != rank and planes is not None]
        home = [(q, (components, counts[rank], *self._across(self.division.bricks[q]))) for q in others]
        return self._buffer("lines of others", away), self._buffer("lines from others", home)

    def _across(self, one: Brick) -> tuple[int, int]:
        """Return the rows and their points of each line of a brick."""
        _, n1, n2 = self._meshes[self.division.bricks.index(one)].box
        return 1 if self.single else n1, n2

    def _lines_of(self, q: int, box: Handle) -> np.ndarray:
        """Return where every brick has the lines of a rank's modes: of these, and of their images."""
        modes, rows = self.division.modes[q], box.shape[2]
        if not self.single:
            return np.concatenate([modes, self._period - modes[modes > 0]]) * rows
        waves = self.division.waves[modes]
        images = -waves[modes > 0] % np.array([self._period, rows])
        return np.concatenate([waves, images]) @ [rows, 1]

    @property
    def _points(self) -> int:
        """Return the lines that a grid of this rank's modes has room for: a mode without an image, and pairs."""
        return 2 * max(self.modes.place.values()) + 1

    def _places(self, planes: Handle) -> np.ndarray:
        """Return where this rank has these lines of its modes."""
        at = np.array([self.modes.place[m] for m in self.division.modes[self._comm.rank].tolist()])
        return np.concatenate([at, self._points - at[at > 0]]) * planes.shape[2]

    def _part(self, planes: Handle, q: int) -> Handle:
        """Return the part of whole planes, or lines, that the brick of a rank has."""
        one, box = self.division.bricks[q], self._meshes[q].box
        y, z = (slice(one.first[axis], one.first[axis] + box[axis]) for axis in (1, 2))
        return planes[:, :, :, z] if self.single else planes[:, :, y, z]

    # Near field -------------------------------------------------------------------------------------------------------
    def beside(self, near: Step) -> tuple[list[Step | Call], list[Step | Call]]:
        """Return steps of the near field before and behind the far field, which does parts of it on a host."""
        if not self._space.native or self._space.engine != "parki":
            return [near], []
        numbers = {a: self._tiny for a in near.args.values() if isinstance(a, Number)}
        self.meanwhile = Meanwhile(near, numbers)
        return [self.meanwhile.begin], [self.meanwhile.rest]

    # Numbers ----------------------------------------------------------------------------------------------------------
    def total(self, values: Array) -> Array:
        """Return the sums of some numbers over all bricks."""
        return total(self._comm, values)


def total(comm: Comm, values: Array) -> Array:
    """Return the sums of some numbers over all ranks, rounded once."""
    xp = module_of(values)
    every = comm.allgather([float(v) for v in values])
    return xp.asarray([math.fsum(column) for column in zip(*every, strict=True)])


def _by_rank(parts: list[tuple[int, Handle]]) -> dict[int, slice]:
    """Return where each rank's parts are in an array of parts one behind the other, sorted by rank."""
    found: dict[int, slice] = {}
    end = 0
    for q, part in parts:
        found[q] = slice(found[q].start if q in found else end, end + part.size)
        end += part.size
    return found
