"""Parameters of a plan: one choice, for the number of right-hand sides that it is made for."""

from dataclasses import replace
from typing import TYPE_CHECKING

from parki.arrays import PRECISIONS
from parki.ewald import params
from parki.ewald.params import Parameters
from parki.ewald.predict import costs
from parki.perfmodels.machine import Costs

if TYPE_CHECKING:
    from parki.ewald.plan import Plan


def chosen(plan: "Plan", rc: float | None, costs_: Costs | None = None) -> Parameters:
    """Return parameters of a plan's sum in the stages' units, by default at the costs of its space.

    Parameters
    ----------
    plan : Plan
    rc : float or None
        In the caller's unit of length.
    costs_ : Costs, optional
    """
    options, place, points = plan.options, plan.geometry, plan.arrangement
    costs_ = replace(costs_ or costs(plan.space), rhs=int(options.rhs))
    return params.choose(
        plan.inner, place.box, plan.n_targets, plan.n_sources, options.tolerance, plan.dtype.name, options.split,
        None if rc is None else place.inner(rc), options.cell_size, costs_, points.regular, place.periodicity,
        place.skew, points.crowding, points.same, PRECISIONS.get(options.far_precision),
    )  # fmt: skip
