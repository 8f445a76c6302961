"""Functions and workunits of a program with their constants filled in: steps 2 to 6 of specialising.

A call of a function is marked by an id no Python name has (``pair@kernel-file``), so that locals never capture it.
"""

import ast
import builtins
import re
from dataclasses import dataclass

from parki.engine.text.conditions import named_conditions_in_place
from parki.engine.text.rewrite import Rewriter
from parki.engine.text.scratch import decorator
from parki.engine.text.slots import Definition, Program
from parki.engine.text.source import Source
from parki.engine.text.syntax import assigned, bound_names, changed, fail, list_element, literal, place, statements

VIEW = re.compile(r"pk\.(View[1-4]D|ScratchView1D)\[.+\]")

WORKUNIT = "@"
KNOWN = frozenset(dir(builtins)) | {"pk", "math", "List", "Tuple"}


@dataclass
class Routine:
    """A function or workunit: `node` as written, the rest with constants filled in and dead branches dropped."""

    id: str
    source: Source
    node: ast.FunctionDef
    args: ast.arguments
    returns: ast.expr | None
    body: list[ast.stmt]
    decorator: str = "@pk.function"
    inline: bool = False

    @property
    def params(self) -> list[ast.arg]:
        """Parameters of the routine."""
        return self.args.args

    @property
    def line(self) -> int:
        """Line where the definition starts, decorators included."""
        return min(d.lineno for d in (self.node, *self.node.decorator_list))

    def result_types(self) -> list[ast.expr]:
        """Return the types of the values that a function returns: none, one, or the types in its tuple."""
        if self.returns is None or (isinstance(self.returns, ast.Constant) and self.returns.value is None):
            return []
        if isinstance(self.returns, ast.Subscript) and ast.unparse(self.returns.value) in ("Tuple", "tuple"):
            types = self.returns.slice
            return list(types.elts) if isinstance(types, ast.Tuple) else [types]
        return [self.returns]


def callee(node: ast.AST) -> str | None:
    """Return the id of the function that a call calls, else None."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and "@" in node.func.id:
        return node.func.id
    return None


class Routines:
    """Functions reachable from the workunit, callees first (`found`), and the workunit itself (`workunit`)."""

    def __init__(self, program: Program) -> None:
        self.program, self.found = program, {}
        self._open: list[str] = []
        self.workunit = self._build(WORKUNIT, program.main, program.workunit)

    def request(self, definition: Definition, call: ast.Call) -> str:
        """Return the id of a function, which is built on its first call."""
        node = definition.source.functions[definition.name]
        name = f"{definition.name}@{definition.source.key}"
        if name in self._open:
            fail("K020", call, f"function '{definition.name}' calls itself", "Write a loop")
        if name not in self.found:
            self._open.append(name)
            self.found[name] = self._build(name, definition.source, node)
            self._open.pop()
        return name

    def _build(self, name: str, source: Source, node: ast.FunctionDef) -> Routine:
        filler = _Filler(self, source, node)
        args = filler.arguments(node.args)
        result = node.returns and filler.expr(node.returns)
        body = filler.filled(named_conditions_in_place(node.body), node)
        routine = Routine(name, source, node, args, result, body)
        if name == WORKUNIT:
            filler.bound = {"p"}
            routine.decorator = decorator(node.decorator_list[0], filler)
        elif _is_inline(node):
            routine.inline = True
            _check_inline(routine)
        return routine


class _Filler(Rewriter):
    """Rewriter that puts in the constants and marks the calls of one function or workunit."""

    def __init__(self, routines: Routines, source: Source, node: ast.FunctionDef) -> None:
        super().__init__(routines.program.real)
        self.routines, self.source = routines, source
        self.function = node.name if node.name in source.functions else ""
        self.bound = {a.arg for a in node.args.args} | bound_names(node.body, into_defs=False)

    def name(self, node: ast.Name) -> ast.expr:
        if node.id in self.bound:
            return node
        definition = self.routines.program.find(self.source, node.id)
        if definition is None:
            if self.function and node.id not in KNOWN:
                fail("K003", node, f"unknown name '{node.id}' in function '{self.function}'", "Pass it as a parameter")
            return node
        if definition.kind == "function":
            fail("K001", node, f"function '{node.id}' is used without a call")
        value = self.routines.program.value(definition)
        return changed(node, table=value) if isinstance(value, tuple) else literal(value, node)

    def parts(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in self.bound:
            definition = self.routines.program.find(self.source, node.func.id)
            if definition is not None and definition.kind == "function":
                for k in node.keywords:
                    fail("K008", k.value, f"keyword argument '{k.arg}' of '{node.func.id}'", "Pass it by position")
                func = place(ast.Name(id=self.routines.request(definition, node), ctx=ast.Load()), node.func)
                return changed(node, func=func, args=[self.expr(a) for a in node.args])
        return super().parts(node)

    def inner(self, s: ast.FunctionDef) -> list[ast.stmt]:
        bound_outside = self.bound
        self.bound = bound_outside | {a.arg for a in s.args.args} | bound_names(s.body, into_defs=False)
        try:
            return super().inner(s)
        finally:
            self.bound = bound_outside


# Inline functions ----------------------------------------------------------------------------------------------------
def by_name(annotation: ast.expr | None) -> str:
    """Return the kind of a parameter that is passed by name, ``List`` or ``view``; empty for a scalar."""
    if annotation is None:
        return ""
    if list_element(annotation) is not None:
        return "List"
    return "view" if VIEW.fullmatch(ast.unparse(annotation)) else ""


def _is_inline(node: ast.FunctionDef) -> bool:
    """Return whether L0 cannot have a function: List or view parameters, no result, or a tuple of results."""
    if any(by_name(a.annotation) for a in node.args.args):
        return True
    if isinstance(node.returns, ast.Subscript):
        return ast.unparse(node.returns.value) in ("Tuple", "tuple")
    return isinstance(node.returns, ast.Constant) and node.returns.value is None


def _check_inline(r: Routine) -> None:
    """Check that parameters are annotated and not assigned, and that one return is at the end: inlining needs this."""
    name, a = r.node.name, r.args
    if a.vararg or a.kwarg or a.kwonlyargs or a.posonlyargs or a.defaults:
        fail("K008", r.node, f"'{name}' has defaults, *args or keyword-only parameters")
    for p in r.params:
        if p.annotation is None:
            fail("K002", p, f"parameter '{p.arg}' has no annotation")
        kind = ast.unparse(p.annotation)
        if "TeamMember" in kind or ("View" in kind and not by_name(p.annotation)):
            fail("K020", p, f"function '{name}' takes a '{kind}'", "Pass elements, pk.View1D[…] or pk.ScratchView1D[…]")
    if r.returns is None:
        fail("K002", r.node, f"function '{name}' has no result annotation", "Write -> None or the type")
    params = {p.arg for p in r.params}
    for s in statements(r.body):
        if isinstance(s, ast.FunctionDef):
            fail("K020", s, f"function '{name}' defines '{s.name}'", "Nested ranges stand in workunits")
        if isinstance(s, ast.Return) and s is not r.body[-1]:
            fail("K020", s, f"function '{name}' returns before its end", "One return, as the last statement")
        for p in sorted(assigned(s) & params):
            fail("K011", s, f"parameter '{p}' is assigned", "Parameters are read-only: use a local")
    last = r.body[-1]
    value = last.value if isinstance(last, ast.Return) else None
    number = 0 if value is None else len(value.elts) if isinstance(value, ast.Tuple) else 1
    if number != len(r.result_types()):
        expected = len(r.result_types())
        fail("K020", last, f"function '{name}' returns {number} values, expected {expected} by its annotation")
