"""Constant expressions: the values of module-level constants, and folding in kernel bodies.

Module level has Python's arithmetic.  In bodies only operations that keep the subset's types are folded: integers with
integers, reals with reals (in double precision).  So an expression that the subset rejects stays as written and is
rejected later.
"""

import ast
import math
import operator
from collections.abc import Callable

from parki.engine.errors import KernelError
from parki.engine.text.syntax import PK_TYPES, PkType, Value, changed, fail, literal, table_of, value_of

Constant = Value | PkType | tuple[Value, ...]
MAX_TABLE = 4096  # entries of a table; more are taken for a mistake
MAX_BITS = 4096  # bits of an integer from ** or <<; more are taken for a mistake

_COMPARE = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_REAL = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
_ANY = {**_REAL, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow}
_INT = {
    **{op: f for op, f in _ANY.items() if op is not ast.Div},
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_SIZED = {"min": min, "max": max, "len": len}
_MATH = frozenset(n for n in dir(math) if not n.startswith("_")) - {"factorial", "perm", "comb", "prod", "nextafter"}


# Module level --------------------------------------------------------------------------------------------------------
def evaluate(node: ast.expr, name: Callable[[ast.Name], Constant]) -> Constant:
    """Return the value of a module-level constant expression; `name` gives the values of the names in it.

    Raises KernelError K001 for anything but numbers, tuples, pk types, ``+ - * / // % **``, comparisons,
    ``and or not``, ``min max len``, ``math.*`` and subscripts; K021 where the value does not exist.
    """
    try:
        value = _evaluate(node, name)
    except KernelError:
        raise
    except (ArithmeticError, ValueError, TypeError, IndexError) as e:
        fail("K021", node, f"constant expression has no value: {e}")
    for v in value if isinstance(value, tuple) else (value,):
        if isinstance(v, float) and not math.isfinite(v):
            fail("K021", node, f"constant expression is {v}, expected a finite number")
        if not isinstance(v, Value | PkType) or (isinstance(v, PkType) and isinstance(value, tuple)):
            fail("K021", node, f"constant is a {type(v).__name__}, expected a number, a pk type or a tuple of numbers")
    if isinstance(value, tuple) and len(value) > MAX_TABLE:
        fail("K021", node, f"constant tuple has {len(value)} entries, expected at most {MAX_TABLE}")
    return _uniform(value)


def _uniform(value: Constant) -> Constant:
    """Turn a tuple with a real in it into a tuple of reals, as a table has one type."""
    if isinstance(value, tuple) and any(isinstance(v, float) for v in value):
        return tuple(float(v) for v in value)
    return value


def _evaluate(node: ast.expr, name: Callable[[ast.Name], Constant]) -> Constant:
    value = lambda n: _evaluate(n, name)  # noqa: E731  (short, used ten times)
    match node:
        case ast.Constant(value=bool() | int() | float()):
            return node.value
        case ast.Name():
            return name(node)
        case ast.Tuple():
            return tuple(value(e) for e in node.elts)
        case ast.UnaryOp(op=ast.USub()):
            return -value(node.operand)
        case ast.UnaryOp(op=ast.UAdd()):
            return +value(node.operand)
        case ast.UnaryOp(op=ast.Not()):
            return not value(node.operand)
        case ast.BinOp() if type(node.op) in _ANY:
            return _limited(node.op, value(node.left), value(node.right), _ANY)
        case ast.BoolOp():
            parts = (value(v) for v in node.values)
            return all(parts) if isinstance(node.op, ast.And) else any(parts)
        case ast.Compare() if all(type(op) in _COMPARE for op in node.ops):
            return _compare(node.ops, [value(n) for n in (node.left, *node.comparators)])
        case ast.Subscript():
            table, index = value(node.value), value(node.slice)
            if not isinstance(table, tuple) or type(index) is not int or index < 0:
                raise TypeError("only a tuple has entries, counted from 0 by an integer")
            return table[index]
        case ast.Attribute(value=ast.Name(id="pk")) if node.attr in PK_TYPES:
            return PkType(node.attr)
        case ast.Attribute(value=ast.Name(id="math")) if isinstance(getattr(math, node.attr, None), float):
            return getattr(math, node.attr)
        case ast.Call(func=ast.Name(id=("min" | "max" | "len") as f), keywords=[]):
            return _SIZED[f](*(value(a) for a in node.args))
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr=f), keywords=[]) if f in _MATH:
            return getattr(math, f)(*(value(a) for a in node.args))
    return fail(
        "K001", node, f"'{ast.unparse(node)}' is not a constant expression", "see the forms of module constants"
    )


def _limited(op: ast.operator, a: Constant, b: Constant, table: dict) -> Constant:
    """Return ``a op b``; raise OverflowError for a size that only a mistake would ask for."""
    if isinstance(op, ast.Pow | ast.LShift) and isinstance(a, int) and isinstance(b, int):
        size = b if isinstance(op, ast.LShift) else b * max(1, a.bit_length())
        if size > MAX_BITS:
            raise OverflowError(f"{a} to the {b} is too large")
    if isinstance(a, tuple) != isinstance(b, tuple) and isinstance(op, ast.Mult):
        count, length = (b, len(a)) if isinstance(a, tuple) else (a, len(b))
        if count * length > MAX_TABLE:
            raise OverflowError(f"more than {MAX_TABLE} entries")
    return table[type(op)](a, b)


def _compare(ops: list[ast.cmpop], values: list[Constant]) -> bool:
    return all(_COMPARE[type(op)](a, b) for op, a, b in zip(ops, values, values[1:], strict=False))


# Bodies --------------------------------------------------------------------------------------------------------------
def fold(node: ast.expr, real: str) -> ast.expr:
    """Return `node`, whose parts are folded already, as a literal if constant; `real` is the kernel's real type."""
    rule = _FOLD.get(type(node))
    return rule(node, real) if rule else node


def _binary(node: ast.BinOp, real: str) -> ast.expr:
    a = value_of(node.left)
    if a is None:
        return node
    b = value_of(node.right)
    table = _INT if type(a) is type(b) is int else _REAL if type(a) is type(b) is float else {}
    if type(node.op) not in table:
        return node
    try:
        value = _limited(node.op, a, b, table)
    except (ArithmeticError, ValueError):
        return node  # the checks and the C++ give such expressions their meaning
    # An integer to a negative power is a real, and an overflow an infinity: neither has a literal here.
    if type(value) is not type(a) or (isinstance(value, float) and not math.isfinite(value)):
        return node
    return literal(value, node)


def _unary(node: ast.UnaryOp, real: str) -> ast.expr:
    value = value_of(node.operand)
    if value is None or isinstance(value, PkType):
        return node
    if isinstance(node.op, ast.Not):
        return literal(not value, node) if isinstance(value, bool) else node
    if isinstance(value, bool):
        return node
    if isinstance(node.op, ast.Invert):
        return literal(~value, node) if isinstance(value, int) else node
    if isinstance(node.op, ast.UAdd):
        return literal(value, node)
    return node if isinstance(node.operand, ast.Constant) else literal(-value, node)


def _comparison(node: ast.Compare, real: str) -> ast.expr:
    values = [value_of(n) for n in (node.left, *node.comparators)]
    if values[0] is None or any(type(v) is not type(values[0]) for v in values):
        return node
    ordered = type(values[0]) in (int, float)
    if not all(type(op) in _COMPARE if ordered else isinstance(op, ast.Eq | ast.NotEq) for op in node.ops):
        return node
    return literal(_compare(node.ops, values), node)


def _logic(node: ast.BoolOp, real: str) -> ast.expr:
    """Fold ``and`` and ``or``: operands have no effects, so a constant one decides the whole or can be left out."""
    dominant = isinstance(node.op, ast.Or)
    rest = []
    for v in node.values:
        value = value_of(v)
        if value is dominant:
            return literal(dominant, node)
        if value is not (not dominant):
            rest.append(v)
    if len(rest) == len(node.values):
        return node
    if len(rest) > 1:
        return changed(node, values=rest)
    return rest[0] if rest else literal(not dominant, node)


def _call(node: ast.Call, real: str) -> ast.expr:
    if node.keywords or not node.args:
        return node
    if isinstance(node.func, ast.Name):
        if node.func.id == "len" and len(node.args) == 1 and table_of(node.args[0]) is not None:
            return literal(len(table_of(node.args[0])), node)
        values = [value_of(a) for a in node.args]
        if node.func.id in ("min", "max") and len(values) > 1 and type(values[0]) in (int, float):
            uniform = all(type(v) is type(values[0]) for v in values)
            return literal(_SIZED[node.func.id](values), node) if uniform else node
        if node.func.id == "int" and len(values) == 1 and isinstance(values[0], float):
            return literal(int(values[0]), node)
        return node
    cast = value_of(node.func)
    value = value_of(node.args[0])
    # A cast to the other real type stays: the literal would take the kernel's type.
    if isinstance(cast, PkType) and cast.name == real and len(node.args) == 1 and type(value) in (int, float):
        return literal(float(value), node)
    return node


def _subscript(node: ast.Subscript, real: str) -> ast.expr:
    table = table_of(node.value)
    index = value_of(node.slice)
    if table is None or type(index) is not int:
        return node
    if not 0 <= index < len(table):
        fail("K010", node, f"index {index} of '{node.value.id}', expected 0 to {len(table) - 1}")
    return literal(table[index], node)


_FOLD = {
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Compare: _comparison,
    ast.BoolOp: _logic,
    ast.Call: _call,
    ast.Subscript: _subscript,
}
