"""Scratch decorator: step 11 of specialising.

Upstream has the units ``float`` (8 bytes) and ``int`` (4 bytes), so sizes in single precision are halved, rounded up.
"""

import ast

from parki.engine.text.rewrite import Rewriter
from parki.engine.text.syntax import PkType, fail, place, value_of

UNITS = {"double": ("float", False), "int64": ("float", False), "float": ("float", True), "int32": ("int", False)}


def decorator(node: ast.expr, filler: Rewriter) -> str:
    """Return the workunit decorator of the L0 file; `filler` puts in the constants.  Raises KernelError K018."""
    match node:
        case ast.Call(args=[], keywords=[ast.keyword(arg="scratch", value=ast.List(elts=entries))]):
            return f"@pk.workunit(scratch=[{', '.join(_entry(e, filler) for e in entries)}])"
        case ast.Attribute():
            return "@pk.workunit"
    return fail("K018", node, f"'{ast.unparse(node)}'", "Write @pk.workunit(scratch=[(real, lambda p: size)])")


def _entry(node: ast.expr, filler: Rewriter) -> str:
    match node:
        case ast.Tuple(elts=[kind, ast.Lambda(args=ast.arguments(args=[ast.arg(arg="p")]), body=size)]):
            unit, rounded = _unit(filler.expr(kind))
            if rounded:
                unit_size = place(ast.Constant(value=1), size)
                two = place(ast.Constant(value=2), size)
                size = place(ast.BinOp(left=size, op=ast.Add(), right=unit_size), size)
                size = place(ast.BinOp(left=size, op=ast.FloorDiv(), right=two), size)
            return f"({unit}, lambda p: {ast.unparse(filler.expr(size))})"
    return fail("K018", node, f"scratch entry '{ast.unparse(node)}'", "Write (real, lambda p: size)")


def _unit(kind: ast.expr) -> tuple[str, bool]:
    """Return the upstream unit of an element type, and whether two elements share one unit."""
    value = value_of(kind)
    name = value.name if isinstance(value, PkType) else "int32" if ast.unparse(kind) == "int" else ""
    if name not in UNITS:
        fail("K018", kind, f"scratch of '{ast.unparse(kind)}'", "Use real, pk.int32 or pk.int64")
    return UNITS[name]
