"""`parki model treecode`: work and time of each phase of a treecode sum on any known machine.

Trees and lists are made here, of points uniform in a cube; a machine's work on them is counted from the kernels' texts
(`parki.treecode.work`).  A phase's time is its roofline time over the share of the roofline that is reached: measured
by `parki calibrate` on a host, a stated assumption for a GPU.
"""

import argparse
import json
from typing import Any

from parki import samples
from parki.engine import writing
from parki.perfmodels.machine import Machine
from parki.perfmodels.models import table
from parki.perfmodels.roofline import Phase
from parki.plan import Plan
from parki.treecode import api, work

TOLERANCE = 1e-7  # relative RMS error, if neither a tolerance nor theta nor degree is given


def predict(plan: Plan, machine: Machine, units: int | None = None) -> dict[str, Phase]:
    """Predict the phases of making a plan and of one sum; phases that take no time are left out.

    Parameters
    ----------
    plan
        A plan of any points; the sum is over its lists.
    machine, units
        Machine, and number of its cores; all cores if not given.

    Raises
    ------
    ValueError
        If the machine has fewer cores.
    """
    phases = work.times(plan.structure, plan.parameters, plan.dtype, machine, machine.some(units))
    return {name: phase for name, phase in phases.items() if phase.bound.seconds > 0}


def main(args: argparse.Namespace) -> int:
    """Print the table of a sum, and write it to a file if asked."""
    machine, options = Machine.load(args.device), _given(args)
    if args.ranks is not None:
        from parki.perfmodels.ranks import treecode as over_ranks

        print(over_ranks.text(args, machine, options))  # noqa: T201
        return 0
    plan = _plan(args, options)
    phases = predict(plan, machine, args.threads)
    print(text(args, plan, machine, phases))  # noqa: T201
    if args.json:
        writing.write(args.json, json.dumps(record(args, plan, machine, phases), indent=1) + "\n")
    return 0


def _given(args: argparse.Namespace) -> dict[str, Any]:
    """Return the plan's options among the arguments; refuse options of other models."""
    for name in ("plot", "rc") if args.ranks else ("published", "plot", "rc"):
        if getattr(args, name):
            raise ValueError(f"--{name}: found with treecode, expected with ewald")
    if args.ranks and args.json:
        raise ValueError("--json: found with --ranks, expected without")
    if args.order:
        raise ValueError("--order: found with treecode, expected with fmm")
    if args.periodicity not in (None, 0):
        raise ValueError(f"--periodicity: found {args.periodicity}, expected 0 with treecode")
    options = {name: getattr(args, name) for name in ("tolerance", "theta", "degree", "kappa")}
    options = {name: value for name, value in options.items() if value is not None}
    if not {"tolerance", "theta", "degree"} & set(options):
        options["tolerance"] = TOLERANCE
    return options


def _plan(args: argparse.Namespace, options: dict[str, Any]) -> Plan:
    x = samples.uniform(args.n, seed=1).astype(args.dtype)
    return api.plan(table.kernel(args), x, x, method=args.method, execution_space="Serial", **options)


def text(args: argparse.Namespace, plan: Plan, machine: Machine, phases: dict[str, Phase]) -> str:
    """Return the table as text."""
    evaluations = "  ".join(f"{k.upper()} {n / 1e9:.4g}" for k, n in plan.walltime.pairs.items())
    details = f"{plan.parameters}; far field {plan.parameters.far}; evaluations in G: {evaluations}"
    titled = {name.upper() if len(name) == 2 else name: phase for name, phase in phases.items()}
    return table.in_free_space(args, machine, args.method, details, titled)


def record(args: argparse.Namespace, plan: Plan, machine: Machine, phases: dict[str, Phase]) -> dict[str, Any]:
    """Return the table as data, in seconds, operations and bytes."""
    p = plan.parameters
    return table.settings(args, machine, "treecode", args.method) | {
        "parameters": {"theta": p.theta, "degree": p.degree, "leaf_size": p.leaf_size, "batch_size": p.batch_size},
        "far": p.far,
        "evaluations": dict(plan.walltime.pairs),
        "phases": {name: table.figures(phase) for name, phase in phases.items()},
        "seconds": sum(phase.bound.seconds for phase in phases.values()),
    }
