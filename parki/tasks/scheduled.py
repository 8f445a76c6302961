"""Lists of steps that run as tasks on the cores of a host, and on devices beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki.engine import CallTable, Prepared, Space, compile_for, spaces
from parki.engine.steps import BOUND, Handle, Launch, Memory, NoTimes, Step, StepList, fits
from parki.tasks import policy as policies
from parki.tasks import starpu
from parki.tasks.cut import CutSteps, cut
from parki.tasks.device import DeviceTasks, host_only
from parki.tasks.durations import Durations
from parki.tasks.graph import IntLists
from parki.tasks.means import Means
from parki.tasks.node import Node
from parki.tasks.pool import LINE, Calls, GraphRun, Record
from parki.tasks.sharing import Sharing
from parki.tasks.simulate import simulate
from parki.tasks.trace import Trace
from parki.tasks.units import NodeUnits

LEARNT = 3  # first runs, whose measured times improve the order of later runs
STATIC = "static"  # name of the order that gives each task the unit of the simulated run of "drain"
ORDERS = ("drain", "heteroprio", "heft", "fifo", STATIC)


class Scheduled:
    """Arrays and tasks of a list of steps on a host.

    Parameters
    ----------
    steps : StepList
        Steps, each with a cut.
    space : Space
        A host.
    order : str
        Rule by which a unit chooses ready tasks: one of `ORDERS`, see `parki.tasks.policy`, or StarPU with one of its
        policies, such as "starpu:prio".
    units : NodeUnits, optional
        Devices beside the cores; none if not given.

    Raises
    ------
    BuildError
        If a workunit does not compile.
    ValueError
        If a step has no cut.
    """

    def __init__(self, steps: StepList, space: Space, order: str = "drain", units: NodeUnits | None = None) -> None:
        self.steps, self.space, self.order = steps, space, order
        self.units = NodeUnits() if units is None else units
        self.node = self.units.of_node(spaces.workers(space))
        compile_for(steps.units(space), space)
        self.memory_of = Memory(space, 1)
        self.memory_of.allocate(steps.handles)
        self._listed: list[Step] = list(steps)
        self.cut: CutSteps = cut(self._listed)
        core = replace(space, threads=1)
        self._launches = [Launch(step, core, self.memory_of) for step in self._listed]
        self._changing = [k for k, launch in enumerate(self._launches) if launch.bound]
        self._inputs = [handle for handle in steps.handles if handle.role in BOUND]
        self._tables: _CallTables | None = None
        self._job: GraphRun | None = None
        self._means, self._runs = Means(), 0
        self._here = host_only(self._listed, self.cut)
        self._durations = self.units.durations(self.cut, self.node, self._here)
        device_tasks = np.isinf(self._durations.core) & (len(self.units.devices) == 1)
        self.devices = [
            DeviceTasks(steps, self.cut, self._here, device_tasks, device_space, index, self.memory_of)
            for device_space, index in self.units.devices
        ]
        first = self.cut.step[np.minimum(self.cut.begin[:-1], len(self.cut.step) - 1)]
        self._phases, inverse = np.unique([step.phase for step in self._listed], return_inverse=True)
        self._phases, self._phase_of = self._phases.tolist(), inverse[first]  # number of the phase of each task

    def __getitem__(self, handle: Handle) -> Any:
        """Return the array of a handle that is neither an argument nor a result."""
        return self.memory_of.of(handle)

    @property
    def arrays(self) -> list[Any]:
        """Arrays of the list, and arrays that launches and tasks keep."""
        launch_arrays = [a for launch in self._launches for call in launch.ready for a in call.own]
        tables = [] if self._tables is None else self._tables.arrays
        device_arrays = [a for device in self.devices for a in device.arrays]
        return [
            *self.memory_of.arrays,
            *launch_arrays,
            *tables,
            *([] if self._job is None else self._job.arrays),
            *device_arrays,
        ]

    @property
    def replays(self) -> list[Any]:
        """Graphs of a device: none."""
        return []

    @property
    def last(self) -> Trace | None:
        """Trace of the last run, None before the first."""
        if self._job is None:
            return None
        record = self._job.record()
        launch, begin = batches(record, self.node)
        nbytes = sum(device.copied + device.returned for device in self.devices)
        return Trace.of(self.cut.graph, record.worker, begin, record.ended, self.names, launch=launch, moved=nbytes)

    @property
    def names(self) -> list[str]:
        """Names of all units."""
        return [*self.node.names[: self.node.cores], *(device.name for device in self.devices)]

    def run(self, bound: Mapping[Any, Any] | None = None, times: Any = None) -> None:
        """Run all tasks, each as soon as the tasks that it waits for have ended.

        Parameters
        ----------
        bound : dict
            Array of every argument and result, by handle.
        times : optional
            Timer that receives the time of each phase: its share of the seconds of all tasks.
        """
        bound = bound or {}
        if self.devices and spaces.forked():
            raise RuntimeError(f"{self.devices[0].name} cannot be used in a forked process; expected one of 'spawn'.")
        for handle in self._inputs:
            fits(handle, bound.get(handle))
        changes = {k: self._launches[k].bind(bound) for k in self._changing}
        if self._tables is None or not self._tables.refreshed(changes):
            calls = [changes.get(k) or launch.ready[0] for k, launch in enumerate(self._launches)]
            self._tables = _CallTables(self._listed, calls, self.cut)
            self._job = self._made(self._tables)
        for k, call in changes.items():
            call.release(*self._launches[k].bound)
        times = times or NoTimes()
        phase = self._listed[-1].phase
        with times.phase(phase):
            failure = self._job.run()
        self._refuse(failure)
        if self._runs < LEARNT:
            self._learn(self.last)
        self._share(times, phase)

    def again(self, *phases: str) -> None:
        """Raise NotImplementedError, because tasks of single phases do not run by themselves."""
        raise NotImplementedError("phases of a sum that runs as tasks are not repeated; expected schedule='phases'.")

    def _refuse(self, failure: int | None) -> None:
        """Raise the first error of the last run, with the name of its task."""
        graph = self.cut.graph
        for error, device, tasks in self._job.failures:
            if tasks:
                suffix = f" and {len(tasks) - 1} more" if len(tasks) > 1 else ""
                error.add_note(f"in task {graph.name(tasks[0])}{suffix}, of {len(graph)}, on {device}")
            else:
                error.add_note(f"on {device}, before its first task")
            raise error
        if failure is not None:
            self._tables.refuse(failure, graph.name(self._job.task_of(failure)))

    @property
    def _plain(self) -> bool:
        """True if all units are cores that take ready tasks from one bucket, or from StarPU's."""
        return not self.devices and (self.order in ("drain", "fifo") or self.order.startswith(starpu.PREFIX))

    def _made(self, tables: "_CallTables") -> GraphRun:
        graph, threads = self.cut.graph, spaces.workers(self.space)
        turn = None if self.order == "fifo" else graph.turn(np.ones(len(graph)))
        if self.order.startswith(starpu.PREFIX):
            name = starpu.policy(self.order)
            return starpu.StarpuRun(graph, tables.calls, threads, turn, may_fault=tables.may_fault, name=name)
        if self._plain:
            return GraphRun(graph, tables.calls, threads, turn, may_fault=tables.may_fault)
        return GraphRun(
            graph, tables.calls, threads, may_fault=tables.may_fault, sharing=self._shared(self._durations),
            devices=self.devices,
        )  # fmt: skip

    def _shared(self, durations: Durations) -> Sharing:
        """Return the rules by which units share tasks of these durations."""
        graph, static = self.cut.graph, self.units.deterministic or self.order == STATIC
        policy = policies.find("drain" if self.order == STATIC else self.order)
        if static and policy.mapped == "none":
            trace = simulate(graph, durations, self.node, policy)
            policy = policies.static(trace.unit, trace.begin)
        return Sharing.of(policy, graph, durations, self.node)

    def _learn(self, trace: Trace) -> None:
        """Order tasks by the mean seconds of tasks of their kind and size in the first runs."""
        self._runs += 1
        graph = self.cut.graph
        self._means.add(graph, trace, self.node)
        if self.order == "fifo" or (self.units.deterministic and not self._plain):
            return
        if not self._plain:
            if self.units.modelled is not None:  # without a model, seconds of kinds that a unit has not run are unknown
                self._job.share(self._shared(self._means.blended(graph, self._durations)))
            return
        run_seconds = trace.end - trace.begin
        durations = Durations.of(graph, run_seconds, np.full(len(graph), np.inf), {}, {})
        seconds = self._means.blended(graph, durations).core
        self._job.reorder(graph.turn(seconds))
        self._job.expect(seconds)

    def _share(self, times: Any, phase: str) -> None:
        """Divide the time of the run among phases, by their shares of the seconds of all tasks."""
        if isinstance(times, NoTimes):
            return
        record, total = self._job.record(), times.time[phase]
        begin = batches(record, self.node)[1] if self.devices else record.began
        seconds = np.bincount(self._phase_of, record.ended - begin, len(self._phases))
        shares = dict(zip(self._phases, (seconds / seconds.sum()).tolist(), strict=True))
        for name, share in shares.items():
            if name != phase:
                times.shift(total * share, phase, name)


def batches(record: Record, node: Node) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the number of each task's launch, and its beginning in seconds.

    Tasks that a device took at once are one launch, which begins when the previous launch has ended.
    """
    n = len(record.worker)
    launch, begin = np.arange(n), record.began.copy()
    for device in range(node.cores, node.units):
        tasks = np.flatnonzero(record.worker == device)
        _, inverse = np.unique(record.began[tasks], return_inverse=True)
        launch[tasks] = n + device * n + inverse
        end = 0.0
        for number in range(int(inverse.max(initial=-1)) + 1):
            members = tasks[inverse == number]
            begin[members] = max(end, float(record.began[members[0]]))
            end = float(record.ended[members].max())
    return np.unique(launch, return_inverse=True)[1], begin


class _CallTables:
    """Argument structures of the calls of all tasks."""

    def __init__(self, steps: Sequence[Step], prepared_calls: Sequence[Prepared], cut: CutSteps) -> None:
        self._ready, self._cut = list(prepared_calls), cut
        order = np.argsort(cut.step, kind="stable")
        ends = np.searchsorted(cut.step[order], np.arange(len(steps) + 1))
        self._calls_of = [order[begin:end] for begin, end in pairwise(ends)]
        self._fault = np.zeros((len(cut.step), 4), np.int64)
        self._fault_at = self._fault.ctypes.data + self._fault.strides[0] * np.arange(len(cut.step), dtype=np.uint64)
        self._rooms, end = {}, 0
        for step in steps:
            for a in step.handles.values():
                if a.whole.role == "scratch" and id(a.whole) not in self._rooms:
                    self._rooms[id(a.whole)] = end
                    end += -(-a.whole.nbytes // LINE) * LINE
        self._team_scratch = end
        scratch_bytes = max((call._call.scratch_bytes for call in prepared_calls), default=0)
        self._room = end + -(-(scratch_bytes + LINE) // LINE) * LINE
        self._tables = [self._table(k) for k in range(len(steps))]
        n = len(cut.step)
        run, args = np.zeros(n, np.uint64), np.zeros(n, np.uint64)
        owner, pointers = [], []
        for step, table, calls in zip(steps, self._tables, self._calls_of, strict=True):
            run[calls], args[calls] = table.entry, table.addresses
            pairs = self._pointers(step, table)
            owner.append(np.repeat(calls, len(pairs)))
            pointers.append(np.tile(np.array(pairs, np.int64).reshape(-1, 2), (len(calls), 1)))
        owners, rows = np.concatenate(owner), np.concatenate(pointers)
        patches = IntLists.of(owners, np.arange(len(owners)), n)
        self.calls = Calls(cut.begin, run, args, patches, rows, self._fault_at, self._room)

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """Arrays of the tables."""
        return [self._fault, *(table.rows for table in self._tables)]

    @property
    def may_fault(self) -> bool:
        """True if a call may leave a record of a fault."""
        return any(table.may_fault for table in self._tables)

    def refreshed(self, changes: Mapping[int, Prepared]) -> bool:
        """Update the tables for the arrays of a run; return False if the launches are not those of the tables."""
        if any(self._ready[k] is not call for k, call in changes.items()):
            return False
        for k in changes:
            self._tables[k].rows[:] = self._table(k).rows
        return True

    def refuse(self, call: int, task: str) -> None:
        """Raise the error of a call that has failed, with the name of its task."""
        fault = self._fault[call].copy()
        self._fault[:] = 0
        try:
            self._tables[self._cut.step[call]].call.refuse(fault)
        except Exception as error:
            error.add_note(f"in task {task}, one of {len(self._cut.graph)}")
            raise

    def _table(self, k: int) -> CallTable:
        calls = self._calls_of[k]
        table = CallTable(self._ready[k], self._cut.first[calls], self._cut.count[calls])
        table.column("pk_fault_at", np.uint64)[:] = self._fault_at[calls]
        return table

    def _pointers(self, step: Step, table: CallTable) -> list[tuple[int, int]]:
        """Return pairs: offset of a pointer in the arguments, and offset of its bytes in the room of a worker."""
        pairs = [
            (table.offset(name), self._rooms[id(a.whole)] + a.extent[0])
            for name, a in step.handles.items()
            if a.whole.role == "scratch"
        ]
        if table.call.scratch_bytes:
            pairs.append((table.offset("pk_scratch"), self._team_scratch))
        return pairs
