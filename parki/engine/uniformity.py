"""Which values are equal in all lanes of a lane range (part B.3 of the subset's rules), by fixpoint.

A kind is an integer or None: 0 is uniform (U); c ≠ 0 is affine, "U + c · lane" (A(c), integers only); None varies (V).
"""

from collections.abc import Iterable

from parki.engine import ir
from parki.engine.walk import walk

Kind = int | None


def join(a: Kind, b: Kind) -> Kind:
    """The kind of a name that holds either."""
    return a if a == b else None


class LaneKinds:
    """The result: kinds of expressions and locals, which loops run under masks, and which assignments need one."""

    def __init__(self) -> None:
        self.exprs: dict[int, Kind] = {}
        self.locals: dict[str, Kind] = {}
        self.depth: dict[str, int] = {}  # masks in force where a local is declared
        self.masked_loops: set[int] = set()
        self.masked_return = False
        self.needs_mask: set[int] = set()  # assignments under more masks than their declaration

    def of(self, e: ir.Expr) -> Kind:
        """The kind of an expression of the lane range."""
        return self.exprs[id(e)]


def lane_kinds(body: Iterable[ir.Stmt], index: str | None, varying: Iterable[str] = ()) -> LaneKinds:
    """Kinds in a lane range over `index`, or in a function whose parameters `varying` all vary."""
    return _Fixpoint(tuple(body), index, tuple(varying)).run()


class _Fixpoint:
    def __init__(self, body: tuple[ir.Stmt, ...], index: str | None, varying: tuple[str, ...]) -> None:
        self.body = body
        self.k = LaneKinds()
        self.k.locals = dict.fromkeys(varying, None) | ({index: 1} if index else {})
        self.k.depth = dict.fromkeys(self.k.locals, 0)
        stores = (n for n in walk(body) if isinstance(n, ir.Store | ir.Atomic))
        self.stored = {n.view for n in stores}

    def run(self) -> LaneKinds:
        while True:
            before = (dict(self.k.locals), set(self.k.masked_loops), self.k.masked_return)
            self.k.exprs.clear()
            self.k.needs_mask.clear()
            self.stmts(self.body, 0, ())
            if before == (self.k.locals, self.k.masked_loops, self.k.masked_return):
                return self.k

    # Expressions ------------------------------------------------------------------------------------------------------
    def expr(self, e: ir.Expr) -> Kind:
        kind = self.kind(e)
        self.k.exprs[id(e)] = kind
        return kind

    def kind(self, e: ir.Expr) -> Kind:
        if isinstance(e, ir.Const | ir.Extent | ir.LeagueRank):
            return 0
        if isinstance(e, ir.Name):
            return self.k.locals.get(e.name, 0)
        if isinstance(e, ir.Binary):
            return self.binary(e, self.expr(e.left), self.expr(e.right))
        if isinstance(e, ir.Cast):
            inner = self.expr(e.arg)
            return inner if e.type in ir.INTEGERS and e.arg.type in ir.INTEGERS else _flat(inner)
        if isinstance(e, ir.Unary):
            inner = self.expr(e.arg)
            return -inner if e.op == "-" and inner is not None else _flat(inner)
        if isinstance(e, ir.Compare):
            return _all_flat(self.expr(e.left), self.expr(e.right))
        kids = [self.expr(a) for a in (e.indices if isinstance(e, ir.Load) else e.args)]
        if isinstance(e, ir.Load) and e.view in self.stored:
            return None
        return _all_flat(*kids)

    def binary(self, e: ir.Binary, a: Kind, b: Kind) -> Kind:
        if a == 0 and b == 0:
            return 0
        if e.type in ir.INTEGERS and a is not None and b is not None:
            if e.op in "+-":
                return a + b if e.op == "+" else a - b
            if e.op == "*" and isinstance(e.left, ir.Const):
                return e.left.value * b
            if e.op == "*" and isinstance(e.right, ir.Const):
                return a * e.right.value
        return None

    # Statements -------------------------------------------------------------------------------------------------------
    def stmts(self, body: tuple[ir.Stmt, ...], depth: int, loops: tuple[tuple[int, int], ...]) -> None:
        for s in body:
            self.stmt(s, depth, loops)

    def set_local(self, name: str, kind: Kind) -> None:
        self.k.locals[name] = join(self.k.locals[name], kind) if name in self.k.locals else kind

    def stmt(self, s: ir.Stmt, depth: int, loops: tuple[tuple[int, int], ...]) -> None:
        """Visit `s` under `depth` masks; `loops` lists the loops around it as (id, depth of their bodies)."""
        match s:
            case ir.Declare():
                self.set_local(s.name, self.expr(s.value))
                self.k.depth[s.name] = depth
            case ir.Assign():
                kind = self.expr(s.value)
                if s.op != "=":
                    kind = self.augmented(s, kind)
                if depth > self.k.depth.get(s.name, 0):
                    self.k.needs_mask.add(id(s))
                    kind = None
                self.set_local(s.name, kind)
            case ir.Store() | ir.Atomic():
                for e in (*s.indices, s.value):
                    self.expr(e)
                if isinstance(s, ir.Atomic) and s.result:
                    self.set_local(s.result, None)
                    self.k.depth[s.result] = depth
            case ir.Accumulate():
                self.expr(s.value)
            case ir.If():
                inner = depth + (self.expr(s.cond) != 0)
                self.stmts(s.then, inner, loops)
                self.stmts(s.orelse, inner, loops)
            case ir.For() | ir.While():
                self.loop(s, depth, loops)
            case ir.Break() | ir.Continue():
                key, at = loops[-1]
                if depth > at or key in self.k.masked_loops:
                    self.k.masked_loops.add(key)
            case ir.Return():
                if s.value is not None:
                    self.expr(s.value)
                elif depth > 0:
                    self.k.masked_return = True
                    self.k.masked_loops.update(key for key, _ in loops)
            case ir.Single():
                self.stmts(s.body, depth, loops)

    def augmented(self, s: ir.Assign, value: Kind) -> Kind:
        """The kind of ``name op value``."""
        old = self.k.locals.get(s.name, 0)
        if s.op in ("+=", "-=") and old is not None and value is not None:
            return old + value if s.op == "+=" else old - value
        return _all_flat(old, value)

    def loop(self, s: ir.For | ir.While, depth: int, loops: tuple[tuple[int, int], ...]) -> None:
        if isinstance(s, ir.For):
            varies = bool(_all_flat(self.expr(s.start), self.expr(s.stop)) != 0)
            self.set_local(s.name, None if varies else 0)
        else:
            varies = self.expr(s.cond) != 0
        if varies:
            self.k.masked_loops.add(id(s))
        inner = depth + (id(s) in self.k.masked_loops)
        if isinstance(s, ir.For):
            self.k.depth[s.name] = inner
        self.stmts(s.body, inner, (*loops, (id(s), inner)))


def _flat(kind: Kind) -> Kind:
    """The kind after an operation that affine values do not survive."""
    return 0 if kind == 0 else None


def _all_flat(*kinds: Kind) -> Kind:
    return 0 if all(k == 0 for k in kinds) else None
