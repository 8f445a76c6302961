"""Means of measured seconds of tasks, by kind, class of unit and size, which take the place of modelled ones."""

import numpy as np
from numpy.typing import NDArray

from parki.tasks.durations import Durations
from parki.tasks.graph import Floats, Graph
from parki.tasks.node import Node
from parki.tasks.trace import Trace

LEAST = 3  # tasks of a kind, class and size, before their mean counts
Key = tuple[str, bool, int]  # kind, whether on devices, size


class Means:
    """Seconds of a unit of work as runs have taken them, for each kind, class of unit and power of two of work.

    Attributes
    ----------
    sums : dict
        By kind, class and size: tasks, seconds and work of these.
    """

    def __init__(self) -> None:
        self.sums: dict[Key, NDArray[np.float64]] = {}

    def add(self, graph: Graph, trace: Trace, node: Node, launches: Floats | None = None) -> None:
        """Count the tasks of a run.

        Parameters
        ----------
        graph : Graph
        trace : Trace
            Of a run of this graph on this node.
        node : Node
        launches : array (n,), optional
            Launches of each task on a device, whose cost is taken off; one each if not given.
        """
        seconds = trace.end - trace.begin
        on_device = trace.unit >= node.cores
        many = np.ones(len(graph)) if launches is None else launches
        seconds = np.where(on_device, np.maximum(seconds - many * node.launch, 0.0), seconds)
        _, of = np.unique(trace.launch, return_inverse=True)
        # tasks of one launch share its time by their work
        work = np.where(graph.work > 0, graph.work, 1.0)
        seconds = seconds * work / np.bincount(of, work)[of] if len(of) else seconds
        for key, some in _groups(graph, on_device):
            row = np.array([len(some), seconds[some].sum(), work[some].sum()])
            self.sums[key] = self.sums.get(key, 0.0) + row

    def blended(self, graph: Graph, durations: Durations) -> Durations:
        """Return durations with the means of measured ones in place of others, where enough tasks were measured.

        Parameters
        ----------
        graph : Graph
        durations : Durations
            Of this graph; a class that may not run a task may not do so afterwards.
        """
        found = []
        for seconds, on_device in ((durations.core, False), (durations.device, True)):
            new = seconds.copy()
            for key, some in _groups(graph, np.full(len(graph), on_device)):
                many, whole, work = self.sums.get(key, np.zeros(3))
                if many >= LEAST:
                    may = some[np.isfinite(seconds[some])]
                    new[may] = whole / work * np.where(graph.work[may] > 0, graph.work[may], 1.0)
            found.append(new)
        return Durations(found[0], found[1], durations.launches, durations.wave)


def _groups(graph: Graph, on_device: NDArray[np.bool_]) -> list[tuple[Key, NDArray[np.intp]]]:
    """Return the tasks of each kind, class and size."""
    size = np.full(len(graph), -1)
    some = graph.work > 0
    size[some] = np.floor(np.log2(graph.work[some])).astype(int)
    rows = np.column_stack([graph.kind, on_device, size])
    keys, of = np.unique(rows, axis=0, return_inverse=True)
    order = np.argsort(of.ravel(), kind="stable")
    begin = np.searchsorted(of.ravel()[order], np.arange(len(keys) + 1))
    return [
        ((graph.kinds[kind], bool(device), int(size)), order[begin[i] : begin[i + 1]])
        for i, (kind, device, size) in enumerate(keys)
    ]
