"""Rewriter under all steps of specialising: copies changed nodes, folds constants, keeps only live branches."""

import ast
from collections.abc import Mapping

from parki.engine.text.constants import fold
from parki.engine.text.grammar import CONSTRUCTS
from parki.engine.text.syntax import changed, fail, has_effect, list_element, place, value_of

_OPAQUE = (ast.Lambda, ast.JoinedStr, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Rewriter:
    """Rewriter: replaces names, folds constant expressions, drops dead sides of constant conditions and bare strings.

    `names` maps a name to its new name, or (where it is only read) to an expression; `real` is the kernel's real type,
    ``double`` or ``float``.  Subclasses override `name`, `subscript` or single statements.
    """

    def __init__(self, real: str, names: Mapping[str, str | ast.expr] | None = None) -> None:
        self.real, self.names = real, names or {}
        self._rules = {
            ast.Expr: self.bare,
            ast.AnnAssign: self.declaration,
            ast.Assign: self.assignment,
            ast.AugAssign: self.update,
            ast.Return: self.simple,
            ast.If: self.branch,
            ast.For: self.loop,
            ast.While: self.while_loop,
            ast.FunctionDef: self.inner,
            ast.Pass: self.simple,
            ast.Break: self.simple,
            ast.Continue: self.simple,
        }

    # Expressions -----------------------------------------------------------------------------------------------------
    def expr(self, node: ast.expr) -> ast.expr:
        """Return the rewritten expression; the same object if nothing in it changes."""
        kind = type(node)
        if kind is ast.Constant or kind in _OPAQUE:
            return node
        if kind is ast.Name:
            return self.name(node)
        if kind is ast.Subscript:
            return fold(self.subscript(node), self.real)
        return fold(self.parts(node), self.real)

    def parts(self, node: ast.AST) -> ast.AST:
        """Return `node` with its operands rewritten."""
        new = {}
        for field in node._fields:
            old = getattr(node, field)
            if isinstance(old, ast.expr):
                value = self.expr(old)
            elif isinstance(old, list) and old:
                value = [self.parts(v) if isinstance(v, ast.keyword) else self._item(v) for v in old]
                if all(a is b for a, b in zip(value, old, strict=True)):
                    continue
            else:
                continue
            if value is not old:
                new[field] = value
        return changed(node, **new) if new else node

    def _item(self, node: object) -> object:
        return self.expr(node) if isinstance(node, ast.expr) else node

    def name(self, node: ast.Name) -> ast.expr:
        """Return the replacement of a name that is read."""
        new = self.names.get(node.id)
        if new is None:
            return node
        return changed(node, id=new) if isinstance(new, str) else new

    def subscript(self, node: ast.Subscript) -> ast.expr:
        """Return the replacement of ``base[index]``, read or written."""
        return self.parts(node)

    def target(self, node: ast.expr) -> ast.expr:
        """Rewrite the left side of an assignment."""
        if isinstance(node, ast.Name):
            return self.bind(node)
        if isinstance(node, ast.Tuple):
            return changed(node, elts=[self.target(t) for t in node.elts])
        new = self.expr(node)
        if value_of(new) is not None:
            fail("K011", node, f"'{ast.unparse(node)}' is a constant and cannot be assigned")
        return new

    def bind(self, node: ast.Name) -> ast.Name:
        """Rewrite a name that is assigned or declared."""
        new = self.names.get(node.id)
        if new is not None and not isinstance(new, str):
            fail("K011", node, f"'{node.id}' is a parameter or a loop index and cannot be assigned or declared again")
        return node if new is None else changed(node, id=new)

    # Statements ------------------------------------------------------------------------------------------------------
    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Rewrite the statements of a block, with the statements of chosen branches in their place."""
        out: list[ast.stmt] = []
        types: dict[str, tuple[ast.expr, bool]] = {}  # declared in this block: type, and whether by a chosen branch
        for i in range(len(body)):
            new = self.step(body, i)
            out += [_declared_once(n, types) if isinstance(n, ast.AnnAssign) else n for n in new]
        return out

    def step(self, body: list[ast.stmt], i: int) -> list[ast.stmt]:
        """Return the statements that replace the i-th of a block."""
        return self.stmt(body[i])

    def stmt(self, s: ast.stmt) -> list[ast.stmt]:
        """Return the statements that replace `s`."""
        rule = self._rules.get(type(s))
        if rule is None:
            construct, advice = CONSTRUCTS.get(type(s).__name__, (type(s).__name__, ""))
            fail("K001", s, f"{construct} is not in the workunit subset", advice)
        return rule(s)

    def filled(self, body: list[ast.stmt], model: ast.stmt) -> list[ast.stmt]:
        """Rewrite a block that has to have a statement."""
        return self.block(body) or [place(ast.Pass(), model)]

    def simple(self, s: ast.stmt) -> list[ast.stmt]:
        """Rewrite a statement whose parts are only read."""
        return [self.parts(s)]

    def bare(self, s: ast.Expr) -> list[ast.stmt]:
        """Rewrite an expression as a statement: a call, or a string, which is dropped."""
        text = isinstance(s.value, ast.Constant) and isinstance(s.value.value, str)
        return [] if text else [self.parts(s)]

    def declaration(self, s: ast.AnnAssign) -> list[ast.stmt]:
        """Rewrite ``name: type = value``."""
        value = None if s.value is None else self.expr(s.value)
        return [changed(s, target=self.target(s.target), annotation=self.expr(s.annotation), value=value)]

    def assignment(self, s: ast.Assign) -> list[ast.stmt]:
        """Rewrite ``target = value``."""
        value = self.expr(s.value)
        return [changed(s, targets=[self.target(t) for t in s.targets], value=value)]

    def update(self, s: ast.AugAssign) -> list[ast.stmt]:
        """Rewrite ``target op= value``."""
        return [changed(s, target=self.target(s.target), value=self.expr(s.value))]

    def branch(self, s: ast.If) -> list[ast.stmt]:
        """Rewrite ``if``: where the condition is constant, only the side that it selects."""
        test = self.expr(s.test)
        value = value_of(test)
        if isinstance(value, bool):
            side = self.block(s.body if value else s.orelse)
            side = [n for n in side if not isinstance(n, ast.Pass)]
            return [changed(n, chosen=True) if isinstance(n, ast.AnnAssign) else n for n in side]
        return [changed(s, test=test, body=self.filled(s.body, s), orelse=self.block(s.orelse))]

    def loop(self, s: ast.For) -> list[ast.stmt]:
        """Rewrite ``for name in range(…)``."""
        if not isinstance(s.target, ast.Name):
            fail("K001", s.target, f"loop over '{ast.unparse(s.target)}', expected one name")
        head = {"target": self.bind(s.target), "iter": self.expr(s.iter)}
        return [changed(s, **head, body=self.filled(s.body, s), orelse=self.block(s.orelse))]

    def while_loop(self, s: ast.While) -> list[ast.stmt]:
        """Rewrite ``while``."""
        return [changed(s, test=self.expr(s.test), body=self.filled(s.body, s), orelse=self.block(s.orelse))]

    def inner(self, s: ast.FunctionDef) -> list[ast.stmt]:
        """Rewrite the body of a nested range or of a ``pk.single``."""
        name = self.bind(place(ast.Name(id=s.name, ctx=ast.Store()), s)).id
        return [changed(s, name=name, args=self.arguments(s.args), body=self.filled(s.body, s))]

    def arguments(self, args: ast.arguments) -> ast.arguments:
        """Rewrite a parameter list."""
        new = []
        for a in args.args:
            name = self.bind(place(ast.Name(id=a.arg, ctx=ast.Store()), a)).id
            new.append(changed(a, arg=name, annotation=a.annotation and self.expr(a.annotation)))
        return changed(args, args=new)


def _declared_once(s: ast.AnnAssign, types: dict[str, tuple[ast.expr, bool]]) -> ast.stmt:
    """Return `s`, or an assignment where constant branches declare one name and type a second time in one block."""
    if not isinstance(s.target, ast.Name) or list_element(s.annotation) is not None or has_effect(s.value):
        return s
    is_choice = getattr(s, "chosen", False)
    first, by_branch = types.get(s.target.id, (None, False))
    types[s.target.id] = s.annotation, is_choice or by_branch
    if first is None or not (is_choice or by_branch) or ast.dump(first) != ast.dump(s.annotation):
        return s
    return place(ast.Assign(targets=[s.target], value=s.value), s)
