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
    found = work.times(plan.structure, plan.parameters, plan.dtype, machine, machine.some(units))
    return {name: phase for name, phase in found.items() if phase.bound.seconds > 0}


def main(asked: argparse.Namespace) -> int:
    """Print the table of a sum, and write it to a file if asked."""
    machine, given = Machine.load(asked.device), _given(asked)
    if asked.ranks is not None:
        from parki.perfmodels.ranks import treecode as over_ranks

        print(over_ranks.text(asked, machine, given))  # noqa: T201
        return 0
    plan = _plan(asked, given)
    phases = predict(plan, machine, asked.threads)
    print(text(asked, plan, machine, phases))  # noqa: T201
    if asked.json:
        writing.write(asked.json, json.dumps(record(asked, plan, machine, phases), indent=1) + "\n")
    return 0


def _given(asked: argparse.Namespace) -> dict[str, Any]:
    """Return the plan's options among the arguments; refuse options of other models."""
    for name in ("plot", "rc") if asked.ranks else ("published", "plot", "rc"):
        if getattr(asked, name):
            raise ValueError(f"--{name}: found with treecode, expected with ewald")
    if asked.ranks and asked.json:
        raise ValueError("--json: found with --ranks, expected without")
    if asked.order:
        raise ValueError("--order: found with treecode, expected with fmm")
    if asked.periodicity not in (None, 0):
        raise ValueError(f"--periodicity: found {asked.periodicity}, expected 0 with treecode")
    given = {name: getattr(asked, name) for name in ("tolerance", "theta", "degree", "kappa")}
    given = {name: value for name, value in given.items() if value is not None}
    if not {"tolerance", "theta", "degree"} & set(given):
        given["tolerance"] = TOLERANCE
    return given


def _plan(asked: argparse.Namespace, given: dict[str, Any]) -> Plan:
    x = samples.uniform(asked.n, seed=1).astype(asked.dtype)
    return api.plan(table.kernel(asked), x, x, method=asked.method, execution_space="Serial", **given)


def text(asked: argparse.Namespace, plan: Plan, machine: Machine, phases: dict[str, Phase]) -> str:
    """Return the table as text."""
    evaluations = "  ".join(f"{k.upper()} {n / 1e9:.4g}" for k, n in plan.walltime.pairs.items())
    details = f"{plan.parameters}; far field {plan.parameters.far}; evaluations in G: {evaluations}"
    titled = {name.upper() if len(name) == 2 else name: phase for name, phase in phases.items()}
    return table.in_free_space(asked, machine, asked.method, details, titled)


def record(asked: argparse.Namespace, plan: Plan, machine: Machine, phases: dict[str, Phase]) -> dict[str, Any]:
    """Return the table as data, in seconds, operations and bytes."""
    p = plan.parameters
    return table.settings(asked, machine, "treecode", asked.method) | {
        "parameters": {"theta": p.theta, "degree": p.degree, "leaf_size": p.leaf_size, "batch_size": p.batch_size},
        "far": p.far,
        "evaluations": dict(plan.walltime.pairs),
        "phases": {name: table.figures(phase) for name, phase in phases.items()},
        "seconds": sum(phase.bound.seconds for phase in phases.values()),
    }
