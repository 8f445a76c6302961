"""Lowering of statements to the threads of a GPU: leagues are blocks, teams threads, vector ranges lanes of a row.

The pass turns the typed tree of a workunit into a tree of `tree.threads`.  Code stays scalar; every access to memory,
wait and sum gets the number of its site, which the report of a fault gives.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import count

from parki.engine.errors import Loc
from parki.engine.lower.compaction import is_compaction
from parki.engine.tree import ir, lanes, threads
from parki.engine.tree.lanes import NOWHERE
from parki.engine.tree.walk import children, is_lane_range, rebuilt, walk

Body = tuple[ir.Stmt, ...]
ZERO = ir.Const(value=0, type="int32", loc=NOWHERE)


@dataclass(frozen=True)
class Threaded:
    """A kernel for the threads of a GPU: its tree, its constant tables, and the places of its sites, from site 1 on."""

    tree: ir.KernelTree
    tables: tuple[ir.Table, ...]
    sites: tuple[tuple[str, Loc], ...]


def for_threads(kernel: ir.KernelTree) -> Threaded:
    """Return the tree of a kernel for the threads of a GPU; the body of a range policy becomes one `LeagueRange`."""
    statements = _Threads(kernel)
    functions = tuple(replace(f, body=statements.block(f.body)) for f in kernel.functions)
    body = (statements.league(kernel),) if kernel.policy == "range" else statements.block(kernel.body)
    return Threaded(
        replace(kernel, functions=functions, body=body), tuple(statements.constants), tuple(statements.sites)
    )


class _Threads:
    """Pass over statements and expressions; a method ``do_NODE`` returns the statements that replace one.

    `alone` tells whether one thread runs the current code, not all lanes of a row; `reads`, whether all lanes of a row
    read values here that some lanes write.
    """

    def __init__(self, kernel: ir.KernelTree) -> None:
        views = [p for p in kernel.params if p.rank]
        self.types = {p.name: p.type for p in views}
        self.written = {p.name for p in views if p.written}  # views and scratch that the kernel may change
        self.tables: dict[str, str] = {}  # constant tables by their names in the kernel
        self.constants: list[ir.Table] = []
        self.sites: list[tuple[str, Loc]] = []
        self.numbers = count(1)
        self.alone = self.reads = False

    def name(self, stem: str) -> str:
        """Return a new generated name."""
        return f"pk_{stem}{next(self.numbers)}"

    def site(self, label: str, loc: Loc) -> int:
        """Return the number of a place, counted from 1."""
        if (label, loc) not in self.sites:
            self.sites.append((label, loc))
        return self.sites.index((label, loc)) + 1

    def block(self, body: Body) -> Body:
        """Return statements in order."""
        out: list[ir.Stmt] = []
        for s in body:
            out += getattr(self, f"do_{type(s).__name__}")(s)
        return tuple(out)

    # Expressions ------------------------------------------------------------------------------------------------------
    def value(self, e: ir.Expr) -> ir.Expr:
        """Return a value whose loads have sites."""
        if isinstance(e, ir.Const | ir.Name):
            return e
        if not isinstance(e, ir.Load):
            return rebuilt(e, self.value)
        indices = self.values(e.indices)
        if e.view in self.tables:
            return threads.TableLoad(name=self.tables[e.view], index=indices[0], type=e.type, loc=e.loc)
        site = self.site(e.view, e.loc)
        return threads.LoadAt(view=e.view, indices=indices, site=site, type=e.type, loc=e.loc)

    def values(self, expressions: tuple[ir.Expr, ...]) -> tuple[ir.Expr, ...]:
        """Return values whose loads have sites."""
        return tuple(map(self.value, expressions))

    # Locals and memory ------------------------------------------------------------------------------------------------
    def do_Declare(self, s: ir.Declare | ir.Assign | ir.Accumulate) -> Body:
        """Keep a local, an assignment, or a term of this thread's sum."""
        return (replace(s, value=self.value(s.value)),)

    do_Assign = do_Accumulate = do_Declare

    def do_Table(self, s: ir.Table) -> Body:
        """Move a constant table to file scope."""
        self.tables[s.name] = self.name(f"table_{s.name}_")
        self.constants.append(replace(s, name=self.tables[s.name]))
        return ()

    def do_Scratch(self, s: ir.Scratch) -> Body:
        """Keep a piece of scratch."""
        self.types[s.name] = s.type
        self.written.add(s.name)
        size = self.value(s.size)
        return (threads.ScratchAt(name=s.name, type=s.type, size=size, site=self.site(s.name, s.loc), loc=s.loc),)

    def do_LoadTwo(self, s: threads.LoadTwo) -> Body:
        """Load two elements."""
        site, indices = self.site(s.view, s.loc), self.values(s.indices)
        return (threads.LoadTwoAt(name=s.name, view=s.view, indices=indices, type=s.type, site=site, loc=s.loc),)

    def do_Store(self, s: ir.Store) -> Body:
        """Store one element."""
        shared = {"view": s.view, "type": self.types[s.view], "site": self.site(s.view, s.loc), "loc": s.loc}
        value, indices = self.value(s.value), self.values(s.indices)
        if s.op == "=":
            return (threads.StoreAt(indices=indices, value=value, **shared),)
        return (threads.UpdateAt(indices=indices, value=value, op=s.op[0], place=self.name("i"), **shared),)

    def do_Atomic(self, s: ir.Atomic) -> Body:
        """Update one element."""
        kind, indices, site = self.types[s.view], self.values(s.indices), self.site(s.view, s.loc)
        value = self.value(s.value)
        update = threads.AtomicAt(op=s.op, view=s.view, indices=indices, value=value, site=site, type=kind, loc=s.loc)
        if s.result is None:
            return (lanes.Evaluate(value=update, loc=s.loc),)
        return (lanes.DeclareConst(name=s.result, type=kind, value=update, loc=s.loc),)

    # Control ----------------------------------------------------------------------------------------------------------
    def do_If(self, s: ir.If) -> Body:
        """Keep a branch."""
        return (replace(s, cond=self.value(s.cond), then=self.block(s.then), orelse=self.block(s.orelse)),)

    def do_For(self, s: ir.For) -> Body:
        """Keep a counted loop; its end is computed once."""
        end, start, stop = self.name("e"), self.value(s.start), self.value(s.stop)
        fields = {"name": s.name, "start": start, "stop": stop, "step": s.step, "loc": s.loc}
        return (lanes.Loop(**fields, body=self.block(s.body), end=end, turns=None),)

    def do_While(self, s: ir.While) -> Body:
        """Keep a loop while a condition holds."""
        return (replace(s, cond=self.value(s.cond), body=self.block(s.body)),)

    def do_Break(self, s: ir.Break | ir.Continue) -> Body:
        """Keep a jump."""
        return (s,)

    do_Continue = do_Break

    def do_Return(self, s: ir.Return) -> Body:
        """Return a function's value, or from the body."""
        return (s if s.value is None else replace(s, value=self.value(s.value)),)

    def do_Barrier(self, s: ir.Barrier) -> Body:
        """Wait for all threads of the team."""
        return (threads.BarrierAt(site=self.site("the barrier", s.loc), loc=s.loc),)

    # Levels -----------------------------------------------------------------------------------------------------------
    def do_Single(self, s: ir.Single) -> Body:
        """Run a body once: by the team's first thread, or by the first lane of a row."""
        wait = self.before_writes(s) if s.level == "thread" else ()
        body = self.returning(s.body, None, "")
        if s.level == "team":
            return (threads.First(executor="thread", body=body, loc=s.loc),)
        if self.alone:
            return (lanes.LocalBlock(body=body, loc=s.loc),)
        first = threads.First(executor="lane", body=body, loc=NOWHERE if wait else s.loc)
        return (*wait, first, self.row_sync("pk.single", s))

    def row_sync(self, label: str, s: ir.Stmt, loc: Loc = NOWHERE) -> threads.RowSync:
        """Return a wait of the row."""
        return threads.RowSync(site=self.site(label, s.loc), loc=loc)

    def before_writes(self, s: ir.Range | ir.Single) -> Body:
        """Return a wait of the row where all its lanes have to have read before any lane writes; else nothing."""
        if self.reads and not self.alone and any(isinstance(n, ir.Store | ir.Atomic) for n in walk(s.body)):
            return (self.row_sync("the row", s, s.loc),)
        return ()

    def do_Range(self, s: ir.Range) -> Body:
        """Share a nested range among its executors; all that take part wait where a sum is made."""
        if s.kind == "scan" and s.level == "team":
            return (self.scan(s),)
        wait = self.before_writes(s) if s.level == "vector" else ()
        if s.kind == "scan":
            return (*wait, self.scan(s), self.row_sync("the vector range", s))
        if s.kind == "for":
            share = self.strided(s)
            return (*wait, share, *((self.row_sync("the vector range", s),) if s.level == "vector" else ()))
        return (*wait, *self.reduction(s))

    def reduction(self, s: ir.Range) -> Body:
        """Return a sum over a row or a team."""
        site = self.site("the reduction", s.loc)
        start = ir.Declare(name=s.acc, type=s.acc_type, value=ZERO, loc=NOWHERE)
        share = replace(self.strided(s), loc=NOWHERE)
        term = ir.Name(name=s.acc, type=s.acc_type, loc=NOWHERE)
        if s.level != "vector" and not is_lane_range(s):  # every lane of a row has the row's own sum: it counts once
            term = threads.FirstLane(arg=term, type=s.acc_type, loc=NOWHERE)
        total = threads.RowSum if s.level == "vector" else threads.TeamSum
        total = total(arg=term, site=site, type=s.acc_type, loc=NOWHERE)
        keep = ir.Assign(name=s.result, op="=", value=total, loc=NOWHERE)
        declare = lanes.DeclareResult(name=s.result, type=s.acc_type, loc=s.loc)
        return (declare, lanes.LocalBlock(body=(start, share, keep), loc=NOWHERE))

    def strided(self, s: ir.Range) -> threads.Strided:
        """Return one executor's share of a range, one iteration after another."""
        i, end = self.name("i"), self.name("e")
        start, stop = self.value(s.begin), self.value(s.end)
        outer = self.alone, self.reads
        executor = "lane"
        if s.level == "team":
            executor = "thread" if is_lane_range(s) else "row"
            self.alone = is_lane_range(s)
            self.reads = not self.alone and self.thread_level_reads(s.body)
        body = self.returning(s.body, s.index, i)
        self.alone, self.reads = outer
        return threads.Strided(executor=executor, name=i, end=end, start=start, stop=stop, body=body, loc=s.loc)

    def thread_level_reads(self, nodes: Iterable[ir.Expr | ir.Stmt]) -> bool:
        """Return whether code of a whole row loads from views or scratch that the kernel writes."""
        for n in nodes:
            if isinstance(n, ir.Load) and n.view in self.written:
                return True
            if not isinstance(n, ir.Range | ir.Single) and self.thread_level_reads(children(n)):
                return True
        return False

    def returning(self, body: Body, index: str | None, value: str) -> Body:
        """Return a body of one iteration; a body that may return becomes a function of its own."""
        if any(isinstance(n, ir.Return) for n in walk(body)):
            return (threads.Closure(index=index, value=value, body=self.block(body), loc=NOWHERE),)
        number = (threads.IterationNumber(name=index, value=value, loc=NOWHERE),) if index else ()
        return (*number, *self.block(body))

    def scan(self, s: ir.Range) -> threads.TeamScan:
        """Return a scan by the team, or by the lanes of a row."""
        site = self.site("the scan", s.loc)
        first, stop, carry, total = (self.name(stem) for stem in ("j", "e", "carry", "total"))
        end, begin = self.value(s.end), self.value(s.begin)
        fields = {f: getattr(s, f) for f in ("level", "kind", "index", "acc", "acc_type", "last", "result", "loc")}
        fields |= {"first": first, "stop": stop, "carry": carry, "total": total, "site": site}
        fields |= {"begin": begin, "end": end, "body_name": self.name("body"), "body": self.block(s.body)}
        return threads.TeamScan(**fields) if s.level == "team" else threads.RowScan(**fields, counts=is_compaction(s))

    def league(self, k: ir.KernelTree) -> threads.LeagueRange:
        """Return the range over the league."""
        self.alone = True
        body_name = self.name("body") if k.last else ""
        body = self.returning(k.body, k.index, "(int32_t)pk_at") if k.kind == "reduce" else self.block(k.body)
        label = {"for": "", "reduce": "the reduction", "scan": "the scan"}[k.kind]
        site = self.site(label, k.loc) if label else 0
        shared = {"index": k.index, "acc": k.acc, "acc_type": k.acc_type, "last": k.last, "loc": NOWHERE}
        return threads.LeagueRange(kind=k.kind, body=body, body_name=body_name, site=site, **shared)
