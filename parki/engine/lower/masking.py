"""Costs of masks: ranges whose body stands once under a mask, and branches that need no mask of their range."""

from collections.abc import Iterable

from parki.engine.tree import ir, lanes
from parki.engine.tree.walk import children, walk

LOOPS = ir.For | ir.While | lanes.MaskedLoop
ACCESSES = (
    lanes.LoadLanes | lanes.Gather | lanes.StoreLanes | lanes.StorePair | lanes.Scatter | lanes.Compress
    | lanes.AtomicLanes | lanes.Checked
)  # fmt: skip
LANES_COUNT = lanes.AccumulateLanes | lanes.ActiveLanes | lanes.MaskedLoop | lanes.Leave | ir.Range


def stands_once(body: Iterable[ir.Stmt]) -> bool:
    """Return whether whole groups of lanes run the masked body, too, which halves the text to compile.

    Masks cost nothing to speak of where the work is in loops that access memory at uniform addresses only.
    """
    loops = [n for n in walk(body) if isinstance(n, LOOPS)]
    return bool(loops) and not any(_accesses_lanes(n) for loop in loops for n in walk(children(loop)))


def sets_locals_only(body: Iterable[ir.Stmt]) -> bool:
    """Return whether a vectorised branch only sets locals, whose values in lanes outside its range nobody reads."""
    return not any(_accesses_lanes(n) or isinstance(n, LANES_COUNT) or _may_fault(n) for n in walk(body))


def _accesses_lanes(n: ir.Expr | ir.Stmt) -> bool:
    return isinstance(n, ACCESSES) or (isinstance(n, lanes.LanesCall) and n.mask is not None)


def _may_fault(n: ir.Expr | ir.Stmt) -> bool:
    return isinstance(n, lanes.Lanewise) and n.op in ("idiv", "imod")
