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
        self._meshes = [Mesh(self._p, self._period, block) for block in division.bricks]
        own_modes = division.modes[comm.rank]
        place = {m: i for i, m in enumerate(own_modes[own_modes > 0].tolist(), 1)}
        if 0 in own_modes:
            place[0] = 0
        self.modes = Some(self._classes(own_modes), place)

    def _classes(self, modes: np.ndarray) -> Sequence[Planes]:
        """Return the classes of some modes."""
        if self.single:
            return multipliers.columns(self._p, self.division.waves[modes], modes)
        classes = [replace(c, modes=tuple(m for m in c.modes if m in modes)) for c in multipliers.planes(self._p)]
        return [c for c in classes if c.modes]

    # Margins ----------------------------------------------------------------------------------------------------------
    @cached_property
    def _margins(self) -> dict[int, list[tuple[Region, Region]]]:
        """Return parts of this rank's grid in other bricks or own images, and the parts there, by rank."""
        rank = self._comm.rank
        return {q: pieces for q in range(self.division.size) if (pieces := self._pieces(rank, q))}

    @cached_property
    def _margins_of_others(self) -> dict[int, list[tuple[Region, Region]]]:
        """Return parts of other grids that belong to this rank's brick, and the parts here, by rank."""
        rank = self._comm.rank
        return {q: pieces for q in range(self.division.size) if (pieces := self._pieces(q, rank))}

    def _pieces(self, a: int, b: int) -> list[tuple[Region, Region]]:
        """Return pairs of parts where the grid of brick a, outside the brick, meets brick b or images of b."""
        (source, mesh), (target, target_mesh) = ((self.division.bricks[q], self._meshes[q]) for q in (a, b))
        axes = [self._along(axis, (source, mesh), (target, target_mesh)) for axis in range(3)]
        pairs = []
        for x, (y, image_y), (z, image_z) in ((x, y, z) for x, _ in axes[0] for y in axes[1] for z in axes[2]):
            if a != b or image_y or image_z:
                pairs.append(((x[0], y[0], z[0]), (x[1], y[1], z[1])))
        return pairs

    def _along(self, axis: int, a: tuple[Brick, Mesh], b: tuple[Brick, Mesh]) -> list[tuple[tuple[slice, slice], int]]:
        """Return where two grids meet along an axis: ranges of both, and the image of the second."""
        (source, mesh), (target, target_mesh) = a, b
        if not source.cut[axis]:
            ranges = [slice(m.at[axis], m.at[axis] + source.end[axis]) for m in (mesh, target_mesh)]
            return [((ranges[0], ranges[1]), 0)]
        n, low, overlaps = self._p.grid[axis], mesh.at[axis], []
        begin = source.first[axis] - low
        reach = -(-self._p.P // n) + 1 if axis < self._p.periodicity else 0
        for image in range(-reach, reach + 1):
            first = max(begin, target.first[axis] + image * n)
            end = min(begin + mesh.extent[axis], target.end[axis] + image * n)
            if first < end:
                target_begin = first - target.first[axis] - image * n + target_mesh.at[axis]
                overlaps.append(
                    ((slice(first - begin, end - begin), slice(target_begin, target_begin + end - first)), image)
                )
        return overlaps

    def fold(self, grid: Handle) -> list[Step | Call]:
        """Return the steps that add margins along cut axes to the bricks that own them."""
        return self._halo(grid, self._margins, self._margins_of_others, add=True)

    def fill(self, grid: Handle) -> list[Step | Call]:
        """Return the steps that fill margins along cut axes from the bricks that own them."""
        remote_parts, own_parts = ({q: [(b, a) for a, b in pairs] for q, pairs in pieces.items()}
                       for pieces in (self._margins_of_others, self._margins))  # fmt: skip
        return self._halo(grid, remote_parts, own_parts, add=False)

    def _halo(self, grid: Handle, send: Pieces, receive: Pieces, *, add: bool) -> list[Step | Call]:
        """Return the steps that send the first part of each pair, and copy or add received data to the second part."""
        if self.division.size == 1:
            return []
        out = [(q, grid[(slice(None), *part)]) for q, parts in send.items() for part, _ in parts]
        targets = [(q, grid[(slice(None), *part)]) for q, parts in receive.items() for _, part in parts]
        names = ("margins", "margins of others")[:: 1 if add else -1]
        outgoing, incoming = (
            self._parts(name, grid, [(q, part.shape) for q, part in parts], self._whole_bits)
            for name, parts in zip(names, (out, targets), strict=True)
        )
        packs = [wire.pack("ghost_grid", Lines(a), part) for (_, a), part in zip(out, outgoing, strict=True)]
        unpacks = [
            wire.unpack("ghost_grid", part, Lines(a), add=add) for part, (_, a) in zip(incoming, targets, strict=True)
        ]
        return [*packs, *self._exchange("ghost_grid", outgoing, incoming), *unpacks]

    def _parts(
        self, name: str, grid: Handle, shapes: Sequence[tuple[int, tuple[int, ...]]], bits: int
    ) -> list[wire.Piece]:
        """Return the parts of a message between grids.

        One array serves both ways: its size allows for as many components as the grid has.
        """
        if name not in self._buffers:
            nbytes = sum(wire.nbytes((1, *shape[1:]), bits, self._dtype.itemsize) for _, shape in shapes)
            self._buffers[name] = Buffer(name, nbytes * grid.whole.shape[0], bits, self._dtype)
        return self._buffers[name].parts(shapes)

    def _exchange(self, phase: str, out: list[wire.Piece], targets: list[wire.Piece]) -> list[Call]:
        """Return the call that sends parts by rank and receives others; the parts of each rank are contiguous."""
        if not (out or targets):
            return []
        function = partial(self._carry, phase, _by_rank(out), _by_rank(targets))
        reads, writes = ([parts[0].whole] if parts else [] for parts in (out, targets))
        return [Call(phase, function, reads, writes, lane="far", capturable=False)]

    def _carry(
        self, phase: str, send: dict[int, slice], receive: dict[int, slice], context: Context, *arrays: Array
    ) -> None:
        """Send parts of the first array, receive parts of the last, and work on the near field meanwhile."""
        outgoing, incoming = (
            {q: a[part] for q, part in parts.items()} for a, parts in ((arrays[0], send), (arrays[-1], receive))
        )
        messages = self._comm.exchange(outgoing, incoming, phase)
        if self.meanwhile is None:
            messages.finish()
        else:
            self.meanwhile.until(messages, phase)

    # Modes ------------------------------------------------------------------------------------------------------------
    def planes(self, components: int, dtype: str) -> tuple[Handle, tuple[int, int, int]]:
        """Return a grid of the lines that belong to this rank's modes, and its numbers of points."""
        _, n1, n2 = brick.rows(self._p)
        points = (self._points, 1 if self.single else n1, n2 + n2 % 2)
        return state("lines of modes", (components, *points), dtype, zero=False), points

    def there(self, box: Handle, planes: Handle | None) -> list[Step | Call]:
        """Return the steps that send lines to the ranks of their modes."""
        out, incoming = self._others(box, planes)
        packs = [wire.pack("exchange", self._lines_of(part.rank, box), part) for part in out]
        unpacks = [wire.unpack("exchange", part, self._own_lines(planes, part.rank)) for part in incoming]
        return [*packs, *self._exchange("exchange", out, incoming), *self._stay("there", box, planes), *unpacks]

    def back(self, planes: Handle | None, box: Handle) -> list[Step | Call]:
        """Return the steps that send lines back."""
        incoming, out = self._others(box, planes)
        packs = [wire.pack("exchange", self._own_lines(planes, part.rank), part) for part in out]
        unpacks = [wire.unpack("exchange", part, self._lines_of(part.rank, box)) for part in incoming]
        return [*packs, *self._exchange("exchange", out, incoming), *self._stay("back", box, planes), *unpacks]

    def _stay(self, way: str, box: Handle, planes: Handle | None) -> list[Step]:
        """Return the step between this rank's brick and the lines of its own modes."""
        if planes is None:
            return []
        rank = self._comm.rank
        own_lines, lines = self._own_lines(planes, rank), self._lines_of(rank, box)
        return [wire.copy("exchange", *((lines, own_lines) if way == "there" else (own_lines, lines)))]

    def _others(self, box: Handle, planes: Handle | None) -> tuple[list[wire.Piece], list[wire.Piece]]:
        """Return messages for this brick's lines of others' modes, and for others' lines of its modes."""
        rank, components = self._comm.rank, len(box)
        counts = self.division.lines
        shapes = [(q, (components, n, *self._across(rank))) for q, n in enumerate(counts) if q != rank and n]
        peers = [q for q in range(self.division.size) if q != rank and planes is not None]
        home = [(q, (components, counts[rank], *self._across(q))) for q in peers]
        outgoing = self._parts("lines of others", box, shapes, self._bits)
        return outgoing, self._parts("lines from others", box, home, self._bits)

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
        block, box = self.division.bricks[q], self._meshes[q].box
        y, z = (slice(block.first[axis], block.first[axis] + box[axis]) for axis in (1, 2))
        part = planes[:, :, :, z] if self.single else planes[:, :, y, z]
        return Lines(part, self._places * part.shape[2])

    @cached_property
    def _places(self) -> np.ndarray:
        """Return the places of the lines of this rank's modes, and of their images."""
        places = np.array([self.modes.place[m] for m in self.division.modes[self._comm.rank].tolist()])
        return np.concatenate([places, self._points - places[places > 0]])

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
    rows = comm.allgather([float(v) for v in values])
    return xp.asarray([math.fsum(column) for column in zip(*rows, strict=True)])


def _by_rank(parts: list[wire.Piece]) -> dict[int, slice]:
    """Return the range of each rank in a message of contiguous parts, sorted by rank."""
    ranges: dict[int, slice] = {}
    for part in parts:
        ranges[part.rank] = slice(ranges[part.rank].start if part.rank in ranges else part.first, part.end)
    return ranges
