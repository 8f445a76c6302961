"""Typed tree of one workunit: built by `parse` from L0 text; read by the checks, lowerings and interpreter.

Types are strings: ``bool int32 int64 double float`` for values, and also ``uint8`` for view elements (a load of
uint8 has type int32).  Every node carries the place in the L1 file it came from.
"""

from dataclasses import dataclass, field

from parki.engine.errors import Loc

INTEGERS = ("int32", "int64")
REALS = ("double", "float")


# Expressions ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class Expr:
    """Base of all expressions: `type` of the value, `loc` in the source."""

    type: str
    loc: Loc


@dataclass(frozen=True, kw_only=True)
class Const(Expr):
    """A literal."""

    value: int | float | bool


@dataclass(frozen=True, kw_only=True)
class Name(Expr):
    """A local, loop index, range index, scalar parameter or (in a scan, under ``if last``) an accumulator."""

    name: str


@dataclass(frozen=True, kw_only=True)
class Load(Expr):
    """``view[i][j]``: an element of a view, a scratch view or a constant table."""

    view: str
    indices: tuple[Expr, ...]


@dataclass(frozen=True, kw_only=True)
class Unary(Expr):
    """A unary operation; `op` is ``- + ~ not``."""

    op: str
    arg: Expr


@dataclass(frozen=True, kw_only=True)
class Binary(Expr):
    """A binary operation; `op` is ``+ - * / // % & | ^ << >>``; except in shifts both sides are widened to `type`."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, kw_only=True)
class Compare(Expr):
    """A comparison; `op` is ``< <= > >= == !=``; both sides have one type."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, kw_only=True)
class Bool(Expr):
    """``and`` / ``or`` of two or more conditions."""

    op: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, kw_only=True)
class FunctionCall(Expr):
    """A call of a `Function` of this kernel."""

    name: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, kw_only=True)
class Math(Expr):
    """``pk.name(...)``: one of the mathematical functions of the subset, on reals of one type."""

    name: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, kw_only=True)
class Cast(Expr):
    """An explicit ``int(x)``, ``pk.double(x)``, ``pk.float(x)``, or an implied widening of int32 to int64."""

    arg: Expr


@dataclass(frozen=True, kw_only=True)
class Extent(Expr):
    """``view.extent(dim)``, an int32."""

    view: str
    dim: int


@dataclass(frozen=True, kw_only=True)
class LeagueRank(Expr):
    """``team.league_rank()``."""


# Statements ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class Stmt:
    """Base of all statements."""

    loc: Loc


@dataclass(frozen=True, kw_only=True)
class Declare(Stmt):
    """A declaration ``name: type = value``."""

    name: str
    type: str
    value: Expr


@dataclass(frozen=True, kw_only=True)
class Table(Stmt):
    """A constant table ``name: List[type] = [...]``, read only."""

    name: str
    type: str
    values: tuple[int | float, ...]


@dataclass(frozen=True, kw_only=True)
class Scratch(Stmt):
    """``name: pk.ScratchView1D[type] = pk.ScratchView1D(team.team_scratch(0), size)``."""

    name: str
    type: str
    size: Expr


@dataclass(frozen=True, kw_only=True)
class Assign(Stmt):
    """An assignment ``name op value`` with `op` one of ``= += -= *= /=``."""

    name: str
    op: str
    value: Expr


@dataclass(frozen=True, kw_only=True)
class Store(Stmt):
    """A store ``view[i][j] op value``."""

    view: str
    indices: tuple[Expr, ...]
    op: str
    value: Expr


@dataclass(frozen=True, kw_only=True)
class Atomic(Stmt):
    """An atomic update; `op` is ``add sub max min``; `result`, if any, is declared with the value before it."""

    op: str
    view: str
    indices: tuple[Expr, ...]
    value: Expr
    result: str | None = None


@dataclass(frozen=True, kw_only=True)
class If(Stmt):
    """``if cond: then else: orelse`` (``elif`` is an `If` in `orelse`)."""

    cond: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()


@dataclass(frozen=True, kw_only=True)
class While(Stmt):
    """``while cond: body``."""

    cond: Expr
    body: tuple[Stmt, ...]


@dataclass(frozen=True, kw_only=True)
class For(Stmt):
    """``for name in range(start, stop, step)``; the bounds are evaluated once; `step` is not 0."""

    name: str
    start: Expr
    stop: Expr
    step: int
    body: tuple[Stmt, ...]


@dataclass(frozen=True, kw_only=True)
class Break(Stmt):
    """``break``."""


@dataclass(frozen=True, kw_only=True)
class Continue(Stmt):
    """``continue``."""


@dataclass(frozen=True, kw_only=True)
class Return(Stmt):
    """``return`` from the workunit, or from the range body it stands in; in a function with its value."""

    value: Expr | None = None


@dataclass(frozen=True, kw_only=True)
class Barrier(Stmt):
    """``team.team_barrier()``."""


@dataclass(frozen=True, kw_only=True)
class Accumulate(Stmt):
    """``acc += value`` in the body of a reduction or a scan."""

    name: str
    value: Expr


@dataclass(frozen=True, kw_only=True)
class Range(Stmt):
    """A nested range. `level` is ``team`` (TeamThreadRange) or ``vector``; `kind` is ``for reduce scan``.

    `index` runs over begin <= index < end (int32).  In a reduction or scan `acc` is the accumulator of type `acc_type`
    and `result` is declared with the total; in a scan `last` is the flag's name.
    """

    level: str
    kind: str
    begin: Expr
    end: Expr
    index: str
    body: tuple[Stmt, ...]
    acc: str | None = None
    acc_type: str | None = None
    last: str | None = None
    result: str | None = None


@dataclass(frozen=True, kw_only=True)
class Single(Stmt):
    """``pk.single``: `level` is ``team`` (PerTeam) or ``thread`` (PerThread)."""

    level: str
    body: tuple[Stmt, ...]


# The kernel ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class Function:
    """A `@pk.function`: scalars in, one scalar out; the last statement of `body` is its only `Return`."""

    name: str
    params: tuple[tuple[str, str], ...]
    type: str
    body: tuple[Stmt, ...]
    loc: Loc


@dataclass(frozen=True, kw_only=True)
class Param:
    """A workunit parameter. `rank` is 0 for a scalar; `type` is the element type of a view."""

    name: str
    type: str
    rank: int
    written: bool
    loc: Loc


@dataclass(frozen=True, kw_only=True)
class KernelTree:
    """A whole workunit.

    `policy` is ``range`` (then `index` is the iteration's name) or ``team``.  A range policy may reduce or scan: `acc`,
    `acc_type`, `last`.  `scratch_size` holds one (type, Python expression text of ``p``) per decorator entry.
    """

    name: str
    policy: str
    index: str | None
    params: tuple[Param, ...]
    functions: tuple[Function, ...]
    body: tuple[Stmt, ...]
    loc: Loc
    acc: str | None = None
    acc_type: str | None = None
    last: str | None = None
    scratch_size: tuple[tuple[str, str], ...] = ()
    uses: frozenset[str] = field(default_factory=frozenset)

    @property
    def kind(self) -> str:
        """Return the kind of the launch: ``for``, ``reduce`` or ``scan``."""
        return "scan" if self.last else "reduce" if self.acc else "for"

    def param(self, name: str) -> Param:
        """Return the parameter called `name`; raise KeyError if there is none."""
        for p in self.params:
            if p.name == name:
                return p
        raise KeyError(name)
