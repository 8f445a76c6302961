"""Simulation of a schedule: units of a node take the tasks of a graph by a policy, event by event.

Seconds of tasks and copies are given.  Cores do not slow each other down, and a device runs one launch at a time while
data of the next launch are copied.
"""

import heapq
from itertools import count

import numpy as np

from parki.tasks import policy as policies
from parki.tasks.durations import Durations
from parki.tasks.graph import Graph
from parki.tasks.memory import Channels, Copies
from parki.tasks.node import HOST, Node
from parki.tasks.phases import phases
from parki.tasks.policy import Policy
from parki.tasks.ready import Ready, SharedBuckets, UnitQueues
from parki.tasks.trace import Trace


def simulate(graph: Graph, durations: Durations, node: Node, policy: str | Policy = "drain") -> Trace:
    """Return the trace of a simulated run of a graph on a node.

    Parameters
    ----------
    graph : Graph
    durations : Durations
        Seconds of the graph's tasks.
    node : Node
        Units and links.
    policy : str or Policy
        A name of `policy.POLICIES`, or a policy.

    Raises
    ------
    ValueError
        For an unknown policy, durations of another graph, or a task that no unit may run.
    """
    if len(durations.core) != len(graph):
        raise ValueError(f"durations: found those of {len(durations.core)} tasks, expected {len(graph)}")
    policy = policies.find(policy) if isinstance(policy, str) else policy
    durations.runs(node)
    return _Run(graph, durations, node, policy).trace()


class _HeldTasks:
    """Ready tasks of phases that have not begun."""

    def __init__(self, phase: np.ndarray) -> None:
        self._phase, self._now = phase.tolist(), 0
        self._left = np.bincount(phase, minlength=1).tolist()
        self._held: list[list[int]] = [[] for _ in self._left]

    def holds(self, task: int) -> bool:
        """Return whether a task has to wait for its phase, and keep the task in this case."""
        if self._phase[task] <= self._now:
            return False
        self._held[self._phase[task]].append(task)
        return True

    def end(self, tasks: list[int]) -> list[int]:
        """Count tasks that have ended; return the held tasks of phases that begin now."""
        for task in tasks:
            self._left[self._phase[task]] -= 1
        phase_tasks: list[int] = []
        while self._now < len(self._left) - 1 and not self._left[self._now]:
            self._now += 1
            phase_tasks += self._held[self._now]
        return phase_tasks


class _Run:
    """State of a simulated run."""

    def __init__(self, graph: Graph, durations: Durations, node: Node, policy: Policy) -> None:
        self._graph, self._node = graph, node
        nbytes = graph.nbytes.tolist()
        self._channels = Channels(nbytes, node)
        self._copies = Copies(nbytes, self._channels, node.between > 0)
        self._ready: Ready = (
            UnitQueues(policy, graph, durations, node, self._copies)
            if policy.mapped != "none"
            else SharedBuckets(policy, policies.buckets(policy, graph, durations, node), durations, node)
        )
        self._barriers = _HeldTasks(phases(graph) if policy.barriers else np.zeros(len(graph), np.int32))
        self._reads, self._writes, self._after = (rows.lists() for rows in (graph.reads, graph.writes, graph.after))
        self._waits = np.diff(graph.before.begin).tolist()
        self._core, self._device = durations.on_core(node).tolist(), durations.device
        self._launch, self._wave = (durations.launches * node.launch).tolist(), durations.wave.tolist()
        self._free, self._flying = [0.0] * node.units, [0] * node.units
        self._events: list[tuple[float, int, int, list[int]]] = []
        self._launches = count()
        n = len(graph)
        self._begin, self._end, self._unit, self._launch_of = [0.0] * n, [0.0] * n, [-1] * n, [-1] * n

    def trace(self) -> Trace:
        """Return the trace of the whole run."""
        for task, n_waits in enumerate(self._waits):
            if not n_waits:
                self._push(task, 0.0)
        self._give(0.0)
        time, n_done = 0.0, 0
        while self._events:
            time, _, unit, tasks = heapq.heappop(self._events)
            self._flying[unit] -= 1
            n_done += len(tasks)
            self._finish(tasks, self._node.memory(unit), time)
            self._give(time)
        if n_done != len(self._graph):
            raise RuntimeError(f"schedule: found {len(self._graph) - n_done} tasks that no unit takes, expected none")
        seconds = max(time, self._copies.fetch(results(self._graph), HOST, time))
        return Trace.of(
            self._graph, self._unit, self._begin, self._end, self._node.names, launch=self._launch_of, seconds=seconds,
            moved=self._channels.moved,
        )  # fmt: skip

    def _push(self, task: int, time: float) -> None:
        if not self._barriers.holds(task):
            self._ready.push(task, time)

    def _finish(self, tasks: list[int], memory: int, time: float) -> None:
        """Mark data that tasks have written as valid, and tasks that waited for nothing else as ready."""
        for task in tasks:
            self._copies.write(self._writes[task], memory, time)
            for successor in self._after[task]:
                self._waits[successor] -= 1
                if not self._waits[successor]:
                    self._push(successor, time)
        for task in self._barriers.end(tasks):
            self._push(task, time)

    def _give(self, time: float) -> None:
        """Give tasks to all units that have room, devices first."""
        closed_lanes = set()
        for unit in range(self._node.units - 1, -1, -1):
            lane, limit = self._ready.lane(unit), self._node.ahead if self._node.is_device(unit) else 1
            while lane not in closed_lanes and self._flying[unit] < limit:
                tasks = self._ready.pop(unit)
                if tasks:
                    self._start(unit, tasks, time)
                else:
                    closed_lanes.add(lane)

    def _start(self, unit: int, tasks: list[int], time: float) -> None:
        memory = self._node.memory(unit)
        arrivals = [self._copies.fetch(self._reads[task], memory, time) for task in tasks]
        begin, first = max(self._free[unit], *arrivals), tasks[0]
        if self._node.is_device(unit):
            work = float(self._device[tasks].sum())
            end = begin + (self._launch[first] + max(work, self._wave[first]))
        else:
            end = begin + self._core[first]
        launch = next(self._launches)
        for task in tasks:
            self._begin[task], self._end[task], self._unit[task], self._launch_of[task] = begin, end, unit, launch
        self._free[unit] = end
        self._flying[unit] += 1
        heapq.heappush(self._events, (end, launch, unit, tasks))


def results(graph: Graph) -> list[int]:
    """Return the data of the caller: tasks with work write them, and no task reads them afterwards."""
    last = np.full((2, len(graph.nbytes)), -1)
    for row, accesses in zip(last, (graph.reads, graph.writes), strict=True):
        np.maximum.at(row, accesses.values, accesses.owner)
    writers = last[1]
    return np.flatnonzero((writers >= 0) & (writers >= last[0]) & (graph.work[writers] > 0)).tolist()
