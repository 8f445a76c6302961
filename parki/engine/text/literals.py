"""Single-precision literals: the hoisting in step 5 of specialising.

A real literal in C++ is a double and would lift a float expression to double.  A literal that has type float by its
context becomes a local ``c_0: pk.float = 0.5`` at the top of the function or workunit.
"""

import ast
from collections.abc import Iterable

from parki.engine.text.inline import declare
from parki.engine.text.rewrite import Rewriter
from parki.engine.text.routines import Routine, callee
from parki.engine.text.syntax import Names, PkType, changed, list_element, literal, place, statements, value_of

FLOAT, DOUBLE = "float", "double"


def hoisted(
    routine: Routine, body: list[ast.stmt], names: Names, real: str, functions: dict[str, Routine]
) -> list[ast.stmt]:
    """Return the `body` of `routine` with its float literals as locals; `functions` by id are its possible callees."""
    hoist = _Hoist(routine, body, names, real, functions)
    if FLOAT not in hoist.types.values() and hoist.returns != FLOAT and real != FLOAT:
        return body
    body = hoist.block(body)
    return hoist.declarations + body


def real_name(annotation: ast.AST | None) -> str:
    """Return ``float`` or ``double`` for a type, a List or view of it, or an accumulator; else an empty string."""
    if annotation is None:
        return ""
    value = value_of(annotation)
    if isinstance(value, PkType):
        return value.name if value.name in (FLOAT, DOUBLE) else ""
    return real_name(annotation.slice) if isinstance(annotation, ast.Subscript) else ""


def _types(args: Iterable[ast.arg], body: list[ast.stmt]) -> dict[str, str]:
    """Return the real type of every parameter and local; for views and tables the type of their elements."""
    types = {a.arg: real_name(a.annotation) for a in args}
    for s in statements(body):
        if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name):
            types[s.target.id] = real_name(s.annotation)
        elif isinstance(s, ast.FunctionDef):
            types |= {a.arg: real_name(a.annotation) for a in s.args.args}
    return types


class _Hoist(Rewriter):
    def __init__(
        self, routine: Routine, body: list[ast.stmt], names: Names, real: str, functions: dict[str, Routine]
    ) -> None:
        super().__init__(real)
        self.types, self.functions = _types(routine.params, body), functions
        self.returns, self.locals = real_name(routine.returns), names
        self.declarations: list[ast.stmt] = []
        self._known: dict[str, str] = {}
        self._want = ""

    # A literal takes the type of the operand beside it, else the type that its place asks for.
    def type_of(self, node: ast.expr) -> str:
        """Return the real type of an expression; empty for literals, integers and conditions."""
        match node:
            case ast.Name():
                return self.types.get(node.id, "")
            case ast.Subscript():
                return self.type_of(node.value)
            case ast.BinOp():
                return self.type_of(node.left) or self.type_of(node.right)
            case ast.UnaryOp():
                return self.type_of(node.operand)
            case ast.Call():
                cast = value_of(node.func)
                if isinstance(cast, PkType):
                    return real_name(node.func)
                if callee(node):
                    return real_name(self.functions[callee(node)].returns)
                return self._of_any(node.args) if _is_pk(node.func) else ""
        return ""

    def _of_any(self, nodes: Iterable[ast.expr]) -> str:
        return next(filter(None, map(self.type_of, nodes)), "")

    def _as(self, type_: str, node: ast.expr) -> ast.expr:
        """Rewrite `node` where a value of type `type_` is expected."""
        type_outside, self._want = self._want, type_
        try:
            return self.expr(node)
        finally:
            self._want = type_outside

    def expr(self, node: ast.expr) -> ast.expr:
        value = value_of(node)
        if isinstance(value, float):
            return node if (self._want or self.real) == DOUBLE else self._local(value, node)
        match node:
            case ast.Compare():
                operands = [node.left, *node.comparators]
                left, *right = (self._as(self._of_any(operands), n) for n in operands)
                return changed(node, left=left, comparators=right)
            case ast.BinOp():
                type_ = self.type_of(node) or self._want
                return changed(node, left=self._as(type_, node.left), right=self._as(type_, node.right))
            case ast.Call():
                return self._call(node)
            case ast.Subscript():
                return changed(node, slice=self._as("", node.slice))
            case ast.Constant() | ast.Name() | ast.Attribute():
                return node
        return self.parts(node)

    def _call(self, node: ast.Call) -> ast.expr:
        cast = value_of(node.func)
        if isinstance(cast, PkType):
            type_ = self._of_any(node.args) or real_name(node.func)
        elif _is_pk(node.func):
            type_ = self._of_any(node.args) or self._want
        else:
            type_ = self._of_any(node.args)
        types = [type_] * len(node.args)
        if callee(node):
            types = [real_name(p.annotation) for p in self.functions[callee(node)].params]
            types += [""] * (len(node.args) - len(types))
        return changed(node, args=[self._as(w, a) for w, a in zip(types, node.args, strict=False)])

    def _local(self, value: float, node: ast.expr) -> ast.Name:
        key = repr(value)
        if key not in self._known:
            self._known[key] = name = self.locals.fresh("c", first=0)
            kind = literal(PkType(FLOAT), node)
            self.declarations.append(declare(name, kind, literal(value, node)))
        return place(ast.Name(id=self._known[key], ctx=ast.Load()), node)

    # Statements set the type that they expect.
    def declaration(self, s: ast.AnnAssign) -> list[ast.stmt]:
        direct = s.value is None or list_element(s.annotation) is not None or value_of(s.value) is not None
        return [s if direct else changed(s, value=self._as(real_name(s.annotation), s.value))]

    def assignment(self, s: ast.Assign) -> list[ast.stmt]:
        targets = [self._as("", t) for t in s.targets]
        return [changed(s, targets=targets, value=self._as(self.type_of(s.targets[0]), s.value))]

    def update(self, s: ast.AugAssign) -> list[ast.stmt]:
        return [changed(s, target=self._as("", s.target), value=self._as(self.type_of(s.target), s.value))]

    def simple(self, s: ast.stmt) -> list[ast.stmt]:
        if isinstance(s, ast.Return) and s.value is not None:
            return [changed(s, value=self._as(self.returns, s.value))]
        return [s]


def _is_pk(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pk"
