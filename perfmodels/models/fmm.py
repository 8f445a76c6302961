"""`parki model fmm`: work and time of each step of a fast multipole sum on any known machine.

The tree, lists and operators are made here, of points uniform in a cube (or as `--points` says); a machine's work on
them is counted from the kernels' texts (`parki.fmm.work`).  A step's time is its roofline time over the share of the
roofline that is reached: measured, or a stated assumption.
"""

import argparse
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki import samples
from parki.engine import writing
from parki.fmm import api, work
from parki.perfmodels.counts import fmm
from parki.perfmodels.machine import Machine
from parki.perfmodels.models import table, tasks
from parki.perfmodels.models.treecode import TOLERANCE
from parki.perfmodels.roofline import Phase
from parki.plan import Plan
from parki.tasks.cut import CutSteps, cut
from parki.tasks.device import host_only

TITLES = {
    "tree": "octree", "lists": "lists", "p2m": "P2M", "m2m": "M2M", "transforms": "M2L, transforms",
    "m2l": "M2L, products", "p2l": "P2L", "m2p": "M2P", "l2l": "L2L", "l2p": "L2P", "p2p": "P2P",
}  # fmt: skip
#: Options that do not belong to this model, and the models that have them.
OTHERS = {"published": "ewald", "plot": "ewald", "rc": "ewald", "theta": "treecode", "degree": "treecode"}


def predict(plan: Plan, machine: Machine, units: int | None = None) -> dict[str, Phase]:
    """Predict the steps of making a plan and of one sum; steps that take no time are left out.

    Parameters
    ----------
    plan
        A plan by equivalent sources, of any points; the sum is over its lists.
    machine, units
        Machine, and number of its cores; all cores if not given.

    Raises
    ------
    ValueError
        If the machine has fewer cores, or the plan is by another method.
    """
    steps = work.times(plan.structure, plan.parameters, plan.dtype, machine, machine.some(units))
    return {name: step for name, step in steps.items() if step.bound.seconds}


def main(args: argparse.Namespace) -> int:
    """Print the table of a sum, and write it to a file if asked."""
    machine, options = Machine.load(args.device), _given(args)
    tasks.check(args)
    if args.ranks is not None:
        from parki.perfmodels.ranks import fmm as over_ranks

        print(over_ranks.text(args, machine, options))  # noqa: T201
        return 0
    plan = plan_of(args, options)
    if args.schedule:
        return tasks.main(args, machine, plan, cut_of)
    steps = predict(plan, machine, args.threads)
    print(text(args, plan, machine, steps))  # noqa: T201
    if args.json:
        writing.write(args.json, json.dumps(record(args, plan, machine, steps), indent=1) + "\n")
    return 0


def cut_of(plan: Plan) -> tuple[CutSteps, NDArray[np.bool_]]:
    """Return the tasks of a plan's sum, and the mask of tasks that only the host may run."""
    steps = list(plan.structure.expansion.steps)
    parts = cut(steps)
    return parts, host_only(steps, parts)


def _given(args: argparse.Namespace) -> dict[str, Any]:
    """Return the plan's options among the arguments; refuse options of other models."""
    for name, model in OTHERS.items():
        if getattr(args, name) and not (name == "published" and args.ranks):
            raise ValueError(f"--{name}: found with fmm, expected with {model}")
    if args.ranks and args.json:
        raise ValueError("--json: found with --ranks, expected without")
    if args.periodicity not in (None, 0):
        raise ValueError(f"--periodicity: found {args.periodicity}, expected 0 with fmm")
    options = {name: getattr(args, name) for name in ("tolerance", "order", "kappa")}
    options = {name: value for name, value in options.items() if value is not None}
    if not {"tolerance", "order"} & set(options):
        options["tolerance"] = TOLERANCE
    return options


def plan_of(args: argparse.Namespace, options: dict[str, Any]) -> Plan:
    """Return a plan of the points asked for.

    Parameters
    ----------
    args : Namespace
        Arguments of `parki model fmm`.
    options : dict
        Options of the plan.
    """
    x = getattr(samples, args.points or "uniform")(args.n, seed=1).astype(args.dtype)
    if args.schedule:  # sizes of tasks depend on the units that run them
        units = ("OpenMP", "GpuSim") if Machine.load(args.device).is_gpu and args.cores else "OpenMP"
        options |= {"schedule": "drain", "execution_space": units, "threads": max(args.cores or 0, 1)}
    return api.plan(table.kernel(args), x, x, **{"execution_space": "Serial", **options})


def text(args: argparse.Namespace, plan: Plan, machine: Machine, steps: dict[str, Phase]) -> str:
    """Return the table as text."""
    nodes, octets = plan.structure.tree.nodes, len(plan.structure.lists.v_t)
    details = (
        f"{plan.parameters}; {nodes.n} boxes on {nodes.depth + 1} levels; {octets} pairs of octets; "
        f"near pairs in G: {plan.walltime.pairs['near'] / 1e9:.4g}"
    )
    titled = {TITLES[name]: step for name, step in steps.items()}
    return table.in_free_space(args, machine, "kifmm", details, titled)


def record(args: argparse.Namespace, plan: Plan, machine: Machine, steps: dict[str, Phase]) -> dict[str, Any]:
    """Return the table as data, in seconds, operations and bytes."""
    p = plan.parameters
    phases = fmm.by_phase({name: step.bound for name, step in steps.items()})
    return table.settings(args, machine, "fmm", p.method) | {
        "parameters": {"order": p.order, "leaf_size": p.leaf_size},
        "boxes": plan.structure.tree.nodes.n,
        "evaluations": dict(plan.walltime.pairs),
        "steps": {name: table.figures(step) for name, step in steps.items()},
        "phases": {name: seconds for name, seconds in phases.items() if seconds},
        "seconds": sum(phases.values()),
    }
