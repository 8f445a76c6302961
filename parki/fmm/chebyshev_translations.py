"""Lists V by matrix products: compressed values of sources for all their targets, and sums of them at targets.

On a level, and for as many translations at a time as memory is given for, each group of sources makes compressed values
for all boxes that may take them by one product; then each group of targets collects its own and expands them by one
product.  Sums over a target's sources are part of the product: nothing is added in an order that depends on threads.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki import engine
from parki.arrays import Array
from parki.engine import TeamPolicy, Workunit
from parki.engine.steps import Call, Context, Handle, constant, scratch
from parki.fmm import chebyshev_m2l, groups, representations
from parki.fmm.chebyshev_tables import Action, symmetry
from parki.fmm.expansion import TOP_LEVEL, table
from parki.fmm.groups import Groups
from parki.pairs import Pair
from parki.trees.octlists import OctLists
from parki.trees.octree import OctNodes

COMPRESSED = 64 << 20  # bytes of compressed values of a level at one time
COLUMNS = 512  # columns of a target's compressed values at one time, about: they are collected and used soon after
TEAM = (16, 8)  # translations, and lanes for the columns of one

Arrays = Callable[[Handle], Array]


def collect(real: np.dtype[Any]) -> Workunit:
    """Return the workunit that collects the compressed values of each target."""
    return engine.kernel("interchange", "collect", real=real)


@dataclass(frozen=True, eq=False)
class LevelTranslations:
    """Translations between the boxes of one level.

    Attributes
    ----------
    sources, targets : Groups
    source_boxes, target_boxes : Handle
        Numbers of their boxes.
    places : Handle
        Of targets, by row.
    row : Handle
        Row of sources, by place.
    left, right, column : Handle
        `chebyshev_m2l.tables`.
    columns : array
        Values of `column`.
    parts : list of (int, int)
        First and end of the translations done at one time.
    target_scale, source_scale : Handle
        Factors of values in the unit box.
    """

    sources: Groups
    targets: Groups
    source_boxes: Handle
    target_boxes: Handle
    places: Handle
    row: Handle
    left: Handle
    right: Handle
    column: Handle
    columns: NDArray[np.int32]
    parts: list[tuple[int, int]]
    target_scale: Handle
    source_scale: Handle

    @property
    def widest(self) -> int:
        """Return the largest number of columns of compressed values at one time."""
        return max(int(self.columns[end] - self.columns[first]) for first, end in self.parts)

    @property
    def handles(self) -> list[Handle]:
        """Return the constants of the level."""
        return [
            self.source_boxes, self.target_boxes, self.places, self.row, self.left, self.right, self.column,
            self.target_scale, self.source_scale,
        ]  # fmt: skip

    @property
    def rooms(self) -> dict[str, tuple[int, int]]:
        """Return the shapes of intermediate values, by name."""
        n_src, n_trg, largest = len(self.sources.boxes), len(self.targets.boxes), np.diff(self.targets.begin).max()
        return {
            "given": (n_src, self.right.shape[2]), "made": (n_trg, self.left.shape[2]),
            "compressed": (n_src, self.widest), "collected": (int(largest), self.widest),
        }  # fmt: skip


class Translations:
    """Translations of all lists V; arguments are those of `parki.fmm.chebyshev_expansion.chebyshev_expansion`.

    Attributes
    ----------
    levels : list of LevelTranslations
    operators : dict
        Number of operators that are decomposed, by half side of the boxes.
    """

    def __init__(
        self, nodes: OctNodes, lists: OctLists, pair: Pair, order: int, *, far: np.dtype[Any], eps: float,
        symmetric: bool, group: int,
    ) -> None:  # fmt: skip
        self.pair, self.order, self.far = pair, order, far
        self.turning = symmetry(pair) if symmetric else None
        self.levels: list[LevelTranslations] = []
        self._tables: dict[float, tuple[Handle, Handle, Handle]] = {}
        self.operators: dict[float, int] = {}
        self._frames: list[list[tuple[Handle, Handle | None]]] | None = None
        if not len(lists.v_t):
            return
        octets = int(nodes.octet_begin[-1])
        self._near = table("near", groups.neighbours(lists.v_t, lists.v_s, lists.v_direction, octets))
        self._ways = constant("ways", chebyshev_m2l.ways())
        exponents = representations.exponents(pair)
        if self.turning is not None:
            of = (self.turning[1], False), (self.turning[0], True)
            self._frames = [[self._frame(a) for a in chebyshev_m2l.frame(c, order, last)] for c, last in of]
        in_s, in_t = np.zeros(octets, bool), np.zeros(octets, bool)
        in_s[lists.v_s], in_t[lists.v_t] = True, True
        for level in range(TOP_LEVEL, len(nodes.level_begin) - 1):
            box = np.arange(*nodes.level_begin[level : level + 2], dtype=np.int32)
            octet = nodes.slot[box] // 8
            s = box[in_s[octet] & (nodes.sources.count[box] > 0)]
            t = box[in_t[octet] & (nodes.targets.end[box] > nodes.targets.begin[box])]
            if len(s) and len(t):
                self._add(nodes, s, t, exponents, eps, group)

    def _frame(self, action: Action) -> tuple[Handle, Handle | None]:
        return table("place", action.place), None if action.sign is None else table("sign", action.sign, self.far)

    def _add(
        self, nodes: OctNodes, s: NDArray[np.int32], t: NDArray[np.int32],
        exponents: tuple[tuple[float, ...], tuple[float, ...]] | None, eps: float, group: int,
    ) -> None:  # fmt: skip
        """Add the level of sources s and targets t."""
        half, m3 = float(nodes.half[s[0]]), self.order**3
        left, right, column = self._tables_of(half if exponents is None else 1.0, eps)
        of_s, of_t = (groups.cut(box, nodes.octant[box], group) for box in (s, t))
        a, b = exponents or (np.zeros(self.pair.result), np.zeros(self.pair.dens))
        row = groups.rows_by_place(of_s, nodes.slot, int(nodes.octet_begin[-1]))
        most = max(min(COLUMNS, COMPRESSED // (len(s) * self.far.itemsize)), 1)
        self.levels.append(
            LevelTranslations(
                sources=of_s,
                targets=of_t,
                source_boxes=table("source_boxes", of_s.boxes),
                target_boxes=table("target_boxes", of_t.boxes),
                places=table("places", nodes.slot[of_t.boxes], np.int32),
                row=table("row", row),
                left=left,
                right=right,
                column=column,
                columns=column.values,
                parts=_parts(column.values, most),
                target_scale=table("target_scale", np.repeat(half ** -np.array(a), m3), self.far),
                source_scale=table("source_scale", np.tile(half ** -np.array(b), m3), self.far),
            )
        )

    def _tables_of(self, size: float, eps: float) -> tuple[Handle, Handle, Handle]:
        """Return the tables of boxes of this half side: to targets, from sources, and columns of translations."""
        if size not in self._tables:
            made = chebyshev_m2l.tables(self.pair, self.order, size, eps, self.turning is not None)
            left, right = table("left", made.left, self.far), table("right", made.right, self.far)
            self._tables[size] = left, right, constant("column", made.column)
            self.operators[size] = made.operators
        return self._tables[size]

    def steps(self, phase: str, charge: Handle, phi: Handle) -> list[Call]:
        """Return calls that add to potentials phi (result, boxes × order³) those of charges (boxes, order³ × dens)."""
        if not self.levels:
            return []
        shapes = [level.rooms for level in self.levels]
        rooms = [scratch(name, (max(math.prod(one[name]) for one in shapes),), self.far) for name in shapes[0]]
        frames = [a for side in self._frames or () for frame in side for a in frame if a is not None]
        constants = [self._near, self._ways, *frames, *(a for level in self.levels for a in level.handles)]
        reads = list(dict.fromkeys([charge, *constants]))
        handles = [*reads, phi, *rooms]

        def run(context: Context, *arrays: Array) -> None:
            of = dict(zip(handles, arrays, strict=True)).__getitem__
            for level, shape in zip(self.levels, shapes, strict=True):
                room = {r.name: of(r)[: math.prod(shape[r.name])].reshape(shape[r.name]) for r in rooms}
                self._run(context, of, level, room, of(charge), of(phi))

        unit = collect(self.far)
        units = [(unit, unit.default_layouts(), math.prod(TEAM))]
        return [Call(phase, run, reads, [phi, *rooms], blas_threads=True, capturable=False, units=units)]

    def _run(
        self, context: Context, of: Arrays, level: LevelTranslations, room: dict[str, Array], charge: Array, phi: Array
    ) -> None:
        """Translate on one level."""
        given, made = room["given"], room["made"]
        given[...] = charge[of(level.source_boxes)]
        given *= of(level.source_scale)
        self._reframe(given, level.sources, of, 0)
        made.fill(0)
        for first, end in level.parts:
            if level.columns[end] > level.columns[first]:
                self._part(context, of, level, room, (first, end))
        self._reframe(made, level.targets, of, 1)
        made *= of(level.target_scale)
        m3 = self.order**3
        values = made.reshape(-1, self.pair.result, m3).transpose(1, 0, 2)
        phi.reshape(self.pair.result, -1, m3)[:, of(level.target_boxes)] += values

    def _part(
        self, context: Context, of: Arrays, level: LevelTranslations, room: dict[str, Array], part: tuple[int, int]
    ) -> None:
        """Compress, collect and expand the values of some translations."""
        (first, end), given, made = part, room["given"], room["made"]
        columns = slice(int(level.columns[first]), int(level.columns[end]))
        width, left, right = columns.stop - columns.start, of(level.left), of(level.right)
        to = room["compressed"][:, :width]
        for rows, octants in level.sources.slices():
            for octant, at in _pieces(rows, octants, right):
                context.xp.matmul(given[at], right[octant, columns].T, out=to[at])
        args = {"near": of(self._near), "way": of(self._ways), "row": of(level.row), "column": of(level.column)}
        args |= {"first": first, "count": end - first, "given": to}
        for rows, octants in level.targets.slices():
            taken = room["collected"][: rows.stop - rows.start, :width]
            league = TeamPolicy(context.space, len(taken), *TEAM)
            engine.parallel_for(league, collect(self.far), target=of(level.places)[rows], made=taken, **args)
            for octant, at in _pieces(rows, octants, left):
                made[at] += taken[at.start - rows.start : at.stop - rows.start] @ left[octant, columns]

    def _reframe(self, values: Array, groups: Groups, of: Arrays, side: int) -> None:
        """Turn values into the frames of their boxes' octants, or back."""
        if self._frames is None:
            return
        frames = [Action(of(place), None if sign is None else of(sign)) for place, sign in self._frames[side]]
        for _, octants in groups.slices():
            for octant, at in octants:
                if octant:
                    values[at] = frames[octant](values[at])


def _pieces(rows: slice, octants: list[tuple[int, slice]], table: Array) -> list[tuple[int, slice]]:
    """Return rows that share a table, with its place: all of a group, or those of each octant."""
    return [(0, rows)] if len(table) == 1 else octants


def _parts(column: NDArray[np.int32], most: int) -> list[tuple[int, int]]:
    """Return translations in pieces of at most `most` columns, or of one."""
    parts, first = [], 0
    while first < len(column) - 1:
        end = int(np.searchsorted(column, column[first] + most, side="right")) - 1
        end = max(min(end, len(column) - 1), first + 1)
        parts.append((first, end))
        first = end
    return parts
