"""Cuts of steps into tasks: the rows of arrays that items touch, and the blocks that rows are divided into."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from parki.engine.steps.handles import Handle

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """Blocks of rows: block b has the rows ``bounds[b]`` … ``bounds[b + 1] - 1``."""

    bounds: Ints

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def block(self, rows: ArrayLike) -> Ints:
        """Return the block of each row."""
        return np.searchsorted(self.bounds, rows, side="right") - 1


@dataclass(frozen=True, eq=False)
class RowByRow:
    """Rows of an array that units of a step touch: unit k the row `first` + k along `axis`."""

    array: Handle
    division: RowBlocks
    first: int = 0
    axis: int = 0


@dataclass(frozen=True, eq=False)
class Touched:
    """Rows of an array that units of a step touch; a unit is an item, or several that follow each other (`Cut.per`).

    Attributes
    ----------
    array : Handle
        An array without gaps whose rows are counted; it may be a part of its `whole`, as a view of memory is.
    division : RowBlocks
        Blocks of the rows; steps that touch the same blocks give the same object.
    low, high : arrays (ranges,)
        First row and end of rows of each range.
    begin : array (units + 1,), optional
        Place of each unit's first range among the ranges; by default a unit has one range.
    axis : int
        Axis of the array along which rows count.
    """

    array: Handle
    division: RowBlocks
    low: Ints
    high: Ints
    begin: Ints | None = None
    axis: int = 0

    @classmethod
    def each(
        cls, array: Handle, division: RowBlocks, first: ArrayLike, count: ArrayLike = 1, axis: int = 0
    ) -> "Touched":
        """Return touched rows: for each unit `count` rows from `first` on."""
        first = np.atleast_1d(np.asarray(first, np.int64))
        return cls(array, division, first, first + count, axis=axis)

    @classmethod
    def listed(cls, array: Handle, division: RowBlocks, begin: ArrayLike, rows: ArrayLike) -> "Touched":
        """Return touched rows: for each unit the rows that are listed from `begin` on."""
        rows = np.asarray(rows, np.int64)
        return cls(array, division, rows, rows + 1, np.asarray(begin, np.int64))


@dataclass(frozen=True, eq=False)
class Cut:
    """Cut of a step into tasks.

    Attributes
    ----------
    kind : str
        Name of the tasks, such as ``"M2L"``.
    work : float or array (units,)
        Work of each unit, in the measure of the kind; steps that form one task together give the work of all units.
    reads, writes : sequence of Touched or RowByRow
        Rows whose contents matter, and rows that change.  Rows that the step adds to are in both, and
        so are rows of blocks that the step changes in part; blocks that it writes whole are in `writes` alone.
    along : Touched or RowByRow, optional
        The step is cut at the ends of the blocks of these rows, which have one ascending range per unit; by default the
        step is one task, together with neighbours that have the same cut.
    per : int
        Items per unit.
    together : bool
        Whether a device beside cores should do all tasks of such cuts: their arrays are too large to be copied.
    """

    kind: str
    work: float | NDArray[np.float64] = 1.0
    reads: Sequence[Touched | RowByRow] = ()
    writes: Sequence[Touched | RowByRow] = ()
    along: Touched | RowByRow | None = None
    per: int = 1
    together: bool = False
