"""Rules by which the units of a node find ready tasks: a policy for one graph, in the form that the executor reads."""

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki.tasks import policy as policies
from parki.tasks.durations import Durations
from parki.tasks.graph import Graph, Ints
from parki.tasks.node import Node
from parki.tasks.policy import Policy
from parki.tasks.ready import FULL, checked_units
from parki.tasks.simulate import simulate

_NUMBERS = ("buckets", "owners", "devices", "mapped", "remaining", "batch")
_POINTERS = "bucket owner list_begin list few_core few_device core device wave shared whole".split()


class SharingRecord(ctypes.Structure):
    """``struct pk_sharing`` of the header."""

    _fields_ = (
        [(name, ctypes.c_int32) for name in _NUMBERS]
        + [(name, ctypes.c_void_p) for name in _POINTERS]
        + [("full", ctypes.c_double), ("least", ctypes.c_double)]
    )


@dataclass(frozen=True, eq=False)
class Sharing:
    """Buckets of ready tasks, the lists in which units poll them, and the rules that leave a bucket to others.

    Attributes
    ----------
    node : Node
    numbers : dict
        Numbers of the record, by name.
    arrays : dict
        Arrays of the record, by name.
    turn : array (n,) of int32
        Number of each task: the least one in a bucket comes first.
    in_order : bool
        True if instead the task of all buckets that has been ready longest comes first.
    """

    node: Node
    numbers: dict[str, int | float]
    arrays: dict[str, NDArray[Any]]
    turn: Ints
    in_order: bool

    @classmethod
    def of(cls, policy: Policy, graph: Graph, durations: Durations, node: Node) -> "Sharing":
        """Return the rules by which units share the tasks of a graph.

        Parameters
        ----------
        policy : Policy
            A policy that maps each task to the unit where it would end first is replaced by the map of its simulated
            run.
        graph : Graph
        durations : Durations
        node : Node
        """
        if policy.mapped == "ends first":
            trace = simulate(graph, durations, node, policy)
            policy = policies.static(trace.unit, trace.begin)
        if policy.mapped == "given":
            return cls._mapped(policy, graph, durations, node)
        buckets = policies.buckets(policy, graph, durations, node)
        lists = [*[buckets.orders[0]] * node.cores, *[buckets.orders[1]] * node.devices]
        arrays = {"bucket": buckets.bucket, "owner": buckets.owner, "shared": buckets.shared}
        arrays |= {"whole": buckets.whole, "few_core": buckets.few[0], "few_device": buckets.few[1]}
        numbers = {"buckets": len(buckets.names), "owners": buckets.owners, "mapped": 0, "batch": int(policy.batch)}
        numbers |= {"remaining": int(policy.rule == "remaining"), "least": policy.least}
        turn = graph.turn(durations.on_either(node))
        return cls._made(node, numbers, arrays, lists, durations, turn, policy.order == "arrival")

    @classmethod
    def _mapped(cls, policy: Policy, graph: Graph, durations: Durations, node: Node) -> "Sharing":
        """Return the rules of a policy with a map: one bucket per unit."""
        units = np.array(checked_units(policy.units, durations, node), np.int32)
        first = -graph.rank(durations.on_either(node)) if policy.begin is None else policy.begin
        turn = np.empty(len(graph), np.int32)
        turn[np.argsort(first, kind="stable")] = np.arange(len(graph))
        arrays = {"bucket": units, "owner": np.zeros(len(graph)), "shared": np.arange(node.units) >= node.cores}
        arrays |= dict.fromkeys(("few_core", "few_device", "whole"), np.zeros(node.units))
        numbers = {"buckets": node.units, "owners": 1, "mapped": 1, "remaining": 0, "batch": 0, "least": 0.0}
        return cls._made(node, numbers, arrays, [(unit,) for unit in range(node.units)], durations, turn, False)

    @classmethod
    def _made(
        cls, node: Node, numbers: dict[str, int | float], arrays: dict[str, NDArray[Any]], lists: list[tuple[int, ...]],
        durations: Durations, turn: Ints, in_order: bool,
    ) -> "Sharing":  # fmt: skip
        arrays |= {
            "list_begin": np.cumsum([0, *map(len, lists)]),
            "list": np.array([b for items in lists for b in items]),
        }
        arrays |= {"core": durations.on_core(node), "device": durations.device, "wave": durations.wave}
        types = dict.fromkeys(("bucket", "owner", "list_begin", "list"), np.int32)
        types |= dict.fromkeys(("shared", "whole"), np.uint8)
        columns = {name: np.ascontiguousarray(a, types.get(name, np.float64)) for name, a in arrays.items()}
        return cls(node, numbers | {"devices": node.devices, "full": FULL}, columns, turn, in_order)

    def record(self) -> SharingRecord:
        """Return the record for the executor, which reads this object's arrays during a run."""
        record = SharingRecord(**self.numbers)
        for name, a in self.arrays.items():
            setattr(record, name, a.ctypes.data)
        return record
