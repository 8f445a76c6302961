"""Near field of arrays, by the step of a plan, and launches of a plan by name."""

from parki.cells import SortedCellHandles
from parki.engine.steps import Steps, constant
from parki.ewald.stages import near


def near_field(p, cells, rows, v, rhs=1, skew=None):
    """Run the near-field step for the points of a list that are targets and sources; return its result."""
    handles = SortedCellHandles("points", cells.n, cells.grid, cells.points.dtype)
    field = near.field(p, handles, handles, constant("rows", rows), v, rhs, skew)
    placed = Steps(field.steps).place(cells.space, handles.arrays(cells))
    placed.run()
    return placed[field.result]


def launch(plan, head):
    """Return the first launch of a plan's steps whose workunit's name begins with `head`."""
    return next(one for one in plan.sums[1].placed.launches if one.step.unit.ir.name.startswith(head))
