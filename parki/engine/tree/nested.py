"""Nested ranges, singles, scratch and atomics: the hierarchical half of the parser."""

import ast

from parki.engine.text.grammar import ATOMIC_FETCHES, ATOMICS, ELEMENTS, POLICY_ATTRIBUTES, SCALARS
from parki.engine.text.syntax import bound_names
from parki.engine.tree import ir
from parki.engine.tree.expressions import Expressions
from parki.engine.tree.scopes import Symbol, dotted

RANGES = {"pk.TeamThreadRange": ("team", "team", "thread"), "pk.ThreadVectorRange": ("vector", "thread", "vector")}


class Nested(Expressions):
    """Parser of statements that open a level or exist only inside levels."""

    level = "team"  # team, thread, vector, or lane (the body of a range policy)
    loops = 0
    in_function = False
    return_type = ""
    last: str | None = None
    atomic_type = ""

    def __init__(self, linemap, name: str) -> None:
        super().__init__(linemap, name)
        self.written: set[str] = set()
        self.defs: dict[str, tuple[ast.FunctionDef, frozenset[str]]] = {}
        self.used: dict[str, str] = {}  # launch of each inner def; empty until it is used

    def stmt_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Remember an inner def; it is parsed where it is used."""
        if node.decorator_list or self.in_function:
            raise self.error("K001", node, "an inner def has no decorator, and stands in a workunit")
        self.declare(node.name, Symbol("def", "def"), node)
        seen = frozenset(n for b in self.blocks for n in b)
        self.defs[node.name] = (node, seen)
        self.used[node.name] = ""

    def nested(self, call: ast.Call, name: str, result: tuple[str, str] | None = None) -> ir.Stmt:
        """Parse ``pk.parallel_for``, ``pk.parallel_reduce``, ``pk.parallel_scan`` or ``pk.single``."""
        if call.keywords:
            raise self.error("K008", call, f"keyword arguments in {name}")
        if len(call.args) != 2:
            code = "K015" if name.startswith("pk.parallel_") and len(call.args) > 2 else "K001"
            raise self.error(code, call, f"{name} takes a range and a body, found {len(call.args)} argument(s)")
        if not isinstance(call.args[1], ast.Name):
            raise self.error("K012", call, f"the body of {name} is the name of an inner def")
        body_name = call.args[1].id
        if body_name not in self.defs or (self.find(body_name) or Symbol("", "")).kind != "def":
            raise self.error("K012", call, f"inner def '{body_name}' is not defined before its use")
        node, seen = self.defs[body_name]
        policy = call.args[0].func if isinstance(call.args[0], ast.Call) else call.args[0]
        meaning = f"{name}({dotted(policy)}, …)"
        if self.used[body_name] not in ("", meaning):
            raise self.error("K012", call, f"'{body_name}' is the body of {self.used[body_name]} and of {meaning}")
        self.used[body_name] = meaning
        if name == "pk.single":
            return self.single(call, node, seen)
        return self.range(call, name, node, seen, result)

    def single(self, call: ast.Call, node: ast.FunctionDef, seen: frozenset[str]) -> ir.Stmt:
        """Parse ``pk.single(pk.PerTeam(team), f)``, or the same with ``pk.PerThread``."""
        policy = dotted(call.args[0].func) if isinstance(call.args[0], ast.Call) else "?"
        level = {"pk.PerTeam": "team", "pk.PerThread": "thread"}.get(policy)
        if level is None:
            raise self.error("K001", call, f"pk.single takes pk.PerTeam(team) or pk.PerThread(team), found {policy}")
        if level != self.level:
            raise self.error("K013", call, f"{policy} stands at {level} level, found at {self.level} level")
        if self.arguments(node):
            raise self.error("K001", node, f"the body '{node.name}' of pk.single takes no parameters")
        body = self.inner(node, seen, f"single {level}", [])
        return ir.Single(level=level, body=body, loc=self.loc(call))

    def range(self, call, name, node, seen, result) -> ir.Stmt:
        """Parse a TeamThreadRange or ThreadVectorRange with its body."""
        r = call.args[0]
        policy = dotted(r.func) if isinstance(r, ast.Call) else "?"
        if policy not in RANGES:
            raise self.error("K001", call, f"'{policy}' is not a range of the workunit subset")
        level, outer_level, inner_level = RANGES[policy]
        if self.level != outer_level:
            raise self.error("K013", call, f"{policy} stands at {outer_level} level, found at {self.level} level")
        if r.keywords or not r.args or dotted(r.args[0]) != self.team or not 2 <= len(r.args) <= 3:
            raise self.error("K001", r, f"{policy} takes the team and one or two bounds")
        bounds = [self.bound(a) for a in r.args[1:]]
        zero = ir.Const(value=0, type="int32", loc=self.loc(r))
        begin, end = (zero, bounds[0]) if len(bounds) == 1 else bounds
        kind = {"pk.parallel_for": "for", "pk.parallel_reduce": "reduce", "pk.parallel_scan": "scan"}[name]
        if level == "vector":
            self.uses.add("vector_range")
        if kind != "for":
            self.uses.add(kind)
        args = self.arguments(node)
        names = [a.arg for a in args]
        notes = [ast.unparse(a.annotation) for a in args]
        want = {"for": 1, "reduce": 2, "scan": 3}[kind]
        if len(args) != want or notes[0] != "int" or (kind == "scan" and notes[2] != "bool"):
            raise self.error("K015" if kind != "for" else "K001", node, f"the body of {name} takes {want} parameters")
        symbols = [(names[0], Symbol("index", "int32"), args[0])]
        acc_type = None
        if kind != "for":
            acc_type = SCALARS.get(notes[1][7:-1]) if notes[1].startswith("pk.Acc[") else None
            if acc_type is None or acc_type != result[1]:
                raise self.error("K015", node, f"accumulator '{notes[1]}' and a result of type {result[1]}")
            symbols.append((names[1], Symbol("acc", acc_type), args[1]))
        if kind == "scan":
            symbols.append((names[2], Symbol("last", "bool"), args[2]))
        body = self.inner(node, seen, inner_level, symbols, last=names[2] if kind == "scan" else None)
        return ir.Range(
            level=level,
            kind=kind,
            begin=begin,
            end=end,
            index=names[0],
            body=body,
            acc=names[1] if kind != "for" else None,
            acc_type=acc_type,
            last=names[2] if kind == "scan" else None,
            result=result[0] if result else None,
            loc=self.loc(call),
        )

    def arguments(self, node: ast.FunctionDef) -> list[ast.arg]:
        """Return the plain annotated parameters of a function, workunit or inner def."""
        a = node.args
        if a.vararg or a.kwarg or a.kwonlyargs or a.posonlyargs or a.defaults:
            raise self.error("K008", node, f"'{node.name}' has defaults, *args or keyword-only parameters")
        for arg in a.args:
            if arg.annotation is None:
                raise self.error("K002", arg, f"parameter '{arg.arg}' has no annotation")
        return a.args

    def inner(self, node, seen, level, symbols, last=None) -> tuple[ir.Stmt, ...]:
        """Parse the statements of an inner def, at its level, in a frame of its own."""
        saved = self.level, self.loops, self.last, self.reading_acc
        self.level, self.loops, self.last, self.reading_acc = level, 0, last, False
        self.visible.append(seen)
        self.once.append({})
        self.planned.append(bound_names(node.body, into_defs=False))
        with self.block():
            for name, symbol, arg in symbols:
                self.declare(name, symbol, arg)
            body = self.statements(node.body)
        self.planned.pop()
        self.once.pop()
        self.visible.pop()
        self.level, self.loops, self.last, self.reading_acc = saved
        return body

    def scratch(self, node: ast.AnnAssign, name: str, note: str) -> ir.Stmt:
        """Parse a scratch view of the team."""
        kind = SCALARS.get(note[17:-1]) if note.startswith("pk.ScratchView1D[") else None
        if kind is None or kind == "bool":
            raise self.error("K018", node, f"'{note}'", "Scratch is one-dimensional: pk.ScratchView1D[…]")
        if self.level != "team" or self.loops:
            raise self.error("K018", node, f"scratch '{name}' is declared inside a loop or below team level")
        v = node.value
        is_call = isinstance(v, ast.Call) and dotted(v.func) == "pk.ScratchView1D" and len(v.args) == 2
        if not is_call or ast.unparse(v.args[0]) != f"{self.team}.team_scratch(0)":
            raise self.error("K018", node, f"'{name}' must be pk.ScratchView1D(team.team_scratch(0), size)")
        size = self.index(v.args[1], "a scratch size")
        self.declare(name, Symbol("scratch", kind, 1), node)
        return ir.Scratch(name=name, type=kind, size=size, loc=self.loc(node))

    def scratch_sizes(self, decorator: ast.expr, params: list[ir.Param]) -> tuple[tuple[str, str], ...]:
        """Return the (type, size text) entries of ``@pk.workunit(scratch=[...])``."""
        if not isinstance(decorator, ast.Call):
            return ()
        entries = decorator.keywords[0].value if [k.arg for k in decorator.keywords] == ["scratch"] else None
        if decorator.args or not isinstance(entries, ast.List):
            raise self.error("K018", decorator, "the decorator takes scratch=[…] only")
        integers = {p.name for p in params if not p.rank and p.type in ir.INTEGERS}
        out = []
        for entry in entries.elts:
            ok = isinstance(entry, ast.Tuple) and len(entry.elts) == 2 and isinstance(entry.elts[1], ast.Lambda)
            if not ok or ast.unparse(entry.elts[0]) not in ("float", "int"):
                raise self.error("K018", decorator, "a scratch entry is (float, lambda p: size) or (int, …)")
            self.scratch_size(entry.elts[1].body, integers)
            out.append((ast.unparse(entry.elts[0]), ast.unparse(entry.elts[1].body)))
        return tuple(out)

    def scratch_size(self, size: ast.expr, integers: set[str]) -> None:
        """Raise K018 unless `size` is made of integer literals, ``p.NAME`` and ``+ - * //``."""
        match size:
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv(), right=right):
                self.scratch_size(left, integers)
                self.scratch_size(right, integers)
            case ast.Constant(value=int()) if not isinstance(size.value, bool):
                pass
            case ast.Attribute(value=ast.Name(id="p"), attr=name) if name in POLICY_ATTRIBUTES:
                raise self.error("K018", size, f"a scratch size cannot use '{name}', an attribute of the policy")
            case ast.Attribute(value=ast.Name(id="p"), attr=name) if name in integers:
                pass
            case _:
                reason = f"a scratch size cannot use '{ast.unparse(size)}'"
                raise self.error("K018", size, reason, "Use integers, p.NAME of integer arguments, and + - * //")

    def atomic(self, call: ast.Call, name: str, result: str | None) -> ir.Stmt:
        """Parse ``pk.atomic_add(v, [i], x)`` or, with a result, ``pk.atomic_fetch_OP``."""
        word = name.removeprefix("pk.")
        op = ATOMICS.get(word) if result is None else None
        op = op or ATOMIC_FETCHES.get(word)
        if op is None:
            raise self.error("K001", call, f"'{name}' is not in the workunit subset")
        if call.keywords or len(call.args) != 3 or not isinstance(call.args[1], ast.List):
            raise self.error("K001", call, f"{name} takes (view, [index, …], value)")
        view = call.args[0]
        if not isinstance(view, ast.Name):
            raise self.error("K001", call, f"{name} updates a view")
        chain: ast.expr = view
        for i in call.args[1].elts:
            chain = ast.copy_location(ast.Subscript(value=chain, slice=i), call)
        if chain is view:
            raise self.error("K010", call, f"{name} without an index")
        target, indices, kind = self.element(chain)
        if kind not in ELEMENTS.values() or kind == "uint8" or self.find(target).kind == "table":
            raise self.error("K004", call, f"an atomic on '{target}' of type {kind}")
        if op in ("max", "min") and kind in ir.REALS:
            raise self.error("K004", call, f"{name} of a real")
        self.uses.add("atomics")
        self.written.add(target)
        self.atomic_type = kind
        value = self.value(call.args[2], kind, f"the value for '{target}'")
        return ir.Atomic(op=op, view=target, indices=indices, value=value, result=result, loc=self.loc(call))
