"""The units that run a list of steps: cores of a host, and devices beside them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parki.engine.spaces import Space
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
        Whether cores run tasks that devices may run; else the host brings data in order, and joins.
    node : Node, optional
        Links and costs of launches; those of `Node` if not given.
    modelled : function, optional
        ``modelled(graph, node)`` returns the seconds of tasks before any was measured; all take one second if not
        given.
    deterministic : bool
        Each run gives tasks to the units of the first run's plan: results are the same to the last bit.
    """

    devices: tuple[tuple[Space, int], ...] = ()
    cores: bool = True
    node: Node | None = None
    modelled: Modelled | None = None
    deterministic: bool = False

    def of_node(self, threads: int) -> Node:
        """Return the node of a number of threads and the devices."""
        links = Node(1) if self.node is None else self.node
        return Node(
            threads, len(self.devices), links.bandwidth, links.between, links.latency, links.launch, links.task
        )  # fmt: skip

    def durations(self, graph: Graph, node: Node, here: NDArray[np.bool_]) -> Durations:
        """Return the seconds of tasks before any was measured.

        Parameters
        ----------
        graph : Graph
        node : Node
        here : array (n,) of bool
            Tasks that only the host may run.
        """
        if self.modelled is None:
            found = Durations.of(graph, np.ones(len(graph)), np.ones(len(graph)), {}, {})
        else:
            found = self.modelled(graph, node)
        return self.allowed(found, here)

    def allowed(self, durations: Durations, here: NDArray[np.bool_]) -> Durations:
        """Return durations that are infinite where a unit may not run a task."""
        device = np.where(here | (not self.devices), np.inf, durations.device)
        core = durations.core if self.cores else np.where(here, durations.core, np.inf)
        return Durations(core, device, durations.launches, durations.wave)
