"""Passes over the points of one level of a tree: bounds of boxes, and a stable sort by child, all boxes at once.

A level's boxes are cut into pieces of points; a team takes one piece.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from parki import engine
from parki.arrays import Array, to_host
from parki.engine import RangePolicy, Space, TeamPolicy, Wanted, array_module

HOST_PIECE = 1 << 14  # points of a piece, at most: a team's launch costs less, and counts fit in 16 bits
DEVICE_PIECE = 1 << 12  # points of a piece on a device, at most: it has more multiprocessors than a host has cores
PIECES = ("bounds", "count", "place", "copy")  # workunits of a piece of points
FIRST = ("count", "place")  # workunits of the first pass, which reads the caller's points
MOST_POINTS = 2**31 - 1  # points of a tree, at most: places are int32
SHIFTS = np.arange(0, 64, 16)  # bits of shift for the four counts in an integer

Bounds = tuple[NDArray[np.float64], NDArray[np.float64]]  # low and high, (…, 3)


@dataclass(frozen=True)
class Counted:
    """Numbers of points of R ranges by child.

    Attributes
    ----------
    piece : array (P, 3)
        First place, number of places and range of each piece.
    count : array (P, 8)
        Points of each piece by child.
    total : array (R, 8)
        Points of each range by child, in all processes.
    begin, end : arrays (R, 8)
        Places begin … end − 1 where the points of each child belong, in this process.
    """

    piece: NDArray[np.int32]
    count: NDArray[np.int32]
    total: NDArray[np.int32]
    begin: NDArray[np.int32]
    end: NDArray[np.int32]

    def only(self, mask: NDArray[np.bool_]) -> "Counted":
        """Return the ranges with `mask` (R,) set."""
        rows, number = mask[self.piece[:, 2]], np.cumsum(mask, dtype=np.int32) - 1
        piece = self.piece[rows]
        piece[:, 2] = number[piece[:, 2]]
        return Counted(piece, self.count[rows], self.total[mask], self.begin[mask], self.end[mask])


@lru_cache(maxsize=16)
def workunits(real: str, space: Space, bounds: bool) -> dict[str, engine.Workunit]:
    """Return every workunit of passes in a space by its name; with `bounds`, `Passes.place` also computes boxes."""
    slots = {"place": {"AT_ONCE": space.pick(False, True), "BOUNDS": bounds}}
    units = {name: engine.kernel("trees", f"piece_{name}", real=real, **slots.get(name, {})) for name in PIECES}
    return units | {"columns": engine.kernel("trees", "unpack", real=real)}


def launches(units: Mapping[str, engine.Workunit]) -> list[Wanted]:
    """Return workunits of passes with the layouts of their views: the caller's points are records, too, in columns."""
    defaults = [(w, w.default_layouts(), None) for w in units.values()]
    first = [(units[name], {**units[name].default_layouts(), "record": "F"}, None) for name in FIRST]
    return defaults + first


def check_points(name: str, x: Array) -> None:
    """Raise ValueError unless x is (3, N), float32 or float64, and not too long."""
    if x.ndim != 2 or x.shape[0] != 3 or x.dtype not in (np.float32, np.float64) or x.shape[1] > MOST_POINTS:
        array = f"{name} has shape {x.shape} and dtype {x.dtype}"
        raise ValueError(f"{array}; expected (3, N), N at most {MOST_POINTS}, float32 or float64.")


def check_leaf_size(leaf_size: int) -> None:
    """Raise ValueError unless leaf_size is a positive integer."""
    if isinstance(leaf_size, bool) or not isinstance(leaf_size, int | np.integer) or leaf_size < 1:
        raise ValueError(f"leaf_size is {leaf_size!r}; expected an integer of at least 1.")


class Passes:
    """Points of this process, in one of two pairs of arrays, and the launches that move them between the pairs."""

    def __init__(self, x: Array, space: Space) -> None:
        self.n, self.space, self.real, self.xp = x.shape[1], space, x.dtype, array_module(space)
        self.size = space.pick(HOST_PIECE, DEVICE_PIECE)
        self.x = self.xp.ascontiguousarray(x)
        self.now = self.x.T, self.xp.arange(self.n, dtype=np.int32)
        self.spare: tuple[Array, Array] | None = None
        self.code = self.xp.empty(self.n, np.uint8)
        self.rounds = 0
        self.done: list[tuple[Array, Array, int]] = []  # ranges of leaves, and the round when they were left
        self.unmoved: list[Array] = []  # places of leaves before the first round

    @property
    def n_all(self) -> int:
        """Return the number of points in all processes: all points are here."""
        return self.n

    def _launch(self, name: str, piece: Array, *, bounds: bool = True, **args: Array) -> None:
        kernel = workunits(self.real.name, self.space, bounds)[name]
        engine.parallel_for(TeamPolicy(self.space, len(piece)), kernel, piece=piece, **args)

    def bounds(self, begin: Array, end: Array) -> Bounds:
        """Return the minimal boxes of ranges; a range without points has a box from infinity to minus infinity."""
        piece = _cut(begin, end, self.size)
        boxes = np.full((len(begin), 6), np.inf)
        if len(piece):
            bound = self.xp.empty((len(piece), 6), self.real)
            self._launch("bounds", self.xp.asarray(piece), x=self.now[0].T, bound=bound)
            ranges, first = _firsts(piece)
            boxes[ranges] = np.minimum.reduceat(to_host(bound), first, axis=0)
        return as_box(boxes)

    def count(self, begin: Array, end: Array, middle: Array) -> Counted:
        """Find the child of every point of R ranges, cut at `middle` (R, 3); `place` comes before the next count."""
        piece, total = _cut(begin, end, self.size), np.zeros((len(begin), 8), np.int32)
        count = np.zeros((0, 8), np.int32)
        if len(piece):
            words = self.xp.empty((len(piece), 2), np.int64)
            args = {"middle": self.xp.asarray(middle), "code": self.code, "count": words}
            self._launch("count", self.xp.asarray(piece), record=self.now[0], **args)
            count = (to_host(words)[:, :, None] >> SHIFTS & 0xFFFF).reshape(-1, 8).astype(np.int32)
            ranges, first = _firsts(piece)
            total[ranges] = np.add.reduceat(count, first, axis=0, dtype=np.int32)
        ends = begin[:, None] + np.cumsum(total, axis=1, dtype=np.int32)
        return Counted(piece, count, total, ends - total, ends)

    def place(self, counts: Counted, *, bounds: bool) -> Bounds | None:
        """Sort the points of ranges by child; return the minimal boxes of the children (R, 8, 3) if `bounds`."""
        piece, count = counts.piece, counts.count
        boxes = np.full((len(counts.total), 8, 6), np.inf) if bounds else None
        if len(piece):
            ranges, first = _firsts(piece)
            offset = np.cumsum(count, axis=0, dtype=np.int32) - count
            offset -= np.repeat(offset[first], np.diff(first, append=len(piece)), axis=0)
            start = counts.begin[piece[:, 2]] + offset

            record, order = self.spare or (self.xp.empty((self.n, 3), self.real), self.xp.empty(self.n, np.int32))
            bound = self.xp.empty((len(piece) if bounds else 0, 8, 6), self.real)
            args = {"at": self.xp.asarray(start), "count": self.xp.asarray(count), "code": self.code, "bound": bound}
            args |= {"record": self.now[0], "order": self.now[1], "out": record.reshape(-1), "order_out": order}
            self._launch("place", self.xp.asarray(piece), bounds=bounds, **args)
            self.spare = self.now if self.rounds else None  # the first round's arrays are the caller's
            self.now = record, order
            self.rounds += 1
            if boxes is not None:
                bound = to_host(bound)
                bound[count == 0] = np.inf
                boxes[ranges] = np.minimum.reduceat(bound, first, axis=0)
        return None if boxes is None else as_box(boxes)

    def finish(self, begin: Array, end: Array) -> None:
        """Record ranges whose points do not move any more."""
        if not len(begin):
            return
        if self.rounds:
            self.done.append((begin, end, self.rounds))
        else:
            self.unmoved += [np.arange(first, last, dtype=np.int32) for first, last in zip(begin, end, strict=True)]

    def result(self) -> tuple[Array, Array]:
        """Return the sorted points and their order."""
        if self.rounds == 0:
            return self.x.copy(), self.now[1]
        spare = self.spare or (self.xp.empty((self.n, 3), self.real), self.xp.empty(self.n, np.int32))
        even_ranges, odd_ranges = [], []
        for begin, end, rounds in self.done:
            (odd_ranges if (self.rounds - rounds) % 2 else even_ranges).append((begin, end))
        source, target, ranges = self.now, spare, even_ranges
        if sum(int((end - begin).sum()) for begin, end in even_ranges) >= self.n // 2:
            source, target, ranges = spare, self.now, odd_ranges
        if ranges:
            piece = _cut(*(np.concatenate(part) for part in zip(*ranges, strict=True)), self.size)
            args = {"record": source[0], "order": source[1], "out": target[0], "order_out": target[1]}
            self._launch("copy", self.xp.asarray(piece), **args)
        if self.unmoved:
            index = self.xp.asarray(np.concatenate(self.unmoved))
            target[0][index], target[1][index] = self.x.T[index], index
        points = source[0].reshape(3, self.n)  # its records are not needed any more
        unit = workunits(self.real.name, self.space, False)["columns"]
        engine.parallel_for(RangePolicy(self.space, self.n), unit, record=target[0], x=points)
        return points, target[1]


def as_box(bound: Array) -> Bounds:
    """Return low and high from bounds (…, 6) as workunits write them."""
    bound = bound.astype(np.float64)
    return np.ascontiguousarray(bound[..., :3]), -bound[..., 3:]


def _cut(begin: Array, end: Array, size: int) -> NDArray[np.int32]:
    """Cut ranges into pieces (P, 3): first place, number of places, range."""
    begin, count = begin.astype(np.int64), (end - begin).astype(np.int64)
    cuts = -(-count // size)
    owner = np.repeat(np.arange(len(begin)), cuts)
    offset = (np.arange(len(owner)) - (np.cumsum(cuts) - cuts)[owner]) * size
    pieces = np.stack([begin[owner] + offset, np.minimum(count[owner] - offset, size), owner], axis=1)
    return np.ascontiguousarray(pieces, np.int32)


def _firsts(piece: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the ranges that have pieces, and the first piece of each."""
    first = np.flatnonzero(np.diff(piece[:, 2], prepend=-1))
    return piece[first, 2], first
