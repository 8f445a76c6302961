"""Nodes of trees for the threads of a GPU: who runs which code, waits, sums of rows and teams, and sites are explicit.

`lower.threads` makes such trees.  A `site` is the number of a place that the report of a fault gives.
"""

from dataclasses import dataclass

from parki.engine.tree import ir


# Expressions ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class LoadAt(ir.Load):
    """An element of a view or of scratch."""

    site: int


@dataclass(frozen=True, kw_only=True)
class TableLoad(ir.Expr):
    """An element of a constant table called `name` at file scope."""

    name: str
    index: ir.Expr


@dataclass(frozen=True, kw_only=True)
class AtomicAt(ir.Expr):
    """One atomic update; its value is the element before it."""

    op: str
    view: str
    indices: tuple[ir.Expr, ...]
    value: ir.Expr
    site: int


@dataclass(frozen=True, kw_only=True)
class RowSum(ir.Expr):
    """The sum over the lanes of a row."""

    arg: ir.Expr
    site: int


@dataclass(frozen=True, kw_only=True)
class TeamSum(ir.Expr):
    """The sum over the threads of a team."""

    arg: ir.Expr
    site: int


@dataclass(frozen=True, kw_only=True)
class FirstLane(ir.Expr):
    """The value in the first lane of a row, zero in the other lanes."""

    arg: ir.Expr


# Statements -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class LoadTwo(ir.Stmt):
    """A load of an element of a view of `type` and of the next one, as `name`.x and `name`.y."""

    name: str
    view: str
    indices: tuple[ir.Expr, ...]
    type: str


@dataclass(frozen=True, kw_only=True)
class LoadTwoAt(LoadTwo):
    """A load of two elements."""

    site: int


@dataclass(frozen=True, kw_only=True)
class StoreAt(ir.Stmt):
    """A store of an element of `type`."""

    view: str
    indices: tuple[ir.Expr, ...]
    type: str
    value: ir.Expr
    site: int


@dataclass(frozen=True, kw_only=True)
class UpdateAt(ir.Stmt):
    """An update ``element op value``; `place` names the element's offset, which is computed once."""

    view: str
    indices: tuple[ir.Expr, ...]
    type: str
    op: str
    value: ir.Expr
    place: str
    site: int


@dataclass(frozen=True, kw_only=True)
class ScratchAt(ir.Scratch):
    """The next piece of the team's scratch."""

    site: int


@dataclass(frozen=True, kw_only=True)
class BarrierAt(ir.Stmt):
    """A barrier for all threads of the team."""

    site: int


@dataclass(frozen=True, kw_only=True)
class RowSync(ir.Stmt):
    """A wait of all lanes of a row."""

    site: int


@dataclass(frozen=True, kw_only=True)
class First(ir.Stmt):
    """Code of one executor: of a team's first ``thread``, or of a row's first ``lane``."""

    executor: str
    body: tuple[ir.Stmt, ...]


@dataclass(frozen=True, kw_only=True)
class IterationNumber(ir.Stmt):
    """An iteration's number `name`, which may be unused."""

    name: str
    value: str


@dataclass(frozen=True, kw_only=True)
class Closure(ir.Stmt):
    """Code that may return before its end; `index`, if any, is an iteration's number, with the value `value`."""

    index: str | None
    value: str
    body: tuple[ir.Stmt, ...]


@dataclass(frozen=True, kw_only=True)
class Strided(ir.Stmt):
    """One executor's share of a range: it takes every n-th number, where n is the number of its kind.

    `executor` is ``lane`` (of a row), ``thread`` (of a team) or ``row`` (of a team).
    """

    executor: str
    name: str
    end: str
    start: ir.Expr
    stop: ir.Expr
    body: tuple[ir.Stmt, ...]


@dataclass(frozen=True, kw_only=True)
class TeamScan(ir.Range):
    """A scan by the team: first each thread's term, then the effects, with the sum before the thread.

    `first` counts iterations of the team's first thread up to `stop`; `carry` holds the sum of earlier turns, `total`
    that of one turn.
    """

    body_name: str
    first: str
    stop: str
    carry: str
    total: str
    site: int


@dataclass(frozen=True, kw_only=True)
class RowScan(TeamScan):
    """A scan by the lanes of a row, as by a team; with `counts`, each lane's term is 0 or 1."""

    counts: bool


@dataclass(frozen=True, kw_only=True)
class LeagueRange(ir.Stmt):
    """A range over the league, one iteration per thread; sums leave one partial result per block.

    `kind` is ``for reduce scan``; in a scan, `body` stands in a function called `body_name`.
    """

    kind: str
    index: str
    body: tuple[ir.Stmt, ...]
    acc: str | None
    acc_type: str | None
    last: str | None
    body_name: str
    site: int
