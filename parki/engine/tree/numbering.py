"""Value numbering of a typed tree: values that a compiler computes, once and outside the loops where possible.

Each value has a number, which equal expressions share, and the innermost block that it depends on.  Blocks are the
workunit, its loops and its branches; bodies of functions belong to the block that calls them.
"""

import ast
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from parki.engine import config
from parki.engine.errors import KernelError
from parki.engine.text import source
from parki.engine.text.syntax import bound_names, parsed
from parki.engine.tree import ir
from parki.engine.tree.walk import children, const_trip, is_lane_range, walk

if TYPE_CHECKING:
    from parki.engine.workunit import Workunit

SIZES = {"double": 8, "float": 4, "int64": 8, "int32": 4, "uint8": 1, "bool": 1}
COMPARING = frozenset(("fmin", "fmax", "fabs", "floor", "ceil"))
ARITHMETIC = {"+": "add", "-": "add", "*": "mul", "/": "div"}


@dataclass
class NumberedBlock:
    """Block during the count: see `operations.CodeBlock`."""

    name: str
    kind: str
    trips: int | None = 1
    lanes: bool = False
    own: dict[tuple[str, str, bool], float] = field(default_factory=dict)
    children: list["NumberedBlock"] = field(default_factory=list)

    def add(self, kind: str, name: str, differs: bool) -> None:
        """Add one to a count."""
        key = (kind, name, differs)
        self.own[key] = self.own.get(key, 0.0) + 1.0


@dataclass(frozen=True)
class Value:
    """Value: number, position of the innermost open block that it depends on, and whether lanes differ in it."""

    number: int
    level: int
    differs: bool


@dataclass
class _Open:
    """Open block, on the path from the workunit to the current statement, and the values known in it."""

    found: NumberedBlock
    loop: bool
    in_lanes: bool
    known: dict[tuple, Value] = field(default_factory=dict)


def count(unit: "Workunit") -> tuple[dict[str, int], frozenset[str], NumberedBlock]:
    """Return the element bytes of views and scratch arrays by name, the names of scratch arrays, and the blocks."""
    walker = _Walker(unit.ir, _titles(unit))
    walker.run(unit.ir.body)
    return walker.itemsize, frozenset(walker.arrays), walker.open[0].found


class _Walker:
    def __init__(self, kernel: ir.KernelTree, titles: dict[tuple[str, int], str]) -> None:
        self.titles = titles
        self.functions = {f.name: f for f in kernel.functions}
        bodies = [*kernel.body, *(s for f in kernel.functions for s in f.body)]
        self.read = {n.name for n in walk(bodies) if isinstance(n, ir.Name)}
        self.constant = {p.name for p in kernel.params if p.rank and not p.written}
        self.itemsize = {p.name: SIZES[p.type] for p in kernel.params if p.rank}
        self.arrays: set[str] = set()
        self.numbers = itertools.count()
        self.literals: dict[int, int | float | bool] = {}
        lanes = kernel.policy == "range"
        self.open = [_Open(NumberedBlock(kernel.name, "workunit", lanes=lanes), lanes, lanes)]
        self.env = {p.name: self.fresh(0, False) for p in kernel.params if not p.rank}
        if kernel.index:
            self.env[kernel.index] = self.fresh(0, True)
        self.result: Value | None = None
        self.met: dict[int, Value] = {}  # values of the current statement's expressions, by id

    # Values -----------------------------------------------------------------------------------------------------------
    @property
    def here(self) -> int:
        return len(self.open) - 1

    def fresh(self, level: int, differs: bool) -> Value:
        return Value(next(self.numbers), level, differs)

    def known(self, key: tuple) -> Value | None:
        return next((block.known[key] for block in reversed(self.open) if key in block.known), None)

    def computed(self, key: tuple, kind: str | None, *operands: Value) -> Value:
        """Return the value of an operation; a new one is counted where it is computed, unless `kind` is None."""
        value = self.known(key)
        if value is None:
            level = max((v.level for v in operands), default=0)
            loops = (position for position in range(level + 1, self.here + 1) if self.open[position].loop)
            position = next(loops, self.here + 1) - 1
            value = self.fresh(level, any(v.differs for v in operands))
            self.open[position].known[key] = value
            if kind:
                self.open[position].found.add("operation", kind, value.differs)
        return value

    def literal(self, value: int | float | bool, kind: str) -> Value:
        result = self.computed(("literal", kind, repr(value)), None)
        self.literals[result.number] = value
        return result

    def is_literal(self, v: Value, *values: float) -> bool:
        return v.number in self.literals and (not values or self.literals[v.number] in values)

    def value(self, e: ir.Expr) -> Value:
        """Return the value of an expression, found once per statement."""
        if id(e) not in self.met:
            method = getattr(self, "of_" + type(e).__name__, None)
            value = method(e) if method else self.computed((repr(e),), None, *[self.value(x) for x in children(e)])
            self.met[id(e)] = value
        return self.met[id(e)]

    def of_Const(self, e: ir.Const) -> Value:
        return self.literal(e.value, e.type)

    def of_Name(self, e: ir.Name) -> Value:
        if e.name not in self.env:
            self.env[e.name] = self.fresh(self.here, self.open[-1].in_lanes)
        return self.env[e.name]

    def of_Extent(self, e: ir.Extent) -> Value:
        return self.computed(("extent", e.view, e.dim), None)

    def of_LeagueRank(self, e: ir.LeagueRank) -> Value:
        return self.computed(("league rank",), None)

    def of_Load(self, e: ir.Load) -> Value:
        return self.load(e.view, [self.value(i) for i in e.indices])

    def load(self, view: str, indices: list[Value]) -> Value:
        key = ("load", view, *(i.number for i in indices))
        value = self.known(key) if view in self.constant else None
        if value is None:
            value = self.fresh(self.here, any(i.differs for i in indices))
            self.open[-1].known[key] = value
            if view in self.itemsize:
                self.open[-1].found.add("load", view, value.differs)
        return value

    def of_Unary(self, e: ir.Unary) -> Value:
        v = self.value(e.arg)
        if e.op == "+":
            return v
        return self.computed((e.op, v.number), "integer" if e.op == "~" else None, v)

    def of_Binary(self, e: ir.Binary) -> Value:
        if e.type not in ir.REALS:
            return self.combined(e.op, self.value(e.left), self.value(e.right), "integer")
        if e.op in "+-":
            return self.sum(e.op, e.left, e.right)
        return self.combined(e.op, self.value(e.left), self.value(e.right), ARITHMETIC.get(e.op, "div"))

    def combined(self, op: str, a: Value, b: Value, kind: str) -> Value:
        """Return the value of an operation on two values; not counted where one is neutral or both are literals."""
        if self.is_literal(b, *((0,) if op in "+-" else (1,))) and op in ("+", "-", "*", "/", "//"):
            return a
        if (op == "+" and self.is_literal(a, 0)) or (op == "*" and self.is_literal(a, 1)):
            return b
        numbers = (a.number, b.number) if op not in "+*" else tuple(sorted((a.number, b.number)))
        are_literals = self.is_literal(a) and self.is_literal(b)
        value = self.computed((op, kind == "integer", *numbers), None if are_literals else kind, a, b)
        if are_literals:
            self.literals.setdefault(value.number, float("nan"))
        return value

    def sum(self, op: str, left: ir.Expr | Value, right: ir.Expr) -> Value:
        """Return a sum or difference of reals: one fused operation if a side is a product that is not known yet."""
        for side, addend in ((right, left), (left, right)):
            if self.factors(side):
                c = addend if isinstance(addend, Value) else self.value(addend)
                factors = self.factors(side)  # again: the product may be known from the other side
                if self.is_literal(c, 0) or not factors:
                    break
                key = ("fma", op, side is left, *(v.number for v in factors), c.number)
                return self.computed(key, "fma", *factors, c)
        a = left if isinstance(left, Value) else self.value(left)
        return self.combined(op, a, self.value(right), "add")

    def factors(self, e: ir.Expr | Value) -> tuple[Value, Value] | None:
        while isinstance(e, ir.Unary) and e.op in "+-":
            e = e.arg
        if not isinstance(e, ir.Binary) or e.op != "*":
            return None
        a, b = self.value(e.left), self.value(e.right)
        trivial = self.is_literal(a, 1) or self.is_literal(b, 1) or (self.is_literal(a) and self.is_literal(b))
        return None if trivial or self.known(("*", False, *sorted((a.number, b.number)))) else (a, b)

    def of_Compare(self, e: ir.Compare) -> Value:
        a, b = self.value(e.left), self.value(e.right)
        return self.computed((e.op, a.number, b.number), "compare" if e.left.type in ir.REALS else "integer", a, b)

    def of_Bool(self, e: ir.Bool) -> Value:
        values = [self.value(a) for a in e.args]
        return self.computed((e.op, *(v.number for v in values)), None, *values)

    def of_Math(self, e: ir.Math) -> Value:
        values = [self.value(a) for a in e.args]
        kind = "compare" if e.name in COMPARING else e.name
        return self.computed((e.name, *(v.number for v in values)), kind, *values)

    def of_Cast(self, e: ir.Cast) -> Value:
        v = self.value(e.arg)
        converts = (e.type in ir.REALS) != (e.arg.type in ir.REALS) and not self.is_literal(v)
        return self.computed(("to", e.type, v.number), "integer" if converts else None, v)

    def of_FunctionCall(self, e: ir.FunctionCall) -> Value:
        function = self.functions[e.name]
        values = [self.value(a) for a in e.args]
        outer, self.env = self.env, {name: v for (name, _), v in zip(function.params, values, strict=True)}
        self.run(function.body)
        self.env = outer
        return self.result

    # Statements -------------------------------------------------------------------------------------------------------
    def run(self, body: Iterable[ir.Stmt]) -> None:
        outer = self.met
        for s in body:
            self.met = {}
            method = getattr(self, "do_" + type(s).__name__, None)
            if method:
                method(s)
                continue
            for child in children(s):
                self.run((child,)) if isinstance(child, ir.Stmt) else self.value(child)
        self.met = outer

    def do_Declare(self, s: ir.Declare) -> None:
        if s.name in self.read:
            self.env[s.name] = self.value(s.value)

    def do_Assign(self, s: ir.Assign) -> None:
        self.env[s.name] = self.updated(s.op, self.of_Name(s), s.value) if s.op != "=" else self.value(s.value)

    def do_Accumulate(self, s: ir.Accumulate) -> None:
        self.env[s.name] = self.updated("+=", self.of_Name(s), s.value)

    def updated(self, op: str, old: Value, value: ir.Expr) -> Value:
        """Return the value after an assignment with `op`, one of ``+= -= *= /=``."""
        op = op[0]
        if value.type in ir.REALS and op in "+-":
            return self.sum(op, old, value)
        kind = ARITHMETIC[op] if value.type in ir.REALS else "integer"
        return self.combined(op, old, self.value(value), kind)

    def do_Table(self, s: ir.Table) -> None:
        self.itemsize[s.name] = SIZES[s.type]
        self.constant.add(s.name)

    def do_Scratch(self, s: ir.Scratch) -> None:
        self.value(s.size)
        self.itemsize[s.name] = SIZES[s.type]
        self.arrays.add(s.name)

    def do_Store(self, s: ir.Store) -> None:
        indices = [self.value(i) for i in s.indices]
        if s.op == "=":
            self.value(s.value)
        else:
            self.updated(s.op, self.load(s.view, indices), s.value)
        if s.view in self.itemsize:
            self.open[-1].found.add("store", s.view, any(i.differs for i in indices))

    def do_Atomic(self, s: ir.Atomic) -> None:
        values = [self.value(x) for x in (*s.indices, s.value)]
        self.open[-1].found.add("atomic", s.view, any(v.differs for v in values))
        if s.result:
            self.env[s.result] = self.fresh(self.here, self.open[-1].in_lanes)

    def do_Return(self, s: ir.Return) -> None:
        self.result = None if s.value is None else self.value(s.value)

    def do_Single(self, s: ir.Single) -> None:
        self.run(s.body)

    def do_If(self, s: ir.If) -> None:
        self.value(s.cond)
        title = self.titles.get((s.loc.file, s.loc.line), f"condition in line {s.loc.line}")
        is_branch = self.block(NumberedBlock(title, "branch", None), s.then)
        if s.orelse:
            self.block(NumberedBlock(f"not {title}", "else" if is_branch else "branch", None), s.orelse)

    def do_While(self, s: ir.While) -> None:
        title = self.titles.get((s.loc.file, s.loc.line), f"condition in line {s.loc.line}")
        self.block(NumberedBlock(title, "loop", None), s.body, s.cond)

    def do_For(self, s: ir.For) -> None:
        bounds = self.value(s.start), self.value(s.stop)
        block = NumberedBlock(
            self.titles.get((s.loc.file, s.loc.line), s.name), "loop", const_trip(s.start, s.stop, s.step)
        )
        index = self.fresh(self.here + 1, any(b.differs for b in bounds))
        self.block(block, s.body, index={s.name: index})

    def do_Range(self, s: ir.Range) -> None:
        self.value(s.begin), self.value(s.end)
        lanes = is_lane_range(s)
        block = NumberedBlock(s.index, "loop", const_trip(s.begin, s.end), lanes)
        names = {s.index: self.fresh(self.here + 1, lanes)}
        names |= {name: self.fresh(self.here + 1, lanes) for name in (s.acc, s.last) if name}
        self.block(block, s.body, index=names)
        if s.result:
            self.env[s.result] = self.fresh(self.here, self.open[-1].in_lanes)

    def block(
        self, block: NumberedBlock, body: tuple[ir.Stmt, ...], cond: ir.Expr | None = None, index: dict | None = None
    ) -> bool:
        """Visit a loop or branch; return whether it stays one: integer operations alone are selected, not branched."""
        outer, loop = self.open[-1], block.kind == "loop"
        changed = {s.name for s in walk(body) if isinstance(s, ir.Assign | ir.Accumulate)} & set(self.env)
        self.open.append(_Open(block, loop, outer.in_lanes or block.lanes))
        if loop:
            self.env |= {name: self.fresh(self.here, self.open[-1].in_lanes) for name in changed}
        self.env |= index or {}
        if cond is not None:
            self.value(cond)
        self.run(body)
        self.open.pop()
        self.env |= {name: self.fresh(self.here, outer.in_lanes) for name in changed}
        integers = all(kind == "operation" and name in ("integer", "compare") for kind, name, _ in block.own)
        if block.children or not integers or (loop and block.own):
            outer.found.children.append(block)
            return True
        for key, n in block.own.items():
            outer.found.own[key] = outer.found.own.get(key, 0.0) + n
        return False


def _titles(unit: "Workunit") -> dict[tuple[str, int], str]:
    """Return the names of loops and branches in the kernel files, by file and line."""
    titles = {}
    for display in {file for file, _ in unit.l0.linemap if file}:
        inside = display.startswith(config.KERNELS_FOLDER) and display in unit.l0.sources
        module = display.removeprefix(config.KERNELS_FOLDER).removesuffix(".py")
        place = source.package_place(module) if inside else source.locate(Path(display))
        try:
            text = source.read(place).text
        except KernelError:  # the file is gone: the names of the specialised text serve
            continue
        titles |= {(display, line): name for line, name in _names(text).items()}
    return titles


@lru_cache(maxsize=64)
def _names(text: str) -> dict[int, str]:
    """Return names of conditions and loops by line.

    A condition without a name has its text as written, as Python's versions unparse it differently; a ``while`` loop
    has the name that its condition tests and its body assigns, if any.
    """
    titles = {}
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.If | ast.While):
            changed = bound_names(node.body) if isinstance(node, ast.While) else ()
            variables = [n.id for n in ast.walk(node.test) if isinstance(n, ast.Name) and n.id in changed]
            titles[node.lineno] = (
                variables[0] if variables else " ".join(ast.get_source_segment(text, node.test).split())
            )
        elif isinstance(node, ast.For):
            titles[node.lineno] = ast.unparse(node.target)
    return titles
