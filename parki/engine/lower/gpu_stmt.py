"""Expressions and statements of the GPU text: scalar code of one thread, for CUDA, HIP and the simulator.

Views and scratch are objects with ``get`` and ``set`` (`pk_gpu.h`): bare pointers on a device, checked ones in the
simulator.  Every access names its site, which the report of a fault gives.
"""

from collections.abc import Iterable

from parki.engine.errors import Loc
from parki.engine.lower.common import CTYPES, Emitter, extent, literal, strides
from parki.engine.tree import ir
from parki.engine.tree.walk import children, is_lane_range, walk


class GpuStmt(Emitter):
    """Emitter of the body of a kernel, for each thread."""

    def __init__(self) -> None:
        super().__init__()
        self.types: dict[str, str] = {}  # element type by view
        self.strides: dict[str, list[str]] = {}  # stride text by view
        self.tables: dict[str, str] = {}  # constant tables by their names in the kernel
        self.constants: list[str] = []  # definitions of the tables, at file scope
        self.sites: list[tuple[str, Loc]] = []
        self.used_extents: set[tuple[str, int]] = set()
        self.written: set[str] = set()  # views and scratch that the kernel may change

    def view(self, name: str, kind: str, rank: int, layout: str) -> None:
        """Register a view."""
        self.types[name], self.strides[name] = kind, strides(name, rank, layout)

    def site(self, what: str, loc: Loc) -> int:
        """Return the number of a place, counted from 1."""
        if (what, loc) not in self.sites:
            self.sites.append((what, loc))
        return self.sites.index((what, loc)) + 1

    def block(self, body: tuple[ir.Stmt, ...]) -> None:
        """Emit statements in order."""
        for s in body:
            self.place(s)
            getattr(self, "do_" + type(s).__name__)(s)

    # Expressions ------------------------------------------------------------------------------------------------------
    def expr(self, e: ir.Expr) -> str:
        """Return the text of a value."""
        match e:
            case ir.Const():
                return literal(e.value, e.type)
            case ir.Name():
                return e.name
            case ir.Unary():
                return f"({'!' if e.op == 'not' else e.op}{self.expr(e.arg)})"
            case ir.Binary():
                return f"({self.expr(e.left)} {'/' if e.op == '//' else e.op} {self.expr(e.right)})"
            case ir.Compare():
                return f"({self.expr(e.left)} {e.op} {self.expr(e.right)})"
            case ir.Bool():
                return "(" + (" && " if e.op == "and" else " || ").join(map(self.expr, e.args)) + ")"
            case ir.FunctionCall():
                return f"pk_fn_{e.name}({', '.join(map(self.expr, e.args))})"
            case ir.Math():
                return f"pk_{e.name}({', '.join(map(self.expr, e.args))})"
            case ir.Cast():
                return f"(({CTYPES[e.type]}){self.expr(e.arg)})"
            case ir.Extent():
                self.used_extents.add((e.view, e.dim))
                return extent(e.view, e.dim)
            case ir.LeagueRank():
                return "(pk_a.pk_first + PK_BLOCK_RANK)"
            case ir.Load():
                if e.view in self.tables:
                    return f"{self.tables[e.view]}[{self.expr(e.indices[0])}]"
                return f"{e.view}.get({self.offset(e.view, e.indices)}, {self.site(e.view, e.loc)})"
        raise AssertionError(e)

    def offset(self, view: str, indices: tuple[ir.Expr, ...]) -> str:
        """Return the offset of an element, as narrow as the views allow (``pk_index``)."""
        parts = []
        for e, stride in zip(indices, self.strides[view], strict=True):
            if isinstance(e, ir.Const) and e.value == 0:
                continue
            i = f"(pk_index){self.expr(e)}"
            parts.append(i if stride == "1" else f"{i} * {stride}")
        return " + ".join(parts) or "0"

    # Locals and memory ------------------------------------------------------------------------------------------------
    def do_Declare(self, s: ir.Declare) -> None:
        """Emit a local."""
        self.out(f"{CTYPES[s.type]} {s.name} = {self.expr(s.value)};")

    def do_Assign(self, s: ir.Assign) -> None:
        """Emit an assignment."""
        self.out(f"{s.name} {s.op} {self.expr(s.value)};")

    def do_Table(self, s: ir.Table) -> None:
        """Emit a constant array, defined at file scope."""
        name = self.name(f"table_{s.name}_")
        self.tables[s.name] = name
        values = ", ".join(literal(v, s.type) for v in s.values)
        self.constants.append(f"PK_CONSTANT const {CTYPES[s.type]} {name}[] = {{{values}}};")

    def do_Scratch(self, s: ir.Scratch) -> None:
        """Emit the next piece of the team's scratch."""
        self.types[s.name], self.strides[s.name] = s.type, ["1"]
        self.written.add(s.name)
        self.out(f"PK_SCRATCH({CTYPES[s.type]}, {s.name}, {self.expr(s.size)}, {self.site(s.name, s.loc)});")

    def do_Store(self, s: ir.Store) -> None:
        """Emit a store of one element."""
        kind, site, value = CTYPES[self.types[s.view]], self.site(s.view, s.loc), self.expr(s.value)
        where = self.offset(s.view, s.indices)
        if s.op == "=":
            self.out(f"{s.view}.set({where}, ({kind}){value}, {site});")
            return
        at = self.name("i")
        new = f"{s.view}.get({at}, {site}) {s.op[0]} ({value})"
        self.out(f"{{ const pk_index {at} = {where}; {s.view}.set({at}, ({kind})({new}), {site}); }}")

    def do_Atomic(self, s: ir.Atomic) -> None:
        """Emit one atomic update."""
        kind = CTYPES[self.types[s.view]]
        where, site = self.offset(s.view, s.indices), self.site(s.view, s.loc)
        text = f"pk_atomic<pk_op_{s.op}>({s.view}, {where}, ({kind}){self.expr(s.value)}, {site})"
        self.out(f"{text};" if s.result is None else f"const {kind} {s.result} = {text};")

    def do_Accumulate(self, s: ir.Accumulate) -> None:
        """Emit a term of this thread's sum."""
        self.out(f"{s.name} += {self.expr(s.value)};")

    # Control ----------------------------------------------------------------------------------------------------------
    def do_If(self, s: ir.If) -> None:
        """Emit a branch."""
        self.out(f"if ({self.expr(s.cond)}) {{")
        self.block(s.then)
        if s.orelse:
            self.out("} else {")
            self.block(s.orelse)
        self.out("}")

    def do_For(self, s: ir.For) -> None:
        """Emit a counted loop; its end is computed once."""
        end, compare = self.name("e"), "<" if s.step > 0 else ">"
        head = f"int32_t {s.name} = {self.expr(s.start)}, {end} = {self.expr(s.stop)}"
        self.out(f"for ({head}; {s.name} {compare} {end}; {s.name} += {s.step}) {{")
        self.block(s.body)
        self.out("}")

    def do_While(self, s: ir.While) -> None:
        """Emit a loop while a condition holds."""
        self.out(f"while ({self.expr(s.cond)}) {{")
        self.block(s.body)
        self.out("}")

    def do_Break(self, s: ir.Break) -> None:
        """Emit a jump out of the loop."""
        self.out("break;")

    def do_Continue(self, s: ir.Continue) -> None:
        """Emit a jump to the next turn."""
        self.out("continue;")

    def do_Return(self, s: ir.Return) -> None:
        """Emit the return of a function's value, or from the body."""
        self.out("return;" if s.value is None else f"return {self.expr(s.value)};")

    def do_Barrier(self, s: ir.Barrier) -> None:
        """Emit a barrier for all threads of the team."""
        self.out(f"PK_BARRIER({self.site('the barrier', s.loc)});")

    # Levels -----------------------------------------------------------------------------------------------------------
    def do_Single(self, s: ir.Single) -> None:
        """Emit a body that runs once: by the team's first thread, or by the first lane of a row."""
        if s.level == "thread":
            self.in_step(s)
        first = "PK_THREAD" if s.level == "team" else "PK_LANE"
        self.out(f"if ({first} == 0) {{" if not self.alone or s.level == "team" else "{")
        self.returning(s.body, "", "")
        self.out("}")
        if s.level == "thread" and not self.alone:
            self.out(f"PK_ROW_SYNC({self.site('pk.single', s.loc)});")

    alone = False  # whether one thread runs the current code, not all lanes of a row
    reads = False  # whether all lanes of a row read values here that some lanes write

    def in_step(self, s: ir.Range | ir.Single) -> None:
        """Emit a wait of the row, so that all its lanes have read before any lane writes."""
        if self.reads and not self.alone and any(isinstance(n, ir.Store | ir.Atomic) for n in walk(s.body)):
            self.out(f"PK_ROW_SYNC({self.site('the row', s.loc)});")

    def do_Range(self, s: ir.Range) -> None:
        """Emit a nested range: lanes take iterations `count` apart; all that take part wait where a sum is made."""
        if s.kind == "scan":
            self.scan(s)
            return
        own = self.whose(s)
        if s.level == "vector":
            self.in_step(s)
        if s.kind == "for":
            self.strided(s, own)
            if s.level == "vector":
                self.out(f"PK_ROW_SYNC({self.site('the vector range', s.loc)});")
            return
        kind, site = CTYPES[s.acc_type], self.site("the reduction", s.loc)
        self.out(f"{kind} {s.result}; {{ {kind} {s.acc} = 0;")
        self.strided(s, own)
        if s.level == "vector":
            self.out(f"{s.result} = pk_row_sum({s.acc}, {site}); }}")
        else:  # every lane of a row has the row's own sum: it counts once
            mine = s.acc if is_lane_range(s) else f"(PK_LANE == 0 ? {s.acc} : ({kind})0)"
            self.out(f"{s.result} = pk_team_sum({mine}, {site}); }}")

    @staticmethod
    def whose(s: ir.Range) -> tuple[str, str]:
        """Return texts for this thread's number among the range's executors, and for their count."""
        if s.level == "vector":
            return "PK_LANE", "PK_LANES"
        return ("PK_THREAD", "PK_THREADS") if is_lane_range(s) else ("PK_TEAM_RANK", "PK_TEAM_SIZE")

    def strided(self, s: ir.Range, own: tuple[str, str]) -> None:
        """Emit one executor's share of a range, one iteration after another."""
        rank, count = own
        i, end = self.name("i"), self.name("e")
        begin = f"int32_t {i} = {self.expr(s.begin)} + {rank}, {end} = {self.expr(s.end)}"
        self.out(f"for ({begin}; {i} < {end}; {i} += {count}) {{")
        outer = self.alone, self.reads
        if s.level == "team":
            self.alone = is_lane_range(s)
            self.reads = not self.alone and self.thread_level_reads(s.body)
        self.returning(s.body, f"const int32_t {s.index}", i)
        self.alone, self.reads = outer
        self.out("}")

    def thread_level_reads(self, nodes: Iterable[ir.Expr | ir.Stmt]) -> bool:
        """Return whether code of a whole row loads from views or scratch that the kernel writes."""
        for n in nodes:
            if isinstance(n, ir.Load) and n.view in self.written:
                return True
            if not isinstance(n, ir.Range | ir.Single) and self.thread_level_reads(children(n)):
                return True
        return False

    def returning(self, body: tuple[ir.Stmt, ...], parameter: str, argument: str) -> None:
        """Emit a body; a body that may return becomes a function of its own."""
        if any(isinstance(n, ir.Return) for n in walk(body)):
            self.out(f"[&]({parameter}) {{")
            self.block(body)
            self.out(f"}}({argument});")
            return
        if parameter:
            self.out(f"[[maybe_unused]] {parameter} = {argument};")
        self.block(body)

    def scan(self, s: ir.Range) -> None:
        """Emit a scan by the team: first each thread's term, then the effects, with the sum before the thread."""
        kind, site = CTYPES[s.acc_type], self.site("the scan", s.loc)
        j, end, carry, total = (self.name(stem) for stem in ("j", "e", "carry", "total"))
        self.out(f"{kind} {s.result}; {{ {kind} {carry} = 0; const int32_t {end} = {self.expr(s.end)};")
        self.out(f"for (int32_t {j} = {self.expr(s.begin)}; {j} < {end}; {j} += PK_THREADS) {{")
        body = self.scan_body(s.index, s.acc, s.last, kind, s.body)
        self.out(f"const int32_t pk_at = {j} + PK_THREAD; {kind} pk_mine = 0, {total};")
        self.out(f"if (pk_at < {end}) {body}(pk_at, pk_mine, false);")
        self.out(f"{kind} pk_before = {carry} + pk_team_scan(pk_mine, {total}, {site});")
        self.out(f"if (pk_at < {end}) {body}(pk_at, pk_before, true);")
        self.out(f"{carry} += {total}; }} {s.result} = {carry}; }}")

    def scan_body(self, index: str, acc: str, last: str, kind: str, stmts: tuple[ir.Stmt, ...]) -> str:
        """Emit a lambda that runs one iteration of a scan, and return its name."""
        body = self.name("body")
        parameters = f"[[maybe_unused]] const int32_t {index}, {kind}& {acc}, [[maybe_unused]] const bool {last}"
        self.out(f"auto {body} = [&]({parameters}) {{")
        self.block(stmts)
        self.out("};")
        return body
