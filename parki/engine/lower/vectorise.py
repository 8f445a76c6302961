"""Vectorisation of statements: uniform control flow stays control flow, varying control flow becomes masks.

The pass turns the typed tree of a workunit into a tree of `tree.lanes`, for hosts: teams run one after another, and the
iterations of a lane range are lanes.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count

from parki.engine.errors import Loc
from parki.engine.lower.branches import exits, guarded_functions, is_costly
from parki.engine.lower.common import extent
from parki.engine.lower.compaction import is_compaction, places
from parki.engine.lower.interleave import is_pair
from parki.engine.lower.rows import is_row
from parki.engine.lower.unrolling import turns_written_out
from parki.engine.lower.values import ALL_LANES, LanePlace, LaneValues, Views, lanewise, mask_name
from parki.engine.tree import ir, lanes
from parki.engine.tree.lanes import NOWHERE
from parki.engine.tree.uniformity import lane_kinds
from parki.engine.tree.walk import const_trip, is_lane_range

Body = tuple[ir.Stmt, ...]
LanesTest = Callable[[LanePlace], ir.Expr]


def vectorise(
    kernel: ir.KernelTree, layouts: dict[str, str], checked: bool = False
) -> tuple[ir.KernelTree, tuple[tuple[str, Loc], ...]]:
    """Return the vectorised tree of a kernel, and the places that a checked build reports.

    The body of a range policy becomes one range over ``pk_begin`` … ``pk_end``.
    """
    views = Views()
    views.add_parameters(kernel, layouts)
    made = _Statements(LaneValues(views, guarded_functions(kernel), checked))
    functions = tuple(made.function(f) for f in kernel.functions)
    body = (made.chunk(kernel),) if kernel.policy == "range" else made.block(kernel.body, LanePlace())
    return replace(kernel, functions=functions, body=body), tuple(made.values.sites)


def _any(mask: ir.Expr) -> lanes.AnyLane:
    return lanes.AnyLane(mask=mask, type="bool", loc=NOWHERE)


def _masked(name: str, mask: ir.Expr) -> lanes.DeclareLanes:
    """Return a declaration of a mask that lanes can leave."""
    value = lanes.Masked(mask=mask, type="bool", loc=NOWHERE)
    return lanes.DeclareLanes(name=name, type="bool", value=value, loc=NOWHERE)


class _Statements:
    """Pass over statements; a method ``do_NODE`` returns the statements that replace one."""

    def __init__(self, values: LaneValues) -> None:
        self.values, self.views = values, values.views
        self.numbers = count(1)
        self.always: set[str | None] = set()  # names of conditions that always hold here

    def name(self, stem: str) -> str:
        """Return a new generated name."""
        return f"pk_{stem}{next(self.numbers)}"

    def block(self, body: Body, at: LanePlace) -> Body:
        """Return statements in order; statements after an exit under a mask run only if a lane is left."""
        out: list[ir.Stmt] = []
        n = 0
        while n < len(body):
            pair = self.pair(body[n : n + 2], at)
            out += pair or getattr(self, f"do_{type(body[n]).__name__}")(body[n], at)
            n += 2 if pair else 1
            if not pair and n < len(body) and at.mask is not ALL_LANES and exits(body[n - 1 : n]):
                return (*out, ir.If(cond=_any(at.mask), then=self.block(body[n:], at), loc=NOWHERE))
        return tuple(out)

    def function(self, f: ir.Function) -> ir.Function:
        """Return a function of vectors; lanes that are masked off at a call may hold anything."""
        at = LanePlace(kinds=lane_kinds(f.body, None, [name for name, _ in f.params]), in_function=True)
        if f.name in self.values.guarded:
            at = replace(at, mask=mask_name("pk_given"))
        return replace(f, body=self.block(f.body, at))

    def chunk(self, k: ir.KernelTree) -> lanes.SerialRange | lanes.LaneRange:
        """Return the iterations of one chunk of the league."""
        begin, end = (ir.Name(name=name, type="int32", loc=NOWHERE) for name in ("pk_begin", "pk_end"))
        shared = {"kind": k.kind, "level": "league", "begin": begin, "end": end, "index": k.index, "acc": k.acc}
        shared |= {"acc_type": k.acc_type, "last": k.last, "body_name": "pk_body", "loc": NOWHERE}
        if k.last:
            self.always.add(k.last)
            return lanes.SerialRange(body=self.block(k.body, LanePlace()), **shared)
        return lanes.LaneRange(**self.lanes_of(k.body, k.index), trip=None, **shared)

    # Names ------------------------------------------------------------------------------------------------------------
    @staticmethod
    def varies(s: ir.Stmt, at: LanePlace) -> bool:
        """Return whether the local that `s` declares or assigns is a vector."""
        return at.kinds is not None and at.kinds.local(s) is None

    def do_Declare(self, s: ir.Declare, at: LanePlace) -> Body:
        """Declare a scalar, or a vector if its value varies."""
        if self.varies(s, at):
            value = self.values.vector(s.value, at)
            return (lanes.DeclareLanes(name=s.name, type=s.type, value=value, loc=s.loc),)
        return (replace(s, value=self.values.scalar(s.value, at)),)

    def do_Assign(self, s: ir.Assign, at: LanePlace) -> Body:
        """Assign; under more masks than the declaration's, in active lanes only."""
        if not self.varies(s, at):
            return (replace(s, value=self.values.scalar(s.value, at)),)
        mask = at.select if at.kinds.assigns_under_mask(s) else None
        return (lanes.AssignLanes(name=s.name, op=s.op, value=self.values.vector(s.value, at), mask=mask, loc=s.loc),)

    def do_Table(self, s: ir.Table, at: LanePlace) -> Body:
        """Keep a constant table."""
        self.views.add(s.name, s.type, "C", (str(len(s.values)),))
        return (s,)

    def do_Scratch(self, s: ir.Scratch, at: LanePlace) -> Body:
        """Keep a piece of scratch; checked builds clear it."""
        self.views.add(s.name, s.type, "C", (extent(s.name, 0),))
        clear = (lanes.ClearScratch(name=s.name, type=s.type, loc=NOWHERE),) if self.values.checked else ()
        return (replace(s, size=self.values.scalar(s.size, at)), *clear)

    # Memory -----------------------------------------------------------------------------------------------------------
    def do_Store(self, s: ir.Store, at: LanePlace) -> Body:
        """Store one element per lane, in place."""
        value = self.stored(s, at)
        if self.values.checks(s.view):
            access = self.values.checked_access("store", s, at, s.value.type, value)
            return (lanes.Evaluate(value=access, loc=s.loc),)
        if at.kinds is None:
            return (replace(s, indices=self.values.scalars(s.indices, at), op="=", value=value),)
        return (self.lanes_store(s, value, at),)

    def stored(self, s: ir.Store, at: LanePlace) -> ir.Expr:
        """Return the value that a store leaves."""
        old = None
        if s.op != "=":
            load = ir.Load(view=s.view, indices=s.indices, type=s.value.type, loc=s.loc)
            old = self.values.scalar_load(load, at) if at.kinds is None else self.values.vector_load(load, at)
        value = self.values.value(s.value, at)
        return lanes.Update(op=s.op[0], old=old, value=value, type=value.type, loc=s.loc) if old else value

    def lanes_store(self, s: ir.Store, value: ir.Expr, at: LanePlace) -> ir.Stmt:
        """Return a store of a vector."""
        shared = {"view": s.view, "value": value, "loc": s.loc}
        if at.row:
            indices = self.values.scalars(s.indices, at)
            return lanes.RowStore(indices=indices, dim=self.values.lane_dim(s.indices, at), **shared)
        if at.kept is not None and places(s.indices[0], at.kept):
            return lanes.Compress(indices=self.values.scalars(s.indices, at), mask=at.mask, **shared)
        step = self.values.step(s.view, s.indices, at)
        if step in (1, 2):
            return lanes.StoreLanes(**self.values.spaced(s.indices, at, step), **shared)
        return lanes.Scatter(**self.values.anywhere(s.indices, at), **shared)

    def pair(self, both: Body, at: LanePlace) -> Body:
        """Return one store for two, if their elements are neighbours and lanes are two elements apart; else nothing."""
        if at.kinds is None or self.values.checked or at.row or at.kept is not None:
            return ()
        if len(both) < 2 or not is_pair(*both) or self.values.step(both[0].view, both[0].indices, at) != 2:
            return ()
        first, second = both
        place = self.values.spaced(first.indices, at, 2)
        del place["step"]
        values = {"value": self.values.vector(first.value, at), "other": self.values.vector(second.value, at)}
        return (lanes.StorePair(view=first.view, loc=first.loc, **place, **values),)

    def do_Atomic(self, s: ir.Atomic, at: LanePlace) -> Body:
        """Update one element per lane, in lane order."""
        kind = self.views.types[s.view]
        shared = {"op": s.op, "view": s.view, "type": kind, "loc": s.loc}
        if self.values.checked:
            update = self.values.checked_access(f"atomic_{s.op}", s, at, kind, self.values.value(s.value, at))
        elif at.kinds is None:
            indices, value = self.values.scalars(s.indices, at), self.values.scalar(s.value, at)
            update = lanes.AtomicScalar(indices=indices, value=value, **shared)
        else:
            place, value = self.values.anywhere(s.indices, at), self.values.vector(s.value, at)
            update = lanes.AtomicLanes(**place, value=value, **shared)
        if s.result is None:
            return (lanes.Evaluate(value=update, loc=s.loc),)
        declare = ir.Declare if at.kinds is None else lanes.DeclareLanes
        return (declare(name=s.result, type=kind, value=update, loc=s.loc),)

    def do_Accumulate(self, s: ir.Accumulate, at: LanePlace) -> Body:
        """Add a term of a sum."""
        if at.kept is not None:
            return (replace(s, value=lanes.ActiveLanes(mask=at.mask, type="int32", loc=NOWHERE)),)
        if at.kinds is None:
            return (replace(s, value=self.values.scalar(s.value, at)),)
        value = self.values.vector(s.value, at)
        return (lanes.AccumulateLanes(name=s.name, value=value, mask=at.select, loc=s.loc),)

    # Control ----------------------------------------------------------------------------------------------------------
    def do_If(self, s: ir.If, at: LanePlace) -> Body:
        """Keep a branch, or run both sides under masks; in a scan, which runs once, ``if last`` always holds."""
        if isinstance(s.cond, ir.Name) and s.cond.name in self.always:
            return (lanes.LocalBlock(body=self.block(s.then, at), loc=s.loc),)
        if self.values.kind(s.cond, at) == 0:
            cond, then = self.values.scalar(s.cond, at), self.block(s.then, at)
            return (replace(s, cond=cond, then=then, orelse=self.block(s.orelse, at)),)
        cond = self.name("c")
        value = self.values.vector(s.cond, at)
        sides = (self.side(s.then, "and", cond, at), self.side(s.orelse, "andnot", cond, at))
        declare = lanes.DeclareConstLanes(name=cond, type="bool", value=value, loc=NOWHERE)
        return (lanes.LocalBlock(body=(declare, *(side for side in sides if side)), loc=s.loc),)

    def side(self, body: Body, join: str, cond: str, at: LanePlace) -> lanes.LocalBlock | None:
        """Return one side of a branch under its own mask."""
        if not body:
            return None
        mask = self.name("m")
        declare = lanes.DeclareLanes(
            name=mask, type="bool", value=lanewise(join, at.mask, mask_name(cond)), loc=NOWHERE
        )
        inner = self.block(body, at.under(mask))
        if is_costly(body) and at.kept is None:
            inner = (ir.If(cond=_any(mask_name(mask)), then=inner, loc=NOWHERE),)
        return lanes.LocalBlock(body=(declare, *inner), loc=NOWHERE)

    def do_For(self, s: ir.For, at: LanePlace) -> Body:
        """Keep a counted loop, or run it under a mask."""
        if self.varies(s, at):
            return self.lanes_for(s, at)
        start = self.values.scalar(s.start, at)
        if at.kinds is not None and at.kinds.is_masked(s):
            return self.masked_for(s, start, at)
        trip = const_trip(s.start, s.stop, s.step)
        end = self.name("e")
        turns = None if trip is None else turns_written_out(s, trip, self.views)
        fields = {"start": start, "stop": self.values.scalar(s.stop, at), "step": s.step, "turns": turns}
        body = self.block(s.body, replace(at, loop=None))
        return (lanes.Loop(name=s.name, body=body, end=None if trip is not None else end, loc=s.loc, **fields),)

    def lanes_for(self, s: ir.For, at: LanePlace) -> Body:
        """Return a loop whose bounds differ between lanes."""
        end = self.name("e")
        stop, start = self.values.vector(s.stop, at), self.values.vector(s.start, at)
        head = (
            lanes.DeclareConstLanes(name=end, type="int32", value=stop, loc=NOWHERE),
            lanes.DeclareLanes(name=s.name, type="int32", value=start, loc=NOWHERE),
        )
        here, last = (ir.Name(name=name, type="int32", loc=NOWHERE) for name in (s.name, end))
        test = lanewise("<" if s.step > 0 else ">", here, last)
        step = ir.Const(value=s.step, type="int32", loc=NOWHERE)
        step = lanes.Splat(arg=step, type="int32", loc=NOWHERE)
        step = lanes.AccumulateLanes(name=s.name, value=step, mask=None, loc=NOWHERE)
        loop = self.masked_loop(s.body, at, None, lambda inner: test, (step,))
        return (lanes.LocalBlock(body=(*head, loop), loc=s.loc),)

    def masked_for(self, s: ir.For, start: ir.Expr, at: LanePlace) -> Body:
        """Return a loop with uniform bounds that lanes leave one by one."""
        end = self.name("e")
        head = (
            lanes.DeclareConst(name=end, type="int32", value=self.values.scalar(s.stop, at), loc=NOWHERE),
            ir.Declare(name=s.name, type="int32", value=start, loc=NOWHERE),
        )
        here, last = (ir.Name(name=name, type="int32", loc=NOWHERE) for name in (s.name, end))
        test = ir.Compare(op="<" if s.step > 0 else ">", left=here, right=last, type="bool", loc=NOWHERE)
        step = ir.Const(value=s.step, type="int32", loc=NOWHERE)
        step = ir.Accumulate(name=s.name, value=step, loc=NOWHERE)
        loop = self.masked_loop(s.body, at, test, None, (step,))
        return (lanes.LocalBlock(body=(*head, loop), loc=s.loc),)

    def do_While(self, s: ir.While, at: LanePlace) -> Body:
        """Keep a loop, or run it under a mask."""
        if at.kinds is not None and at.kinds.is_masked(s):
            loop = self.masked_loop(s.body, at, None, lambda inner: self.values.vector(s.cond, inner), ())
            return (lanes.LocalBlock(body=(loop,), loc=s.loc),)
        cond = self.values.scalar(s.cond, at)
        return (replace(s, cond=cond, body=self.block(s.body, replace(at, loop=None))),)

    def masked_loop(
        self, body: Body, at: LanePlace, test: ir.Expr | None, lanes_test: LanesTest | None, step: Body
    ) -> lanes.MaskedLoop:
        """Return a loop that runs while a lane is left; `lanes_test` makes the lanes' own test at a place."""
        live, turn = self.name("m"), self.name("m")
        inner = at.under(live)
        condition = lanes_test(inner) if lanes_test else None
        first = len(at.masks)
        body = self.block(body, replace(inner.under(turn), loop=(first, first + 1)))
        return lanes.MaskedLoop(
            live=live, turn=turn, mask=at.mask, test=test, lanes_test=condition, body=body, step=step, loc=NOWHERE
        )

    def do_Break(self, s: ir.Break, at: LanePlace) -> Body:
        """Jump out of the loop, or clear lanes from its mask."""
        return (s,) if at.loop is None else self.leave(s, at, at.loop[0])

    def do_Continue(self, s: ir.Continue, at: LanePlace) -> Body:
        """Jump to the next turn, or clear lanes from the turn's mask."""
        return (s,) if at.loop is None else self.leave(s, at, at.loop[1])

    def do_Return(self, s: ir.Return, at: LanePlace) -> Body:
        """Return a function's value, or from the body; under a mask, clear lanes from all masks of the body."""
        if at.in_function:
            return (replace(s, value=self.values.vector(s.value, at)),)
        return self.leave(s, at, at.returns) if at.masked_return else (s,)

    @staticmethod
    def leave(s: ir.Stmt, at: LanePlace, first: int) -> Body:
        """Clear the active lanes from the masks numbered `first` and on."""
        return (lanes.Leave(mask=at.mask, masks=at.masks[first:], loc=s.loc),)

    def do_Barrier(self, s: ir.Barrier, at: LanePlace) -> Body:
        """Drop a barrier: a team is one thread here."""
        return ()

    # Levels -----------------------------------------------------------------------------------------------------------
    def do_Single(self, s: ir.Single, at: LanePlace) -> Body:
        """Run the body once: a team is one thread here."""
        inner, head = replace(at, loop=None, masked_return=False), ()
        if at.kinds is not None and at.kinds.is_masked(s):
            mask = self.name("m")
            head = (_masked(mask, at.mask),)
            inner = replace(inner.under(mask), masked_return=True, returns=len(at.masks))
        return (replace(s, body=(*head, *self.block(s.body, inner))),)

    def do_Range(self, s: ir.Range, at: LanePlace) -> Body:
        """Make a nested range one of lanes, or one that runs iterations one after another."""
        begin, end = self.values.scalar(s.begin, at), self.values.scalar(s.end, at)
        shared = {f: getattr(s, f) for f in ("level", "kind", "index", "acc", "acc_type", "last", "result", "loc")}
        shared |= {"begin": begin, "end": end, "body_name": self.name("body")}
        self.always.add(s.last)
        made = self.iterations(s, shared)
        self.always.discard(s.last)
        return (made,)

    def iterations(self, s: ir.Range, shared: dict) -> ir.Range:
        """Return a range with its body; `shared` has the other fields."""
        if is_lane_range(s) and s.kind != "scan":
            trip = const_trip(s.begin, s.end)
            fixed = trip is not None and s.kind == "for"
            return lanes.LaneRange(**self.lanes_of(s.body, s.index, fixed=fixed), trip=trip, **shared)
        if is_lane_range(s) and is_compaction(s) and not self.values.checked:
            return lanes.Compaction(body=self.lanes_of(s.body, s.index, kept=s.acc)["body"], **shared)
        return lanes.SerialRange(body=self.block(s.body, LanePlace()), **shared)

    def lanes_of(self, body: Body, index: str, kept: str | None = None, fixed: bool = False) -> dict:
        """Return the body for one group of lanes, and whether the group is a row (of fixed length)."""
        kinds = lane_kinds(body, index)
        at = LanePlace(kinds=kinds, mask=mask_name("pk_given"), kept=kept)
        row = fixed and not self.values.checked and is_row(body, kinds, partial(self.values.step, at=at))
        at, head = replace(at, row=row), ()
        if kinds.masked_return:
            head = (_masked("pk_m0", at.mask),)
            at = replace(at, mask=mask_name("pk_m0"), masks=("pk_m0",), masked_return=True)
        return {"body": (*head, *self.block(body, at)), "row": row}
