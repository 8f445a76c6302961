"""Exchanges of the far field between bricks: margins of the grid, and lines for planes of modes or along z."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from parki.arrays import Array, module_of
from parki.distributed.bricks import wire
from parki.distributed.bricks.division import Division
from parki.distributed.bricks.wire import Buffer, Lines
from parki.distributed.comm import Comm
from parki.distributed.overlap import Meanwhile
from parki.engine import Space
from parki.engine.steps import Call, Context, Handle, Number, Step, state
from parki.ewald.stages import brick, multipliers
from parki.ewald.stages.brick import Brick
from parki.ewald.stages.mesh import Mesh
from parki.ewald.stages.multipliers import Planes, Some

Region = tuple[slice, slice, slice]  # of a grid, along x, y and z
Pieces = dict[int, list[tuple[Region, Region]]]  # by rank


class GridExchanges:
    """Exchanges of one rank: see `parki.ewald.stages.brick.Exchanges`.

    Parameters
    ----------
    division : Division
    comm : Comm
        Communicator whose first ranks have bricks.
    space : Space
    tiny : float
        Squared distance up to which points coincide.
    bits : int
        Bits of a number of modes in messages, one of `wire.BITS`; margins travel as they are, or in single precision.

    Attributes
    ----------
    modes : Some
        Modes of which this rank has whole planes, or single lines along z.
    single : bool
    meanwhile : Meanwhile or None
        The near field, where parts of it are summed while messages are under way.
    """

    meanwhile: Meanwhile | None

    def __init__(self, division: Division, comm: Comm, space: Space, tiny: float, bits: int) -> None:
        self._space, self._tiny, self.meanwhile = space, tiny, None
        self.division, self._comm, self._p = division, comm, division.p
        self._buffers: dict[str, Buffer] = {}
        self._dtype, self.single = np.dtype(self._p.far), division.single
        self._bits = wire.at_most(bits, self._dtype)
        self._whole_bits = 32 if self._bits == 32 else 8 * self._dtype.itemsize
        self._period = multipliers.period(self._p)
        self._meshes = [Mesh(self._p, self._period, one) for one in division.bricks]
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
    def _margins(self) -> dict[int, list[tuple[Region, Region]]]:
        """Return parts of this rank's grid in other bricks or own images, and the parts there, by rank."""
        rank = self._comm.rank
        return {q: found for q in range(self.division.size) if (found := self._pieces(rank, q))}

    @cached_property
    def _margins_of_others(self) -> dict[int, list[tuple[Region, Region]]]:
        """Return parts of other grids that belong to this rank's brick, and the parts here, by rank."""
        rank = self._comm.rank
        return {q: found for q in range(self.division.size) if (found := self._pieces(q, rank))}

    def _pieces(self, a: int, b: int) -> list[tuple[Region, Region]]:
        """Return pairs of parts where the grid of brick a, outside the brick, meets brick b or images of b."""
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
        """Return the steps that add margins along cut axes to the bricks that own them."""
        return self._halo(grid, self._margins, self._margins_of_others, add=True)

    def fill(self, grid: Handle) -> list[Step | Call]:
        """Return the steps that fill margins along cut axes from the bricks that own them."""
        theirs, own = ({q: [(b, a) for a, b in found] for q, found in pieces.items()}
                       for pieces in (self._margins_of_others, self._margins))  # fmt: skip
        return self._halo(grid, theirs, own, add=False)

    def _halo(self, grid: Handle, send: Pieces, receive: Pieces, *, add: bool) -> list[Step | Call]:
        """Return the steps that send the first part of each pair, and copy or add received data to the second part."""
        if self.division.size == 1:
            return []
        out = [(q, grid[(slice(None), *part)]) for q, parts in send.items() for part, _ in parts]
        into = [(q, grid[(slice(None), *part)]) for q, parts in receive.items() for _, part in parts]
        names = ("margins", "margins of others")[:: 1 if add else -1]
        sent, come = (
            self._parts(name, grid, [(q, part.shape) for q, part in some], self._whole_bits)
            for name, some in zip(names, (out, into), strict=True)
        )
        packs = [wire.pack("ghost_grid", Lines(a), part) for (_, a), part in zip(out, sent, strict=True)]
        unpacks = [wire.unpack("ghost_grid", part, Lines(a), add=add) for part, (_, a) in zip(come, into, strict=True)]
        return [*packs, *self._exchange("ghost_grid", sent, come), *unpacks]

    def _parts(
        self, name: str, grid: Handle, shapes: Sequence[tuple[int, tuple[int, ...]]], bits: int
    ) -> list[wire.Piece]:
        """Return the parts of a message between grids.

        One array serves both ways: its size allows for as many components as the grid has.
        """
        if name not in self._buffers:
            each = sum(wire.nbytes((1, *shape[1:]), bits, self._dtype.itemsize) for _, shape in shapes)
            self._buffers[name] = Buffer(name, each * grid.whole.shape[0], bits, self._dtype)
        return self._buffers[name].parts(shapes)

    def _exchange(self, phase: str, out: list[wire.Piece], into: list[wire.Piece]) -> list[Call]:
        """Return the call that sends parts by rank and receives others; the parts of each rank are contiguous."""
        if not (out or into):
            return []
        function = partial(self._carry, phase, _by_rank(out), _by_rank(into))
        sent, come = ([parts[0].whole] if parts else [] for parts in (out, into))
        return [Call(phase, function, sent, come, lane="far", capturable=False)]

    def _carry(
        self, phase: str, send: dict[int, slice], receive: dict[int, slice], context: Context, *some: Array
    ) -> None:
        """Send parts of the first array, receive parts of the last, and work on the near field meanwhile."""
        given, taken = ({q: a[at] for q, at in parts.items()} for a, parts in ((some[0], send), (some[-1], receive)))
        pending = self._comm.exchange(given, taken, phase)
        if self.meanwhile is None:
            pending.finish()
        else:
            self.meanwhile.until(pending, phase)

    # Modes ------------------------------------------------------------------------------------------------------------
    def planes(self, components: int, dtype: str) -> tuple[Handle, tuple[int, int, int]]:
        """Return a grid of the lines that belong to this rank's modes, and its numbers of points."""
        _, n1, n2 = brick.rows(self._p)
        points = (self._points, 1 if self.single else n1, n2 + n2 % 2)
        return state("lines of modes", (components, *points), dtype, zero=False), points

    def there(self, box: Handle, planes: Handle | None) -> list[Step | Call]:
        """Return the steps that send lines to the ranks of their modes."""
        out, into = self._others(box, planes)
        packs = [wire.pack("exchange", self._lines_of(part.rank, box), part) for part in out]
        unpacks = [wire.unpack("exchange", part, self._own_lines(planes, part.rank)) for part in into]
        return [*packs, *self._exchange("exchange", out, into), *self._stay("there", box, planes), *unpacks]

    def back(self, planes: Handle | None, box: Handle) -> list[Step | Call]:
        """Return the steps that send lines back."""
        into, out = self._others(box, planes)
        packs = [wire.pack("exchange", self._own_lines(planes, part.rank), part) for part in out]
        unpacks = [wire.unpack("exchange", part, self._lines_of(part.rank, box)) for part in into]
        return [*packs, *self._exchange("exchange", out, into), *self._stay("back", box, planes), *unpacks]

    def _stay(self, way: str, box: Handle, planes: Handle | None) -> list[Step]:
        """Return the step between this rank's brick and the lines of its own modes."""
        if planes is None:
            return []
        rank = self._comm.rank
        own, lines = self._own_lines(planes, rank), self._lines_of(rank, box)
        return [wire.copy("exchange", *((lines, own) if way == "there" else (own, lines)))]

    def _others(self, box: Handle, planes: Handle | None) -> tuple[list[wire.Piece], list[wire.Piece]]:
        """Return messages for this brick's lines of others' modes, and for others' lines of its modes."""
        rank, components = self._comm.rank, len(box)
        counts = self.division.lines
        away = [(q, (components, n, *self._across(rank))) for q, n in enumerate(counts) if q != rank and n]
        others = [q for q in range(self.division.size) if q != rank and planes is not None]
        home = [(q, (components, counts[rank], *self._across(q))) for q in others]
        there = self._parts("lines of others", box, away, self._bits)
        return there, self._parts("lines from others", box, home, self._bits)

    def _across(self, q: int) -> tuple[int, int]:
        """Return the rows of each line of a rank's brick, and the points of a row."""
        _, n1, n2 = self._meshes[q].box
        return 1 if self.single else n1, n2

    def _lines_of(self, q: int, box: Handle) -> Lines:
        """Return the lines of a rank's modes, and of their images, in this brick."""
        modes, rows = self.division.modes[q], box.shape[2]
        if not self.single:
            return Lines(box, np.concatenate([modes, self._period - modes[modes > 0]]) * rows)
        waves = self.division.waves[modes]
        images = -waves[modes > 0] % np.array([self._period, rows])
        return Lines(box, np.concatenate([waves, images]) @ [rows, 1])

    @property
    def _points(self) -> int:
        """Return the number of lines in a grid of this rank's modes: one mode without an image, and pairs."""
        return 2 * max(self.modes.place.values()) + 1

    def _own_lines(self, planes: Handle, q: int) -> Lines:
        """Return the lines of this rank's modes, as far as they lie in a rank's brick."""
        one, box = self.division.bricks[q], self._meshes[q].box
        y, z = (slice(one.first[axis], one.first[axis] + box[axis]) for axis in (1, 2))
        part = planes[:, :, :, z] if self.single else planes[:, :, y, z]
        return Lines(part, self._places * part.shape[2])

    @cached_property
    def _places(self) -> np.ndarray:
        """Return the places of the lines of this rank's modes, and of their images."""
        at = np.array([self.modes.place[m] for m in self.division.modes[self._comm.rank].tolist()])
        return np.concatenate([at, self._points - at[at > 0]])

    # Near field -------------------------------------------------------------------------------------------------------
    def beside(self, near: Step) -> tuple[list[Step | Call], list[Step | Call]]:
        """Return steps of the near field before and after the far field; a host sums parts of it meanwhile."""
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
    """Return the sums of some numbers over all ranks, each rounded once."""
    xp = module_of(values)
    every = comm.allgather([float(v) for v in values])
    return xp.asarray([math.fsum(column) for column in zip(*every, strict=True)])


def _by_rank(parts: list[wire.Piece]) -> dict[int, slice]:
    """Return the range of each rank in a message of contiguous parts, sorted by rank."""
    found: dict[int, slice] = {}
    for part in parts:
        found[part.rank] = slice(found[part.rank].start if part.rank in found else part.first, part.end)
    return found
