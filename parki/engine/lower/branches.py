"""Properties of code that runs under masks: whether it is long or may fault, and whether lanes leave it."""

from collections.abc import Container

from parki.engine.tree import ir
from parki.engine.tree.walk import const_trip, walk

EXITS = ir.Break | ir.Continue | ir.Return
COSTLY = ir.Load | ir.Store | ir.Atomic | ir.For | ir.While | ir.FunctionCall | ir.Math | EXITS
LONG = 8  # nodes of a branch, at most, that runs without a test for active lanes


def is_costly(body: tuple[ir.Stmt, ...]) -> bool:
    """Return whether a masked branch needs a test for active lanes, because it is long or may fault."""
    nodes = list(walk(body))
    division = any(isinstance(n, ir.Binary) and n.op in ("//", "%") for n in nodes)
    return division or len(nodes) > LONG or any(isinstance(n, COSTLY) for n in nodes)


def exits(body: tuple[ir.Stmt, ...], in_loop: bool = False) -> bool:
    """Return whether lanes may leave `body` before its end; breaks of loops within `body` do not count."""
    for s in body:
        match s:
            case ir.Return():
                return True
            case ir.Break() | ir.Continue():
                if not in_loop:
                    return True
            case ir.If():
                if exits(s.then, in_loop) or exits(s.orelse, in_loop):
                    return True
            case ir.For() | ir.While():
                if exits(s.body, in_loop=True):
                    return True
    return False


def guarded_functions(kernel: ir.KernelTree) -> frozenset[str]:
    """Return the functions that get a mask: they load from a table, loop a varying number of times, or call such."""
    guarded: set[str] = set()
    for f in kernel.functions:
        if any(_needs_guard(n, guarded) for n in walk(f.body)):
            guarded.add(f.name)
    return frozenset(guarded)


def _needs_guard(n: ir.Expr | ir.Stmt, guarded: Container[str]) -> bool:
    if isinstance(n, ir.For):
        return const_trip(n.start, n.stop) is None
    return isinstance(n, ir.Load | ir.While) or (isinstance(n, ir.FunctionCall) and n.name in guarded)
