"""Parameters of a plan, for one right-hand side or for several at once."""

from dataclasses import replace
from typing import TYPE_CHECKING

from parki.arrays import PRECISIONS
from parki.ewald import params, stages
from parki.ewald.params import Parameters
from parki.ewald.predict import costs
from parki.perfmodels.machine import Costs

if TYPE_CHECKING:
    from parki.ewald.plan import Plan


def chosen(plan: "Plan", rhs: int, rc: float | None) -> Parameters:
    """Parameters for so many right-hand sides at once: they share much of the near field, so rc is longer."""
    return asked(plan, rc, replace(costs(plan.space), rhs=rhs))


def asked(plan: "Plan", rc: float | None, what: Costs) -> Parameters:
    """Parameters of a plan's sum at these costs."""
    options, place, points = plan.options, plan.geometry, plan.arrangement
    return params.choose(
        plan.kernel, place.box, plan.n_targets, plan.n_sources, options.tolerance, plan.dtype.name, options.split, rc,
        options.cell_size, what, points.regular, place.periodicity, place.skew, points.crowding, points.same,
        PRECISIONS.get(options.far_precision),
    )  # fmt: skip


def balanced(plan: "Plan", rhs: int) -> Parameters:
    """The plan's parameters, or for several right-hand sides others for the same sorted points."""
    if rhs == 1 or plan.arrangement is None:
        return plan.parameters
    found, most = chosen(plan, rhs, plan.options.rc), stages.GAP * plan.parameters.rc
    return found if found.rc <= most or found.periodicity == 3 else chosen(plan, rhs, most)
