"""Statements in host C++: uniform control flow stays control flow, varying control flow becomes masks."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from parki.engine.lower.common import CTYPES, Emitter, extent, literal
from parki.engine.lower.compaction import is_compaction, places
from parki.engine.lower.host_expr import TRUE, VECTOR, HostExpr, LaneContext
from parki.engine.lower.interleave import is_pair
from parki.engine.lower.rows import is_row
from parki.engine.tree import ir
from parki.engine.tree.uniformity import lane_kinds
from parki.engine.tree.walk import const_trip, is_lane_range, walk

UNROLL = 40  # turns, at most, of a constant loop that is unrolled, if its body is short
LANES = "constexpr int pk_L = {lanes}; "
ROW_TYPES = LANES + "using pk_vd = pk_row<double, pk_L>; using pk_vf = pk_row<float, pk_L>;"
LANE_TYPES = LANES + (
    "using pk_vd = pk_vec<double, pk_L>; using pk_vf = pk_vec<float, pk_L>; "
    "using pk_vi = pk_vec<pk_lane, pk_L>; using pk_vo = pk_vec<int64_t, pk_L>; "
    "using pk_vm = pk_mask<PK_LANE_BYTES, pk_L>;"
)


class HostStmt(HostExpr, Emitter):
    """Emitter of statements as lines of C++."""

    def __init__(self, checked: bool) -> None:
        HostExpr.__init__(self, checked)
        Emitter.__init__(self)

    def block(self, body: tuple[ir.Stmt, ...], ctx: LaneContext) -> None:
        """Emit statements in order; statements after an exit under a mask run only if a lane is left."""
        opened, done = 0, -1
        for n, s in enumerate(body):
            if n == done:
                continue
            self.place(s)
            if n + 1 < len(body) and self.stored_together(s, body[n + 1], ctx):
                done = n + 1
                continue
            getattr(self, "do_" + type(s).__name__)(s, ctx)
            if ctx.mask != TRUE and n + 1 < len(body) and _exits((s,)):
                self.out(f"if (pk_any({ctx.mask})) {{")
                opened += 1
        self.out("}" * opened)

    # Names ------------------------------------------------------------------------------------------------------------
    def varies(self, s: ir.Stmt, ctx: LaneContext) -> bool:
        """Return whether the local that `s` declares or assigns is a vector."""
        return ctx.kinds is not None and ctx.kinds.local(s) is None

    def do_Declare(self, s: ir.Declare, ctx: LaneContext) -> None:
        """Emit a local: a scalar, or a vector if its value varies."""
        if self.varies(s, ctx):
            self.out(f"{VECTOR[s.type]} {s.name} = {self.vec(s.value, ctx)};")
        else:
            self.out(f"{CTYPES[s.type]} {s.name} = {self.scalar(s.value, ctx)};")

    def do_Assign(self, s: ir.Assign, ctx: LaneContext) -> None:
        """Emit an assignment; under more masks than the declaration's, with a select."""
        varies = self.varies(s, ctx)
        value = self.vec(s.value, ctx) if varies else self.scalar(s.value, ctx)
        if s.op != "=":
            value = f"{s.name} {s.op[0]} ({value})"
        if varies and ctx.mask != TRUE and ctx.kinds.assigns_under_mask(s):
            value = f"pk_select({ctx.mask}, {value}, {s.name})"
        self.out(f"{s.name} = {value};")

    def do_Table(self, s: ir.Table, ctx: LaneContext) -> None:
        """Emit a constant array."""
        self.views.add(s.name, s.type, 1, "C", [str(len(s.values))])
        values = ", ".join(literal(v, s.type) for v in s.values)
        self.out(f"static const {CTYPES[s.type]} {s.name}[] = {{{values}}};")

    def do_Scratch(self, s: ir.Scratch, ctx: LaneContext) -> None:
        """Emit the next piece of the team's scratch; a piece that does not fit is reported."""
        kind, size = CTYPES[s.type], extent(s.name, 0)
        self.views.add(s.name, s.type, 1, "C", [size])
        self.out(f"const int64_t {size} = {self.scalar(s.size, ctx)};")
        self.out(f"{kind}* const __restrict__ {s.name} = ({kind}*)(pk_scratch + pk_used);")
        self.out(f"pk_used += ({size} * (int64_t)sizeof({kind}) + 63) / 64 * 64;")
        self.out(f"pk_asked += ({size} * (int64_t)sizeof({kind}) + 7) / 8 * 8;")
        self.out(f"if ({size} < 0 || pk_asked > pk_a.pk_scratch_asked) {{")
        self.out(f"pk_ok(pk_a.pk_fault_at, -1, 0, {size} < 0 ? {size} : pk_asked, 0); return; }}")
        if self.checked:
            self.out(f"__builtin_memset({s.name}, 0xff, {size} * sizeof({kind}));")

    # Memory -----------------------------------------------------------------------------------------------------------
    def do_Store(self, s: ir.Store, ctx: LaneContext) -> None:
        """Emit a store of one element per lane, in place."""
        kind = s.value.type
        if s.op != "=":
            load = ir.Load(view=s.view, indices=s.indices, type=kind, loc=s.loc)
            old = self.scalar_load(load, ctx) if ctx.kinds is None else self.vector_load(load, ctx)
        value = self.scalar(s.value, ctx) if ctx.kinds is None else self.vec(s.value, ctx)
        new = value if s.op == "=" else f"{old} {s.op[0]} ({value})"
        if self.checked and s.view in self.views.extents:
            to = CTYPES[kind] if ctx.kinds is None else VECTOR[kind]
            self.out(self.checked_access("store", s.view, s.indices, s.loc, ctx, to, new) + ";")
        elif ctx.kinds is None:
            self.out(f"{s.view}[{self.offset(s.view, s.indices, ctx)}] = {new};")
        elif ctx.row:
            self.out(f"pk_row_store({s.view} + ({self.offset(s.view, s.indices, ctx)}), {new});")
        elif ctx.kept is not None and places(s.indices[0], ctx.kept):
            self.out(f"pk_compress({s.view} + ({self.offset(s.view, s.indices, ctx)}), {new}, {ctx.mask});")
        else:
            step = self.step(s.view, s.indices, ctx)
            if step in (1, 2):
                name = "pk_store" if step == 1 else "pk_store2"
                at = f"{s.view} + ({self.offset(s.view, s.indices, ctx)})"
                self.out(f"{name}({at}, {new}, {ctx.mask});")
            else:
                self.out(f"pk_scatter({s.view}, {self.vector_offset(s.view, s.indices, ctx)}, {new}, {ctx.mask});")

    def stored_together(self, s: ir.Stmt, other: ir.Stmt, ctx: LaneContext) -> bool:
        """Emit two stores as one, if their elements are neighbours and lanes are two elements apart; return whether."""
        if ctx.kinds is None or self.checked or ctx.row or ctx.kept is not None or not is_pair(s, other):
            return False
        if self.step(s.view, s.indices, ctx) != 2:
            return False
        at = f"{s.view} + ({self.offset(s.view, s.indices, ctx)})"
        self.out(f"pk_store_pair({at}, {self.vec(s.value, ctx)}, {self.vec(other.value, ctx)}, {ctx.mask});")
        return True

    def do_Atomic(self, s: ir.Atomic, ctx: LaneContext) -> None:
        """Emit one update per lane, in lane order."""
        kind = self.views.types[s.view]
        if self.checked:
            value = self.vec(s.value, ctx) if ctx.kinds is not None else self.scalar(s.value, ctx)
            access = f"atomic_{s.op}"
            to = CTYPES[kind] if ctx.kinds is None else VECTOR[kind]
            text = self.checked_access(access, s.view, s.indices, s.loc, ctx, to, f"{value}, pk_a.pk_shared")
        elif ctx.kinds is None:
            at = f"{s.view} + ({self.offset(s.view, s.indices, ctx)})"
            text = f"pk_atomic<pk_op_{s.op}>({at}, ({CTYPES[kind]})({self.scalar(s.value, ctx)}), pk_a.pk_shared)"
        else:
            where = self.vector_offset(s.view, s.indices, ctx)
            args = f"{s.view}, {where}, {self.vec(s.value, ctx)}, {ctx.mask}, pk_a.pk_shared"
            text = f"pk_atomic_lanes<pk_op_{s.op}>({args})"
        if s.result is None:
            self.out(text + ";")
        else:
            self.out(f"{VECTOR[kind] if ctx.kinds is not None else CTYPES[kind]} {s.result} = {text};")

    def do_Accumulate(self, s: ir.Accumulate, ctx: LaneContext) -> None:
        """Emit a term of a sum."""
        if ctx.kept is not None:
            self.out(f"{s.name} += pk_kept({ctx.mask});")
            return
        if ctx.kinds is None or ctx.acc_scalar:
            self.out(f"{s.name} += {self.scalar(s.value, ctx)};")
            return
        new = f"{s.name} + {self.vec(s.value, ctx)}"
        self.out(f"{s.name} = {new if ctx.mask == TRUE else f'pk_select({ctx.mask}, {new}, {s.name})'};")

    # Control ----------------------------------------------------------------------------------------------------------
    def do_If(self, s: ir.If, ctx: LaneContext) -> None:
        """Emit a branch, or both sides under masks."""
        if self.kind(s.cond, ctx) == 0:
            self.out(f"if ({self.scalar(s.cond, ctx)}) {{")
            self.block(s.then, ctx)
            if s.orelse:
                self.out("} else {")
                self.block(s.orelse, ctx)
            self.out("}")
            return
        cond = self.name("c")
        self.out(f"{{ const pk_vm {cond} = {self.vec(s.cond, ctx)};")
        for body, join in ((s.then, "pk_and"), (s.orelse, "pk_andnot")):
            if body:
                mask = self.name("m")
                self.out(f"{{ pk_vm {mask} = {join}({ctx.mask}, {cond});")
                guard = _costly(body) and ctx.kept is None
                self.out(f"if (pk_any({mask})) {{" if guard else "{")
                self.block(body, ctx.under(mask))
                self.out("} }")
        self.out("}")

    def do_For(self, s: ir.For, ctx: LaneContext) -> None:
        """Emit a counted loop."""
        masked = ctx.kinds is not None and ctx.kinds.is_masked(s)
        compare = "<" if s.step > 0 else ">"
        if self.varies(s, ctx):
            end = self.name("e")
            self.out(f"{{ const pk_vi {end} = {self.vec(s.stop, ctx)}; pk_vi {s.name} = {self.vec(s.start, ctx)};")
            test = f"pk_test<pk_vm>({s.name} {compare} {end})"
            step = f"{s.name} = {s.name} + pk_splat<pk_vi>({s.step});"
            self.masked_loop(s.body, ctx, "true", lambda inner: test, step)
            return
        trip = const_trip(s.start, s.stop, s.step)
        head = f"int32_t {s.name} = {self.scalar(s.start, ctx)}"
        end = self.name("e")
        if masked:
            self.out(f"{{ const int32_t {end} = {self.scalar(s.stop, ctx)}; {head};")
            self.masked_loop(s.body, ctx, f"{s.name} {compare} {end}", None, f"{s.name} += {s.step};")
            return
        if trip is not None:
            turns = max(trip, 1) if self.worth_unrolling(s, trip) else 1
            self.out(f"#pragma GCC unroll {turns}")
        stop = self.scalar(s.stop, ctx)
        stop = stop if trip is not None else end
        extra = "" if trip is not None else f", {end} = {self.scalar(s.stop, ctx)}"
        self.out(f"for ({head}{extra}; {s.name} {compare} {stop}; {s.name} += {s.step}) {{")
        self.block(s.body, replace(ctx, loop=None))
        self.out("}")

    def worth_unrolling(self, s: ir.For, trip: int) -> bool:
        """Return whether a loop is short and does not step through rows.

        Unrolled, each row costs its own address arithmetic.
        """
        if trip > UNROLL or trip * self.unrolled(s.body) > 40 * UNROLL:
            return False
        for n in walk(s.body):
            if isinstance(n, ir.Load | ir.Store | ir.Atomic):
                # a view that is not registered yet is a table of the body's own
                for e, stride in zip(n.indices, self.views.strides.get(n.view, ["1"]), strict=True):
                    if stride != "1" and any(isinstance(x, ir.Name) and x.name == s.name for x in walk([e])):
                        return False
        return True

    def unrolled(self, body: list[ir.Stmt]) -> int:
        """Count the nodes of a body, with those of its own loops as often as they are written out."""
        count, within = 0, set()
        for n in walk(body):
            count += 1
            trip = const_trip(n.start, n.stop, n.step) if isinstance(n, ir.For) and id(n) not in within else None
            if trip is not None:
                inner = list(walk(n.body))
                within |= {id(m) for m in inner}
                if self.worth_unrolling(n, trip):
                    count += trip * self.unrolled(n.body) - len(inner)
        return count

    def do_While(self, s: ir.While, ctx: LaneContext) -> None:
        """Emit a loop while a condition holds."""
        if ctx.kinds is not None and ctx.kinds.is_masked(s):
            self.out("{")
            self.masked_loop(s.body, ctx, "true", lambda inner: self.vec(s.cond, inner), "")
            return
        self.out(f"while ({self.scalar(s.cond, ctx)}) {{")
        self.block(s.body, replace(ctx, loop=None))
        self.out("}")

    def masked_loop(self, body, ctx: LaneContext, uniform: str, varying: Callable | None, step: str) -> None:
        """Emit a loop that runs while a lane is left, and close the brace that the caller opened.

        `uniform` is the scalar test, `varying` makes the text of the lanes' own test in a given context.
        """
        live, turn = self.name("m"), self.name("m")
        self.out(f"pk_vm {live} = pk_masked<pk_vm>({ctx.mask});")
        self.out("for (;;) {")
        if varying is not None:
            self.out(f"{live} = pk_and({live}, {varying(ctx.under(live))});")
        self.out(f"if (!({uniform}) || !pk_any({live})) break;")
        self.out(f"pk_vm {turn} = {live};")
        first = len(ctx.masks)
        self.block(body, replace(ctx.under(live).under(turn), loop=(first, first + 1)))
        self.out(f"{step} }} }}")

    def leave(self, ctx: LaneContext, first: int) -> None:
        """Emit code that clears the active lanes from the masks numbered `first` and on."""
        self.out(f"{{ const pk_vm pk_gone = {ctx.mask};")
        for m in ctx.masks[first:]:
            self.out(f"{m} = pk_and({m}, pk_not(pk_gone));")
        self.out("}")

    def do_Break(self, s: ir.Break, ctx: LaneContext) -> None:
        """Emit a jump out of the loop, or clear lanes from its mask."""
        if ctx.loop is None:
            self.out("break;")
        else:
            self.leave(ctx, ctx.loop[0])

    def do_Continue(self, s: ir.Continue, ctx: LaneContext) -> None:
        """Emit a jump to the next turn, or clear lanes from the turn's mask."""
        if ctx.loop is None:
            self.out("continue;")
        else:
            self.leave(ctx, ctx.loop[1])

    def do_Return(self, s: ir.Return, ctx: LaneContext) -> None:
        """Emit the return of a function's value, or from the body."""
        if ctx.in_function:
            self.out(f"return {self.vec(s.value, ctx)};")
        elif ctx.masked_return:
            self.leave(ctx, ctx.returns)
        else:
            self.out("return;")

    def do_Barrier(self, s: ir.Barrier, ctx: LaneContext) -> None:
        """Emit nothing: a team is one thread here."""

    # Levels -----------------------------------------------------------------------------------------------------------
    def do_Single(self, s: ir.Single, ctx: LaneContext) -> None:
        """Emit the body, which runs once: a team is one thread here."""
        self.out("[&]() PK_LAMBDA {")
        inner = replace(ctx, loop=None, masked_return=False)
        if ctx.kinds is not None and ctx.kinds.is_masked(s):
            mask = self.name("m")
            self.out(f"pk_vm {mask} = pk_masked<pk_vm>({ctx.mask});")
            inner = replace(inner.under(mask), masked_return=True, returns=len(ctx.masks))
        self.block(s.body, inner)
        self.out("}();")

    def do_Range(self, s: ir.Range, ctx: LaneContext) -> None:
        """Emit a nested range."""
        begin, end = self.scalar(s.begin, ctx), self.scalar(s.end, ctx)
        if is_lane_range(s) and s.kind != "scan":
            self.lane_range(s, begin, end)
        elif is_lane_range(s) and is_compaction(s) and not self.checked:
            self.compaction(s, begin, end)
        else:
            self.serial_range(s, begin, end)

    def serial_range(self, s: ir.Range, begin: str, end: str) -> None:
        """Emit a team range around vector ranges, or a scan, one iteration after another."""
        if s.kind != "for":
            self.out(f"{CTYPES[s.acc_type]} {s.result} = 0;")
        body = self.name("body")
        acc = f", {CTYPES[s.acc_type]}& {s.acc}" if s.acc else ""
        self.out(f"{{ auto {body} = [&](const int32_t {s.index}{acc}) PK_LAMBDA {{")
        if s.last:
            self.out(f"constexpr bool {s.last} = true;")
        self.block(s.body, LaneContext())
        call = f"{body}({'pk_i' if not s.acc else f'pk_i, {s.result}'});"
        self.out(f"}}; for (int32_t pk_i = {begin}, pk_e = {end}; pk_i < pk_e; pk_i++) {call} }}")

    def lane_range(self, s: ir.Range, begin: str, end: str) -> None:
        """Emit iterations as lanes: whole groups without a mask, the rest masked or in narrower groups."""
        body = self.name("body")
        trip = const_trip(s.begin, s.end)
        self.out("" if s.kind == "for" else f"{CTYPES[s.acc_type]} {s.result};")
        self.out("{")
        row = self.lane_body(body, s.body, s.index, s.acc, fixed=trip is not None and s.kind == "for")
        if s.kind == "for":
            run = "pk_for" if trip is None else f"pk_for_row<{trip}>" if row else f"pk_for_n<{trip}, PK_W>"
            self.out(f"{run}({begin}, {body if trip is not None else f'{end}, {body}'}); }}")
            return
        kind = CTYPES[s.acc_type]
        carrier = "pk_lane" if s.acc_type in ir.INTEGERS else kind
        run = f"pk_reduce<{carrier}>({begin}, {end}, {body})"
        run = run if trip is None else f"pk_reduce_n<{carrier}, {trip}, PK_W>({begin}, {body})"
        self.out(f"{s.result} = ({kind}){run}; }}")

    def compaction(self, s: ir.Range, begin: str, end: str) -> None:
        """Emit iterations as lanes; all lanes share one total, which grows by the number of lanes to keep."""
        body = self.name("body")
        self.out(f"{CTYPES[s.acc_type]} {s.result} = 0;")
        self.out(f"{{ {CTYPES[s.acc_type]}& {s.acc} = {s.result}; constexpr bool {s.last} = true;")
        self.lane_body(body, s.body, s.index, None, kept=s.acc)
        self.out(f"pk_for({begin}, {end}, {body}); }}")

    def lane_body(
        self, body: str, stmts: tuple[ir.Stmt, ...], index: str, acc: str | None, kept: str | None = None,
        fixed: bool = False,
    ) -> bool:  # fmt: skip
        """Emit the generic lambda that runs one group of lanes; return whether the group is a row (of fixed length)."""
        kinds = lane_kinds(stmts, index)
        tail = f", auto& {acc}" if acc else ""
        self.out(f"auto {body} = [&](auto pk_tag, const int32_t {index}, const auto pk_given{tail}) PK_LAMBDA {{")
        ctx = LaneContext(kinds=kinds, mask="pk_given", masks=(), acc_scalar=False, kept=kept)
        row = fixed and not self.checked and is_row(stmts, kinds, partial(self.step, ctx=ctx))
        self.out((ROW_TYPES if row else LANE_TYPES).format(lanes="decltype(pk_tag)::value"))
        ctx = replace(ctx, row=row)
        if kinds.masked_return:
            self.out("pk_vm pk_m0 = pk_masked<pk_vm>(pk_given);")
            ctx = replace(ctx, mask="pk_m0", masks=("pk_m0",), masked_return=True)
        self.block(stmts, ctx)
        self.out("};")
        return row


def _costly(body: tuple[ir.Stmt, ...]) -> bool:
    """Return whether a masked branch needs a test for active lanes, because it is long or may fault."""
    nodes = list(walk(body))
    exits = ir.Break | ir.Continue | ir.Return
    costly = ir.Load | ir.Store | ir.Atomic | ir.For | ir.While | ir.FunctionCall | ir.Math | exits
    division = any(isinstance(n, ir.Binary) and n.op in ("//", "%") for n in nodes)
    return division or len(nodes) > 8 or any(isinstance(n, costly) for n in nodes)


def _exits(body: tuple[ir.Stmt, ...], in_loop: bool = False) -> bool:
    """Return whether lanes may leave `body` before its end; breaks of loops within `body` do not count."""
    for s in body:
        match s:
            case ir.Return():
                return True
            case ir.Break() | ir.Continue():
                if not in_loop:
                    return True
            case ir.If():
                if _exits(s.then, in_loop) or _exits(s.orelse, in_loop):
                    return True
            case ir.For() | ir.While():
                if _exits(s.body, in_loop=True):
                    return True
    return False
