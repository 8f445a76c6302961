"""Lists V by matrix products: what sources make for all their targets, and what targets take of it.

On a level, and for as many translations at a time as memory is given for, each group of sources makes compressed values
for all boxes that may take them by one product; then each group of targets collects its own and expands them by one
product.  Sums over a target's sources are part of the product: nothing is added in an order that depends on threads.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from parki import engine
from parki.arrays import Array
from parki.engine import TeamPolicy, spaces
from parki.engine.spaces import Space
from parki.fmm import chebyshev_m2l, groups, kinds
from parki.fmm.chebyshev_tables import Action, symmetry
from parki.fmm.groups import Groups
from parki.pairs import Pair
from parki.trees.octlists import OctLists
from parki.trees.octree import OctNodes

COMPRESSED = 64 << 20  # bytes of compressed values of a level at one time
COLUMNS = 512  # of a target's compressed values at one time, about: what is collected is soon used
TEAM = (16, 8)  # translations, and lanes for the columns of one


@dataclass(frozen=True)
class _Level:
    """Arrays of the translations on one level."""

    sources: Groups
    targets: Groups
    places: Array  # of targets, by row
    row: Array  # of sources, by place
    left: Array
    right: Array
    column: NDArray[np.int32]
    parts: list[tuple[int, int]]  # first and end of the translations done at one time
    scale_t: Array
    scale_s: Array


class Translations:
    """Translations of all lists V of a tree's nodes; other arguments are as in `interpolation.Interpolation`."""

    def __init__(
        self, nodes: OctNodes, lists: OctLists, pair: Pair, order: int, space: Space, *, real: np.dtype, far: np.dtype,
        eps: float, symmetric: bool, group: int,
    ) -> None:  # fmt: skip
        self.pair, self.order, self.space, self.real, self.far = pair, order, space, real, far
        self.xp = spaces.array_module(space)
        self.turning = symmetry(pair) if symmetric else None
        self._levels: list[_Level] = []
        self._tables: dict[float, tuple[Array, Array, Array]] = {}
        self.operators: dict[float, int] = {}
        if not len(lists.v_t):
            return
        octets = int(nodes.octet_begin[-1])
        self.near = self.xp.asarray(groups.neighbours(lists.v_t, lists.v_s, lists.v_direction, octets))
        self.ways = self.xp.asarray(chebyshev_m2l.ways())
        self.unit = engine.kernel("interchange", "collect", real=far)
        exponents = kinds.exponents(pair)
        self._frames = None
        if self.turning is not None:
            of = (self.turning[1], False), (self.turning[0], True)
            self._frames = [[self._on_space(a) for a in chebyshev_m2l.frame(c, order, last)] for c, last in of]
        in_s, in_t = np.zeros(octets, bool), np.zeros(octets, bool)
        in_s[lists.v_s], in_t[lists.v_t] = True, True
        for level in range(2, len(nodes.level_begin) - 1):
            box = np.arange(*nodes.level_begin[level : level + 2], dtype=np.int32)
            octet = nodes.slot[box] // 8
            s = box[in_s[octet] & (nodes.sources.end[box] > nodes.sources.begin[box])]
            t = box[in_t[octet] & (nodes.targets.end[box] > nodes.targets.begin[box])]
            if len(s) and len(t):
                self._add(nodes, s, t, octets, float(nodes.half[box[0]]), exponents, eps, group)

    def _on_space(self, action: Action) -> Action:
        return Action(
            self.xp.asarray(action.place), None if action.sign is None else self.xp.asarray(action.sign, self.far)
        )

    def _add(
        self, nodes: OctNodes, s: NDArray[np.int32], t: NDArray[np.int32], octets: int, half: float,
        exponents: tuple[tuple[float, ...], tuple[float, ...]] | None, eps: float, group: int,
    ) -> None:  # fmt: skip
        xp, m3 = self.xp, self.order**3
        size = half if exponents is None else 1.0
        if size not in self._tables:
            made = chebyshev_m2l.tables(self.pair, self.order, size, eps, self.turning is not None)
            self._tables[size] = xp.asarray(made.left, self.far), xp.asarray(made.right, self.far), made.column
            self.operators[size] = made.operators
        left, right, column = self._tables[size]
        of_s, of_t = (groups.cut(box, nodes.octant[box], group) for box in (s, t))
        a, b = exponents or (np.zeros(self.pair.result), np.zeros(self.pair.dens))
        scale_t = xp.asarray(np.repeat(half ** -np.array(a), m3), self.far)
        scale_s = xp.asarray(np.tile(half ** -np.array(b), m3), self.far)
        row = xp.asarray(groups.rows_by_place(of_s, nodes.slot, octets))
        most = max(min(COLUMNS, COMPRESSED // (len(s) * self.far.itemsize)), 1)
        self._levels.append(
            _Level(of_s, of_t, xp.asarray(nodes.slot[of_t.boxes].astype(np.int32)), row, left, right, column,
                   _parts(column, most), scale_t, scale_s)
        )  # fmt: skip

    @property
    def memory(self) -> int:
        """Bytes of tables and of what is made while they are used."""
        tables = sum(a.nbytes + b.nbytes for a, b, _ in self._tables.values())
        work = [
            self.far.itemsize * (len(one.sources.boxes) * (one.right.shape[2] + _widest(one))
                                 + len(one.targets.boxes) * one.left.shape[2])
            for one in self._levels
        ]  # fmt: skip
        return tables + max(work, default=0)

    def run(self, charge: Array, phi: Array) -> None:
        """Add to potentials phi (result, boxes × order³) those of charges (boxes, order³ × dens)."""
        if self.space.kind == "device":
            self._run(charge, phi)
            return
        with threadpool_limits(spaces.workers(self.space), "blas"):
            self._run(charge, phi)

    def _run(self, charge: Array, phi: Array) -> None:
        for one in self._levels:
            self._level(one, charge, phi)

    def _level(self, one: _Level, charge: Array, phi: Array) -> None:
        xp, far = self.xp, self.far
        given = charge[xp.asarray(one.sources.boxes)].astype(far, copy=False)
        given *= one.scale_s
        self._reframe(given, one.sources, 0)
        made = xp.zeros((len(one.targets.boxes), one.left.shape[2]), far)
        widest = _widest(one)
        compressed = xp.empty((len(given), widest), far)
        collected = xp.empty((int(np.diff(one.targets.begin).max()), widest), far)
        column = xp.asarray(one.column)
        for first, end in one.parts:
            columns = slice(int(one.column[first]), int(one.column[end]))
            width = columns.stop - columns.start
            if not width:
                continue
            to = compressed[:, :width]
            for rows, octants in one.sources.slices():
                for octant, at in self._pieces(rows, octants, one.right):
                    xp.matmul(given[at], one.right[octant, columns].T, out=to[at])
            for rows, octants in one.targets.slices():
                taken = collected[: rows.stop - rows.start, :width]
                league = TeamPolicy(self.space, len(taken), *(() if self.space.kind == "host" else TEAM))
                engine.parallel_for(
                    league, self.unit, target=one.places[rows], near=self.near, way=self.ways, row=one.row,
                    column=column, first=first, count=end - first, given=to, made=taken,
                )  # fmt: skip
                for octant, at in self._pieces(rows, octants, one.left):
                    part = slice(at.start - rows.start, at.stop - rows.start)
                    made[at] += taken[part] @ one.left[octant, columns]
        self._reframe(made, one.targets, 1)
        made *= one.scale_t
        m3 = self.order**3
        box = xp.asarray(one.targets.boxes)
        phi.reshape(self.pair.result, -1, m3)[:, box] += made.reshape(-1, self.pair.result, m3).transpose(1, 0, 2)

    @staticmethod
    def _pieces(rows: slice, octants: list[tuple[int, slice]], table: Array) -> list[tuple[int, slice]]:
        """Rows that share a table, with its place: all of a group, or those of each octant."""
        return [(0, rows)] if len(table) == 1 else octants

    def _reframe(self, values: Array, of: Groups, side: int) -> None:
        """Turn values into the frames of their boxes' octants, or back."""
        if self._frames is not None:
            for _, octants in of.slices():
                for octant, at in octants:
                    if octant:
                        values[at] = self._frames[side][octant](values[at])


def _widest(one: _Level) -> int:
    return max(int(one.column[end] - one.column[first]) for first, end in one.parts)


def _parts(column: NDArray[np.int32], most: int) -> list[tuple[int, int]]:
    """Translations in pieces of at most `most` columns, or of one."""
    parts, first = [], 0
    while first < len(column) - 1:
        end = int(np.searchsorted(column, column[first] + most, side="right")) - 1
        end = max(min(end, len(column) - 1), first + 1)
        parts.append((first, end))
        first = end
    return parts
