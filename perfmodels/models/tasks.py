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
        found = {"cores": slice(0, self.node.cores), "devices": slice(self.node.cores, None)}
        return {name: self.trace.share(some) for name, some in found.items() if getattr(self.node, name)}

    @property
    def alone(self) -> dict[str, float]:
        """Return the seconds of all tasks shared evenly by one class of units alone, for classes that may run them."""
        sums = {"cores": self.durations.core.sum(), "devices": self.durations.device.sum()}
        many = {"cores": self.node.cores, "devices": self.node.devices}
        return {name: float(sums[name] / many[name]) for name in sums if many[name] and np.isfinite(sums[name])}


def modelled(
    cut: CutSteps, here: NDArray[np.bool_], plan: Plan, machine: Machine, cores: int, devices: int, policy: str
) -> ModelledSchedule:  # fmt: skip
    """Return the simulated schedule of a plan's tasks.

    Parameters
    ----------
    cut : CutSteps
        Tasks of the plan.
    here : array (tasks,) of bool
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

    def side(one: Machine, units: int) -> UnitWork | None:
        return UnitWork(one, work.counts(plan.structure, plan.parameters, one), units) if units else None

    on_host, on_device = side(host, cores), side(machine, devices) if gpu else None
    graph, node = cut.graph, tasks.node(on_host, on_device)
    free = tasks.durations(graph, plan.dtype.name, on_host, on_device)
    least = bound.least_seconds(graph, free, node)
    durations = units.gathered(units.restricted(free, node, here), cut, node) if cores else free
    trace = simulate(graph, durations, node, policy)
    return ModelledSchedule(graph, free, node, host if cores else None, machine if gpu else None, trace, least)


def check(asked: argparse.Namespace) -> None:
    """Raise ValueError if options of schedules do not fit each other, before anything is made.

    Parameters
    ----------
    asked : Namespace
        Arguments of `parki model fmm`.
    """
    if asked.schedule is None:
        for name in OPTIONS:
            if getattr(asked, name) is not None:
                raise ValueError(f"--{name}: found without --schedule, expected with it")
    for name in ("ranks", "threads", "published"):
        if asked.schedule is not None and getattr(asked, name):
            raise ValueError(f"--{name}: found with --schedule, expected without; --cores are those of a schedule")
    if asked.gantt is not None:
        gantt.check(asked.gantt)


def main(asked: argparse.Namespace, machine: Machine, plan: Plan, cut_of: CutOf) -> int:
    """Print the schedule of a sum; write and draw it if asked.

    Parameters
    ----------
    asked : Namespace
        Arguments of `parki model fmm --schedule`.
    machine : Machine
        Machine of ``--device``.
    plan : Plan
    cut_of : function
        Returns the tasks of a plan, and the mask of tasks that only the host may run.
    """
    cores, devices = counted(asked, machine)
    made = modelled(*cut_of(plan), plan, machine, cores, devices, asked.schedule)
    print(text(asked, made))  # noqa: T201
    if asked.json:
        writing.write(asked.json, json.dumps(record(asked, made), indent=1) + "\n")
    if asked.trace:
        made.trace.write(Path(asked.trace))
    if asked.gantt:
        gantt.draw(made.trace, Path(asked.gantt), f"{asked.schedule}: {_title(asked, made)}")
    return 0


def counted(asked: argparse.Namespace, machine: Machine) -> tuple[int, int]:
    """Return the numbers of cores and devices asked for.

    Parameters
    ----------
    asked : Namespace
    machine : Machine
        By default of a GPU one without cores, of a host all cores.

    Raises
    ------
    ValueError
        If devices are asked for with a host, or a number is negative.
    """
    given = {name: getattr(asked, name) for name in ("cores", "devices")}
    for name, many in given.items():
        if many is not None and many < 0:
            raise ValueError(f"--{name}: found {many}, expected 0 or more")
    if machine.is_gpu:
        return given["cores"] or 0, 1 if given["devices"] is None else given["devices"]
    if given["devices"]:
        raise ValueError(f"--devices: found with {machine.name}, expected with a GPU as --device")
    return machine.units if given["cores"] is None else given["cores"], 0


def text(asked: argparse.Namespace, made: ModelledSchedule) -> str:
    """Return the schedule as a table."""
    trace, ms = made.trace, 1e3
    alone = "".join(f"; {name} alone {ms * seconds:.4g}" for name, seconds in made.alone.items())
    busy = "  ".join(f"{name} {share:.0%}" for name, share in made.shares.items())
    lines = [
        _title(asked, made),
        f"{len(trace)} tasks, schedule {asked.schedule}: {ms * trace.seconds:.4g} ms",
        f"bound {ms * made.bound:.4g} ms, {made.bound / trace.seconds:.1%} of it{alone}",
        f"busy: {busy}; copied {trace.moved / 1e6:.4g} MB; {len(trace.launches)} launches",
        "",
        "kind       tasks  on devices    core ms  device ms  core / device",
        *(_row(name, row) for name, row in rows(made).items()),
        "",
        "core ms, device ms: of all tasks of a kind on one unit, launches apart.  Times are models, not measured.",
    ]
    return "\n".join(lines)


def _title(asked: argparse.Namespace, made: ModelledSchedule) -> str:
    units = [f"{made.node.cores} cores of {made.host.name}"] if made.host else []
    units += [f"{made.node.devices} × {made.device.name}"] if made.node.devices and made.device else []
    of = f"{asked.kernel or 'coulomb'}, kifmm, N = {asked.n:,} ({asked.points or 'uniform'}), {asked.dtype}"
    return f"{of}, on {' and '.join(units)}"


def rows(made: ModelledSchedule) -> dict[str, dict[str, float]]:
    """Return numbers of tasks and seconds by kind; seconds are infinite where a class may not run a kind."""
    found = {}
    for number, name in enumerate(made.graph.kinds):
        some = made.graph.kind == number
        found[name] = {
            "tasks": int(some.sum()), "on devices": int((made.trace.unit[some] >= made.node.cores).sum()),
            "core": float(made.durations.core[some].sum()), "device": float(made.durations.device[some].sum()),
        }  # fmt: skip
    return found


def _row(name: str, row: dict[str, float]) -> str:
    both = np.isfinite([row["core"], row["device"]]).all() and row["device"] > 0
    times = [f"{1e3 * row[side]:11.4g}" if np.isfinite(row[side]) else f"{'–':>11s}" for side in ("core", "device")]
    ratio = f"{row['core'] / row['device']:15.4g}" if both else f"{'–':>15s}"
    return f"{name:9s}{row['tasks']:7d} {row['on devices']:11d}{times[0]}{times[1]}{ratio}"


def record(asked: argparse.Namespace, made: ModelledSchedule) -> dict[str, Any]:
    """Return the schedule as data, in seconds and bytes."""
    kinds = {name: {key: value for key, value in row.items() if np.isfinite(value)} for name, row in rows(made).items()}
    return {
        "what": "fmm schedule",
        "kernel": asked.kernel or "coulomb",
        "n": asked.n,
        "points": asked.points or "uniform",
        "dtype": asked.dtype,
        "schedule": asked.schedule,
        "cores": made.node.cores,
        "devices": made.node.devices,
        "host": made.host.name if made.host else None,
        "device": made.device.name if made.device else None,
        "tasks": len(made.graph),
        "seconds": made.trace.seconds,
        "bound": made.bound,
        "busy": made.shares,
        "alone": made.alone,
        "bytes": made.trace.moved,
        "launches": len(made.trace.launches),
        "kinds": kinds,
    }
