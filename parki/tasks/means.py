"""Means of measured seconds of tasks, by kind, class of unit and size, which replace modelled seconds."""

import numpy as np
from numpy.typing import NDArray

from parki.tasks.durations import Durations
from parki.tasks.graph import Floats, Graph
from parki.tasks.node import Node
from parki.tasks.trace import Trace

LEAST = 3  # tasks of a kind, class and size that are needed before their mean is used
Key = tuple[str, bool, int]  # kind, True for devices, size


class Means:
    """Measured seconds per unit of work, for each kind, class of unit and power of two of work.

    Attributes
    ----------
    sums : dict
        Number of tasks, their seconds and their work, by kind, class and size.
    """

    def __init__(self) -> None:
        self.sums: dict[Key, NDArray[np.float64]] = {}

    def add(self, graph: Graph, trace: Trace, node: Node, launches: Floats | None = None) -> None:
        """Add the tasks of a run to the sums.

        Parameters
        ----------
        graph : Graph
        trace : Trace
            Trace of a run of this graph on this node.
        node : Node
        launches : array (n,), optional
            Launches of each task on a device, whose cost is subtracted; 1 per task if not given.
        """
        seconds = trace.end - trace.begin
        on_device = trace.unit >= node.cores
        counts = np.ones(len(graph)) if launches is None else launches
        seconds = np.where(on_device, np.maximum(seconds - counts * node.launch, 0.0), seconds)
        _, inverse = np.unique(trace.launch, return_inverse=True)
        # divide the time of a launch among its tasks by their work
        work = np.where(graph.work > 0, graph.work, 1.0)
        seconds = seconds * work / np.bincount(inverse, work)[inverse] if len(inverse) else seconds
        for key, members in _groups(graph, on_device):
            row = np.array([len(members), seconds[members].sum(), work[members].sum()])
            self.sums[key] = self.sums.get(key, 0.0) + row

    def blended(self, graph: Graph, durations: Durations) -> Durations:
        """Return durations with measured means in place of modelled seconds, where enough tasks were measured.

        Parameters
        ----------
        graph : Graph
        durations : Durations
            Durations of this graph; a class that may not run a task still may not run it in the result.
        """
        columns = []
        for seconds, on_device in ((durations.core, False), (durations.device, True)):
            new = seconds.copy()
            for key, members in _groups(graph, np.full(len(graph), on_device)):
                count, total, work = self.sums.get(key, np.zeros(3))
                if count >= LEAST:
                    tasks = members[np.isfinite(seconds[members])]
                    new[tasks] = total / work * np.where(graph.work[tasks] > 0, graph.work[tasks], 1.0)
            columns.append(new)
        return Durations(columns[0], columns[1], durations.launches, durations.wave)


def _groups(graph: Graph, on_device: NDArray[np.bool_]) -> list[tuple[Key, NDArray[np.intp]]]:
    """Return the tasks of each kind, class and size."""
    size = np.full(len(graph), -1)
    mask = graph.work > 0
    size[mask] = np.floor(np.log2(graph.work[mask])).astype(int)
    rows = np.column_stack([graph.kind, on_device, size])
    keys, inverse = np.unique(rows, axis=0, return_inverse=True)
    order = np.argsort(inverse.ravel(), kind="stable")
    begin = np.searchsorted(inverse.ravel()[order], np.arange(len(keys) + 1))
    return [
        ((graph.kinds[kind], bool(device), int(size)), order[begin[i] : begin[i + 1]])
        for i, (kind, device, size) in enumerate(keys)
    ]
