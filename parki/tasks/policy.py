"""Policies as data: the order in which units take ready tasks, and the rule by which a unit leaves tasks to others.

Ready tasks are in buckets.  A unit polls the buckets in the order of its class, cores or devices, and takes the task
of the highest rank (longest path to the end) from the first bucket that its rule lets it use.

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

#: Orders in which classes of units poll: RR-8513, table 3, with the kinds of this library that the table lacks.
CORE_ORDER = ("JOIN", "GATHER", "FILL", "P2M", "M2M", "L2L", "FFT", "IFFT", "P2L", "M2P", "M2L", "P2P small", "L2P",
              "P2P", "P2P large", "ADD", "SCATTER")  # fmt: skip
DEVICE_ORDER = ("JOIN", "P2P large", "P2P", "P2P small", "M2L", "L2P", "M2P", "P2M", "P2L", "IFFT", "FFT", "M2M", "L2L",
                "ADD", "SCATTER", "GATHER", "FILL")  # fmt: skip
#: Order on nodes without devices, where P2P has halves: RR-8513, table 3.
ALONE_ORDER = ("JOIN", "GATHER", "FILL", "P2M", "M2M", "L2L", "FFT", "IFFT", "P2P large", "P2L", "M2P", "M2L",
               "P2P small", "L2P", "ADD", "SCATTER")  # fmt: skip
#: Kinds that cores take first (see `Policy.loses`), because other kinds wait for them.
FIRST = ("JOIN", "GATHER", "FILL", "P2M", "M2M", "L2L", "FFT", "IFFT")
LARGE, SMALL = "P2P large", "P2P small"

Order = Literal["published", "acceleration", "arrival"]
Rule = Literal["none", "number", "remaining"]
Mapped = Literal["none", "ends first", "given"]


@dataclass(frozen=True, eq=False)
class Policy:
    """Rules that assign ready tasks to units.

    Attributes
    ----------
    name : str
    order : {"published", "acceleration", "arrival"}
        Order of buckets.  "published": that of RR-8513.  "acceleration": by seconds on a core over seconds on a device.
        "arrival": none, the task that became ready first is first.
    rule : {"none", "number", "remaining"}
        Rule by which a unit leaves a bucket to the faster class.  "number": if the bucket has no more ready tasks than
        all units of that class run in the time of one task here.  "remaining": a core leaves a task that takes longer
        than all devices need for all the work that has not begun.
    batch : bool
        True if a device takes enough tasks of a bucket in one launch to fill it twice, at most half of its share.
    least : float
        Waves of work that a batch has before it leaves tasks to others; no launch takes less than one wave.
    whole : bool
        True if the only device of a node takes all ready tasks of a bucket that no core runs, in one launch.
    loses : float
        Largest acceleration, over the least one, of the kinds in `FIRST` that cores take first.
    owners : bool
        True if each device takes tasks of its own run of places before those of others.
    halves : bool
        True if the larger and the smaller half of P2P have separate buckets.
    barriers : bool
        True if all tasks of a phase end before those of the next phase begin (`phases`).
    mapped : {"none", "ends first", "given"}
        Assignment of a unit to a task when the task becomes ready: none, the unit where the task would end first, or
        that of `units`.
    units : array (n,), optional
        Unit of each task.
    begin : array (n,), optional
        Order of the tasks of a unit; by rank if not given.
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
        If the name is not in `POLICIES`.
    """
    if name not in POLICIES:
        raise ValueError(f"schedule: found {name!r}, expected one of {', '.join(POLICIES)}")
    return POLICIES[name]


def static(units: ArrayLike, begin: ArrayLike | None = None) -> Policy:
    """Return the policy that gives each task the unit of a map, for example of an earlier or simulated run.

    Parameters
    ----------
    units : array (n,)
    begin : array (n,), optional
        Numbers, such as the times of a run, by which a unit orders its tasks; by rank if not given.
    """
    order = None if begin is None else np.asarray(begin, np.float64)
    return Policy("static", batch=False, mapped="given", units=np.asarray(units, np.int32), begin=order)


def unbatched(policy: Policy) -> Policy:
    """Return a policy whose devices take one task per launch."""
    return replace(policy, batch=False)


@dataclass(frozen=True, eq=False)
class Buckets:
    """Numbers of a policy for one graph on one node.

    Attributes
    ----------
    names : sequence of str
        Names of buckets.
    bucket : array (n,)
        Bucket of each task.
    orders : pair of tuples
        Buckets that cores and that devices poll, in this order, without buckets that the class may not run.
    few : pair of arrays (buckets,)
        Number of ready tasks up to which a core, and a device, leaves a bucket alone.
    shared : array (buckets,) of bool
        True if devices may run tasks of the bucket.
    whole : array (buckets,) of bool
        True if a device takes all ready tasks of the bucket at once.
    priority : array (n,)
        Number of each task: the least comes first, then the lowest task; not used with the order "arrival".
    owner, owners
        Device whose run of places includes each task, and the number of such runs.
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
    """Return the buckets of a policy; their orders and numbers depend on the seconds of this graph's tasks."""
    names, bucket = _split(graph) if policy.halves else (tuple(graph.kinds), graph.kind.astype(np.int32))
    core, device = durations.runs(node)
    runs = [np.bincount(bucket, mask, len(names)) > 0 for mask in (core, device)]
    speed = _accelerations(bucket, len(names), durations, node)
    owners = max(node.devices, 1) if policy.owners else 1
    core_order, device_order = _orders(policy, names, speed, runs[0] & runs[1], node)
    return Buckets(
        names=names,
        bucket=bucket,
        orders=(tuple(b for b in core_order if runs[0][b]), tuple(b for b in device_order if runs[1][b])),
        few=_few(policy, speed, runs[0] & runs[1], node),
        shared=runs[1],
        whole=~runs[0] & (policy.whole and node.devices == 1),
        priority=-graph.rank(durations.on_either(node)),
        owner=np.minimum((graph.place * owners).astype(np.int32), owners - 1),
        owners=owners,
    )


def _split(graph: Graph) -> tuple[tuple[str, ...], Ints]:
    """Return buckets by kind, with two for P2P: the half of its tasks with more work, and the other half."""
    bucket, names = graph.kind.astype(np.int32), [*graph.kinds, SMALL]
    if "P2P" in graph.kinds:
        number = list(graph.kinds).index("P2P")
        members = np.flatnonzero(graph.kind == number)
        names[number] = LARGE
        bucket[members[np.argsort(graph.work[members], kind="stable")[: len(members) // 2]]] = len(graph.kinds)
    return tuple(names), bucket


def _accelerations(bucket: Ints, n: int, durations: Durations, node: Node) -> Floats:
    """Return the acceleration of each bucket: seconds on a core over seconds on a device, launched one by one."""
    core, device = (np.bincount(bucket, t, n) for t in (durations.on_core(node), durations.on_device(node)))
    ratio = np.ones(n)
    mask = np.isfinite(core) & (device > 0)
    ratio[mask] = core[mask] / device[mask]
    ratio[np.isinf(core)] = np.inf
    return ratio


def _orders(
    policy: Policy, names: Sequence[str], speed: Floats, mask: NDArray[np.bool_], node: Node
) -> tuple[list[int], list[int]]:  # fmt: skip
    """Return the buckets in the orders of cores and of devices; `mask` marks buckets that both classes may run."""
    all_buckets = range(len(names))
    if policy.order != "acceleration":
        core_order = CORE_ORDER if node.devices or not policy.halves else ALONE_ORDER
        return _listed(core_order, names), _listed(DEVICE_ORDER, names)
    limit = policy.loses * speed[mask].min(initial=np.inf)
    first = [b for b in _listed(FIRST, names) if names[b] in FIRST and not (mask[b] and speed[b] > limit)]
    rest = [b for b in _listed(CORE_ORDER, names) if b not in first]
    return first + sorted(rest, key=lambda b: speed[b]), sorted(all_buckets, key=lambda b: -speed[b])


def _listed(order: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return the buckets in the order of a list, then the buckets that the list lacks."""
    place = {name: i for i, name in enumerate(order)}
    return sorted(range(len(names)), key=lambda b: place.get(names[b], len(order)))


def _few(policy: Policy, speed: Floats, mask: NDArray[np.bool_], node: Node) -> tuple[Floats, Floats]:
    """Return the number of ready tasks of each bucket that each class leaves to the other one."""
    zeros = np.zeros(len(speed))
    if policy.rule != "number":
        return zeros, zeros
    core, device = zeros.copy(), zeros.copy()
    fast_mask, slow_mask = mask & (speed > 1), mask & (speed < 1)
    core[fast_mask] = speed[fast_mask] * node.devices
    device[slow_mask] = node.cores / speed[slow_mask]
    return core, device
