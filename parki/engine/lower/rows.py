"""Short vector ranges of fixed length whose lanes do arithmetic alone: on hosts one value holds all lanes, a row.

Loops in the body then run once, not once for each native vector (`pk_row.h`).  Loops that store are excluded: g++
leaves rows that are loaded and stored in memory.
"""

from collections.abc import Callable, Iterable

from parki.engine.tree import ir
from parki.engine.tree.uniformity import Kind, LaneKinds
from parki.engine.tree.walk import walk

OPERATORS = ("+", "-", "*", "/")
Step = Callable[[str, tuple[ir.Expr, ...]], Kind]


def is_row(body: Iterable[ir.Stmt], kinds: LaneKinds, step: Step) -> bool:
    """Return whether all lanes of a range with this body take the same path.

    `step` gives the distance in elements between lanes; elements that are loaded or stored must be neighbours.
    """
    return not kinds.masked_return and _Body(kinds, step).block(body)


class _Body:
    """Statements and expressions of one range."""

    def __init__(self, kinds: LaneKinds, step: Step) -> None:
        self.kinds, self.step = kinds, step

    def block(self, body: Iterable[ir.Stmt]) -> bool:
        return all(self.stmt(s) for s in body)

    def stmt(self, s: ir.Stmt) -> bool:
        match s:
            case ir.Declare() | ir.Assign():
                return self.kinds.local(s) == 0 or (s.value.type in ir.REALS and self.value(s.value))
            case ir.Store():
                return self.step(s.view, s.indices) == 1 and s.value.type in ir.REALS and self.value(s.value)
            case ir.If():
                return self.kinds.of(s.cond) == 0 and self.block(s.then) and self.block(s.orelse)
            case ir.For():
                uniform = self.kinds.local(s) == 0 and not self.kinds.is_masked(s)
                return uniform and not any(isinstance(n, ir.Store) for n in walk(s.body)) and self.block(s.body)
        return False

    def value(self, e: ir.Expr) -> bool:
        if self.kinds.of(e) == 0:
            return True
        match e:
            case ir.Name():
                return e.type in ir.REALS
            case ir.Unary():
                return e.op == "-" and self.value(e.arg)
            case ir.Binary():
                return e.op in OPERATORS and e.type in ir.REALS and self.value(e.left) and self.value(e.right)
            case ir.Load():
                return self.step(e.view, e.indices) == 1
        return False
