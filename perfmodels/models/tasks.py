"""`parki model fmm --schedule`: a sum cut into tasks, and their simulated schedule on cores and devices of a node."""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki.engine import writing
from parki.fmm import work
from parki.perfmodels import tasks
from parki.perfmodels.machine import GENERIC, Machine
from parki.perfmodels.tasks import UnitWork
from parki.plan import Plan
from parki.tasks import bound, gantt, units
from parki.tasks.cut import CutSteps
from parki.tasks.durations import Durations
from parki.tasks.graph import Graph
from parki.tasks.node import Node
from parki.tasks.simulate import simulate
from parki.tasks.trace import Trace

OPTIONS = ("points", "cores", "devices", "gantt", "trace")  # options that need --schedule
CutOf = Callable[[Plan], tuple[CutSteps, NDArray[np.bool_]]]  # a plan's tasks, and a mask of tasks for the host only


@dataclass(frozen=True, eq=False)
class ModelledSchedule:
    """A simulated schedule of a sum.

    Attributes
    ----------
    graph : Graph
    durations : Durations
        Durations of every task on cores and on devices, as if each unit could run it.
    node : Node
    host, device : Machine or None
    trace : Trace
    bound : float
        Lower bound of the seconds of any schedule.
    """

    graph: Graph
    durations: Durations
    node: Node
    host: Machine | None
    device: Machine | None
    trace: Trace
    bound: float

    @property
    def shares(self) -> dict[str, float]:
        """Return the share of the run in which cores and devices worked."""
        slices = {"cores": slice(0, self.node.cores), "devices": slice(self.node.cores, None)}
        return {name: self.trace.share(part) for name, part in slices.items() if getattr(self.node, name)}

    @property
    def alone(self) -> dict[str, float]:
        """Return the seconds of all tasks shared evenly by one class of units alone, for classes that may run them."""
        sums = {"cores": self.durations.core.sum(), "devices": self.durations.device.sum()}
        numbers = {"cores": self.node.cores, "devices": self.node.devices}
        return {name: float(sums[name] / numbers[name]) for name in sums if numbers[name] and np.isfinite(sums[name])}


def modelled(
    cut: CutSteps, mask: NDArray[np.bool_], plan: Plan, machine: Machine, cores: int, devices: int, policy: str
) -> ModelledSchedule:  # fmt: skip
    """Return the simulated schedule of a plan's tasks.

    Parameters
    ----------
    cut : CutSteps
        Tasks of the plan.
    mask : array (tasks,) of bool
        Mask of tasks that only the host may run, if it has cores.
    plan : Plan
        Plan by equivalent sources.
    machine : Machine
        A GPU, beside cores of a generic server; or a host.
    cores, devices : int
    policy : str
        Name of a policy.
    """
    gpu = machine.is_gpu
    host = Machine.load(GENERIC) if gpu else machine

    def side(hardware: Machine, units: int) -> UnitWork | None:
        if not units:
            return None
        return UnitWork(hardware, work.counts(plan.structure, plan.parameters, hardware, is_mixed=devices > 0), units)

    on_host, on_device = side(host, cores), side(machine, devices) if gpu else None
    graph, node = cut.graph, tasks.node(on_host, on_device)
    free = tasks.durations(graph, plan.dtype.name, on_host, on_device)
    minimum = bound.least_seconds(graph, free, node)
    durations = units.gathered(units.restricted(free, node, mask), cut, node) if cores else free
    trace = simulate(graph, durations, node, policy)
    return ModelledSchedule(graph, free, node, host if cores else None, machine if gpu else None, trace, minimum)


def check(args: argparse.Namespace) -> None:
    """Raise ValueError if options of schedules do not fit each other, before anything is made.

    Parameters
    ----------
    args : Namespace
        Arguments of `parki model fmm`.
    """
    if args.schedule is None:
        for name in OPTIONS:
            if getattr(args, name) is not None:
                raise ValueError(f"--{name}: found without --schedule, expected with it")
    for name in ("ranks", "threads", "published"):
        if args.schedule is not None and getattr(args, name):
            raise ValueError(f"--{name}: found with --schedule, expected without; --cores are those of a schedule")
    if args.gantt is not None:
        gantt.check(args.gantt)


def main(args: argparse.Namespace, machine: Machine, plan: Plan, cut_of: CutOf) -> int:
    """Print the schedule of a sum; write and draw it if asked.

    Parameters
    ----------
    args : Namespace
        Arguments of `parki model fmm --schedule`.
    machine : Machine
        Machine of ``--device``.
    plan : Plan
    cut_of : function
        Returns the tasks of a plan, and the mask of tasks that only the host may run.
    """
    cores, devices = counted(args, machine)
    schedule = modelled(*cut_of(plan), plan, machine, cores, devices, args.schedule)
    print(text(args, schedule))  # noqa: T201
    if args.json:
        writing.write(args.json, json.dumps(record(args, schedule), indent=1) + "\n")
    if args.trace:
        schedule.trace.write(Path(args.trace))
    if args.gantt:
        gantt.draw(schedule.trace, Path(args.gantt), f"{args.schedule}: {_title(args, schedule)}")
    return 0


def counted(args: argparse.Namespace, machine: Machine) -> tuple[int, int]:
    """Return the numbers of cores and devices asked for.

    Parameters
    ----------
    args : Namespace
    machine : Machine
        By default of a GPU one without cores, of a host all cores.

    Raises
    ------
    ValueError
        If devices are asked for with a host, or a number is negative.
    """
    numbers = {name: getattr(args, name) for name in ("cores", "devices")}
    for name, number in numbers.items():
        if number is not None and number < 0:
            raise ValueError(f"--{name}: found {number}, expected 0 or more")
    if machine.is_gpu:
        return numbers["cores"] or 0, 1 if numbers["devices"] is None else numbers["devices"]
    if numbers["devices"]:
        raise ValueError(f"--devices: found with {machine.name}, expected with a GPU as --device")
    return machine.units if numbers["cores"] is None else numbers["cores"], 0


def text(args: argparse.Namespace, schedule: ModelledSchedule) -> str:
    """Return the schedule as a table."""
    trace, ms = schedule.trace, 1e3
    times_alone = "".join(f"; {name} alone {ms * seconds:.4g}" for name, seconds in schedule.alone.items())
    busy = "  ".join(f"{name} {share:.0%}" for name, share in schedule.shares.items())
    lines = [
        _title(args, schedule),
        f"{len(trace)} tasks, schedule {args.schedule}: {ms * trace.seconds:.4g} ms",
        f"bound {ms * schedule.bound:.4g} ms, {schedule.bound / trace.seconds:.1%} of it{times_alone}",
        f"busy: {busy}; copied {trace.moved / 1e6:.4g} MB; {len(trace.launches)} launches",
        "",
        "kind       tasks  on devices    core ms  device ms  core / device",
        *(_row(name, row) for name, row in rows(schedule).items()),
        "",
        "core ms, device ms: of all tasks of a kind on one unit, launches apart.  Times are models, not measured.",
    ]
    return "\n".join(lines)


def _title(args: argparse.Namespace, schedule: ModelledSchedule) -> str:
    units = [f"{schedule.node.cores} cores of {schedule.host.name}"] if schedule.host else []
    units += [f"{schedule.node.devices} × {schedule.device.name}"] if schedule.node.devices and schedule.device else []
    problem = f"{args.kernel or 'coulomb'}, kifmm, N = {args.n:,} ({args.points or 'uniform'}), {args.dtype}"
    return f"{problem}, on {' and '.join(units)}"


def rows(schedule: ModelledSchedule) -> dict[str, dict[str, float]]:
    """Return numbers of tasks and seconds by kind; seconds are infinite where a class may not run a kind."""
    table = {}
    for number, name in enumerate(schedule.graph.kinds):
        mask = schedule.graph.kind == number
        table[name] = {
            "tasks": int(mask.sum()), "on devices": int((schedule.trace.unit[mask] >= schedule.node.cores).sum()),
            "core": float(schedule.durations.core[mask].sum()), "device": float(schedule.durations.device[mask].sum()),
        }  # fmt: skip
    return table


def _row(name: str, row: dict[str, float]) -> str:
    is_comparable = np.isfinite([row["core"], row["device"]]).all() and row["device"] > 0
    times = [f"{1e3 * row[side]:11.4g}" if np.isfinite(row[side]) else f"{'–':>11s}" for side in ("core", "device")]
    ratio = f"{row['core'] / row['device']:15.4g}" if is_comparable else f"{'–':>15s}"
    return f"{name:9s}{row['tasks']:7d} {row['on devices']:11d}{times[0]}{times[1]}{ratio}"


def record(args: argparse.Namespace, schedule: ModelledSchedule) -> dict[str, Any]:
    """Return the schedule as data, in seconds and bytes."""
    kinds = {
        name: {key: value for key, value in row.items() if np.isfinite(value)} for name, row in rows(schedule).items()
    }
    return {
        "what": "fmm schedule",
        "kernel": args.kernel or "coulomb",
        "n": args.n,
        "points": args.points or "uniform",
        "dtype": args.dtype,
        "schedule": args.schedule,
        "cores": schedule.node.cores,
        "devices": schedule.node.devices,
        "host": schedule.host.name if schedule.host else None,
        "device": schedule.device.name if schedule.device else None,
        "tasks": len(schedule.graph),
        "seconds": schedule.trace.seconds,
        "bound": schedule.bound,
        "busy": schedule.shares,
        "alone": schedule.alone,
        "bytes": schedule.trace.moved,
        "launches": len(schedule.trace.launches),
        "kinds": kinds,
    }
