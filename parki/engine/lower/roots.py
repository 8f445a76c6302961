"""Reciprocal roots that are zero up to a least argument: hosts find small arguments and coincident points at once."""

from parki.engine.lower.interleave import alike
from parki.engine.tree import ir


def least_argument(root: ir.Stmt, branch: ir.Stmt) -> ir.Expr | None:
    """Return c of ``w = rsqrt(x)`` before ``if x <= c: w = 0``, None for other statements."""
    if not (isinstance(root, ir.Declare) and isinstance(root.value, ir.Math) and root.value.name == "rsqrt"):
        return None
    if not (isinstance(branch, ir.If) and isinstance(branch.cond, ir.Compare) and branch.cond.op == "<="):
        return None
    if branch.orelse or len(branch.then) != 1 or not _is_zero(branch.then[0], root.name):
        return None
    argument, bound = branch.cond.left, branch.cond.right
    is_argument = isinstance(argument, ir.Name) and alike(argument, root.value.args[0])
    return bound if is_argument and isinstance(bound, ir.Name | ir.Const) else None


def _is_zero(s: ir.Stmt, name: str) -> bool:
    """Return whether a statement sets a local to 0."""
    is_set = isinstance(s, ir.Assign) and (s.name, s.op) == (name, "=")
    return is_set and isinstance(s.value, ir.Const) and s.value.value == 0
