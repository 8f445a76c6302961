"""Seconds of the tasks of a graph on a core and on a device."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from parki.tasks.graph import Floats, Graph
from parki.tasks.node import Node


@dataclass(frozen=True, eq=False)
class Durations:
    """Seconds of tasks by class of unit.

    Attributes
    ----------
    core : array (n,)
        Seconds on one core; infinite if no core may run the task.
    device : array (n,)
        Seconds of work on a device, without launches; infinite if no device may run the task.
    launches : array (n,)
        Launches of a task on a device; a batch of tasks of one kind needs as many as one task.
    wave : array (n,)
        Seconds of work that fills a device once; no launch takes less.
    """

    core: Floats
    device: Floats
    launches: Floats
    wave: Floats

    def __post_init__(self) -> None:
        if np.isnan(self.core).any() or np.isnan(self.device).any():
            raise ValueError("core, device: found NaN, expected seconds, infinite where a task may not run")
        if not np.isfinite(np.minimum(self.core, self.device)).all():
            task = int(np.argmax(np.isinf(np.minimum(self.core, self.device))))
            raise ValueError(f"core, device: found no time of task {task}, expected one on a core or on a device")

    @classmethod
    def of(
        cls, graph: Graph, core: ArrayLike, device: ArrayLike, launches: Mapping[str, int], fill: Mapping[str, float]
    ) -> "Durations":
        """Return the durations of a graph whose kinds have launches and waves of their own.

        Parameters
        ----------
        graph : Graph
        core, device : array (n,)
            Seconds of each task.
        launches : mapping
            Launches of a kind on a device; 1 if the kind is missing.
        fill : mapping
            Items of a kind that fill a device once; 0 if the kind is missing.
        """
        core, device = np.array(core, np.float64), np.array(device, np.float64)
        wave = np.zeros(len(graph.kinds))
        for number, name in enumerate(graph.kinds):
            mask = (graph.kind == number) & np.isfinite(device)
            if mask.any():
                wave[number] = (device[mask] / np.maximum(graph.items[mask], 1)).mean() * fill.get(name, 0.0)
        counts = np.array([launches.get(name, 1) for name in graph.kinds], np.float64)
        return cls(core, device, counts[graph.kind], wave[graph.kind])

    @cached_property
    def least(self) -> Floats:
        """Least seconds of each task, without launches."""
        return np.minimum(self.core, self.device)

    def on_core(self, node: Node) -> Floats:
        """Return the seconds of each task on a core, including the cost of starting a task."""
        return self.core + node.task

    def on_device(self, node: Node) -> Floats:
        """Return the seconds of each task on a device, in a launch of its own."""
        return self.launches * node.launch + np.maximum(self.device, self.wave)

    def on_either(self, node: Node) -> Floats:
        """Return the seconds of each task on the faster class of unit of a node."""
        core, device = self.runs(node)
        core_seconds = np.where(core, self.on_core(node), np.inf)
        return np.minimum(core_seconds, np.where(device, self.on_device(node), np.inf))

    def runs(self, node: Node) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return whether cores and whether devices of a node may run each task.

        Raises
        ------
        ValueError
            If no unit of the node may run some task.
        """
        core = np.isfinite(self.core) & (node.cores > 0)
        device = np.isfinite(self.device) & (node.devices > 0)
        if not (core | device).all():
            task, text = int(np.argmin(core | device)), f"{node.cores} cores and {node.devices} devices"
            raise ValueError(f"node: found {text}, expected a unit that may run task {task}")
        return core, device
