"""Inlining, step 7 of specialising: calls of inline functions become their statements, with locals renamed."""

import ast

from parki.engine.text.rewrite import Rewriter
from parki.engine.text.routines import Routine, by_name, callee
from parki.engine.text.syntax import Names, bound_names, changed, expressions, fail, place, table_of, value_of


class Inliner:
    """Expander of the calls in one routine, whose callees have been expanded before."""

    def __init__(self, routines: dict[str, Routine], names: Names, real: str) -> None:
        self.inline = {k: r for k, r in routines.items() if r.inline}
        self.names, self.real = names, real

    def block(self, body: list[ast.stmt], visible: set[str]) -> list[ast.stmt]:
        """Return the statements of a block without inline calls; `visible` are the names declared around it."""
        if not self.inline:
            return body
        visible, out = set(visible), []
        for s in body:
            out += self._stmt(s, visible)
            if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name):
                visible.add(s.target.id)
        return out

    def _stmt(self, s: ast.stmt, visible: set[str]) -> list[ast.stmt]:
        value = getattr(s, "value", None)
        call = value if callee(value) in self.inline else None
        for node in expressions(s):
            if node is not call and callee(node) in self.inline:
                name = self.inline[callee(node)].node.name
                advice = f"Declare a local with its result first: x: real = {name}(…)"
                fail("K001", node, f"inline function '{name}' is called inside an expression", advice)
        if call is not None:
            return self._expanded(s, call, visible)
        names = visible
        if isinstance(s, ast.FunctionDef):
            names = visible | {a.arg for a in s.args.args}
        elif isinstance(s, ast.For):
            names = visible | {s.target.id}
        blocks = {b: self.block(getattr(s, b), names) for b in ("body", "orelse") if getattr(s, b, None)}
        if "body" in blocks and not blocks["body"]:
            blocks["body"] = [place(ast.Pass(), s)]
        return [changed(s, **blocks)] if blocks else [s]

    def _expanded(self, s: ast.stmt, call: ast.Call, visible: set[str]) -> list[ast.stmt]:
        routine = self.inline[callee(call)]
        declarations, rewriter = self._bound(routine, call)
        body = routine.body
        values: list[ast.expr] = []
        if isinstance(body[-1], ast.Return):
            result = body[-1].value
            body = body[:-1]
            if result is not None:
                results = result.elts if isinstance(result, ast.Tuple) else [result]
                values = [rewriter.expr(v) for v in results]
        out = declarations + [n for n in rewriter.block(body) if not isinstance(n, ast.Pass)]
        if isinstance(s, ast.Expr):
            return out
        if isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Tuple):
            return out + self._unpacked(s, routine, values, visible)
        if len(values) != 1:
            fail("K004", call, f"'{routine.node.name}' gives {len(values)} values, expected 1")
        if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Subscript):
            lists = {a.id for a in call.args if isinstance(a, ast.Name)}
            base = s.target.value
            if isinstance(base, ast.Name) and base.id in lists:
                fail("K001", s, f"'{base.id}' is updated with a function of itself", "Declare a local first")
        return [*out, changed(s, value=values[0])]

    def _bound(self, routine: Routine, call: ast.Call) -> tuple[list[ast.stmt], Rewriter]:
        """Return the declarations that arguments need, and the rewriter from the function's names to the caller's."""
        name = routine.node.name
        if len(call.args) != len(routine.params) or any(isinstance(a, ast.Starred) for a in call.args):
            fail("K004", call, f"'{name}' takes {len(routine.params)} arguments, found {len(call.args)}")
        names: dict[str, str | ast.expr] = {}
        declarations: list[ast.stmt] = []
        for p, arg in zip(routine.params, call.args, strict=True):
            kind = by_name(p.annotation)
            if kind:
                if not isinstance(arg, ast.Name) or (kind == "view" and table_of(arg) is not None):
                    expected = "local array" if kind == "List" else "view"
                    fail("K004", arg, f"argument '{p.arg}' of '{name}' is a {kind}: expected the name of a {expected}")
                names[p.arg] = arg.id if table_of(arg) is None else arg
            elif isinstance(arg, ast.Name) and table_of(arg) is None:
                names[p.arg] = arg.id
            elif value_of(arg) is not None:
                names[p.arg] = arg
            else:
                local = names[p.arg] = self.names.fresh(p.arg)
                declarations.append(declare(local, p.annotation, arg))
        for local in sorted(bound_names(routine.body)):
            names[local] = self.names.fresh(local)
        return declarations, Rewriter(self.real, names)

    def _unpacked(self, s: ast.Assign, routine: Routine, values: list[ast.expr], visible: set[str]) -> list[ast.stmt]:
        """Return ``a, b = f(…)`` as one statement per name; a name that is not declared yet is declared here."""
        targets, types = s.targets[0].elts, routine.result_types()
        if len(targets) != len(values):
            fail("K004", s, f"'{routine.node.name}' gives {len(values)} values, expected {len(targets)}")
        out: list[ast.stmt] = []
        # All values are from before the first assignment: if a later one reads an earlier target, all get a local.
        for i, t in enumerate(targets):
            root = _root(t)
            if any(isinstance(n, ast.Name) and n.id == root for v in values[i + 1 :] for n in ast.walk(v)):
                locals_ = [self.names.fresh(t.id if isinstance(t, ast.Name) else "value") for t in targets]
                out = [declare(n, kind, v) for n, kind, v in zip(locals_, types, values, strict=True)]
                values = [place(ast.Name(id=n, ctx=ast.Load()), s) for n in locals_]
                break
        for t, kind, v in zip(targets, types, values, strict=True):
            if isinstance(t, ast.Name) and t.id not in visible:
                visible.add(t.id)
                out.append(place(declare(t.id, kind, v), s))
            else:
                out.append(place(ast.Assign(targets=[t], value=v), s))
        return out


def declare(name: str, annotation: ast.expr, value: ast.expr) -> ast.AnnAssign:
    """Return ``name: annotation = value``, placed where the value is."""
    target = place(ast.Name(id=name, ctx=ast.Store()), value)
    return place(ast.AnnAssign(target=target, annotation=annotation, value=value, simple=1), value)


def _root(target: ast.expr) -> str | None:
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None
