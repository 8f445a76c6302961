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
from parki.engine.lower.roots import least_argument
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
    statements = _Statements(LaneValues(views, guarded_functions(kernel), checked))
    functions = tuple(statements.function(f) for f in kernel.functions)
    body = (statements.chunk(kernel),) if kernel.policy == "range" else statements.block(kernel.body, LanePlace())
    return replace(kernel, functions=functions, body=body), tuple(statements.values.sites)


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

    def block(self, body: Body, place: LanePlace) -> Body:
        """Return statements in order; statements after an exit under a mask run only if a lane is left."""
        out: list[ir.Stmt] = []
        n = 0
        while n < len(body):
            pair = self.pair(body[n : n + 2], place) or self.root(body[n : n + 2], place)
            out += pair or getattr(self, f"do_{type(body[n]).__name__}")(body[n], place)
            n += 2 if pair else 1
            if not pair and n < len(body) and place.mask is not ALL_LANES and exits(body[n - 1 : n]):
                return (*out, ir.If(cond=_any(place.mask), then=self.block(body[n:], place), loc=NOWHERE))
        return tuple(out)

    def function(self, f: ir.Function) -> ir.Function:
        """Return a function of vectors; lanes that are masked off at a call may hold anything."""
        place = LanePlace(kinds=lane_kinds(f.body, None, [name for name, _ in f.params]), in_function=True)
        if f.name in self.values.guarded:
            place = replace(place, mask=mask_name("pk_given"))
        return replace(f, body=self.block(f.body, place))

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
    def varies(s: ir.Stmt, place: LanePlace) -> bool:
        """Return whether the local that `s` declares or assigns is a vector."""
        return place.kinds is not None and place.kinds.local(s) is None

    def do_Declare(self, s: ir.Declare, place: LanePlace) -> Body:
        """Declare a scalar, or a vector if its value varies."""
        if self.varies(s, place):
            value = self.values.vector(s.value, place)
            return (lanes.DeclareLanes(name=s.name, type=s.type, value=value, loc=s.loc),)
        return (replace(s, value=self.values.scalar(s.value, place)),)

    def do_Assign(self, s: ir.Assign, place: LanePlace) -> Body:
        """Assign; under more masks than the declaration's, in active lanes only."""
        if not self.varies(s, place):
            return (replace(s, value=self.values.scalar(s.value, place)),)
        mask = place.select if place.kinds.assigns_under_mask(s) else None
        return (
            lanes.AssignLanes(name=s.name, op=s.op, value=self.values.vector(s.value, place), mask=mask, loc=s.loc),
        )

    def do_Table(self, s: ir.Table, place: LanePlace) -> Body:
        """Keep a constant table."""
        self.views.add(s.name, s.type, "C", (str(len(s.values)),))
        return (s,)

    def do_Scratch(self, s: ir.Scratch, place: LanePlace) -> Body:
        """Keep a piece of scratch; checked builds clear it."""
        self.views.add(s.name, s.type, "C", (extent(s.name, 0),))
        self.views.scratch.add(s.name)
        clear = (lanes.ClearScratch(name=s.name, type=s.type, loc=NOWHERE),) if self.values.checked else ()
        return (replace(s, size=self.values.scalar(s.size, place)), *clear)

    # Memory -----------------------------------------------------------------------------------------------------------
    def do_Store(self, s: ir.Store, place: LanePlace) -> Body:
        """Store one element per lane, in place."""
        value = self.stored(s, place)
        if self.values.checks(s.view):
            access = self.values.checked_access("store", s, place, s.value.type, value)
            return (lanes.Evaluate(value=access, loc=s.loc),)
        if place.kinds is None:
            return (replace(s, indices=self.values.scalars(s.indices, place), op="=", value=value),)
        return (self.lanes_store(s, value, place),)

    def stored(self, s: ir.Store, place: LanePlace) -> ir.Expr:
        """Return the value that a store leaves."""
        old = None
        if s.op != "=":
            load = ir.Load(view=s.view, indices=s.indices, type=s.value.type, loc=s.loc)
            old = self.values.scalar_load(load, place) if place.kinds is None else self.values.vector_load(load, place)
        value = self.values.value(s.value, place)
        return lanes.Update(op=s.op[0], old=old, value=value, type=value.type, loc=s.loc) if old else value

    def lanes_store(self, s: ir.Store, value: ir.Expr, place: LanePlace) -> ir.Stmt:
        """Return a store of a vector."""
        shared = {"view": s.view, "value": value, "loc": s.loc}
        if place.row:
            indices = self.values.scalars(s.indices, place)
            return lanes.RowStore(indices=indices, dim=self.values.lane_dim(s.indices, place), **shared)
        if place.kept is not None and places(s.indices[0], place.kept):
            indices, is_scratch = self.values.scalars(s.indices, place), s.view in self.views.scratch
            return lanes.Compress(indices=indices, mask=place.mask, is_scratch=is_scratch, **shared)
        step = self.values.step(s.view, s.indices, place)
        if step in (1, 2):
            return lanes.StoreLanes(**self.values.spaced(s.indices, place, step), **shared)
        return lanes.Scatter(**self.values.anywhere(s.indices, place), **shared)

    def pair(self, stores: Body, place: LanePlace) -> Body:
        """Return one store for two, if their elements are neighbours and lanes are two elements apart; else nothing."""
        if place.kinds is None or self.values.checked or place.row or place.kept is not None:
            return ()
        if len(stores) < 2 or not is_pair(*stores) or self.values.step(stores[0].view, stores[0].indices, place) != 2:
            return ()
        first, second = stores
        access = self.values.spaced(first.indices, place, 2)
        del access["step"]
        values = {"value": self.values.vector(first.value, place), "other": self.values.vector(second.value, place)}
        return (lanes.StorePair(view=first.view, loc=first.loc, **access, **values),)

    def root(self, body: Body, place: LanePlace) -> Body:
        """Return one declaration for a root of lanes and the branch that sets it to 0; else nothing."""
        if len(body) < 2 or (bound := least_argument(*body)) is None or not self.varies(body[0], place) or place.row:
            return ()
        args = (self.values.vector(body[0].value.args[0], place), self.values.vector(bound, place))
        value = lanes.Lanewise(op="rsqrt_above", args=args, type=body[0].type, loc=body[0].loc)
        return (lanes.DeclareLanes(name=body[0].name, type=body[0].type, value=value, loc=body[0].loc),)

    def do_Atomic(self, s: ir.Atomic, place: LanePlace) -> Body:
        """Update one element per lane, in lane order."""
        kind = self.views.types[s.view]
        shared = {"op": s.op, "view": s.view, "type": kind, "loc": s.loc}
        if self.values.checked:
            update = self.values.checked_access(f"atomic_{s.op}", s, place, kind, self.values.value(s.value, place))
        elif place.kinds is None:
            indices, value = self.values.scalars(s.indices, place), self.values.scalar(s.value, place)
            update = lanes.AtomicScalar(indices=indices, value=value, **shared)
        else:
            access, value = self.values.anywhere(s.indices, place), self.values.vector(s.value, place)
            update = lanes.AtomicLanes(**access, value=value, **shared)
        if s.result is None:
            return (lanes.Evaluate(value=update, loc=s.loc),)
        declare = ir.Declare if place.kinds is None else lanes.DeclareLanes
        return (declare(name=s.result, type=kind, value=update, loc=s.loc),)

    def do_Accumulate(self, s: ir.Accumulate, place: LanePlace) -> Body:
        """Add a term of a sum."""
        if place.kept is not None:
            return (replace(s, value=lanes.ActiveLanes(mask=place.mask, type="int32", loc=NOWHERE)),)
        if place.kinds is None:
            return (replace(s, value=self.values.scalar(s.value, place)),)
        value = self.values.vector(s.value, place)
        return (lanes.AccumulateLanes(name=s.name, value=value, mask=place.select, loc=s.loc),)

    # Control ----------------------------------------------------------------------------------------------------------
    def do_If(self, s: ir.If, place: LanePlace) -> Body:
        """Keep a branch, or run both sides under masks; in a scan, which runs once, ``if last`` always holds."""
        if isinstance(s.cond, ir.Name) and s.cond.name in self.always:
            return (lanes.LocalBlock(body=self.block(s.then, place), loc=s.loc),)
        if self.values.kind(s.cond, place) == 0:
            cond, body = self.values.scalar(s.cond, place), self.block(s.then, place)
            return (replace(s, cond=cond, then=body, orelse=self.block(s.orelse, place)),)
        cond = self.name("c")
        value = self.values.vector(s.cond, place)
        sides = (self.side(s.then, "and", cond, place), self.side(s.orelse, "andnot", cond, place))
        declare = lanes.DeclareConstLanes(name=cond, type="bool", value=value, loc=NOWHERE)
        return (lanes.LocalBlock(body=(declare, *(side for side in sides if side)), loc=s.loc),)

    def side(self, body: Body, join: str, cond: str, place: LanePlace) -> lanes.LocalBlock | None:
        """Return one side of a branch under its own mask."""
        if not body:
            return None
        mask = self.name("m")
        declare = lanes.DeclareLanes(
            name=mask, type="bool", value=lanewise(join, place.mask, mask_name(cond)), loc=NOWHERE
        )
        inner = self.block(body, place.under(mask))
        if is_costly(body) and place.kept is None:
            inner = (ir.If(cond=_any(mask_name(mask)), then=inner, loc=NOWHERE),)
        return lanes.LocalBlock(body=(declare, *inner), loc=NOWHERE)

    def do_For(self, s: ir.For, place: LanePlace) -> Body:
        """Keep a counted loop, or run it under a mask."""
        if self.varies(s, place):
            return self.lanes_for(s, place)
        start = self.values.scalar(s.start, place)
        if place.kinds is not None and place.kinds.is_masked(s):
            return self.masked_for(s, start, place)
        trip = const_trip(s.start, s.stop, s.step)
        end = self.name("e")
        turns = None if trip is None else turns_written_out(s, trip, self.views)
        fields = {"start": start, "stop": self.values.scalar(s.stop, place), "step": s.step, "turns": turns}
        body = self.block(s.body, replace(place, loop=None))
        return (lanes.Loop(name=s.name, body=body, end=None if trip is not None else end, loc=s.loc, **fields),)

    def lanes_for(self, s: ir.For, place: LanePlace) -> Body:
        """Return a loop whose bounds differ between lanes."""
        end = self.name("e")
        stop, start = self.values.vector(s.stop, place), self.values.vector(s.start, place)
        head = (
            lanes.DeclareConstLanes(name=end, type="int32", value=stop, loc=NOWHERE),
            lanes.DeclareLanes(name=s.name, type="int32", value=start, loc=NOWHERE),
        )
        index, last = (ir.Name(name=name, type="int32", loc=NOWHERE) for name in (s.name, end))
        test = lanewise("<" if s.step > 0 else ">", index, last)
        step = ir.Const(value=s.step, type="int32", loc=NOWHERE)
        step = lanes.Splat(arg=step, type="int32", loc=NOWHERE)
        step = lanes.AccumulateLanes(name=s.name, value=step, mask=None, loc=NOWHERE)
        loop = self.masked_loop(s.body, place, None, lambda inner: test, (step,))
        return (lanes.LocalBlock(body=(*head, loop), loc=s.loc),)

    def masked_for(self, s: ir.For, start: ir.Expr, place: LanePlace) -> Body:
        """Return a loop with uniform bounds that lanes leave one by one."""
        end = self.name("e")
        head = (
            lanes.DeclareConst(name=end, type="int32", value=self.values.scalar(s.stop, place), loc=NOWHERE),
            ir.Declare(name=s.name, type="int32", value=start, loc=NOWHERE),
        )
        index, last = (ir.Name(name=name, type="int32", loc=NOWHERE) for name in (s.name, end))
        test = ir.Compare(op="<" if s.step > 0 else ">", left=index, right=last, type="bool", loc=NOWHERE)
        step = ir.Const(value=s.step, type="int32", loc=NOWHERE)
        step = ir.Accumulate(name=s.name, value=step, loc=NOWHERE)
        loop = self.masked_loop(s.body, place, test, None, (step,))
        return (lanes.LocalBlock(body=(*head, loop), loc=s.loc),)

    def do_While(self, s: ir.While, place: LanePlace) -> Body:
        """Keep a loop, or run it under a mask."""
        if place.kinds is not None and place.kinds.is_masked(s):
            loop = self.masked_loop(s.body, place, None, lambda inner: self.values.vector(s.cond, inner), ())
            return (lanes.LocalBlock(body=(loop,), loc=s.loc),)
        cond = self.values.scalar(s.cond, place)
        return (replace(s, cond=cond, body=self.block(s.body, replace(place, loop=None))),)

    def masked_loop(
        self, body: Body, place: LanePlace, test: ir.Expr | None, lanes_test: LanesTest | None, step: Body
    ) -> lanes.MaskedLoop:
        """Return a loop that runs while a lane is left; `lanes_test` makes the lanes' own test at a place."""
        live, turn = self.name("m"), self.name("m")
        inner = place.under(live)
        condition = lanes_test(inner) if lanes_test else None
        first = len(place.masks)
        body = self.block(body, replace(inner.under(turn), loop=(first, first + 1)))
        return lanes.MaskedLoop(
            live=live, turn=turn, mask=place.mask, test=test, lanes_test=condition, body=body, step=step, loc=NOWHERE
        )

    def do_Break(self, s: ir.Break, place: LanePlace) -> Body:
        """Jump out of the loop, or clear lanes from its mask."""
        return (s,) if place.loop is None else self.leave(s, place, place.loop[0])

    def do_Continue(self, s: ir.Continue, place: LanePlace) -> Body:
        """Jump to the next turn, or clear lanes from the turn's mask."""
        return (s,) if place.loop is None else self.leave(s, place, place.loop[1])

    def do_Return(self, s: ir.Return, place: LanePlace) -> Body:
        """Return a function's value, or from the body; under a mask, clear lanes from all masks of the body."""
        if place.in_function:
            return (replace(s, value=self.values.vector(s.value, place)),)
        return self.leave(s, place, place.returns) if place.masked_return else (s,)

    @staticmethod
    def leave(s: ir.Stmt, place: LanePlace, first: int) -> Body:
        """Clear the active lanes from the masks numbered `first` and on."""
        return (lanes.Leave(mask=place.mask, masks=place.masks[first:], loc=s.loc),)

    def do_Barrier(self, s: ir.Barrier, place: LanePlace) -> Body:
        """Drop a barrier: a team is one thread here."""
        return ()

    # Levels -----------------------------------------------------------------------------------------------------------
    def do_Single(self, s: ir.Single, place: LanePlace) -> Body:
        """Run the body once: a team is one thread here."""
        inner, head = replace(place, loop=None, masked_return=False), ()
        if place.kinds is not None and place.kinds.is_masked(s):
            mask = self.name("m")
            head = (_masked(mask, place.mask),)
            inner = replace(inner.under(mask), masked_return=True, returns=len(place.masks))
        return (replace(s, body=(*head, *self.block(s.body, inner))),)

    def do_Range(self, s: ir.Range, place: LanePlace) -> Body:
        """Make a nested range one of lanes, or one that runs iterations one after another."""
        begin, end = self.values.scalar(s.begin, place), self.values.scalar(s.end, place)
        shared = {f: getattr(s, f) for f in ("level", "kind", "index", "acc", "acc_type", "last", "result", "loc")}
        shared |= {"begin": begin, "end": end, "body_name": self.name("body")}
        self.always.add(s.last)
        iterations = self.iterations(s, shared)
        self.always.discard(s.last)
        return (iterations,)

    def iterations(self, s: ir.Range, shared: dict) -> ir.Range:
        """Return a range with its body; `shared` has the other fields."""
        if is_lane_range(s) and s.kind != "scan":
            trip = const_trip(s.begin, s.end)
            fixed_length = trip is not None and s.kind == "for"
            return lanes.LaneRange(**self.lanes_of(s.body, s.index, fixed_length=fixed_length), trip=trip, **shared)
        if is_lane_range(s) and is_compaction(s) and not self.values.checked:
            return lanes.Compaction(body=self.lanes_of(s.body, s.index, total=s.acc)["body"], **shared)
        return lanes.SerialRange(body=self.block(s.body, LanePlace()), **shared)

    def lanes_of(self, body: Body, index: str, total: str | None = None, fixed_length: bool = False) -> dict:
        """Return the body for one group of lanes, and whether the group is a row (of fixed length)."""
        kinds = lane_kinds(body, index)
        place = LanePlace(kinds=kinds, mask=mask_name("pk_given"), kept=total)
        row = fixed_length and not self.values.checked and is_row(body, kinds, partial(self.values.step, place=place))
        place, head = replace(place, row=row), ()
        if kinds.masked_return:
            head = (_masked("pk_m0", place.mask),)
            place = replace(place, mask=mask_name("pk_m0"), masks=("pk_m0",), masked_return=True)
        return {"body": (*head, *self.block(body, place)), "row": row}
