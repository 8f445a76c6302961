"""Tools for the syntax trees of kernel files: places, literals, names.

Every statement and expression carries `origin`, the display path of its file, beside ast's `lineno` and `col_offset`.
Trees are never changed in place, so whole subtrees may be shared between a file and all its specialisations.
"""

import ast
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from parki.engine import forks
from parki.engine.errors import KernelError, Loc

Node = TypeVar("Node", bound=ast.AST)
Value = bool | int | float
BLOCKS = ("body", "orelse")
NESTING = (ast.If, ast.For, ast.While, ast.FunctionDef)

_parsing = forks.lock()


def parsed(text: str) -> ast.Module:
    """Return the tree of a text, parsed by one thread at a time.

    Some versions of Python, 3.11 among them, count the depth of a tree for all threads together, and raise SystemError
    where a thread goes on in the middle of another's tree.
    """
    with _parsing:
        return ast.parse(text)


@dataclass(frozen=True)
class PkType:
    """Value of a type constant such as ``real = pk.double``: `name` is ``double``."""

    name: str


def place(new: Node, old: ast.AST) -> Node:
    """Give `new` the place of `old`."""
    new.lineno, new.col_offset, new.origin = old.lineno, old.col_offset, old.origin  # type: ignore[attr-defined]
    return new


def loc(node: ast.AST) -> Loc:
    """Return the place of `node` in its L1 file."""
    return Loc(node.origin, node.lineno, node.col_offset + 1)  # type: ignore[attr-defined]


def fail(code: str, node: ast.AST, reason: str, advice: str = "") -> NoReturn:
    """Raise KernelError at `node`."""
    raise KernelError(code, loc(node), reason, advice)


def changed(node: Node, **fields: object) -> Node:
    """Return a copy of `node`, place included, with some fields replaced; `node` itself if no field differs."""
    old = node.__dict__
    if all(_same(old.get(name), value) for name, value in fields.items()):
        return node
    new = type(node).__new__(type(node))
    new.__dict__.update(old)
    new.__dict__.update(fields)
    new.__dict__.pop("collected", None)
    return new


def _same(old: object, new: object) -> bool:
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(a is b for a, b in zip(old, new, strict=True))
    return old is new


# Literals ------------------------------------------------------------------------------------------------------------
def literal(value: Value | PkType, model: ast.AST) -> ast.expr:
    """Return the expression for a constant; a negative number is a minus sign and a literal, as in source."""
    if isinstance(value, PkType):
        base = place(ast.Name(id="pk", ctx=ast.Load()), model)
        return place(ast.Attribute(value=base, attr=value.name, ctx=ast.Load()), model)
    if value < 0 or (isinstance(value, float) and math.copysign(1.0, value) < 0):
        magnitude = place(ast.Constant(value=-value), model)
        return place(ast.UnaryOp(op=ast.USub(), operand=magnitude), model)
    return place(ast.Constant(value=value), model)


def value_of(node: ast.AST) -> Value | PkType | None:
    """Return the value of a literal (a signed number, a bool, ``math.pi``, a ``pk`` type); None for anything else."""
    kind = type(node)
    if kind is ast.Constant:
        return node.value if isinstance(node.value, bool | int | float) else None
    if kind is ast.UnaryOp and isinstance(node.op, ast.USub) and type(node.operand) is ast.Constant:
        value = node.operand.value
        return -value if isinstance(value, int | float) and not isinstance(value, bool) else None
    if kind is ast.Attribute and isinstance(node.value, ast.Name):
        if node.value.id == "math" and node.attr == "pi":
            return math.pi
        if node.value.id == "pk" and node.attr in PK_TYPES:
            return PkType(node.attr)
    return None


PK_TYPES = frozenset({"double", "float", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})


def table_of(node: ast.AST) -> tuple[Value, ...] | None:
    """Return the numbers of a module-level tuple that `node` names, else None."""
    return getattr(node, "table", None)


def list_element(annotation: ast.AST) -> ast.expr | None:
    """Return the T of ``List[T]``, else None."""
    if isinstance(annotation, ast.Subscript) and isinstance(annotation.value, ast.Name):
        return annotation.slice if annotation.value.id == "List" else None
    return None


def has_effect(value: ast.expr | None) -> bool:
    """Return whether a right side does more than give a value: atomics, nested ranges, scratch."""
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)):
        return False
    return value.func.attr.startswith(("atomic_", "parallel_", "ScratchView"))


# Walks and names -----------------------------------------------------------------------------------------------------
def statements(block: Iterable[ast.stmt]) -> list[ast.stmt]:
    """Return all statements of a block, nested ones included, in order of text."""
    result: list[ast.stmt] = []
    _gather(block, result)
    return result


def _gather(block: Iterable[ast.stmt], result: list[ast.stmt]) -> None:
    for s in block:
        result.append(s)
        if isinstance(s, NESTING):
            for name in BLOCKS:
                _gather(getattr(s, name, ()), result)


def expressions(s: ast.stmt) -> list[ast.AST]:
    """Return all expressions in `s` itself, not in its nested statements; kept with `s`, which does not change."""
    nodes = getattr(s, "collected", None)
    if nodes is None:
        nodes = []
        for name in s._fields:
            if name not in BLOCKS:
                _collect(getattr(s, name), nodes)
        s.collected = nodes  # type: ignore[attr-defined]
    return nodes


def _collect(value: object, nodes: list[ast.AST]) -> None:
    """Append `value`, a field of a node, and the expressions under it: `ast.walk` without operators and contexts."""
    if isinstance(value, ast.expr):
        nodes.append(value)
        if isinstance(value, ast.Name | ast.Constant):
            return
        for name in value._fields:
            _collect(getattr(value, name), nodes)
    elif isinstance(value, list):
        for v in value:
            _collect(v, nodes)
    elif isinstance(value, ast.arguments | ast.arg | ast.keyword | ast.comprehension):
        for name in value._fields:
            _collect(getattr(value, name), nodes)


def elements(s: ast.stmt, names: Iterable[str]) -> Iterator[ast.Subscript]:
    """Yield the subscripts of any of `names` in `s` itself."""
    for n in expressions(s):
        if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name) and n.value.id in names:
            yield n


def assigned(s: ast.stmt) -> set[str]:
    """Return the names that `s` itself assigns, declares, loops over or defines."""
    if isinstance(s, ast.FunctionDef):
        return {s.name}
    if not isinstance(s, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For):
        return set()
    targets = s.targets if isinstance(s, ast.Assign) else [s.target]
    parts = [t for target in targets for t in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return {t.id for t in parts if isinstance(t, ast.Name)}


def bound_names(block: Iterable[ast.stmt], *, into_defs: bool = True) -> set[str]:
    """Return the names that a block binds, at any depth; inside inner defs, parameters included, only if asked."""
    names: set[str] = set()
    for s in block:
        names |= assigned(s)
        if isinstance(s, ast.FunctionDef):
            if into_defs:
                names |= {a.arg for a in s.args.args} | bound_names(s.body)
            continue
        for name in BLOCKS if isinstance(s, NESTING) else ():
            names |= bound_names(getattr(s, name, ()), into_defs=into_defs)
    return names


class Names:
    """Names of one L0 function or workunit: names that are taken, and locals that specialising made."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self.taken, self.made = set(reserved), set()
        self._next: dict[str, int] = {}

    def fresh(self, name: str, first: int = 1) -> str:
        """Return a new local ``name_k``, k from `first` on."""
        head, _, tail = name.rpartition("_")
        base = head if head and tail.isdecimal() else name
        k = self._next.get(base, first)
        while f"{base}_{k}" in self.taken:
            k += 1
        self._next[base] = k + 1
        return self._make(f"{base}_{k}")

    def elements(self, name: str, count: int) -> list[str]:
        """Return new locals ``name_0 … name_(count - 1)``; with more underscores if one of these is taken."""
        base = name + "_"
        while any(f"{base}{j}" in self.taken for j in range(count)):
            base += "_"
        return [self._make(f"{base}{j}") for j in range(count)]

    def table(self, name: str) -> str:
        """Return a local for a module-level tuple: its own name where that is free."""
        return self.fresh(name) if name in self.taken else self._make(name)

    def _make(self, name: str) -> str:
        self.taken.add(name)
        self.made.add(name)
        return name
