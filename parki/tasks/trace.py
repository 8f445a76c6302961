"""Traces of real or simulated runs: unit and times of each task, and files for Perfetto and Chrome."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from parki.engine import writing
from parki.tasks.graph import Floats, Graph, Ints

MICRO = 1e6  # microseconds per second: the unit of times in files


@dataclass(frozen=True, eq=False)
class Trace:
    """Tasks of a run with their units and times.

    Attributes
    ----------
    kinds : sequence of str
        Names of kinds of tasks.
    kind, group : array (n,)
        Kind of each task, and its number among the tasks of its kind.
    units : sequence of str
        Names of units.
    unit : array (n,)
        Unit that ran each task.
    launch : array (n,)
        Number of each task's launch: tasks of one launch begin and end together.
    begin, end : array (n,)
        Seconds from the beginning of the run.
    seconds : float
        Seconds of the whole run, including copies of results after the last task.
    moved : float
        Bytes copied between memories.
    """

    kinds: Sequence[str]
    kind: NDArray[np.uint8]
    group: Ints
    units: Sequence[str]
    unit: Ints
    launch: Ints
    begin: Floats
    end: Floats
    seconds: float
    moved: float = 0.0

    @classmethod
    def of(
        cls, graph: Graph, unit: ArrayLike, begin: ArrayLike, end: ArrayLike, units: Sequence[str], *,
        launch: ArrayLike | None = None, seconds: float | None = None, moved: float = 0.0,
    ) -> "Trace":  # fmt: skip
        """Return the trace of a run of a graph.

        Parameters
        ----------
        graph : Graph
        unit, begin, end : array (n,)
            Unit of each task, and its times in seconds.
        units : sequence of str
            Names of units.
        launch : array (n,), optional
            Number of each task's launch; every task is its own launch if not given.
        seconds : float, optional
            Seconds of the whole run; the end of the last task if not given.
        moved : float
            Bytes copied.
        """
        begin, end = np.asarray(begin, np.float64), np.asarray(end, np.float64)
        launch = np.arange(len(graph)) if launch is None else launch
        seconds = float(end.max(initial=0.0)) if seconds is None else float(seconds)
        unit, launch = np.asarray(unit, np.int32), np.asarray(launch, np.int32)
        return cls(
            tuple(graph.kinds), graph.kind, graph.group, tuple(units), unit, launch, begin, end, seconds, float(moved)
        )

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def launches(self) -> Ints:
        """First task of each launch, in the order of units and times."""
        _, first = np.unique(self.launch, return_index=True)
        return first[np.lexsort((self.begin[first], self.unit[first]))].astype(np.int32)

    @property
    def busy(self) -> Floats:
        """Seconds in which each unit ran tasks."""
        first = self.launches
        return np.bincount(self.unit[first], self.end[first] - self.begin[first], len(self.units))

    def share(self, units: slice = slice(None)) -> float:
        """Return the fraction of the run in which units ran tasks, 0 without units.

        Parameters
        ----------
        units : slice
            Units to include; all if not given.
        """
        seconds = self.busy[units]
        return float(seconds.sum() / (len(seconds) * self.seconds)) if len(seconds) and self.seconds else 0.0

    def seconds_of(self, kind: str) -> float:
        """Return the seconds of all launches of a kind together."""
        first = self.launches
        launches = first[self.kind[first] == list(self.kinds).index(kind)]
        return float((self.end[launches] - self.begin[launches]).sum())

    def check(self, graph: Graph | None = None) -> None:
        """Raise an error if a run cannot have this trace.

        Parameters
        ----------
        graph : Graph, optional
            Graph whose tasks wait for each other.

        Raises
        ------
        ValueError
            With the name of a task that ends before it begins, overlaps another one on its unit, differs in time from
            another task of its launch, or begins before a task that it waits for has ended.
        """
        self._check_times()
        first = self.launches
        behind = (self.unit[first][1:] == self.unit[first][:-1]) & (self.begin[first][1:] < self.end[first][:-1])
        self._refuse(first[1:][behind], "overlaps another task on its unit")
        if graph is not None:
            successors, predecessors = graph.before.owner, graph.before.values
            self._refuse(
                successors[self.begin[successors] < self.end[predecessors]],
                "begins before a task ends that it waits for",
            )

    def _check_times(self) -> None:
        if len(self) and not 0 <= self.unit.min() <= self.unit.max() < len(self.units):
            raise ValueError(f"unit: found {self.unit.min()} to {self.unit.max()}, expected 0 to {len(self.units) - 1}")
        faults = ~((self.begin >= 0) & (self.end >= self.begin) & (self.end <= self.seconds))
        self._refuse(np.flatnonzero(faults), "is not between the beginning and the end of the run")
        _, first, inverse = np.unique(self.launch, return_index=True, return_inverse=True)
        equalities = [a == a[first][inverse] for a in (self.unit, self.kind, self.begin, self.end)]
        self._refuse(np.flatnonzero(~np.all(equalities, axis=0)), "has another unit, kind or time than its launch")

    def _refuse(self, tasks: NDArray[Any], fault: str) -> None:
        if len(tasks):
            task = int(tasks[0])
            span = f"from {self.begin[task]:.9g} to {self.end[task]:.9g} s on {self.units[self.unit[task]]}"
            raise ValueError(f"trace: {self.name(task)} {fault}; found {span}")

    def name(self, task: int) -> str:
        """Return the name of a task, such as "M2L 12"."""
        return f"{self.kinds[self.kind[task]]} {self.group[task]}"

    def write(self, path: Path) -> None:
        """Write the trace in Chrome's format, which Perfetto and `read` can open.

        Parameters
        ----------
        path : Path
            File name, such as "sum.json".
        """
        writing.write(Path(path), json.dumps(self._events(), indent=None, separators=(",", ":")) + "\n")

    def _events(self) -> dict[str, Any]:
        threads = [
            {"name": "thread_name", "ph": "M", "pid": 0, "tid": i, "args": {"name": name}}
            for i, name in enumerate(self.units)
        ]
        order = np.argsort(self.launch, kind="stable")
        tasks = np.split(order, np.flatnonzero(np.diff(self.launch[order])) + 1) if len(order) else []
        events = [self._event([int(task) for task in launch_tasks]) for launch_tasks in tasks]
        run = {"kinds": list(self.kinds), "seconds": self.seconds, "moved": self.moved, "tasks": len(self)}
        return {"traceEvents": [*threads, *events], "displayTimeUnit": "ms", "parki": run}

    def _event(self, tasks: list[int]) -> dict[str, Any]:
        first = tasks[0]
        begin, end = float(self.begin[first]), float(self.end[first])
        suffix = f" and {len(tasks) - 1} more" if len(tasks) > 1 else ""
        # exact times in seconds, in addition to the microseconds that viewers show
        args = {"tasks": tasks, "groups": self.group[tasks].tolist(), "begin": begin, "end": end}
        return {
            "name": f"{self.name(first)}{suffix}", "cat": self.kinds[self.kind[first]], "ph": "X", "pid": 0,
            "tid": int(self.unit[first]), "ts": MICRO * begin, "dur": MICRO * (end - begin), "args": args,
        }  # fmt: skip

    @classmethod
    def read(cls, path: Path) -> "Trace":
        """Read a trace from a file of `write`.

        Parameters
        ----------
        path : Path

        Raises
        ------
        ValueError
            If the file holds no such trace.
        """
        try:
            document = json.loads(Path(path).read_text("utf-8"))
            run, events = document["parki"], document["traceEvents"]
            return cls._parsed(run, [e for e in events if e["ph"] == "X"], [e for e in events if e["ph"] == "M"])
        except (KeyError, TypeError, IndexError, ValueError) as error:
            raise ValueError(f"{path}: found no trace of this library ({error!r}), expected one") from error

    @classmethod
    def _parsed(cls, run: dict[str, Any], events: list[dict[str, Any]], threads: list[dict[str, Any]]) -> "Trace":
        number = {name: i for i, name in enumerate(run["kinds"])}
        columns = [
            (task, number[e["cat"]], group, e["tid"], launch, e["args"]["begin"], e["args"]["end"])
            for launch, e in enumerate(events)
            for task, group in zip(e["args"]["tasks"], e["args"]["groups"], strict=True)
        ]
        rows = np.array(columns, np.float64).reshape(-1, 7)
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        if not np.array_equal(rows[:, 0], np.arange(run["tasks"])):
            raise ValueError(f"found {len(rows)} tasks, expected each of {run['tasks']} once")
        kind, (group, unit, launch) = rows[:, 1].astype(np.uint8), (rows[:, i].astype(np.int32) for i in (2, 3, 4))
        units = tuple(e["args"]["name"] for e in sorted(threads, key=lambda e: e["tid"]))
        return cls(
            tuple(run["kinds"]), kind, group, units, unit, launch, rows[:, 5], rows[:, 6], float(run["seconds"]),
            float(run["moved"]),
        )  # fmt: skip
