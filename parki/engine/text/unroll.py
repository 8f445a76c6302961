"""Unrolling and splitting of local arrays: steps 8 to 10 of specialising.

An L0 kernel has no arrays, only scalars and read-only constant tables.  A loop whose index subscripts a local array is
unrolled, after which the elements are scalars; a table that is only read stays, and so do loops over it.
"""

import ast
from collections.abc import Iterable

from parki.engine.text.constants import MAX_TABLE
from parki.engine.text.inline import declare
from parki.engine.text.rewrite import Rewriter
from parki.engine.text.syntax import (
    Names,
    PkType,
    assigned,
    changed,
    elements,
    expressions,
    fail,
    has_effect,
    list_element,
    literal,
    place,
    statements,
    table_of,
    value_of,
)

MAX_TURNS = 64  # turns of one unrolled loop
MAX_STATEMENTS = 4096  # statements made by unrolling in one function or workunit


def scalars_only(body: list[ast.stmt], names: Names, real: str) -> list[ast.stmt]:
    """Return the body without local arrays: loops over them unrolled, elements as locals, unused locals dropped."""
    arrays = _Arrays(body)
    if arrays.all:
        body = _propagated(body, names, real)
        body = _Unroller(arrays, names, real).block(body)
        arrays = _Arrays(body)
        if arrays.tables:  # first, as an entry may index an array
            body = _Splitter(arrays.tables, names, real).block(body)
        body = _Splitter(arrays.all, names, real).block(body)
    if any(table_of(n) is not None for s in statements(body) for n in expressions(s)):
        tables = _Tables(names, real)
        body = tables.block(body)
        body = tables.declarations + body
    return _used(_propagated(body, names, real), names)


class _Arrays:
    """Names of local Lists (`all`): `tables` have literal entries and are never stored to, `arrays` are the others."""

    def __init__(self, body: list[ast.stmt]) -> None:
        lists = [s for s in statements(body) if isinstance(s, ast.AnnAssign) and list_element(s.annotation) is not None]
        self.all = {s.target.id for s in lists if isinstance(s.target, ast.Name)}
        stores = (
            n for s in statements(body) if self.all for n in elements(s, self.all) if isinstance(n.ctx, ast.Store)
        )
        stored = {n.value.id for n in stores}
        variable = {s.target.id for s in lists if any(value_of(v) is None for v in _entries(s))}
        self.tables = self.all - stored - variable
        self.arrays = self.all - self.tables


def _entries(s: ast.AnnAssign) -> list[ast.expr]:
    """Return the initial values of ``a: List[T] = [v] * n``, ``[v, w, …]`` or a module-level tuple."""
    value = s.value
    if value is not None and table_of(value) is not None:
        return [literal(v, value) for v in table_of(value)]
    if isinstance(value, ast.List):
        entries = value.elts
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult) and isinstance(value.left, ast.List):
        count = value_of(value.right)
        if type(count) is not int:
            fail("K021", value, f"length '{ast.unparse(value.right)}' of a local array is not a constant integer")
        if not 0 < count * len(value.left.elts) <= MAX_TABLE:
            fail("K021", value, f"a local array of {count} entries, expected 1 to {MAX_TABLE}")
        entries = value.left.elts * count
    else:
        fail("K001", s, "a local array is [value] * LENGTH or a list of values")
    for v in entries:
        if value_of(v) is None and not isinstance(v, ast.Name):
            fail("K001", v, f"entry '{ast.unparse(v)}' of a local array", "Entries are literals or names")
    return entries


# Unrolling -----------------------------------------------------------------------------------------------------------
class _Unroller(Rewriter):
    """Unroller, from the outside in, of each loop whose index decides an index of a local array."""

    def __init__(self, arrays: _Arrays, names: Names, real: str) -> None:
        super().__init__(real)
        self.arrays, self.locals = arrays.arrays, names
        self.total = self.depth = 0

    def loop(self, s: ast.For) -> list[ast.stmt]:
        turns = _turns(s.iter, self)
        if turns is None or s.orelse or not self._indexes(s):
            return super().loop(s)
        if len(turns) > MAX_TURNS:
            fail("K021", s, f"a loop of {len(turns)} turns would be unrolled, expected at most {MAX_TURNS}")
        stop = _leaves(s.body)
        if stop is not None:
            fail("K021", stop, "break or continue in a loop that is unrolled", "Its index subscripts a local array")
        self.depth += 1
        out: list[ast.stmt] = []
        locals_, count = sorted(_declared(s.body)), 0
        for turn in turns:
            names: dict[str, str | ast.expr] = {b: self.locals.fresh(b) for b in locals_}
            for old, new in names.items():
                if old in self.arrays:
                    self.arrays.add(new)
            names[s.target.id] = literal(turn, s)
            copy = self.block(_propagated(Rewriter(self.real, names).block(s.body), self.locals, self.real))
            count += len(statements(copy))
            if count + self.total > MAX_STATEMENTS:
                fail("K021", s, f"unrolling makes more than {MAX_STATEMENTS} statements")
            out += copy
        self.depth -= 1
        if self.depth == 0:
            self.total += count
        return out

    def _indexes(self, s: ast.For) -> bool:
        """Return whether the index, or a local computed from it, subscripts a local array in the loop."""
        dependents = {s.target.id}
        for statement in statements(s.body):
            if any(_reads(n.slice, dependents) for n in elements(statement, self.arrays)):
                return True
            source = statement.iter if isinstance(statement, ast.For) else getattr(statement, "value", None)
            if isinstance(statement, ast.For | ast.AnnAssign) and source is not None and _reads(source, dependents):
                dependents |= assigned(statement)
        return False


def _declared(body: list[ast.stmt]) -> set[str]:
    """Return the names that a body declares, at any depth; names that it only assigns are declared around it."""
    names: set[str] = set()
    for s in statements(body):
        if isinstance(s, ast.AnnAssign | ast.For | ast.FunctionDef):
            names |= assigned(s)
        if isinstance(s, ast.FunctionDef):
            names |= {a.arg for a in s.args.args}
    return names


def _turns(iterator: ast.expr, rewriter: Rewriter) -> range | None:
    """Return the values of a loop index with constant bounds, else None."""
    iterator = rewriter.expr(iterator)
    if not (
        isinstance(iterator, ast.Call)
        and isinstance(iterator.func, ast.Name)
        and iterator.func.id == "range"
        and not iterator.keywords
    ):
        return None
    values = [value_of(a) for a in iterator.args]
    if not 1 <= len(values) <= 3 or any(type(v) is not int for v in values) or (len(values) == 3 and values[2] == 0):
        return None
    return range(*values)


def _leaves(body: Iterable[ast.stmt]) -> ast.stmt | None:
    """Return a break or continue that belongs to the loop with this body, or None."""
    for s in body:
        if isinstance(s, ast.Break | ast.Continue):
            return s
        if not isinstance(s, ast.For | ast.While | ast.FunctionDef):
            exit_statement = _leaves([*getattr(s, "body", ()), *getattr(s, "orelse", ())])
            if exit_statement is not None:
                return exit_statement
    return None


def _reads(node: ast.expr, names: set[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(node))


def _propagated(body: list[ast.stmt], names: Names, real: str) -> list[ast.stmt]:
    """Replace made integer and bool locals that only ever hold one literal by this literal."""
    while True:
        values: dict[str, ast.expr] = {}
        count: dict[str, int] = {}
        for s in statements(body):
            for name in assigned(s) & names.made:
                count[name] = count.get(name, 0) + 1
                value = value_of(s.value) if isinstance(s, ast.AnnAssign) and s.value is not None else None
                if isinstance(value, int):
                    values[name] = s.value
        values = {name: value for name, value in values.items() if count[name] == 1}
        if not values:
            return body
        body = _Propagator(real, values).block(body)


class _Propagator(Rewriter):
    def declaration(self, s: ast.AnnAssign) -> list[ast.stmt]:
        return [] if isinstance(s.target, ast.Name) and s.target.id in self.names else super().declaration(s)


# Splitting -----------------------------------------------------------------------------------------------------------
class _Splitter(Rewriter):
    """Splitter of the Lists in `chosen` into locals or literals; a table with a computed index stays a table."""

    def __init__(self, arrays: set[str], names: Names, real: str) -> None:
        super().__init__(real)
        self.chosen, self.locals = arrays, names
        self.parts_of: dict[str, list[str | ast.expr]] = {}

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        parts_outside = dict(self.parts_of)
        out = super().block(body)
        self.parts_of = parts_outside
        return out

    def step(self, body: list[ast.stmt], i: int) -> list[ast.stmt]:
        s = body[i]
        if isinstance(s, ast.AnnAssign) and list_element(s.annotation) is not None and s.target.id in self.chosen:
            return self._array(s, body[i + 1 :])
        return self.stmt(s)

    def _array(self, s: ast.AnnAssign, rest: list[ast.stmt]) -> list[ast.stmt]:
        """Return the declarations for a List; `rest` holds the statements that can use it."""
        name, entries = s.target.id, [self.expr(v) for v in _entries(s)]
        element = self._computed_index(name, rest)
        literals = all(value_of(v) is not None for v in entries)
        has_store = any(_stores(t, name) for t in statements(rest))
        if element is not None:
            if not literals or has_store:
                index = ast.unparse(element.slice)
                advice = "Index it by constants or by the index of a loop with constant bounds"
                fail("K021", element, f"index '{index}' of local array '{name}' is not constant", advice)
            self.parts_of[name] = entries
            return [changed(s, value=place(ast.List(elts=entries, ctx=ast.Load()), s))]
        if literals and not has_store:
            self.parts_of[name] = entries
            return []
        self.parts_of[name] = locals_ = self.locals.elements(name, len(entries))
        kind = list_element(s.annotation)
        return [place(declare(n, kind, v), s) for n, v in zip(locals_, entries, strict=True)]

    def _computed_index(self, name: str, rest: list[ast.stmt]) -> ast.Subscript | None:
        for s in statements(rest):
            for n in elements(s, (name,)):
                if type(value_of(self.expr(n.slice))) is not int:
                    return n
        return None

    def subscript(self, node: ast.Subscript) -> ast.expr:
        base = node.value.id if isinstance(node.value, ast.Name) else None
        if base not in self.parts_of:
            return super().subscript(node)
        slice_, parts = self.expr(node.slice), self.parts_of[base]
        index = value_of(slice_)
        if type(index) is not int:  # a table that stays
            return changed(node, slice=slice_)
        if not 0 <= index < len(parts):
            fail("K010", node, f"index {index} of local array '{base}', expected 0 to {len(parts) - 1}")
        part = parts[index]
        return place(ast.Name(id=part, ctx=node.ctx), node) if isinstance(part, str) else part

    def name(self, node: ast.Name) -> ast.expr:
        if node.id in self.parts_of:
            fail("K001", node, f"local array '{node.id}' is used whole", "Only its elements and inline calls take it")
        return super().name(node)


def _stores(s: ast.stmt, name: str) -> bool:
    """Return whether `s` itself stores to an element of `name`."""
    return any(isinstance(n.ctx, ast.Store) for n in elements(s, (name,)))


class _Tables(Rewriter):
    """Rewriter that declares local tables for module-level tuples whose index is still a computed one."""

    def __init__(self, names: Names, real: str) -> None:
        super().__init__(real)
        self.locals = names
        self._known: dict[tuple, str] = {}
        self.declarations: list[ast.stmt] = []

    def subscript(self, node: ast.Subscript) -> ast.expr:
        if table_of(node.value) is None or value_of(self.expr(node.slice)) is not None:
            return super().subscript(node)
        return changed(node, value=self._local(node.value), slice=self.expr(node.slice))

    def name(self, node: ast.Name) -> ast.expr:
        if table_of(node) is not None:
            fail("K004", node, f"tuple '{node.id}' is used whole, where a number is expected", "Index it")
        return super().name(node)

    def _local(self, node: ast.Name) -> ast.Name:
        values = table_of(node)
        if not values:
            fail("K021", node, f"table '{node.id}' is empty")
        key = node.id, values, type(values[0])
        if key not in self._known:
            self._known[key] = self.locals.table(node.id)
            kind = _name("int", node) if isinstance(values[0], int) else literal(PkType(self.real), node)
            annotation = place(ast.Subscript(value=_name("List", node), slice=kind, ctx=ast.Load()), node)
            entries = place(ast.List(elts=[literal(v, node) for v in values], ctx=ast.Load()), node)
            self.declarations.append(declare(self._known[key], annotation, entries))
        return _name(self._known[key], node)


def _name(name: str, model: ast.AST) -> ast.Name:
    return place(ast.Name(id=name, ctx=ast.Load()), model)


# Unused locals -------------------------------------------------------------------------------------------------------
def _used(body: list[ast.stmt], names: Names) -> list[ast.stmt]:
    """Return `body` without made locals that are not read, and without statements that are then empty.

    Arguments of nested functions stay: additions to the argument of a reduction are its result.
    """
    arguments = {a.arg for s in statements(body) if isinstance(s, ast.FunctionDef) for a in s.args.args}
    while True:
        reads: set[str] = set()
        for s in statements(body):
            targets = assigned(s) if isinstance(s, ast.Assign | ast.AugAssign) else set()
            reads |= {n.id for n in expressions(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)} - targets
        assignments = {name for s in statements(body) if not isinstance(s, ast.For) for name in assigned(s)}
        leftovers = (assignments & names.made) - reads - arguments
        if not leftovers:
            return body
        shorter = _without(body, leftovers)
        if len(statements(shorter)) == len(statements(body)):
            return body
        body = shorter


def _without(body: list[ast.stmt], names: set[str]) -> list[ast.stmt]:
    out = []
    for s in body:
        if isinstance(s, ast.Assign | ast.AnnAssign | ast.AugAssign):
            if not (assigned(s) & names and not has_effect(s.value)):
                out.append(s)
            continue
        if not getattr(s, "body", None):
            out.append(s)
            continue
        blocks = {b: _without(getattr(s, b), names) for b in ("body", "orelse") if hasattr(s, b)}
        if blocks == {b: getattr(s, b) for b in blocks}:
            out.append(s)
            continue
        if isinstance(s, ast.If | ast.For) and not any(blocks.values()):
            continue
        if not blocks["body"]:
            blocks["body"] = [place(ast.Pass(), s)]
        out.append(changed(s, **blocks))
    return out
