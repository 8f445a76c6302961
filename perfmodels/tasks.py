"""Seconds of the tasks of a fast multipole sum on a core and on a device, from the steps of the whole sum.

A step's counted work (`parki.perfmodels.counts.fmm`) takes some seconds on a machine.  Tasks of the kinds that do the
step share these seconds in proportion to their units of work, such as pairs of octets.  Launches are apart: a device
takes their cost and at least one wave, the time of the items that fill the device.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parki.perfmodels import roofline
from parki.perfmodels.counts import fmm
from parki.perfmodels.counts.totals import Counts
from parki.perfmodels.machine import Machine
from parki.tasks.durations import Durations
from parki.tasks.graph import Floats, Graph
from parki.tasks.node import Node

#: The step that the tasks of a kind do; kinds that share a step do equal parts of it.
STEPS = {
    "P2M": "p2m", "M2M": "m2m", "FFT": "transforms", "M2L": "m2l", "IFFT": "transforms", "P2L": "p2l", "L2L": "l2l",
    "L2P": "l2p", "M2P": "m2p", "P2P": "p2p",
}  # fmt: skip
#: Bytes moved for each byte of the data of a task, where memory sets the time; 0 for tasks that only join others.
TRAFFIC = {"FILL": 1.0, "GATHER": 2.0, "ADD": 1.0, "SCATTER": 1.5, "JOIN": 0.0}
#: Launches of a task on a device, as in `parki.fmm`, for kinds with several or none.
LAUNCHES = {"M2M": 5, "L2L": 5, "JOIN": 0}
#: Items that fill a device once (assumed).
FILL = {"P2M": 512, "M2M": 64, "FFT": 64, "M2L": 16, "IFFT": 64, "P2L": 512, "L2L": 64, "L2P": 512, "M2P": 512,
        "P2P": 512}  # fmt: skip
LAUNCH, TASK = 4e-6, 1e-6  # seconds of a launch, and of finding and ending a task on a core (assumed)
LATENCY = 8e-6  # seconds of latency of a copy (assumed)


@dataclass(frozen=True, eq=False)
class UnitWork:
    """Class of units of a node, with the counted work of the sum there.

    Attributes
    ----------
    machine : Machine
        A GPU, or a host of which all cores work.
    counts : mapping
        Counts of each step, as `parki.perfmodels.counts.fmm.count` gives them for this machine.
    units : int
        Units at work; more cores than the machine has are cores of several such machines.
    """

    machine: Machine
    counts: Mapping[str, Counts]
    units: int

    @property
    def together(self) -> int:
        """Return the units that share a memory."""
        if self.machine.is_gpu:
            return 1
        return math.ceil(self.units / math.ceil(self.units / self.machine.units))

    def of_kinds(self, kinds: Sequence[str], dtype: str) -> dict[str, float]:
        """Return the seconds that one unit takes for all tasks of each kind, while the others work, too.

        Raises
        ------
        ValueError
            For a kind that is no step of a fast multipole sum.
        """
        if unknown := set(kinds) - {*STEPS, *TRAFFIC}:
            raise ValueError(f"kinds: found {min(unknown)!r}, expected some of {', '.join([*STEPS, *TRAFFIC])}")
        step_of_kind = {kind: STEPS[kind] for kind in kinds if kind in STEPS}
        bounds = fmm.predict(self.counts, self.machine, dtype, self.together)
        body = {step: self.together * (bound.seconds - bound.parts["launch"]) for step, bound in bounds.items()}
        return {
            kind: body[step] / sum(STEPS.get(kind_) == step for kind_ in kinds) for kind, step in step_of_kind.items()
        }

    def seconds(self, graph: Graph, dtype: str) -> Floats:
        """Return the seconds of each task on one unit: see `of_kinds`."""
        rates, result = self.of_kinds(graph.kinds, dtype), np.zeros(len(graph))
        rate = roofline.bandwidth(self.machine, "dram", self.together) / self.together
        nbytes = sum(np.bincount(a.owner, graph.nbytes[a.values], len(graph)) for a in (graph.reads, graph.writes))
        for number, name in enumerate(graph.kinds):
            is_kind = graph.kind == number
            if name in TRAFFIC:
                result[is_kind] = TRAFFIC[name] * nbytes[is_kind] / rate
            else:
                result[is_kind] = _shared(rates[name], graph.work[is_kind])
        return result


def _shared(seconds: float, work: NDArray[np.float64]) -> Floats:
    """Return seconds shared in proportion to work."""
    total = work.sum()
    return seconds * work / total if total else np.zeros(len(work))


def durations(graph: Graph, dtype: str, host: UnitWork | None, device: UnitWork | None) -> Durations:
    """Return the durations of the tasks of a fast multipole sum.

    Parameters
    ----------
    graph : Graph
    dtype : str
        ``"float64"`` or ``"float32"``.
    host, device : UnitWork, optional
        None if there are no such units.
    """
    infinite = np.full(len(graph), np.inf)
    core, on_device = (infinite if side is None else side.seconds(graph, dtype) for side in (host, device))
    return Durations.of(graph, core, on_device, LAUNCHES, FILL)


def node(host: UnitWork | None, device: UnitWork | None) -> Node:
    """Return the node of cores and devices, with the links that the device's file states.

    Parameters
    ----------
    host, device : UnitWork, optional
        None if there are no such units.

    Raises
    ------
    ValueError
        For a device whose file states no link to the host.
    """
    cores, devices = (0 if side is None else side.units for side in (host, device))
    if device is None:
        return Node(cores, task=TASK)
    rates = device.machine.links
    if "host" not in rates:
        description = f"found {', '.join(rates) or 'none'} of {device.machine.name}"
        raise ValueError(f"links: {description}, expected one to the host")
    return Node(cores, devices, rates["host"], rates.get("peer", 0.0), LATENCY, LAUNCH, TASK)
