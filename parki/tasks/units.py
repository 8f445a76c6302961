"""Units that run a list of steps: cores of a host, and devices beside them."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from parki.engine import Space
from parki.tasks import bound
from parki.tasks.cut import CutSteps
from parki.tasks.durations import Durations
from parki.tasks.graph import Graph
from parki.tasks.node import Node

Modelled = Callable[[Graph, Node], Durations]


@dataclass(frozen=True, eq=False)
class NodeUnits:
    """Devices of a node, and the cores beside them.

    Attributes
    ----------
    devices : sequence of (Space, int)
        Space of each device, and its number among those of its kind.
    cores : bool
        True if cores run tasks that devices may run; else the host only orders data and joins blocks.
    node : Node, optional
        Links and costs of launches; the defaults of `Node` if not given.
    modelled : function, optional
        ``modelled(graph, node)`` returns the seconds of tasks before the first measurement; one second per task if
        not given.
    deterministic : bool
        True if each run gives tasks to the units of the first run's plan, so that results are the same to the last bit.
    """

    devices: tuple[tuple[Space, int], ...] = ()
    cores: bool = True
    node: Node | None = None
    modelled: Modelled | None = None
    deterministic: bool = False

    def of_node(self, threads: int) -> Node:
        """Return a node with a number of threads and the devices."""
        links = Node(1) if self.node is None else self.node
        return Node(
            threads, len(self.devices), links.bandwidth, links.between, links.latency, links.launch, links.task
        )  # fmt: skip

    def durations(self, cut: CutSteps, node: Node, host_tasks: NDArray[np.bool_]) -> Durations:
        """Return the seconds of tasks before the first measurement, infinite where a unit may not run a task.

        Parameters
        ----------
        cut : CutSteps
        node : Node
        host_tasks : array (n,) of bool
            Tasks that only the host may run.
        """
        graph = cut.graph
        if self.modelled is None:
            result = restricted(Durations.of(graph, np.ones(len(graph)), np.ones(len(graph)), {}, {}), node, host_tasks)
        else:
            result = restricted(self.modelled(graph, node), node, host_tasks)
            if self.cores:
                return gathered(result, cut, node)
        return result if self.cores else alone(result, cut, node, host_tasks)


def restricted(durations: Durations, node: Node, host_tasks: NDArray[np.bool_]) -> Durations:
    """Return durations with infinite device times for tasks that only the host may run."""
    device = np.where(host_tasks | (node.devices == 0), np.inf, durations.device)
    return replace(durations, device=device)


def alone(durations: Durations, cut: CutSteps, node: Node, host_tasks: NDArray[np.bool_]) -> Durations:
    """Return durations with infinite core times for tasks that devices may run; one device also joins blocks."""
    result = replace(durations, core=np.where(host_tasks, durations.core, np.inf))
    return _together(result, cut) if node.devices == 1 else result


def gathered(durations: Durations, cut: CutSteps, node: Node) -> Durations:
    """Return durations that give all tasks marked `together` to the only device of a node.

    Cores and device still share them if the device would need longer for them than the area bound of all tasks.
    """
    if node.devices != 1:
        return durations
    result = _together(durations, cut)
    return result if result.device[cut.together].sum() <= bound.area_bound(durations, node) else durations


def _together(durations: Durations, cut: CutSteps) -> Durations:
    joins = np.diff(cut.begin) == 0
    device = np.where(cut.together & joins, 0.0, durations.device)
    return replace(durations, core=np.where(cut.together, np.inf, durations.core), device=device)
