"""Containers of ready tasks: buckets that all units share, or one queue per unit."""

import heapq
import math
from collections.abc import Sequence
from itertools import count
from typing import Protocol

import numpy as np

from parki.tasks.durations import Durations
from parki.tasks.graph import Graph
from parki.tasks.memory import Copies
from parki.tasks.node import Node
from parki.tasks.policy import Buckets, Policy

FULL = 2.0  # waves of work in a full batch


class Ready(Protocol):
    """Tasks whose predecessors have ended, and that no unit has begun."""

    def push(self, task: int, time: float) -> None:
        """Add a task."""

    def pop(self, unit: int) -> list[int]:
        """Remove and return the tasks that a unit begins together; the list may be empty."""

    def lane(self, unit: int) -> int:
        """Return the number of the unit's group: if one unit of a group finds no task, none of them does."""


class SharedBuckets:
    """Buckets that all units poll, each with one heap per run of places that a device owns.

    Parameters
    ----------
    policy : Policy
    buckets : Buckets
    durations : Durations
    node : Node
    """

    def __init__(self, policy: Policy, buckets: Buckets, durations: Durations, node: Node) -> None:
        self._policy, self._node, self._owners = policy, node, buckets.owners
        self._orders, self._few = buckets.orders, [counts.tolist() for counts in buckets.few]
        self._bucket, self._owner = buckets.bucket.tolist(), buckets.owner.tolist()
        self._shared, self._priority = buckets.shared.tolist(), buckets.priority.tolist()
        self._whole = buckets.whole.tolist()
        self._arrival = count()
        self._heaps: list[list[list[tuple[float, int]]]] = [[[] for _ in range(self._owners)] for _ in buckets.names]
        self._ready = [0] * len(buckets.names)
        self._core, self._device = durations.on_core(node).tolist(), durations.device.tolist()
        # a NumPy array, whose sums of batches are compared with waves: equal tasks fill a wave to the last bit
        self._work = durations.device
        self._wave, self._gpus = durations.wave.tolist(), max(node.devices, 1)
        self._remaining = float(durations.device[buckets.shared[buckets.bucket]].sum())

    def push(self, task: int, time: float) -> None:
        """Add a task to its bucket."""
        bucket, arrival = self._bucket[task], self._policy.order == "arrival"
        first = float(next(self._arrival)) if arrival else self._priority[task]
        heapq.heappush(self._heaps[bucket][self._owner[task]], (first, task))
        self._ready[bucket] += 1

    def lane(self, unit: int) -> int:
        """Return 0 for cores and 1 for devices."""
        return int(self._node.is_device(unit))

    def pop(self, unit: int) -> list[int]:
        """Remove and return a task, or on a device a batch of tasks of one bucket."""
        device = self._node.is_device(unit)
        if not any(self._ready[bucket] for bucket in self._orders[device]):
            return []
        bucket, owner = self._earliest(device) if self._policy.order == "arrival" else self._best(unit, device)
        if bucket < 0:
            return []
        batch = self._take(bucket, owner, device)
        if self._shared[bucket]:
            self._remaining -= sum([self._device[task] for task in batch])
        return batch

    def _earliest(self, device: bool) -> tuple[int, int]:
        """Return the bucket of the task that has been ready longest, and owner 0."""
        heads = [(self._heaps[b][0][0], b) for b in self._orders[device] if self._ready[b]]
        return min(heads)[1], 0

    def _best(self, unit: int, device: bool) -> tuple[int, int]:
        """Return the first bucket in the order of a class that the unit does not leave alone, and an owner in it."""
        if device and self._owners > 1:
            index = unit - self._node.cores
            for bucket in self._orders[1]:
                if self._heaps[bucket][index] and self._ready[bucket] > self._few[1][bucket]:
                    return bucket, index
        for bucket in self._orders[device]:
            if self._ready[bucket] > self._few[device][bucket]:
                for owner, heap in enumerate(self._heaps[bucket]):
                    if heap and not (self._is_left(bucket, heap[0][1]) and not device):
                        return bucket, owner
        return -1, 0

    def _is_left(self, bucket: int, task: int) -> bool:
        """Return whether a core leaves a task to the devices: they would end all remaining work before the core."""
        is_shared = self._policy.rule == "remaining" and self._shared[bucket]
        return is_shared and self._core[task] > self._remaining / self._gpus

    def _take(self, bucket: int, owner: int, device: bool) -> list[int]:
        heap, count = self._heaps[bucket][owner], self._ready[bucket]
        batch = [heapq.heappop(heap)[1]]
        if device and self._policy.batch:
            full, limit = FULL * self._wave[batch[0]], max(1, count // (2 * self._gpus))
            minimum = self._policy.least * self._wave[batch[0]]
            if self._whole[bucket]:
                full, limit = math.inf, count
            while heap and (work := self._work[batch].sum()) < full and (len(batch) < limit or work < minimum):
                batch.append(heapq.heappop(heap)[1])
        self._ready[bucket] -= len(batch)
        return batch


class UnitQueues:
    """Queues, one per unit: a task gets its unit when it becomes ready.

    Parameters
    ----------
    policy : Policy
        Policy with a map, or one that maps each task to the unit where it would end first.
    graph : Graph
    durations : Durations
    node : Node
    copies : Copies
        Places of data: copying missing data adds to the time at which a task would end.
    """

    def __init__(self, policy: Policy, graph: Graph, durations: Durations, node: Node, copies: Copies) -> None:
        self._node, self._copies = node, copies
        self._units = None if policy.units is None else checked_units(policy.units, durations, node)
        first = -graph.rank(durations.on_either(node)) if policy.begin is None else policy.begin
        self._first, self._reads = first.tolist(), graph.reads.lists()
        self._runs = [mask.tolist() for mask in durations.runs(node)]
        self._seconds = durations.on_core(node).tolist(), durations.on_device(node).tolist()
        self._free = [0.0] * node.units
        self._queues: list[list[tuple[float, int]]] = [[] for _ in range(node.units)]

    def push(self, task: int, time: float) -> None:
        """Add a task to the queue of its unit."""
        unit = self._where_it_ends_first(task, time) if self._units is None else self._units[task]
        heapq.heappush(self._queues[unit], (self._first[task], task))

    def lane(self, unit: int) -> int:
        """Return the unit."""
        return unit

    def pop(self, unit: int) -> list[int]:
        """Remove and return the first task of a unit's queue."""
        queue = self._queues[unit]
        return [heapq.heappop(queue)[1]] if queue else []

    def _where_it_ends_first(self, task: int, time: float) -> int:
        node, free_times = self._node, self._free
        units = [free_times.index(min(free_times[: node.cores]))] if self._runs[0][task] else []
        units += range(node.cores, node.units) if self._runs[1][task] else []
        starts = [max(free_times[unit], time) + self._seconds[node.is_device(unit)][task] for unit in units]
        copy_seconds = [self._copies.missing(self._reads[task], node.memory(unit)) / node.bandwidth for unit in units]
        ends = [start + seconds for start, seconds in zip(starts, copy_seconds, strict=True)]
        best = ends.index(min(ends))
        free_times[units[best]] = starts[best]
        return units[best]


def checked_units(units: Sequence[int] | np.ndarray, durations: Durations, node: Node) -> list[int]:
    """Return a map of tasks to units as a list; raise ValueError if a unit is missing or may not run its tasks."""
    units, n = np.asarray(units), len(durations.core)
    if units.shape != (n,) or (n and not 0 <= units.min() <= units.max() < node.units):
        text = f"found an array of shape {units.shape} with numbers to {units.max(initial=0)}"
        raise ValueError(f"units: {text}, expected a unit below {node.units} for each of {n} tasks")
    core, device = durations.runs(node)
    faults = np.flatnonzero(~np.where(units < node.cores, core, device))
    if len(faults):
        text = f"task {faults[0]} on {node.names[units[faults[0]]]}"
        raise ValueError(f"units: found {text}, expected a unit that may run it")
    return units.tolist()
