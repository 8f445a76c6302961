"""Graph of tasks as arrays: kinds, work, data read and written, and the order that these accesses require.

Source: E. Agullo et al., "Task-based FMM for heterogeneous architectures", Inria RR-8513 (2014), section 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]
ALIKE = 0.05  # fraction of the longest path: a smaller difference of paths does not change the order


@dataclass(frozen=True, eq=False)
class IntLists:
    """Lists of whole numbers, one after another: list i is ``values[begin[i] : begin[i + 1]]``."""

    begin: Ints
    values: Ints

    @classmethod
    def of(cls, owner: ArrayLike, value: ArrayLike, n: int) -> "IntLists":
        """Return n lists of the values of each owner, each value of a list once, in ascending order."""
        base = int(np.max(value, initial=0)) + 1
        owner, value = np.divmod(np.unique(np.asarray(owner, np.int64) * base + np.asarray(value, np.int64)), base)
        return cls(np.searchsorted(owner, np.arange(n + 1)).astype(np.int32), value.astype(np.int32))

    @property
    def owner(self) -> Ints:
        """Number of the list that holds each value."""
        return np.repeat(np.arange(len(self.begin) - 1, dtype=np.int32), np.diff(self.begin))

    def __getitem__(self, i: int) -> Ints:
        return self.values[self.begin[i] : self.begin[i + 1]]

    def __len__(self) -> int:
        return len(self.begin) - 1

    def lists(self) -> list[list[int]]:
        """Return the lists as Python lists, for loops over single values."""
        begin, values = self.begin.tolist(), self.values.tolist()
        return [values[first:end] for first, end in pairwise(begin)]

    def turned(self, n: int) -> "IntLists":
        """Return n lists: for each value the numbers of the lists that hold this value."""
        return IntLists.of(self.values, self.owner, n)


@dataclass(frozen=True, eq=False)
class Graph:
    """Tasks in an order in which one worker may run them one after another.

    Attributes
    ----------
    kinds : sequence of str
        Names of kinds of tasks.
    kind : array (n,) of uint8
        Number of the kind of each task.
    group : array (n,) of int32
        Number of each task among the tasks of its kind, for names.
    work : array (n,) of float64
        Work of each task, in the unit of its kind.
    items : array (n,) of float64
        Teams or iterations of each task; a device needs many.
    reads, writes : IntLists
        Data of each task; a datum that is read and written is in both.
    nbytes : array (data,) of float64
        Bytes of each datum.
    place : array (n,) of float64
        Place of each task in the order of points, from 0 to 1: neighbouring tasks share data.
    """

    kinds: Sequence[str]
    kind: NDArray[np.uint8]
    group: Ints
    work: Floats
    items: Floats
    reads: IntLists
    writes: IntLists
    nbytes: Floats
    place: Floats
    #: Tasks that each task waits for.
    before: IntLists = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "before", after_data(self.reads, self.writes))

    def __len__(self) -> int:
        return len(self.kind)

    @cached_property
    def after(self) -> IntLists:
        """Tasks that wait for each task."""
        return self.before.turned(len(self))

    @cached_property
    def versions(self) -> Ints:
        """Task that wrote the version of the datum for each read of `reads`; −1 if no task wrote the datum before."""
        accesses = _Accesses.of(self.reads, self.writes)
        writers = np.where(accesses.after_write, accesses.task[accesses.last], -1)
        versions = np.empty(len(accesses.task), np.int32)
        versions[accesses.order] = writers
        return versions[: len(self.reads.values)]

    def name(self, task: int) -> str:
        """Return the name of a task, such as "M2L 12"."""
        return f"{self.kinds[self.kind[task]]} {self.group[task]}"

    def rank(self, seconds: ArrayLike) -> Floats:
        """Return the time of the longest path from the beginning of each task to the end of the graph.

        Parameters
        ----------
        seconds : array (n,)
            Time of each task.
        """
        longest = np.array(seconds, np.float64)
        begin, successors, out = self.after.begin.tolist(), self.after.values.tolist(), longest.tolist()
        for task in range(len(out) - 1, -1, -1):
            followers = successors[begin[task] : begin[task + 1]]
            if followers:
                out[task] += max([out[follower] for follower in followers])
        return np.array(out)

    def turn(self, seconds: ArrayLike) -> Ints:
        """Return the place of each task in an order by its longest path to the end, longest first.

        Tasks with paths of similar length keep their order, in which neighbours, which share data, follow each other.
        """
        rank = self.rank(seconds)
        steps = np.floor(rank / max(ALIKE * float(rank.max(initial=0.0)), 1e-300))
        turn = np.empty(len(self), np.int32)
        turn[np.argsort(-steps, kind="stable")] = np.arange(len(self))
        return turn

    def critical_path(self, seconds: ArrayLike) -> float:
        """Return the time of the longest path: no number of workers is faster."""
        return float(self.rank(seconds).max(initial=0.0))


def after_data(reads: IntLists, writes: IntLists) -> IntLists:
    """Return the tasks that each task waits for, from the data that tasks read and write in their order.

    For each of its data a task waits for the last earlier task that writes the datum; if the task writes the datum too,
    it also waits for the tasks that have read the datum since.
    """
    accesses = _Accesses.of(reads, writes)
    datum, task, place = accesses.datum, accesses.task, np.arange(len(accesses.datum))
    # place of the next write at or after each access
    next_write = np.minimum.accumulate(np.where(accesses.written, place, len(place))[::-1])[::-1]
    ends = np.searchsorted(datum, datum, side="right")
    read_mask = ~accesses.written & (next_write < ends)
    successors = np.concatenate([task[accesses.after_write], task[next_write[read_mask]]])
    predecessors = np.concatenate([task[accesses.last[accesses.after_write]], task[read_mask]])
    pair_mask = successors != predecessors
    return IntLists.of(successors[pair_mask], predecessors[pair_mask], len(reads))


@dataclass(frozen=True, eq=False)
class _Accesses:
    """Reads and writes sorted by datum, then by task; the read comes first if a task does both.

    `last` is the place of the last write before each access; it is a write of the same datum where `after_write`.
    `order` has the places of the sorted accesses among all reads, then all writes.
    """

    order: NDArray[np.int64]
    datum: NDArray[np.int64]
    task: NDArray[np.int64]
    written: NDArray[np.bool_]
    last: NDArray[np.int64]
    after_write: NDArray[np.bool_]

    @classmethod
    def of(cls, reads: IntLists, writes: IntLists) -> "_Accesses":
        datum = np.concatenate([reads.values, writes.values]).astype(np.int64)
        task = np.concatenate([reads.owner, writes.owner]).astype(np.int64)
        is_write = np.repeat([False, True], [len(reads.values), len(writes.values)])
        order = np.lexsort((is_write, task, datum))
        datum, task, is_write = datum[order], task[order], is_write[order]
        last = np.maximum.accumulate(np.where(is_write, np.arange(len(datum)), -1))
        last = np.concatenate([[-1], last[:-1]])[: len(datum)].astype(np.int64)
        return cls(order, datum, task, is_write, last, last >= np.searchsorted(datum, datum))
