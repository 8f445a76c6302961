"""Stores of two numbers side by side, such as the parts of a complex one: hosts store whole vectors.

Separate stores would each leave out every second element, and a load of that memory soon after would wait.
"""

from dataclasses import fields

from parki.engine.tree import ir
from parki.engine.tree.walk import walk


def is_pair(first: ir.Stmt, second: ir.Stmt) -> bool:
    """Return whether `second` stores the element after that of `first`, and reads nothing that `first` may store."""
    return (
        isinstance(first, ir.Store)
        and isinstance(second, ir.Store)
        and first.op == second.op == "="
        and (first.view, first.value.type) == (second.view, second.value.type)
        and first.value.type in ir.REALS
        and alike(first.indices[:-1], second.indices[:-1])
        and _is_next(first.indices[-1], second.indices[-1])
        and not any(isinstance(n, ir.Load | ir.FunctionCall) for n in walk((second.value,)))
    )


def _is_next(first: ir.Expr, second: ir.Expr) -> bool:
    """Return whether `second` is written as `first` plus one."""
    if not (isinstance(second, ir.Binary) and second.op == "+" and isinstance(second.right, ir.Const)):
        return False
    return second.right.value == 1 and alike(first, second.left)


def alike(a: object, b: object) -> bool:
    """Return whether two expressions, or tuples of them, are the same except for their places in the source."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, ir.Expr) and type(a) is type(b):
        return all(alike(getattr(a, f.name), getattr(b, f.name)) for f in fields(a) if f.name != "loc")
    return a == b
