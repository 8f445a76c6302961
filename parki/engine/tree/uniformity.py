"""Analysis of values that are equal in all lanes of a lane range (part B.3 of the subset's rules), by fixpoint.

A kind is an integer or None: 0 is uniform (U); c ≠ 0 is affine, "U + c · lane" (A(c), integers only); None varies (V).
A name may be declared in several blocks that do not overlap; each declaration has a kind of its own.
"""

from collections.abc import Iterable

from parki.engine.tree import ir
from parki.engine.tree.walk import walk

Kind = int | None


def join(a: Kind, b: Kind) -> Kind:
    """Return the kind of a name that may hold a value of either kind."""
    return a if a == b else None


class LaneKinds:
    """Kinds of expressions and locals, constructs that run under masks, and assignments that need a mask."""

    def __init__(self) -> None:
        self.exprs: dict[int, Kind] = {}
        self.targets: dict[int, Kind] = {}
        self.masked: set[int] = set()
        self.masked_return = False
        self.needs_mask: set[int] = set()

    def of(self, e: ir.Expr) -> Kind:
        """Return the kind of an expression of the lane range."""
        return self.exprs[id(e)]

    def local(self, s: ir.Stmt) -> Kind:
        """Return the kind of the local that `s` declares, assigns or counts with."""
        return self.targets[id(s)]

    def is_masked(self, s: ir.Stmt) -> bool:
        """Return whether lanes leave the loop or `Single` `s` one by one."""
        return id(s) in self.masked

    def assigns_under_mask(self, s: ir.Assign) -> bool:
        """Return whether `s` stands under more masks than the declaration of its name."""
        return id(s) in self.needs_mask


def lane_kinds(body: Iterable[ir.Stmt], index: str | None, varying: Iterable[str] = ()) -> LaneKinds:
    """Return the kinds in a lane range over `index`, or in a function whose parameters `varying` all vary."""
    return _Fixpoint(tuple(body), index, tuple(varying)).run()


# Loops around a statement, up to the nearest `Single`: (id, number of masks in force in the body).
Loops = tuple[tuple[int, int], ...]


class _Fixpoint:
    """Repeated visits of the body until nothing changes.  Kinds change only from the first one found to None."""

    def __init__(self, body: tuple[ir.Stmt, ...], index: str | None, varying: tuple[str, ...]) -> None:
        self.body = body
        self.k = LaneKinds()
        names: dict[str, Kind] = dict.fromkeys(varying, None) | ({index: 1} if index else {})
        self.kinds: dict[str | int, Kind] = dict(names)  # by id of the declaration, or by name if the name is given
        self.depth: dict[str | int, int] = dict.fromkeys(names, 0)  # number of masks in force at the declaration
        self.where: dict[str, str | int] = {name: name for name in names}  # declaration that a name refers to
        self.stored = {n.view for n in walk(body) if isinstance(n, ir.Store | ir.Atomic)}
        self.single: int | None = None  # id of the enclosing `Single`

    def run(self) -> LaneKinds:
        while True:
            state = (dict(self.kinds), set(self.k.masked), self.k.masked_return)
            self.k.needs_mask.clear()
            self.stmts(self.body, 0, ())
            if state == (self.kinds, self.k.masked, self.k.masked_return):
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
            return self.kinds.get(self.where.get(e.name, e.name), 0)
        if isinstance(e, ir.Binary):
            return self.binary(e, self.expr(e.left), self.expr(e.right))
        if isinstance(e, ir.Cast):
            inner = self.expr(e.arg)
            return inner if e.type in ir.INTEGERS and e.arg.type in ir.INTEGERS else _flat(inner)
        if isinstance(e, ir.Unary):
            inner = self.expr(e.arg)
            return -inner if e.op == "-" and inner is not None else _flat(inner)
        if isinstance(e, ir.Compare):
            return _flat(self.expr(e.left), self.expr(e.right))
        kids = [self.expr(a) for a in (e.indices if isinstance(e, ir.Load) else e.args)]
        if isinstance(e, ir.Load) and e.view in self.stored:
            return None
        return _flat(*kids)

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

    # Locals -----------------------------------------------------------------------------------------------------------
    def declare(self, s: ir.Stmt, name: str, kind: Kind, depth: int) -> None:
        """Record that `s` declares `name`."""
        key = id(s)
        self.where[name], self.depth[key] = key, depth
        self.join_into(s, key, kind)

    def join_into(self, s: ir.Stmt, key: str | int, kind: Kind) -> None:
        self.kinds[key] = join(self.kinds.get(key, kind), kind)
        self.k.targets[id(s)] = self.kinds[key]

    def assign(self, s: ir.Assign, depth: int) -> None:
        key, kind = self.where[s.name], self.expr(s.value)
        if s.op != "=":
            old = self.kinds[key]
            affine = s.op in ("+=", "-=") and old is not None and kind is not None and s.value.type in ir.INTEGERS
            kind = (old + kind if s.op == "+=" else old - kind) if affine else _flat(old, kind)
        if depth > self.depth[key]:
            self.k.needs_mask.add(id(s))
            kind = None
        self.join_into(s, key, kind)

    # Statements -------------------------------------------------------------------------------------------------------
    def stmts(self, body: tuple[ir.Stmt, ...], depth: int, loops: Loops) -> None:
        for s in body:
            self.stmt(s, depth, loops)

    def stmt(self, s: ir.Stmt, depth: int, loops: Loops) -> None:
        """Visit `s` under `depth` masks."""
        match s:
            case ir.Declare():
                self.declare(s, s.name, self.expr(s.value), depth)
            case ir.Assign():
                self.assign(s, depth)
            case ir.Store() | ir.Atomic():
                for e in (*s.indices, s.value):
                    self.expr(e)
                if isinstance(s, ir.Atomic) and s.result:
                    self.declare(s, s.result, None, depth)
            case ir.Accumulate():
                self.expr(s.value)
            case ir.If():
                inner = depth + (self.expr(s.cond) != 0)
                self.stmts(s.then, inner, loops)
                self.stmts(s.orelse, inner, loops)
            case ir.For() | ir.While():
                self.loop(s, depth, loops)
            case ir.Break() | ir.Continue():
                key, loop_depth = loops[-1]
                if depth > loop_depth:
                    self.k.masked.add(key)
            case ir.Return():
                self.leave(s, depth, loops)
            case ir.Single():
                outer, self.single = self.single, id(s)
                self.stmts(s.body, depth + self.k.is_masked(s), ())
                self.single = outer

    def leave(self, s: ir.Return, depth: int, loops: Loops) -> None:
        """Visit a return; under a mask, lanes leave the loops around it and the body or `Single` one by one."""
        if s.value is not None:
            self.expr(s.value)
            return
        masked = self.k.masked_return if self.single is None else self.single in self.k.masked
        if not masked and depth == 0:
            return
        self.k.masked.update(key for key, _ in loops)
        if self.single is None:
            self.k.masked_return = True
        else:
            self.k.masked.add(self.single)

    def loop(self, s: ir.For | ir.While, depth: int, loops: Loops) -> None:
        bounds = (s.start, s.stop) if isinstance(s, ir.For) else (s.cond,)
        varies = _flat(*(self.expr(e) for e in bounds)) != 0
        if varies:
            self.k.masked.add(id(s))
        inner = depth + self.k.is_masked(s)
        if isinstance(s, ir.For):
            self.declare(s, s.name, None if varies else 0, inner)
        self.stmts(s.body, inner, (*loops, (id(s), inner)))


def _flat(*kinds: Kind) -> Kind:
    """Return the kind after an operation that does not keep affine values affine."""
    return 0 if all(k == 0 for k in kinds) else None
