"""Cuts of lists of steps into tasks: runs of items of one step, or several whole steps, with the data they touch."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod

import numpy as np
from numpy.typing import NDArray

from parki.arrays import spread
from parki.engine.steps import Cut, Handle, RowByRow, Step, Touched
from parki.tasks.graph import Graph, IntLists

JOIN = "JOIN"  # kind of tasks without work, between steps that divide one array into different blocks
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Regions:
    """Bytes of data: each datum has `rows` runs of `width` bytes, `pitch` bytes apart, from `first` on.

    Attributes
    ----------
    arrays : sequence of Handle
        Whole arrays.
    array : array (data,)
        Number of the array of each datum.
    first, rows, width, pitch : arrays (data,)
    """

    arrays: Sequence[Handle]
    array: Ints
    first: Ints
    rows: Ints
    width: Ints
    pitch: Ints

    @property
    def nbytes(self) -> NDArray[np.float64]:
        """Bytes of each datum."""
        return (self.rows * self.width).astype(np.float64)


@dataclass(frozen=True, eq=False)
class CutSteps:
    """Tasks of a list of steps.

    Attributes
    ----------
    graph : Graph
    regions : Regions
        Bytes of the graph's data.
    begin : array (tasks + 1,) of int32
        First call of each task.
    step, first, count : arrays (calls,) of int32
        Number of the step of each call, its first item and the number of its items.
    together : array (tasks,) of bool
        Tasks that should all run on one device: see `Cut.together`.
    """

    graph: Graph
    regions: Regions
    begin: NDArray[np.int32]
    step: NDArray[np.int32]
    first: NDArray[np.int32]
    count: NDArray[np.int32]
    together: NDArray[np.bool_]


def cut(steps: Sequence[Step]) -> CutSteps:
    """Cut steps into tasks.

    Parameters
    ----------
    steps : sequence of Step
        Steps in an order in which they may run one after another.

    Raises
    ------
    ValueError
        If a step has no cut.
    """
    cutting = _Cutting()
    for _, members in groupby(enumerate(steps), key=lambda item: id(item[1].cut)):
        numbers, group = zip(*members, strict=True)
        if group[0].cut is None:
            raise ValueError(f"{group[0].unit.label} in phase {group[0].phase!r} has no cut; expected one of each step")
        cutting.add(numbers, group, group[0].cut)
    return cutting.finished()


class _Cutting:
    """Tasks and calls that are collected so far."""

    def __init__(self) -> None:
        self.kinds: dict[str, int] = {}
        self.seen: dict[int, tuple[Touched | RowByRow, bool]] = {}  # by array: its last division
        self.first_datum: dict[tuple[int, int], int] = {}  # by array and division
        self.arrays: dict[int, tuple[int, Handle]] = {}  # numbers of whole arrays
        self.regions: dict[tuple[int, int], NDArray[np.int64]] = {}  # by array and division, a row for each datum
        self.data = self.tasks = 0
        self.kept: list[object] = []  # keeps objects whose ids are keys
        self.columns: dict[str, list[NDArray]] = {
            name: []
            for name in ("kind", "group", "work", "items", "place", "calls", "step", "first", "count", "together")
        }
        self.touched: dict[str, list[tuple[Ints, Ints]]] = {"reads": [], "writes": []}
        self.groups: dict[str, int] = {}

    def add(self, numbers: Sequence[int], steps: Sequence[Step], cut: Cut) -> None:
        """Add the tasks of steps that share a cut."""
        self._join(cut)
        starts, units = _starts(steps, cut)
        firsts = starts[:, None] * cut.per if cut.along is not None else np.zeros((1, len(steps)), np.int64)
        ends = np.append(firsts[1:], [[step.items for step in steps]], axis=0)
        for way in ("reads", "writes"):
            for access in getattr(cut, way):
                self.touched[way].append(self._data(access, starts, units))
        work = np.broadcast_to(np.asarray(cut.work, float), (units,)) if cut.along is not None else [float(cut.work)]
        items, places = (ends - firsts).sum(axis=1), _places(cut, len(starts))
        self._tasks(cut.kind, np.add.reduceat(work, starts), items, places, cut.together)
        self._append("calls", np.full(len(starts), len(steps)))
        self._append("step", np.tile(numbers, len(starts)))
        self._append("first", firsts.ravel())
        self._append("count", (ends - firsts).ravel())
        self.tasks += len(starts)

    def finished(self) -> CutSteps:
        """Return all tasks."""
        column = {name: np.concatenate(parts) for name, parts in self.columns.items()}
        n = self.tasks
        reads, writes = (
            IntLists.of(*(np.concatenate([pair[k] for pair in pairs] or [np.zeros(0, np.int64)]) for k in (0, 1)), n)
            for pairs in self.touched.values()
        )
        rows = np.concatenate([np.zeros((0, 5), np.int64), *self.regions.values()])
        regions = Regions([a for _, a in self.arrays.values()], *rows.T)
        graph = Graph(
            list(self.kinds), column["kind"].astype(np.uint8), column["group"].astype(np.int32), column["work"],
            column["items"], reads, writes, regions.nbytes, column["place"],
        )  # fmt: skip
        begin = np.concatenate([[0], np.cumsum(column["calls"])]).astype(np.int32)
        calls = (column[name].astype(np.int32) for name in ("step", "first", "count"))
        return CutSteps(graph, regions, begin, *calls, column["together"])

    def _tasks(self, kind: str, work: NDArray, items: NDArray, place: NDArray, is_joint: bool) -> None:
        number, first = self.kinds.setdefault(kind, len(self.kinds)), self.groups.get(kind, 0)
        self.groups[kind] = first + len(work)
        self._append("kind", np.full(len(work), number))
        self._append("group", first + np.arange(len(work)))
        self._append("work", work)
        self._append("items", items)
        self._append("place", place)
        self._append("together", np.full(len(work), is_joint))

    def _append(self, name: str, values: NDArray) -> None:
        self.columns[name].append(np.asarray(values))

    def _data(self, access: Touched | RowByRow, starts: Ints, units: int) -> tuple[Ints, Ints]:
        """Return the tasks and the data of all pairs of a task and a datum that the task touches."""
        if isinstance(access, RowByRow):
            low, high = (access.first + edge for edge in (starts, np.append(starts[1:], units)))
            owner = np.arange(len(starts))
        else:
            low, high = access.low, access.high
            unit = np.arange(units) if access.begin is None else np.repeat(np.arange(units), np.diff(access.begin))
            owner = np.searchsorted(starts, unit, side="right") - 1
        mask = high > low
        low, high = (access.division.block(rows) for rows in (low[mask], high[mask] - 1))
        count = high - low + 1
        block = spread(low, count)
        task = self.tasks + np.repeat(owner[mask], count)
        task, block = np.divmod(np.unique(task * len(access.division) + block), len(access.division))
        return task, block + self._first(access)

    def _first(self, access: Touched | RowByRow) -> int:
        """Return the number of the first datum of an array in a division."""
        array, division = access.array.whole, access.division
        key = id(array), id(division)
        if key not in self.first_datum:
            self.first_datum[key] = self.data
            self.data += len(division)
            self.kept += [array, division]
            number, _ = self.arrays.setdefault(id(array), (len(self.arrays), array))
            self.regions[key] = _regions(number, access)
        elif access.axis:  # views of one memory differ in the rows before the axis
            region = self.regions[key]
            region[:, 2] = np.maximum(region[:, 2], prod(access.array.shape[: access.axis]))
        return self.first_datum[key]

    def _join(self, cut: Cut) -> None:
        """Add a task that waits for all tasks that touched an array, if the next steps divide the array differently.

        The task writes all blocks of both divisions, and reads the old blocks if the next steps read the array.
        """
        matter = {id(access.array.whole) for access in cut.reads}
        for access in (*cut.reads, *cut.writes):
            array, division = access.array.whole, access.division
            previous_access, is_joint = self.seen.setdefault(id(array), (access, cut.together))
            if previous_access.division is division:
                continue
            self.seen[id(array)] = access, cut.together
            for member in (previous_access, access):
                data = self._first(member) + np.arange(len(member.division))
                self.touched["writes"].append((np.full(len(data), self.tasks), data))
                if member is previous_access and id(array) in matter:
                    self.touched["reads"].append((np.full(len(data), self.tasks), data))
            self._tasks(JOIN, np.zeros(1), np.zeros(1), np.zeros(1), is_joint and cut.together)
            self._append("calls", np.zeros(1, np.int64))
            self.tasks += 1


def _regions(number: int, access: Touched | RowByRow) -> NDArray[np.int64]:
    """Return a row (array, first, rows, width, pitch) for each block."""
    a, axis, bounds = access.array, access.axis, access.division.bounds
    inner = prod(a.shape[axis + 1 :]) * a.dtype.itemsize
    regions = np.empty((len(access.division), 5), np.int64)
    regions[:, 0], regions[:, 1] = number, a.extent[0] + bounds[:-1] * inner
    regions[:, 2], regions[:, 3] = prod(a.shape[:axis]), np.diff(bounds) * inner
    regions[:, 4] = a.shape[axis] * inner
    return regions


def _starts(steps: Sequence[Step], cut: Cut) -> tuple[Ints, int]:
    """Return the first unit of each task, and the number of units."""
    if cut.along is None:
        return np.zeros(1, np.int64), 1
    if len(steps) > 1:
        raise ValueError(f"{len(steps)} steps have one cut along rows ({cut.kind}); expected one")
    units, bounds = -(-steps[0].items // cut.per), cut.along.division.bounds
    if isinstance(cut.along, RowByRow):
        inner = bounds - cut.along.first
        return np.concatenate([[0], inner[(inner > 0) & (inner < units)]]), units
    return np.flatnonzero(np.diff(cut.along.division.block(cut.along.low), prepend=-1)), units


def _places(cut: Cut, count: int) -> NDArray[np.float64]:
    """Return the place of each task in the order of rows, from 0 to 1."""
    if cut.along is not None:
        return (np.arange(count) + 0.5) / count
    rows = [
        (access.low.mean(), access.division.bounds)
        for access in cut.writes
        if isinstance(access, Touched) and len(access.low)
    ]
    return np.array([(place - bounds[0]) / max(bounds[-1] - bounds[0], 1) for place, bounds in rows[:1]] or [0.5])
