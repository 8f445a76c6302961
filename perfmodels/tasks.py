"""Seconds of the tasks of a fast multipole sum on a core and on a device, from the steps of the whole sum.

A step's counted work (`parki.perfmodels.fmm`) takes some seconds on a machine; over the work of all tasks of the kinds
that do it, these are the seconds of a unit of work, such as a pair of octets, and a task takes as many of them as it
has units.  Launches are apart: a device takes their cost and at least one wave, the time of items that fill it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parki.perfmodels import fmm, roofline
from parki.perfmodels.counts import Counts
from parki.perfmodels.machine import Machine
from parki.tasks.durations import Durations
from parki.tasks.graph import Floats, Graph
from parki.tasks.node import Node

#: Shares of steps that the tasks of a kind do.  Octets are transformed forward by FFT, and back by M2L.
STEPS = {
    "P2M": {"p2m": 1.0}, "M2M": {"m2m": 1.0}, "FFT": {"transforms": 0.5}, "M2L": {"m2l": 1.0, "transforms": 0.5},
    "P2L": {"p2l": 1.0}, "L2L": {"l2l": 1.0}, "L2P": {"l2p": 1.0}, "M2P": {"m2p": 1.0}, "P2P": {"p2p": 1.0},
}  # fmt: skip
#: Bytes that come and go for each byte that a task of a kind writes: memory sets the time of these.
TRAFFIC = {"FILL": 1.0, "GATHER": 2.5, "ADD": 3.0, "SCATTER": 2.5}
#: Launches of a task on a device, where these are several (those of `parki.fmm`).
LAUNCHES = {"M2M": 5, "M2L": 2, "L2L": 5}
#: Items that fill a device once (assumed).
FILL = {"P2M": 512, "M2M": 64, "FFT": 64, "M2L": 16, "P2L": 512, "L2L": 64, "L2P": 512, "M2P": 512, "P2P": 512}
LAUNCH, TASK = 4e-6, 1e-6  # seconds of a launch, and of finding and ending a task on a core (assumed)
LATENCY = 8e-6  # of a copy (assumed)


@dataclass(frozen=True, eq=False)
class Side:
    """One class of units of a node, with the counted work of the sum there.

    Attributes
    ----------
    machine : Machine
        A GPU, or a host of which all cores work.
    counts : mapping
        Of each step, as `parki.perfmodels.fmm.count` gives them for this machine.
    units : int
        Units at work; more cores than the machine has are those of several such machines.
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

    def kinds(self, dtype: str) -> dict[str, float]:
        """Return the seconds that one unit takes for all tasks of each kind, while the others work, too."""
        bounds = fmm.predict(self.counts, self.machine, dtype, self.together)
        body = {step: self.together * (bound.seconds - bound.parts["launch"]) for step, bound in bounds.items()}
        return {kind: sum(share * body[step] for step, share in steps.items()) for kind, steps in STEPS.items()}

    def seconds(self, graph: Graph, dtype: str) -> Floats:
        """Return the seconds of each task on one unit.

        Raises
        ------
        ValueError
            For tasks of a kind that is no step of a fast multipole sum.
        """
        known, found = self.kinds(dtype), np.zeros(len(graph))
        rate = roofline.bandwidth(self.machine, "dram", self.together) / self.together
        written = np.bincount(graph.writes.owner, graph.nbytes[graph.writes.values], len(graph))
        for number, name in enumerate(graph.kinds):
            some = graph.kind == number
            if name in TRAFFIC:
                found[some] = TRAFFIC[name] * written[some] / rate
            elif name in known:
                found[some] = _shared(known[name], graph.work[some])
            elif some.any():
                raise ValueError(f"kinds: found {name!r}, expected one of {', '.join([*STEPS, *TRAFFIC])}")
        return found


def _shared(seconds: float, work: NDArray[np.float64]) -> Floats:
    """Return seconds shared in proportion to work."""
    whole = work.sum()
    return seconds * work / whole if whole else np.zeros(len(work))


def durations(graph: Graph, dtype: str, host: Side | None, device: Side | None) -> Durations:
    """Return the durations of the tasks of a fast multipole sum.

    Parameters
    ----------
    graph : Graph
    dtype : str
        ``"float64"`` or ``"float32"``.
    host, device : Side, optional
        None where there are no such units.
    """
    never = np.full(len(graph), np.inf)
    core, on_device = (never if side is None else side.seconds(graph, dtype) for side in (host, device))
    return Durations.of(graph, core, on_device, LAUNCHES, FILL)


def node(host: Side | None, device: Side | None) -> Node:
    """Return the node of cores and devices, with the links that the device's file states.

    Parameters
    ----------
    host, device : Side, optional
        None where there are no such units.

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
        found = f"found {', '.join(rates) or 'none'} of {device.machine.name}"
        raise ValueError(f"links: {found}, expected one to the host")
    return Node(cores, devices, rates["host"], rates.get("peer", 0.0), LATENCY, LAUNCH, TASK)
