"""Unroll and jam: several turns of a loop at once, so that the latency of one turn's root hides behind the others'.

A loop's body is cut after its first root, and before and after each loop within.  Each part is written out for every
turn, loops within are fused:

    for q in range(a, b):          for q in range(a, whole, 2):
        w = rsqrt(x[q])                w0 = rsqrt(x[q]); w1 = rsqrt(x[q + 1])
        for n in range(8):    →        for n in range(8):
            p = p * w + c[n]               p0 = p0 * w0 + c[n]; p1 = p1 * w1 + c[n]
        s += p                         s += p0; s += p1
                                   for q in range(whole, b): …

All that acts beyond a turn stays in order: parts from the first to the last that use a name or a view which the body
changes and does not declare are one part.  So results are the same, bit for bit.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Any

from parki.engine.tree import ir
from parki.engine.tree.walk import const_trip, rebuilt, walk

Body = tuple[ir.Stmt, ...]
ROOTS = ("rsqrt", "sqrt")
# Statements that a body written out several times cannot hold.
WHOLE = (ir.While, ir.Break, ir.Continue, ir.Return, ir.Barrier, ir.Range, ir.Single, ir.Scratch, ir.Accumulate)
BODIES = ("body", "then", "orelse")
DECLARING = (ir.Declare, ir.Table, ir.For)
NAMES = ("name", "index", "acc", "last", "result")  # members that declare names
NAMED = (*DECLARING, ir.Name, ir.Assign)  # nodes whose `name` is that of a local


def jam(kernel: ir.KernelTree, turns: int) -> ir.KernelTree:
    """Return a kernel whose innermost loops of unknown length that take roots run `turns` turns at once."""
    if turns == 1:
        return kernel
    rooted = {f.name for f in kernel.functions if any(map(_is_root, walk(f.body)))}
    names = {getattr(n, word, None) for n in (kernel, *walk(kernel.body)) for word in NAMES}
    names |= {p.name for p in kernel.params}
    return replace(kernel, body=_Jam(turns, rooted, names).body(kernel.body))


def _is_root(node: ir.Expr | ir.Stmt) -> bool:
    return isinstance(node, ir.Math) and node.name in ROOTS


@dataclass(frozen=True)
class _Part:
    """Consecutive statements of a body; `fused` if they are one loop, whose turns of all copies run together."""

    body: Body
    fused: bool = False


class _Jam:
    """Pass over the statements of a kernel, whose functions `rooted` take roots and whose names are `taken`."""

    def __init__(self, turns: int, rooted: set[str], names: set[str | None]) -> None:
        self.turns, self.rooted, self.taken = turns, rooted, names

    def body(self, body: Body) -> Body:
        """Return statements with loops jammed."""
        return tuple(chain.from_iterable(self.statement(s) for s in body))

    def statement(self, s: ir.Stmt) -> Body:
        """Return the statements that replace one."""
        if isinstance(s, ir.For) and self.is_inner(s):
            return self.jammed(s)
        inner = {name: self.body(getattr(s, name)) for name in BODIES if getattr(s, name, ())}
        return (replace(s, **inner) if inner else s,)

    def is_inner(self, loop: ir.For) -> bool:
        """Return whether a loop can be jammed: an innermost one of unknown length that takes roots."""
        if loop.step != 1 or const_trip(loop.start, loop.stop) is not None or not any(map(self.has_root, loop.body)):
            return False
        nodes = list(walk(loop.body))
        loops = (n for n in nodes if isinstance(n, ir.For))
        return not any(isinstance(n, WHOLE) for n in nodes) and all(
            const_trip(n.start, n.stop, n.step) is not None for n in loops
        )

    def has_root(self, s: ir.Stmt) -> bool:
        """Return whether a statement takes a root."""
        return any(_is_root(n) or (isinstance(n, ir.FunctionCall) and n.name in self.rooted) for n in walk((s,)))

    def new(self, stem: str) -> str:
        """Return a name that the kernel does not have."""
        name = next(name for n in count() if (name := f"{stem}_{n}") not in self.taken)
        self.taken.add(name)
        return name

    # A loop -----------------------------------------------------------------------------------------------------------
    def jammed(self, loop: ir.For) -> Body:
        """Return the loop over all whole groups of turns, and the loop over the rest."""
        number = {"type": "int32", "loc": loop.loc}
        names = (self.new(f"{loop.name}_{part}") for part in ("begin", "end", "whole"))
        start, stop, middle = (ir.Name(name=name, **number) for name in names)
        length = ir.Binary(op="-", left=stop, right=start, **number)
        rest = ir.Binary(op="%", left=length, right=ir.Const(value=self.turns, **number), **number)
        test = ir.Compare(op="<", left=start, right=stop, type="bool", loc=loop.loc)
        cut = ir.Assign(
            name=middle.name, op="=", value=ir.Binary(op="-", left=stop, right=rest, **number), loc=loop.loc
        )
        return (
            ir.Declare(name=start.name, value=loop.start, **number),
            ir.Declare(name=stop.name, value=loop.stop, **number),
            ir.Declare(name=middle.name, value=start, **number),
            ir.If(cond=test, then=(cut,), loc=loop.loc),
            replace(loop, start=start, stop=middle, step=self.turns, body=self.together(loop)),
            replace(loop, start=middle, stop=stop),
        )

    def together(self, loop: ir.For) -> Body:
        """Return the body of a loop for `turns` turns at once."""
        names = {n.name for n in walk(loop.body) if isinstance(n, DECLARING)}
        names |= {n.result for n in walk(loop.body) if isinstance(n, ir.Atomic) and n.result}
        copies = [_Copy({name: self.new(name) for name in names}, loop.name, n) for n in range(self.turns)]
        return tuple(self.written(self.parts(loop.body, names), copies))

    def written(self, parts: list[_Part], copies: "list[_Copy]") -> Iterator[ir.Stmt]:
        """Yield the statements of all copies, part by part."""
        for part in parts:
            if part.fused:
                (loop,) = part.body
                # the copies share the index of a loop that is fused
                sharing = [replace(c, names={**c.names, loop.name: loop.name}) for c in copies]
                yield replace(loop, body=tuple(self.written(self.cut(loop.body), sharing)))
            else:
                yield from (copy.of(s) for copy in copies for s in part.body)

    # The parts of a body ----------------------------------------------------------------------------------------------
    def parts(self, body: Body, names: set[str]) -> list[_Part]:
        """Return the parts of a body that declares `names`."""
        changes = {name for n in walk(body) for name in _changed(n)} - names
        parts = self.cut(body)
        acting = [n for n, part in enumerate(parts) if any(changes & _used(node) for node in walk(part.body))]
        if not acting:
            return parts
        first, end = acting[0], acting[-1] + 1
        return [*parts[:first], _Part(tuple(chain.from_iterable(p.body for p in parts[first:end]))), *parts[end:]]

    def cut(self, body: Body) -> list[_Part]:
        """Return a body cut after its first root, and before and after each loop."""
        parts, run, rooted = [], [], False
        for s in body:
            is_loop, is_first = isinstance(s, ir.For), not rooted and self.has_root(s)
            if is_loop and run:
                parts.append(_Part(tuple(run)))
                run = []
            if is_loop:
                parts.append(_Part((s,), fused=True))
            else:
                run.append(s)
            if is_first and run:
                parts.append(_Part(tuple(run)))
                run = []
            rooted |= is_first
        return [*parts, _Part(tuple(run))] if run else parts


def _changed(node: ir.Expr | ir.Stmt) -> set[str]:
    """Return the names and views that a statement changes."""
    if isinstance(node, ir.Assign):
        return {node.name}
    return {node.view} if isinstance(node, ir.Store | ir.Atomic) else set()


def _used(node: ir.Expr | ir.Stmt) -> set[str]:
    """Return the names and views that a node reads or changes."""
    if isinstance(node, ir.Name):
        return {node.name}
    return {node.view} if isinstance(node, ir.Load) else _changed(node)


@dataclass(frozen=True)
class _Copy:
    """Turn `number` of a loop over `index`: `names` are the new names of the body's own."""

    names: dict[str, str]
    index: str
    number: int

    def of(self, node: Any) -> Any:
        """Return a statement or an expression for this turn."""
        if isinstance(node, ir.Name) and node.name == self.index:
            return self._turn(node)
        node = rebuilt(node, self.of)
        members = ("name",) if isinstance(node, NAMED) else ("view", "result")
        change = {m: self.names[name] for m in members if (name := getattr(node, m, None)) in self.names}
        return replace(node, **change) if change else node

    def _turn(self, index: ir.Name) -> ir.Expr:
        """Return the index of this turn."""
        if self.number == 0:
            return index
        number = ir.Const(value=self.number, type=index.type, loc=index.loc)
        return ir.Binary(op="+", left=index, right=number, type=index.type, loc=index.loc)
