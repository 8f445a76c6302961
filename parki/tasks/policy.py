"""Policies as data: the order in which units take tasks that are ready, and when a unit leaves one to others.

Tasks that are ready lie in buckets.  A unit polls the buckets in the order of its class, cores or devices, and takes
the task of the highest rank (longest path to the end) from the first bucket that its rule does not make it leave.

Source: E. Agullo et al., "Task-based FMM for heterogeneous architectures", Inria RR-8513 (2014), section 3.2; HEFT:
H. Topcuoglu, S. Hariri, M.-Y. Wu, IEEE Trans. Parallel Distrib. Syst. 13 (2002) 260–274.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from parki.tasks.durations import Durations
from parki.tasks.graph import Floats, Graph, Ints
from parki.tasks.node import Node

#: RR-8513, table 3, with kinds of this library that are not in it: orders in which classes of units poll.
CORE_ORDER = ("JOIN", "GATHER", "FILL", "P2M", "M2M", "L2L", "FFT", "IFFT", "P2L", "M2P", "M2L", "P2P small", "L2P",
              "P2P", "P2P large", "ADD", "SCATTER")  # fmt: skip
DEVICE_ORDER = ("JOIN", "P2P large", "P2P", "P2P small", "M2L", "L2P", "M2P", "P2M", "P2L", "IFFT", "FFT", "M2M", "L2L",
                "ADD", "SCATTER", "GATHER", "FILL")  # fmt: skip
#: RR-8513, table 3, of nodes without devices; P2P has halves there.
ALONE_ORDER = ("JOIN", "GATHER", "FILL", "P2M", "M2M", "L2L", "FFT", "IFFT", "P2P large", "P2L", "M2P", "M2L",
               "P2P small", "L2P", "ADD", "SCATTER")  # fmt: skip
#: Kinds that cores take first (see `Policy.loses`): others wait for them.
FIRST = ("JOIN", "GATHER", "FILL", "P2M", "M2M", "L2L", "FFT", "IFFT")
LARGE, SMALL = "P2P large", "P2P small"

Order = Literal["published", "acceleration", "arrival"]
Rule = Literal["none", "number", "remaining"]
Mapped = Literal["none", "ends first", "given"]


@dataclass(frozen=True, eq=False)
class Policy:
    """Rules by which ready tasks find their units.

    Attributes
    ----------
    name : str
    order : {"published", "acceleration", "arrival"}
        Of buckets: that of RR-8513; by seconds on a core over seconds on a device; none, the first ready task is first.
    rule : {"none", "number", "remaining"}
        When a unit leaves a bucket to the faster class.  "number": where no more tasks are ready in it than all units
        of that class do in the time of one task here.  "remaining": a core leaves a task that takes longer than all
        devices need for all the work that nobody has begun.
    batch : bool
        Whether a device takes as many tasks of a bucket in one launch as fill it twice, half of its share at most.
    least : float
        Waves of work that a batch has before it leaves any to others: a launch takes no less than one.
    whole : bool
        Whether the only device of a node takes all ready tasks of a bucket that no core runs, in one launch.
    loses : float
        A core takes kinds that others wait for first if their acceleration is at most so many times the least one.
    owners : bool
        Whether each device takes tasks of its own run of places before those of others.
    halves : bool
        Whether the larger and the smaller half of P2P have buckets of their own.
    barriers : bool
        Whether all tasks of a phase end before those of the next begin (`phases`).
    mapped : {"none", "ends first", "given"}
        Whether a task gets its unit when it becomes ready: the one where it would end first, or that of `units`.
    units : array (n,), optional
        Unit of each task.
    begin : array (n,), optional
        Order of the tasks of a unit, by rank if not given.
    """

    name: str
    order: Order = "acceleration"
    rule: Rule = "none"
    batch: bool = True
    least: float = 0.0
    whole: bool = False
    loses: float = math.inf
    owners: bool = False
    halves: bool = False
    barriers: bool = False
    mapped: Mapped = "none"
    units: Ints | None = None
    begin: Floats | None = None


#: Policies by name.
POLICIES = {
    policy.name: policy
    for policy in (
        Policy("drain", rule="remaining", least=1.0, whole=True, loses=2.0, owners=True),
        Policy("acceleration", rule="number", least=1.0, whole=True, loses=2.0, owners=True),
        Policy("heteroprio", "published", "number"),
        Policy("heteroprio-halves", "published", "number", halves=True),
        Policy("heft", batch=False, mapped="ends first"),
        Policy("fifo", "arrival", batch=False),
        Policy("phases", "published", barriers=True),
    )
}


def find(name: str) -> Policy:
    """Return a policy by its name.

    Raises
    ------
    ValueError
        For a name that is not in `POLICIES`.
    """
    if name not in POLICIES:
        raise ValueError(f"schedule: found {name!r}, expected one of {', '.join(POLICIES)}")
    return POLICIES[name]


def static(units: ArrayLike, begin: ArrayLike | None = None) -> Policy:
    """Return the policy that gives each task the unit of a map, as that of an earlier run or of the simulator.

    Parameters
    ----------
    units : array (n,)
    begin : array (n,), optional
        A unit takes its tasks in the order of these numbers, as of the times of a run; by rank if not given.
    """
    order = None if begin is None else np.asarray(begin, np.float64)
    return Policy("static", batch=False, mapped="given", units=np.asarray(units, np.int32), begin=order)


def unbatched(policy: Policy) -> Policy:
    """Return a policy whose devices take one task a launch."""
    return replace(policy, batch=False)


@dataclass(frozen=True, eq=False)
class Buckets:
    """A policy for one graph on one node, in numbers.

    Attributes
    ----------
    names : sequence of str
        Of buckets.
    bucket : array (n,)
        Bucket of each task.
    orders : pair of tuples
        Buckets that cores and that devices poll, in this order; a class is never given tasks that it may not run.
    few : pair of arrays (buckets,)
        A core, and a device, leaves a bucket alone that holds no more ready tasks.
    shared : array (buckets,) of bool
        Whether devices may run tasks of a bucket.
    whole : array (buckets,) of bool
        Whether a device takes all ready tasks of a bucket at once.
    priority : array (n,)
        The least first, then the lowest task; see `Policy.order` for "arrival".
    owner, owners
        Device whose run of places a task is in, and the number of such runs.
    """

    names: Sequence[str]
    bucket: Ints
    orders: tuple[tuple[int, ...], tuple[int, ...]]
    few: tuple[Floats, Floats]
    shared: NDArray[np.bool_]
    whole: NDArray[np.bool_]
    priority: Floats
    owner: Ints
    owners: int


def buckets(policy: Policy, graph: Graph, durations: Durations, node: Node) -> Buckets:
    """Return the buckets of a policy: orders and numbers come from the seconds of this graph's tasks."""
    names, bucket = _split(graph) if policy.halves else (tuple(graph.kinds), graph.kind.astype(np.int32))
    core, device = durations.runs(node)
    runs = [np.bincount(bucket, some, len(names)) > 0 for some in (core, device)]
    speed = _accelerations(bucket, len(names), durations, node)
    owners = max(node.devices, 1) if policy.owners else 1
    of_cores, of_devices = _orders(policy, names, speed, runs[0] & runs[1], node)
    return Buckets(
        names=names,
        bucket=bucket,
        orders=(tuple(b for b in of_cores if runs[0][b]), tuple(b for b in of_devices if runs[1][b])),
        few=_few(policy, speed, runs[0] & runs[1], node),
        shared=runs[1],
        whole=~runs[0] & (policy.whole and node.devices == 1),
        priority=-graph.rank(durations.on_either(node)),
        owner=np.minimum((graph.place * owners).astype(np.int32), owners - 1),
        owners=owners,
    )


def _split(graph: Graph) -> tuple[tuple[str, ...], Ints]:
    """Return buckets with two of P2P, one of the half of its tasks that has more work."""
    bucket, names = graph.kind.astype(np.int32), [*graph.kinds, SMALL]
    if "P2P" in graph.kinds:
        number = list(graph.kinds).index("P2P")
        some = np.flatnonzero(graph.kind == number)
        names[number] = LARGE
        bucket[some[np.argsort(graph.work[some], kind="stable")[: len(some) // 2]]] = len(graph.kinds)
    return tuple(names), bucket


def _accelerations(bucket: Ints, n: int, durations: Durations, node: Node) -> Floats:
    """Return seconds on a core over seconds on a device, launched one by one, of all tasks of each bucket."""
    core, device = (np.bincount(bucket, t, n) for t in (durations.on_core(node), durations.on_device(node)))
    found = np.ones(n)
    both = np.isfinite(core) & (device > 0)
    found[both] = core[both] / device[both]
    found[np.isinf(core)] = np.inf
    return found


def _orders(
    policy: Policy, names: Sequence[str], speed: Floats, both: NDArray[np.bool_], node: Node
) -> tuple[list[int], list[int]]:  # fmt: skip
    """Return the buckets in the orders of cores and of devices; `both` may run some of them."""
    every = range(len(names))
    if policy.order != "acceleration":
        of_cores = CORE_ORDER if node.devices or not policy.halves else ALONE_ORDER
        return _listed(of_cores, names), _listed(DEVICE_ORDER, names)
    most = policy.loses * speed[both].min(initial=np.inf)
    first = [b for b in _listed(FIRST, names) if names[b] in FIRST and not (both[b] and speed[b] > most)]
    rest = [b for b in _listed(CORE_ORDER, names) if b not in first]
    return first + sorted(rest, key=lambda b: speed[b]), sorted(every, key=lambda b: -speed[b])


def _listed(order: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return the buckets as an order lists them, then those that it does not list."""
    place = {name: i for i, name in enumerate(order)}
    return sorted(range(len(names)), key=lambda b: place.get(names[b], len(order)))


def _few(policy: Policy, speed: Floats, both: NDArray[np.bool_], node: Node) -> tuple[Floats, Floats]:
    """Return how many ready tasks of a bucket each class leaves to the other one."""
    none = np.zeros(len(speed))
    if policy.rule != "number":
        return none, none
    core, device = none.copy(), none.copy()
    faster, slower = both & (speed > 1), both & (speed < 1)
    core[faster] = speed[faster] * node.devices
    device[slower] = node.cores / speed[slower]
    return core, device
