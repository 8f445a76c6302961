"""Schedules of a sum: the units that run its tasks, the policy by which they take tasks, and the reason.

Source: E. Agullo et al., "Task-based FMM for heterogeneous architectures", Inria RR-8513 (2014).
"""

from dataclasses import dataclass, field, replace
from typing import Any

from parki.engine import Space, devices, spaces
from parki.fmm import work
from parki.fmm.options import FmmOptions, needs_no_model
from parki.fmm.params import Parameters
from parki.fmm.structure import FmmStructure
from parki.perfmodels import tasks
from parki.perfmodels.machine import GENERIC, Machine
from parki.perfmodels.tasks import UnitWork
from parki.prediction import machine_of
from parki.tasks.cut import cut
from parki.tasks.device import host_only
from parki.tasks.durations import Durations
from parki.tasks.graph import Graph
from parki.tasks.node import Node
from parki.tasks.simulate import simulate
from parki.tasks.units import NodeUnits

PHASES, AUTO, BEST = "phases", "auto", "drain"
WORTH_TASKS = 1.05  # least gain for which tasks on cores alone are used
WORTH_CORES = 1.15  # least gain for which cores are used beside devices


@dataclass(frozen=True, eq=False)
class ScheduleChoice:
    """Schedule of a sum.

    Attributes
    ----------
    order : str
        ``"phases"``, or a policy of tasks.
    units : NodeUnits
    why : str
        Reason, if the choice was not the caller's.
    """

    order: str = PHASES
    units: NodeUnits = field(default_factory=NodeUnits)
    why: str = ""

    @property
    def as_tasks(self) -> bool:
        """Tell whether the sum is cut into tasks."""
        return self.order != PHASES

    def said(self, cores: int) -> str:
        """Return the schedule in words, on a host of `cores` cores."""
        names = [f"{cores} cores"] if self.units.cores else []
        names += [f"{space.name} {number}" for space, number in self.units.devices]
        text = f"tasks on {' and '.join(names)}, {self.order}" if self.as_tasks else self.order
        return f"{text} ({self.why})" if self.why else text


@dataclass(frozen=True)
class AskedUnits:
    """Units that a caller asks for.

    Attributes
    ----------
    host : str or Space
        Space of the plan and its arrays.
    device : Space
        Kind of devices.
    numbers : tuple of int
        Numbers of devices among those of their kind.
    cores : bool
        Whether cores work beside the devices.
    """

    host: str | Space
    device: Space
    numbers: tuple[int, ...]
    cores: bool


def asked(options: FmmOptions) -> AskedUnits | None:
    """Return the units that options ask for; None if one space does the whole sum.

    Raises
    ------
    ValueError
        For two hosts, devices of two kinds, and numbers of missing devices.
    """
    setting = options.execution_space
    names = setting if isinstance(setting, tuple) else (setting,)
    if len(names) == 1 and options.devices is None:
        return None
    all_spaces = [spaces.get(name) for name in names]
    hosts, accelerators = ([space for space in all_spaces if space.native is native] for native in (True, False))
    if len(hosts) > 1 or len(accelerators) > 1:
        text = ", ".join(space.name for space in all_spaces)
        raise ValueError(f"execution_space is {text}; expected one host and one kind of devices at most.")
    if not accelerators:
        raise ValueError(f"devices is {options.devices!r} with {hosts[0].name!r}; expected a space of devices.")
    return AskedUnits(
        hosts[0] if hosts else "CPU", accelerators[0], _numbers(options.devices, accelerators[0]), bool(hosts)
    )


def space_of(options: FmmOptions, dtype: str) -> tuple[Any, int | None]:
    """Return the host of several units and its threads, or one device if cores are not worth using."""
    units = asked(options)
    if units is None:
        return options.execution_space, options.threads
    return (units.device, None) if alone(options, units, dtype) else (units.host, options.threads)


def alone(options: FmmOptions, units: AskedUnits, dtype: str) -> str:
    """Return why one device does the whole sum alone; an empty string if it does not."""
    if options.schedule != AUTO or units.device.checks_accesses or not units.cores or len(units.numbers) > 1:
        return ""
    if units.numbers != (0,):  # plans of one space use the first device
        return ""
    host = spaces.get(units.host)
    cores = options.threads or spaces.workers(host)
    gpu, core = machine_of(units.device), machine_of(host)
    gain = most_gain(gpu, core, cores, dtype)
    if gain >= WORTH_CORES:
        return ""
    ratio = round(gpu.operations[dtype]["fma"] / core.operations[dtype]["fma"])
    return f"{gpu.name} computes as {ratio} cores: {cores} beside it win {100 * (gain - 1):.0f} % at most"


def most_gain(gpu: Machine, host: Machine, cores: int, dtype: str) -> float:
    """Return the largest gain of cores beside a device: the speed of both over the device's, by their arithmetic."""
    return 1 + cores * host.operations[dtype]["fma"] / gpu.operations[dtype]["fma"]


def without_model(options: FmmOptions, space: Space, dtype: str) -> ScheduleChoice | None:
    """Return the schedule that options and space decide; None if models of the tasks must decide.

    Parameters
    ----------
    options : FmmOptions
    space : Space
        Space of the plan.
    dtype : str
    """
    units = asked(options)
    if units is not None and not space.native:
        return ScheduleChoice(why=alone(options, units, dtype))
    node_units = NodeUnits(deterministic=options.deterministic)
    if units is not None:
        node_units = replace(
            node_units, devices=tuple((units.device, number) for number in units.numbers), cores=units.cores
        )
    if options.tasks:
        return ScheduleChoice(options.schedule, node_units)
    if options.schedule == PHASES or options.method != "kifmm" or options.comm is not None:
        return ScheduleChoice()
    if units is not None:
        if units.device.checks_accesses:
            return ScheduleChoice(BEST, node_units, f"{units.device.name} has no model: all units work")
        return None
    return None if space.native and space.engine == "parki" else ScheduleChoice()


def modelled(options: FmmOptions, space: Space, dtype: str, structure: FmmStructure, p: Parameters) -> ScheduleChoice:
    """Return the schedule that simulated runs decide.

    Parameters
    ----------
    options : FmmOptions
    space : Space
        A host.
    dtype : str
    structure : FmmStructure
        Structure of a sum that is cut into tasks.
    p : Parameters
    """
    units, cores = asked(options), spaces.workers(space)
    durations = TaskModel(structure, p, dtype, space, units, options.deterministic)
    steps = list(structure.expansion.steps)
    parts = cut(steps)
    graph, host_tasks, node = parts.graph, host_only(steps, parts), durations.node(cores)
    if units is None:
        seconds = {name: simulate(graph, durations(graph, node), node, name).seconds for name in (PHASES, BEST)}
        gain = seconds[PHASES] / seconds[BEST]
        reason = f"simulated on {cores} cores, {gain:.2f} × as fast as phases"
        node_units = NodeUnits(modelled=durations, deterministic=options.deterministic)
        return (
            ScheduleChoice(BEST, node_units, reason) if gain >= WORTH_TASKS else ScheduleChoice(why=f"tasks: {reason}")
        )
    ways = tuple((units.device, number) for number in units.numbers)
    node_units = NodeUnits(ways, units.cores, node, durations, options.deterministic)
    names = f"{len(ways)} × {units.device.name}"
    if not units.cores:
        return ScheduleChoice(BEST, node_units, f"{names}: as asked")
    device_units = replace(node_units, cores=False)
    joint_seconds, devices_alone = (
        simulate(graph, candidate.durations(parts, node, host_tasks), node, BEST).seconds
        for candidate in (node_units, device_units)
    )
    gain = devices_alone / joint_seconds
    reason = f"simulated, {cores} cores beside {names} are {gain:.2f} × as fast as without"
    return ScheduleChoice(BEST, node_units if gain >= WORTH_CORES else device_units, reason)


def with_model(
    choice: ScheduleChoice, options: FmmOptions, space: Space, dtype: str, structure: FmmStructure, p: Parameters
) -> NodeUnits:  # fmt: skip
    """Return the units of a choice, with the modelled seconds of their tasks if policies need them.

    A simulator of a GPU has no model.
    """
    units, node_units = asked(options), choice.units
    is_simulated = any(device.checks_accesses for device, _ in node_units.devices)
    if node_units.modelled is not None or is_simulated or (not node_units.devices and needs_no_model(choice.order)):
        return node_units
    model = TaskModel(structure, p, dtype, space, units, options.deterministic)
    return replace(node_units, modelled=model, node=model.node(spaces.workers(space)))


@dataclass(frozen=True, eq=False)
class TaskModel:
    """Model of the seconds of a sum's tasks, on cores of a host and on devices.

    Parameters
    ----------
    structure : FmmStructure
    parameters : Parameters
    dtype : str
    space : Space
        The host.
    units : AskedUnits or None
    deterministic : bool
        Model a generic server as the host: measured rates differ from process to process.
    """

    structure: FmmStructure
    parameters: Parameters
    dtype: str
    space: Space
    units: AskedUnits | None
    deterministic: bool

    def _sides(self, cores: int) -> tuple[UnitWork, UnitWork | None]:
        host = Machine.load(GENERIC) if self.deterministic else machine_of(self.space)
        gpu = None if self.units is None else machine_of(self.units.device)
        facts = self.structure, self.parameters
        sides = [
            None if machine is None else UnitWork(machine, work.counts(*facts, machine, gpu is not None), count)
            for machine, count in ((host, cores), (gpu, len(self.units.numbers) if self.units else 0))
        ]
        return sides[0], sides[1]

    def node(self, cores: int) -> Node:
        """Return the node of these units, with the links in the device's file."""
        return tasks.node(*self._sides(cores))

    def __call__(self, graph: Graph, node: Node) -> Durations:
        """Return the seconds of the tasks of a graph."""
        return tasks.durations(graph, self.dtype, *self._sides(node.cores))


def _numbers(setting: Any, space: Space) -> tuple[int, ...]:
    """Return the numbers of devices: the first one by default, any for the simulator."""
    device_list = devices.find(space.name) if space.own_memory else None
    if setting is None:
        return (0,)
    if setting == "all":
        return tuple(range(1 if device_list is None else len(device_list)))
    if device_list is not None and max(setting) >= len(device_list):
        raise ValueError(
            f"devices is {setting!r}; expected numbers below {len(device_list)}, the devices of {space.name}."
        )
    return setting
