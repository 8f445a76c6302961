"""Parser from L0 text to the typed tree: names, types, scopes, levels.  Text outside the grammar is rejected."""

import ast
from contextlib import contextmanager

from parki.engine.text.grammar import ATOMIC_FETCHES, ATOMICS, C_LIBRARY, CONSTRUCTS, ELEMENTS, SCALARS
from parki.engine.text.syntax import bound_names, parsed
from parki.engine.tree import ir
from parki.engine.tree.nested import Nested
from parki.engine.tree.scopes import Symbol, dotted

ACCUMULATOR = "Write def w(i: int, acc: pk.Acc[pk.double], …)"
ASSIGN = {ast.Add: "+=", ast.Sub: "-=", ast.Mult: "*=", ast.Div: "/="}


def parse(text: str, linemap: tuple[tuple[str, int], ...] | None = None, name: str | None = None) -> ir.KernelTree:
    """Return the typed tree of the one workunit in an L0 text.

    Parameters
    ----------
    text : str
        A complete L0 file.
    linemap : tuple of (str, int), optional
        L1 file and line that each line of `text` came from; messages and nodes then carry these places.
    name : str, optional
        Name of the file in messages when there is no line map.

    Raises
    ------
    KernelError
        The text is outside the workunit subset; the message has file, line, column, code, reason and advice.
    """
    return _Parser(linemap, name or "<kernel>").kernel(text)


class _Parser(Nested):
    def kernel(self, text: str) -> ir.KernelTree:
        try:
            module = parsed(text)
        except SyntaxError as e:
            place = ast.Constant(value=0, lineno=e.lineno or 1, col_offset=(e.offset or 1) - 1)
            raise self.error("K001", place, f"not Python: {e.msg}") from None
        workunits = []
        for i, node in enumerate(module.body):
            if isinstance(node, ast.FunctionDef) and node.decorator_list:
                kind = dotted(getattr(node.decorator_list[0], "func", node.decorator_list[0]))
                if kind == "pk.function":
                    self.function(node)
                    continue
                if kind == "pk.workunit":
                    workunits.append(node)
                    continue
            docstring = i == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not docstring and not isinstance(node, ast.Import | ast.ImportFrom):
                raise self.error("K001", node, "only imports, functions and one workunit stand in an L0 file")
        if len(workunits) != 1:
            raise self.error("K001", module, f"expected one workunit, found {len(workunits)}")
        return self.workunit(workunits[0])

    def start(self, node: ast.FunctionDef) -> None:
        """Forget all names except the functions, at the head of a function or workunit."""
        self.blocks, self.once, self.visible = [{}], [{}], [None]
        self.planned = [bound_names(node.body, into_defs=False)]

    # Signatures -------------------------------------------------------------------------------------------------------
    def scalar_type(self, node: ast.expr | None, place: ast.AST) -> str:
        if node is None:
            raise self.error("K002", place, "missing annotation")
        text = ast.unparse(node)
        if text not in SCALARS:
            advice = "Write pk.double" if text == "float" else "Use int, bool, pk.int32, pk.int64, pk.double, pk.float"
            raise self.error("K004" if text == "float" else "K001", place, f"'{text}' is not a scalar type", advice)
        return SCALARS[text]

    def function(self, node: ast.FunctionDef) -> None:
        if node.name in C_LIBRARY or node.name in self.functions:
            raise self.error("K003", node, f"function '{node.name}' has the name of a C function or of another one")
        self.start(node)
        params = []
        for arg in self.arguments(node):
            if "View" in ast.unparse(arg.annotation):
                raise self.error("K020", arg, f"function '{node.name}' takes a view", "Pass the elements")
            kind = self.scalar_type(arg.annotation, arg)
            self.declare(arg.arg, Symbol("param", kind), arg)
            params.append((arg.arg, kind))
        kind = self.scalar_type(node.returns, node)
        returns = [n for n in ast.walk(node) if isinstance(n, ast.Return)]
        if len(returns) != 1 or node.body[-1] is not returns[0] or returns[0].value is None:
            raise self.error("K020", node, f"function '{node.name}' needs one return, as its last statement")
        calls = {dotted(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}
        if node.name in calls:
            raise self.error("K020", node, f"function '{node.name}' calls itself")
        self.in_function, self.return_type = True, kind
        body = self.statements(node.body)
        self.in_function = False
        self.functions[node.name] = ir.Function(
            name=node.name, params=tuple(params), type=kind, body=body, loc=self.loc(node)
        )

    def workunit(self, node: ast.FunctionDef) -> ir.KernelTree:
        self.start(node)
        self.level, self.loops, self.written = "team", 0, set()
        args = self.arguments(node)
        if not args:
            raise self.error("K001", node, "a workunit needs an index or a team")
        first = ast.unparse(args[0].annotation)
        policy = {"int": "range", "pk.TeamMember": "team"}.get(first)
        if policy is None:
            raise self.error("K001", args[0], f"the first parameter is '{first}', expected int or pk.TeamMember")
        index = args[0].arg if policy == "range" else None
        if policy == "team":
            self.team = args[0].arg
            self.declare(args[0].arg, Symbol("team", "team"), args[0])
        else:
            self.level = "lane"
            self.declare(args[0].arg, Symbol("index", "int32"), args[0])
        acc = acc_type = last = None
        params = []
        for arg in args[1:]:
            note = ast.unparse(arg.annotation)
            if note.startswith("pk.Acc["):
                if policy == "team" or acc or params:
                    raise self.error("K015", arg, "an accumulator follows the index of a range policy", ACCUMULATOR)
                acc, acc_type = arg.arg, self.accumulator(arg)
            elif acc and last is None and note == "bool" and not params:
                last = arg.arg
                self.declare(last, Symbol("last", "bool"), arg)
            else:
                params.append(self.parameter(arg, note))
        self.last = last
        body = self.statements(node.body)
        params = [
            ir.Param(name=p.name, type=p.type, rank=p.rank, written=p.name in self.written, loc=p.loc) for p in params
        ]
        if node.returns is not None and ast.unparse(node.returns) != "None":
            raise self.error("K001", node, "a workunit returns nothing")
        return ir.KernelTree(
            name=node.name,
            policy=policy,
            index=index,
            params=tuple(params),
            functions=tuple(self.functions.values()),
            body=body,
            loc=self.loc(node),
            acc=acc,
            acc_type=acc_type,
            last=last,
            scratch_size=self.scratch_sizes(node.decorator_list[0], params),
            uses=frozenset(self.uses),
        )

    def parameter(self, arg: ast.arg, note: str) -> ir.Param:
        rank, kind = 0, ""
        if note.startswith("pk.View") and note[8:10] == "D[" and note[7] in "1234":
            rank = int(note[7])
            kind = ELEMENTS.get(note[10:-1], "")
            if not kind:
                raise self.error("K001", arg, f"view element '{note[10:-1]}'", f"Use one of {', '.join(ELEMENTS)}")
        elif "View" in note:
            raise self.error("K001", arg, f"'{note}'", "Use pk.View1D[…] to pk.View4D[…]")
        else:
            kind = self.scalar_type(arg.annotation, arg)
        self.declare(arg.arg, Symbol("view" if rank else "param", kind, rank), arg)
        return ir.Param(name=arg.arg, type=kind, rank=rank, written=False, loc=self.loc(arg))

    def accumulator(self, arg: ast.arg) -> str:
        note = ast.unparse(arg.annotation)
        kind = SCALARS.get(note[7:-1]) if note.startswith("pk.Acc[") else None
        if kind is None or kind == "bool":
            raise self.error("K015", arg, f"'{note}' is not an accumulator", "Use pk.Acc[pk.double], …")
        self.declare(arg.arg, Symbol("acc", kind), arg)
        return kind

    # Blocks and simple statements -------------------------------------------------------------------------------------
    @contextmanager
    def block(self):
        self.blocks.append({})
        yield
        for name, s in self.blocks.pop().items():
            if s.kind == "def" and not self.used.get(name):
                raise self.error("K012", self.defs[name][0], f"inner def '{name}' is never used")

    def statements(self, nodes: list[ast.stmt]) -> tuple[ir.Stmt, ...]:
        out: list[ir.Stmt] = []
        with self.block():
            for node in nodes:
                method = getattr(self, "stmt_" + type(node).__name__, None)
                if method is None:
                    construct, advice = CONSTRUCTS.get(type(node).__name__, (type(node).__name__, ""))
                    raise self.error("K001", node, f"{construct} is not in the workunit subset", advice)
                statement = method(node)
                if statement is not None:
                    out.append(statement)
        return tuple(out)

    def stmt_Pass(self, node: ast.Pass) -> None:
        return None

    def stmt_AnnAssign(self, node: ast.AnnAssign) -> ir.Stmt:
        if not isinstance(node.target, ast.Name):
            raise self.error("K001", node, "an annotated assignment declares a name")
        name, note = node.target.id, ast.unparse(node.annotation)
        if node.value is None:
            raise self.error("K002", node, f"'{name}' is declared without a value")
        if note.startswith("List["):
            return self.table(node, name, note[5:-1])
        if note.startswith("pk.ScratchView"):
            return self.scratch(node, name, note)
        kind = self.scalar_type(node.annotation, node)
        call = dotted(node.value.func) if isinstance(node.value, ast.Call) else ""
        if call in ("pk.parallel_reduce", "pk.parallel_scan"):
            statement = self.nested(node.value, call, result=(name, kind))
            self.declare(name, Symbol("local", kind), node)
            return statement
        if call.startswith("pk.atomic"):
            statement = self.atomic(node.value, call, name)
            if kind != self.atomic_type:
                raise self.error("K004", node, f"'{name}' has type {kind}, the view {self.atomic_type}")
            self.declare(name, Symbol("local", kind), node)
            return statement
        value = self.value(node.value, kind, f"the value of '{name}'")
        self.declare(name, Symbol("local", kind), node)
        return ir.Declare(name=name, type=kind, value=value, loc=self.loc(node))

    def table(self, node: ast.AnnAssign, name: str, element: str) -> ir.Stmt:
        kind = SCALARS.get(element)
        if kind is None or kind == "bool" or not isinstance(node.value, ast.List) or not node.value.elts:
            raise self.error("K001", node, f"'{name}' must be a list of literals of a scalar type")
        values = []
        for v in node.value.elts:
            e = self.value(v, kind, f"an element of '{name}'")
            if not isinstance(e, ir.Const):
                raise self.error("K001", v, f"an element of table '{name}' is not a literal")
            values.append(e.value)
        self.declare(name, Symbol("table", kind, 1), node)
        return ir.Table(name=name, type=kind, values=tuple(values), loc=self.loc(node))

    def stmt_Assign(self, node: ast.Assign) -> ir.Stmt:
        if len(node.targets) != 1 or isinstance(node.targets[0], ast.Tuple):
            raise self.error("K001", node, "a chained or tuple assignment", "Assign one name at a time")
        return self.assignment(node.targets[0], "=", node.value, node)

    def stmt_AugAssign(self, node: ast.AugAssign) -> ir.Stmt:
        op = ASSIGN.get(type(node.op))
        if op is None:
            raise self.error("K001", node, "only += -= *= and /= are in the workunit subset")
        return self.assignment(node.target, op, node.value, node)

    def assignment(self, target: ast.expr, op: str, value: ast.expr, node: ast.stmt) -> ir.Stmt:
        loc = self.loc(node)
        if isinstance(target, ast.Subscript):
            view, indices, kind = self.element(target)
            s = self.find(view)
            if s.kind == "table":
                raise self.error("K011", node, f"table '{view}' is read-only")
            kind = "int32" if kind == "uint8" else kind
            self.no_integer_division(op, kind, node)
            self.written.add(view)
            if self.in_function:
                raise self.error("K020", node, "a function stores to a view")
            return ir.Store(
                view=view, indices=indices, op=op, value=self.value(value, kind, f"the value for '{view}'"), loc=loc
            )
        if not isinstance(target, ast.Name):
            raise self.error("K001", node, "only names and view elements are assigned")
        if self.find(target.id) is None and target.id not in self.once[-1]:
            raise self.error("K002", node, f"'{target.id}' is assigned without a declaration", "Annotate it first")
        s = self.assignable(target)
        if s.kind == "acc":
            if op != "+=":
                raise self.error("K015", node, f"accumulator '{target.id}' is used otherwise than '+='")
            return ir.Accumulate(name=target.id, value=self.value(value, s.type, "the summand"), loc=loc)
        if s.type == "bool" and op != "=":
            raise self.error("K004", node, "arithmetic on a bool")
        self.no_integer_division(op, s.type, node)
        return ir.Assign(name=target.id, op=op, value=self.value(value, s.type, f"the value of '{target.id}'"), loc=loc)

    def no_integer_division(self, op: str, kind: str, node: ast.stmt) -> None:
        if op == "/=" and kind not in ir.REALS:
            raise self.error("K004", node, "'/=' on integers", "Use //")

    def stmt_If(self, node: ast.If) -> ir.Stmt:
        cond = self.condition(node.test)
        scan = isinstance(node.test, ast.Name) and node.test.id == self.last
        state, self.reading_acc = self.reading_acc, self.reading_acc or scan
        body = self.statements(node.body)
        self.reading_acc = state
        return ir.If(cond=cond, then=body, orelse=self.statements(node.orelse), loc=self.loc(node))

    def stmt_While(self, node: ast.While) -> ir.Stmt:
        if node.orelse:
            raise self.error("K007", node, "'else' on a loop")
        cond = self.condition(node.test)
        self.loops += 1
        body = self.statements(node.body)
        self.loops -= 1
        return ir.While(cond=cond, body=body, loc=self.loc(node))

    def stmt_For(self, node: ast.For) -> ir.Stmt:
        if node.orelse:
            raise self.error("K007", node, "'else' on a loop")
        call = node.iter
        if not (isinstance(node.target, ast.Name) and isinstance(call, ast.Call) and dotted(call.func) == "range"):
            raise self.error("K001", node, "only 'for name in range(…)' is in the workunit subset")
        if not 1 <= len(call.args) <= 3 or call.keywords:
            raise self.error("K007", node, "range takes one to three arguments")
        assigned = {n.id for s in node.body for n in ast.walk(s) if isinstance(n, ast.Name) and _is_store(n)}
        bounds = [self.bound(a, assigned) for a in call.args[:2]]
        zero = ir.Const(value=0, type="int32", loc=self.loc(call))
        start, stop = (zero, bounds[0]) if len(bounds) == 1 else bounds
        step = self.step(call.args[2]) if len(call.args) == 3 else 1
        self.loops += 1
        with self.block():
            self.declare(node.target.id, Symbol("index", "int32"), node)
            body = self.statements(node.body)
        self.loops -= 1
        return ir.For(name=node.target.id, start=start, stop=stop, step=step, body=body, loc=self.loc(node))

    def step(self, node: ast.expr) -> int:
        e = self.index(node, "a step")
        if not isinstance(e, ir.Const) or e.value == 0:
            raise self.error("K007", node, "the step of a range is not a literal, or is 0")
        return int(e.value)

    def bound(self, node: ast.expr, assigned: set[str] = frozenset()) -> ir.Expr:
        for n in ast.walk(node):
            if isinstance(n, ast.Subscript):
                raise self.error("K007", node, "a loop bound reads a view", "Read it into a local first")
            if isinstance(n, ast.Name) and n.id in assigned:
                raise self.error("K007", node, f"loop bound '{n.id}' is assigned in the body", "Copy it first")
        e = self.index(node, "a bound")
        if e.type != "int32":
            raise self.error("K004", node, "a bound has type int64, expected int32")
        return e

    def stmt_Break(self, node: ast.Break) -> ir.Stmt:
        if not self.loops:
            raise self.error("K001", node, "'break' outside a loop")
        return ir.Break(loc=self.loc(node))

    def stmt_Continue(self, node: ast.Continue) -> ir.Stmt:
        if not self.loops:
            raise self.error("K001", node, "'continue' outside a loop")
        return ir.Continue(loc=self.loc(node))

    def stmt_Return(self, node: ast.Return) -> ir.Stmt:
        if self.in_function:
            return ir.Return(value=self.value(node.value, self.return_type, "the result"), loc=self.loc(node))
        if node.value is not None:
            raise self.error("K001", node, "a workunit returns nothing")
        return ir.Return(loc=self.loc(node))

    def stmt_Expr(self, node: ast.Expr) -> ir.Stmt | None:
        v = node.value
        if isinstance(v, ast.Constant) and isinstance(v.value, str):
            return None
        name = dotted(v.func) if isinstance(v, ast.Call) else ""
        if self.in_function and name.startswith("pk."):
            raise self.error("K020", node, f"a function calls '{name}'")
        if name in ("pk.parallel_for", "pk.single"):
            return self.nested(v, name)
        if name in ("pk.parallel_reduce", "pk.parallel_scan"):
            raise self.error("K015", node, f"{name} without an annotated result", "Write s: pk.double = …")
        if name in ATOMICS or name.removeprefix("pk.") in ATOMICS | ATOMIC_FETCHES:
            return self.atomic(v, name, None)
        if name.endswith(".team_barrier"):
            if self.level != "team":
                raise self.error("K013", node, "a barrier stands at team level only")
            return ir.Barrier(loc=self.loc(node))
        if isinstance(v, ast.Call):
            raise self.error("K001", node, f"'{name}' is not in the workunit subset as a statement")
        self.expr(v)
        raise self.error("K001", node, "an expression as a statement does nothing")


def _is_store(n: ast.Name) -> bool:
    return isinstance(n.ctx, ast.Store)
