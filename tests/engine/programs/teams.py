"""Generator of the team level of valid L0 programs: scratch, barriers, nested ranges, singles."""

import functools
from dataclasses import replace

from tests.engine.programs.expressions import NAMES, READ, Context, Region, Var
from tests.engine.programs.program import indent
from tests.engine.programs.statements import Statements

BARRIER = "team.team_barrier()"


class Teams(Statements):
    """Generator of the body of a team policy.

    The shared regions (the outputs that a team owns, and scratch) are n_rows * n_cols elements each.  `state` holds the
    views read and the views written since the last barrier.
    """

    def team_body(self, league: int) -> tuple[list[str], list[str]]:
        """Return the statements and the decorator's entries: scratch is filled first, the rest may read it."""
        ctx = Context(depth=2)
        self.inputs(ctx)
        self.inputs_only = list(ctx.readable)
        self.n_rows, self.n_cols = self.pick([1, 3, 4, 9]), self.pick([1, 2, 4, 9])
        self.state, self.shared = (set(), set()), []
        ctx.vars += [Var("rank", "int32", 0, league - 1), Var("team.league_rank()", "int32", 0, league - 1)]
        body, scratch = ["rank: int = team.league_rank()"], []
        for _ in range(self.number(1, 3)):
            self.shared.append(self.team_output(league))
        counters = self.counters()
        for _ in range(self.number(0, 2)):
            body += self.item(lambda: self.filled_scratch(ctx, scratch))
        ctx.counters = counters
        self.budget = 24
        return body + self.items(ctx, self.number(1, 4)) + self.item(functools.partial(self.lanes, ctx)), scratch

    def team_output(self, league: int) -> Region:
        kind, rows, cols = self.pick([self.real, self.real, "int32"]), self.n_rows, self.n_cols
        if self.number(0, 1):
            size = rows * cols
            return self.output(kind, (league * size,), ((f"rank * {size} + {{}}", size),))
        return self.output(kind, (league * rows, cols), ((f"rank * {rows} + {{}}", rows), ("{}", cols)))

    # Items and barriers ----------------------------------------------------------------------------------------------
    def items(self, ctx: Context, count: int) -> list[str]:
        lines = []
        for _ in range(count):
            kinds = ["plain", "plain", "lanes", "lanes", "lanes", "rows", "rows", "scan", "single"]
            kind = self.pick(kinds + (["loop", "branch"] if ctx.depth > 0 else []))
            if kind in ("loop", "branch"):
                lines += self.compound(ctx, kind)
            else:
                lines += self.item(functools.partial(getattr(self, kind), ctx))
        return lines

    def item(self, make) -> list[str]:
        """Return one item, after a barrier if it conflicts with reads or writes of earlier items."""
        self.reads, self.writes = set(), set()
        lines = make()
        read, written = self.state
        needed = self.writes & (read | written) or self.reads & written
        if needed or self.number(0, 7) == 0:
            lines = [BARRIER, *lines]
            read, written = set(), set()
        self.state = read | self.reads, written | self.writes
        return lines

    def compound(self, ctx: Context, kind: str) -> list[str]:
        """Return items under a uniform loop or condition, which reads inputs only."""
        before = self.state
        if kind == "loop":
            name = f"j{ctx.loops}"
            head, lines = f"for {name} in range({self.number(0, 3)}):", [BARRIER]
            inner = ctx.child(depth=ctx.depth - 1, loops=ctx.loops + 1)
            inner.vars.append(Var(name, "int32", 0, 3))
            self.state = set(), set()
        else:
            head, lines = f"if {self.condition(ctx)}:", []
            inner = ctx.child(depth=ctx.depth - 1)
        lines += self.items(inner, self.number(1, 2))
        self.state = before[0] | self.state[0], before[1] | self.state[1]
        return [head, *indent(lines)]

    def plain(self, ctx: Context) -> list[str]:
        inner = replace(ctx, counters=[], readable=ctx.readable + self.shared)
        lines = self.statement(inner)
        ctx.readable = [r for r in inner.readable if r not in self.shared]
        return lines

    # Constructs ------------------------------------------------------------------------------------------------------
    def filled_scratch(self, ctx: Context, scratch: list[str]) -> list[str]:
        """Return lines that declare a scratch view and write all its elements."""
        kind, name, t, fill = self.pick([self.real, "int32"]), self.fresh("s"), self.fresh("t"), self.fresh("fill")
        size = self.n_rows * self.n_cols
        entry = {"double": f"(float, lambda p: {size})", "float": f"(float, lambda p: {(size + 1) // 2})"}
        scratch.append(entry.get(kind, f"(int, lambda p: {size})"))
        region = Region(name, kind, (("{}", size),), -READ, READ, exact=not self.libm or kind == "int32")
        inner = ctx.inner(depth=1)
        inner.vars.append(Var(t, "int32", 0, size - 1))
        body = [*self.block(inner, 2), f"{name}[{t}] = {self.stored(inner, region)}"]
        self.writes.add(name)
        self.shared.append(region)
        return [
            f"{name}: pk.ScratchView1D[pk.{kind}] = pk.ScratchView1D(team.team_scratch(0), {size})",
            f"def {fill}({t}: int):",
            *indent(body),
            f"pk.parallel_for(pk.TeamThreadRange(team, {size}), {fill})",
        ]

    def span(self, ctx: Context, extent: int) -> tuple[list[str], str]:
        """Return lines that precede a nested range, and the range's bounds within 0 .. extent."""
        how = self.number(0, 3)
        if how == 0:
            name, quiet = self.fresh("n"), replace(ctx, readable=self.inputs_only)
            return [f"{name}: int = {self.fit(self.integer(quiet), 0, extent).text}"], name
        if how == 1:
            return [], f"{self.number(0, extent)}, {extent}"
        return [], str(extent)

    def nested(self, ctx: Context, inner: Context, index: str, kind: str, span: str) -> list[str]:
        """Return the inner def and its use; in a reduction `ctx` gets the result."""
        name = self.fresh("body")
        if kind == "for":
            body = self.digested(inner, 4) + (self.store(inner) if inner.targets else [])
            head, result, use = f"def {name}({index}: int):", "", f"pk.parallel_for({span}, {name})"
        else:
            acc, result = self.fresh("acc"), self.fresh("sum")
            inner.acc = (acc, kind)
            body = self.digested(inner, 3) + self.accumulate(inner)
            head = f"def {name}({index}: int, {acc}: pk.Acc[{NAMES[kind]}]):"
            use = f"{result}: {NAMES[kind]} = pk.parallel_reduce({span}, {name})"
        lines = [head, *indent(body), *self.between(ctx), use]
        if result:
            ctx.vars.append(Var(result, kind, -READ, READ))
        return lines

    def between(self, ctx: Context) -> list[str]:
        """Return at most one statement between a def and its use: the body sees outer locals as of the use."""
        if self.number(0, 2) or not any(v.mutable for v in ctx.vars):
            return []
        return self.assign(replace(ctx, readable=self.inputs_only))

    def lanes(self, ctx: Context) -> list[str]:
        """Return a team range whose iterations are the lanes."""
        size, t, own, others = self.n_rows * self.n_cols, self.fresh("t"), [], []
        for r in self.shared:
            if own and self.number(0, 1):
                others.append(r)
            elif len(r.parts) == 1:
                at = self.pick([t, f"({size - 1} - {t})"])
                own.append(replace(r, parts=((r.parts[0][0].format(at), 0),)))
            else:
                own.append(replace(r, parts=((r.parts[0][0].format(t), 0), r.parts[1])))
        extent = self.n_rows if any(len(r.parts) == 2 for r in own) else size
        before, span = self.span(ctx, extent)
        inner = ctx.inner(targets=own, readable=ctx.readable + others, returnable=True, depth=2)
        inner.vars.append(Var(t, "int32", 0, extent - 1))
        kind = self.pick(["for", "for", "int32", self.real])
        return before + self.nested(ctx, inner, t, kind, f"pk.TeamThreadRange(team, {span})")

    def scan(self, ctx: Context) -> list[str]:
        """Return a scan by the team."""
        t, size = self.fresh("t"), self.n_rows * self.n_cols
        chosen = [r for r in self.shared if len(r.parts) == 1 and self.number(0, 1)]
        own = [replace(r, parts=((r.parts[0][0].format(t), 0),)) for r in chosen]
        before, span = self.span(ctx, size)
        inner = ctx.inner(readable=ctx.readable + [r for r in self.shared if r not in chosen], counters=[], depth=1)
        inner.vars.append(Var(t, "int32", 0, size - 1))
        return before + self.scanned(ctx, inner, own, t, f"pk.TeamThreadRange(team, {span})")

    def scanned(self, ctx: Context, inner: Context, own: list[Region], index: str, span: str) -> list[str]:
        """Return the inner def of a scan, and its use."""
        kind, result = self.pick(["int32", self.real]), self.fresh("sum")
        name, acc, last = (self.fresh(p) for p in ("body", "acc", "last"))
        head = f"def {name}({index}: int, {acc}: pk.Acc[{NAMES[kind]}], {last}: bool):"
        lines = [head, *indent(self.scan_body(inner, own, kind, acc, last)), *self.between(ctx)]
        ctx.vars.append(Var(result, kind, -READ, READ))
        return [*lines, f"{result}: {NAMES[kind]} = pk.parallel_scan({span}, {name})"]

    def single(self, ctx: Context, who: str = "pk.PerTeam(team)", own: list[Region] | None = None) -> list[str]:
        """Return ``pk.single``; its body may store to any element of its regions."""
        name = self.fresh("body")
        inner = ctx.inner(targets=self.shared if own is None else own, returnable=True, depth=2)
        body = self.digested(inner, 3)
        return [f"def {name}():", *indent(body), *self.between(ctx), f"pk.single({who}, {name})"]

    # A team range around vector ranges -------------------------------------------------------------------------------
    def rows(self, ctx: Context) -> list[str]:
        """Return a team range whose threads own rows of some regions, around vector ranges."""
        t, own, others = self.fresh("t"), [], []
        for r in self.shared:
            if self.number(0, 1):
                others.append(r)
                continue
            head, *rest = r.parts
            place = (head[0].format(t), 0) if rest else (head[0].format(f"({t} * {self.n_cols} + {{}})"), self.n_cols)
            own.append(replace(r, parts=(place, *rest)))
        before, span = self.span(ctx, self.n_rows)
        # a row may be read at thread level, between the vector ranges that write its elements
        inner = ctx.inner(readable=ctx.readable + others + own, depth=2)
        inner.vars.append(Var(t, "int32", 0, self.n_rows - 1))
        name, counters, inner.counters = self.fresh("body"), ctx.counters, []
        body = []
        for _ in range(self.number(1, 3)):
            body += self.row_item(inner, own, counters)
        body += self.vector(inner, own, counters)
        use = f"pk.parallel_for(pk.TeamThreadRange(team, {span}), {name})"
        return [*before, f"def {name}({t}: int):", *indent(body), *self.between(ctx), use]

    def row_item(self, ctx: Context, own: list[Region], counters: list) -> list[str]:
        kind = self.pick(["plain", "vector", "vector", "single", "loop", "branch"])
        if kind == "plain" or (kind in ("loop", "branch") and ctx.depth == 0):
            return self.statement(ctx)
        if kind == "single":
            inner = ctx.child(counters=counters, readable=[r for r in ctx.readable if r not in own])
            return self.single(inner, "pk.PerThread(team)", own)
        if kind == "vector":
            return self.vector(ctx, own, counters)
        name, inner = f"j{ctx.loops}", ctx.child(depth=ctx.depth - 1, loops=ctx.loops + 1)
        head = f"for {name} in range(3):" if kind == "loop" else f"if {self.condition(ctx)}:"
        if kind == "loop":
            inner.vars.append(Var(name, "int32", 0, 2))
        return [head, *indent(self.row_item(inner, own, counters) + self.row_item(inner, own, counters))]

    def vector(self, ctx: Context, own: list[Region], counters: list) -> list[str]:
        """Return a vector range; lane v owns one element of a row."""
        v, mine = self.fresh("v"), [r for r in own if self.number(0, 1)]
        before, span = self.span(ctx, self.n_cols)
        targets = [replace(r, parts=tuple((p.format(v) if n else p, 0) for p, n in r.parts)) for r in mine]
        readable = [r for r in ctx.readable if r not in mine]
        kind, span = self.pick(["for", "for", "int32", self.real, "scan"]), f"pk.ThreadVectorRange(team, {span})"
        if kind == "scan":
            inner = ctx.inner(readable=readable, counters=[], depth=1)
            inner.vars.append(Var(v, "int32", 0, self.n_cols - 1))
            return before + self.scanned(ctx, inner, targets, v, span)
        inner = ctx.inner(targets=targets, counters=counters, readable=readable, returnable=True, depth=2)
        inner.vars.append(Var(v, "int32", 0, self.n_cols - 1))
        return before + self.nested(ctx, inner, v, kind, span)
