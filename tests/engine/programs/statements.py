"""Generator of the statements, functions and parameters of valid L0 programs."""

import numpy as np

from tests.engine.programs.expressions import (
    NAMES,
    READ,
    REALS,
    STEP,
    STORED,
    Context,
    Counter,
    E,
    Expressions,
    Region,
    Var,
)
from tests.engine.programs.program import TYPES, indent, parameter


class Statements(Expressions):
    """Generator of blocks of plain statements, functions, and parameters with their arguments."""

    def __init__(self, draw, real: str, libm: bool) -> None:
        super().__init__(draw, real, libm)
        self.rng = np.random.default_rng(self.number(0, 999))
        self.params: list[str] = []
        self.args: dict[str, object] = {}
        self.written: list[str] = []

    def block(self, ctx: Context, most: int = 4) -> list[str]:
        """Return up to `most` statements, and add their declarations to `ctx`."""
        lines: list[str] = []
        for _ in range(self.number(1, most)):
            if self.budget <= 0:
                break
            self.budget -= 1
            lines += self.statement(ctx)
            if ctx.digest and self.number(0, 3):
                lines += self.mix(ctx)
        return lines or ["pass"]

    def digested(self, ctx: Context, most: int) -> list[str]:
        """Return a block at the top of a body; its locals change a value that the body stores, adds or returns."""
        ctx.digest = self.fresh("mixed")
        lines = [f"{ctx.digest}: int = {self.number(0, 9)}", *self.block(ctx, most)]
        targets = [r for r in ctx.targets if r.type != "uint8"]
        if ctx.acc:
            lines.append(f"{ctx.acc[0]} += {self.digest_as(ctx, ctx.acc[1])}")
        elif targets:
            r = self.pick(targets)
            self.writes.add(r.view)
            lines.append(f"{self.element(ctx, r)} += {self.digest_as(ctx, r.type)}")
        ctx.digest = None
        return lines

    def digest_as(self, ctx: Context, kind: str) -> str:
        return f"pk.{kind}({ctx.digest}) * 0.25" if kind in REALS else ctx.digest

    def mix(self, ctx: Context) -> list[str]:
        """Add the value of a local, most often the last one, to the digest; a value of libm goes to an output."""
        rough = [v for v in ctx.vars if not v.exact]
        if rough and self.number(0, 2):
            v = rough[-1]
            e = self.clip(E(v.name, v.type, v.lo, v.hi, exact=False), 31.0)
            places = [r for r in ctx.targets if r.type == v.type]
            if places:
                r = self.pick(places)
                self.writes.add(r.view)
                return [f"{self.element(ctx, r)} += {e.text}"]
        names = [v for v in ctx.vars if v.exact and v.name.isidentifier()]
        if not names:
            return []
        v, h = names[-1] if self.number(0, 2) else self.pick(names), ctx.digest
        if v.type == "bool":
            return [f"if {v.name}:", f"    {h} = {h} % 100 + {self.number(1, 99)}"]
        if v.type == "int64":
            return [f"if {v.name} > {self.number(0, 9)}:", f"    {h} = {h} % 100 + {self.number(1, 99)}"]
        if v.type == "int32":
            term = self.fit(E(v.name, v.type, v.lo, v.hi, minus=v.lo < 0), 0, STEP - 1).text
        else:
            term = f"int({self.clip(E(v.name, v.type, v.lo, v.hi), 31.0).text} + 32.0)"
        return [f"{h} = ({h} * 3 + {term}) % 199"]

    def statement(self, ctx: Context) -> list[str]:
        kinds = ["declare", "declare", "table", "flag"]
        kinds += ["assign", "assign"] if any(v.mutable for v in ctx.vars) else []
        kinds += ["store"] * 5 if ctx.targets else []
        kinds += ["atomic", "atomic"] if ctx.counters or ctx.targets else []
        kinds += ["accumulate"] * 4 if ctx.acc else []
        kinds += ["if_", "if_"] * (1 + ctx.breakable) if ctx.depth > 0 else []
        kinds += ["for_", "while_"] if ctx.depth > 0 and ctx.loops < 2 else []
        return getattr(self, self.pick(kinds))(ctx)

    def declare(self, ctx: Context, kind: str | None = None) -> list[str]:
        kind = kind or self.pick(["int32", "int32", "int64", self.real, self.real, self.other])
        name, mutable = self.fresh("r" if kind in REALS else "n"), bool(self.number(0, 1))
        if kind in REALS:
            exact = not self.libm or self.number(0, 1) == 1
            e = self.real_(ctx, kind, exact=exact)
            e = self.clip(e, STORED) if mutable else e
            v = Var(name, kind, -READ if mutable else e.lo, READ if mutable else e.hi, mutable, exact and e.exact)
        else:
            e = self.integer(ctx, kind=kind)
            e = self.fit(e, -STORED, STORED) if mutable else e
            v = Var(name, kind, -READ if mutable else e.lo, READ if mutable else e.hi, mutable)
        ctx.vars.append(v)
        note = self.pick(["int", "pk.int32"]) if kind == "int32" else NAMES[kind]
        return [f"{name}: {note} = {e.text}"]

    def flag(self, ctx: Context) -> list[str]:
        name, text = self.fresh("ok"), self.condition(ctx)
        ctx.vars.append(Var(name, "bool", 0, 1, bool(self.number(0, 1))))
        return [f"{name}: bool = {text}"]

    def table(self, ctx: Context) -> list[str]:
        kind, name, size = self.pick(["int32", self.real]), self.fresh("table"), self.number(1, 4)
        v = [self.number(-8, 8) for _ in range(size)]
        ctx.readable = [*ctx.readable, Region(name, kind, (("{}", size),), -8, 8)]
        return [f"{name}: List[{NAMES[kind]}] = {[x / 4 for x in v] if kind in REALS else v}"]

    def update(self, ctx: Context, kind: str, exact: bool) -> str:
        """Return ``op value`` for a local or element that stays within READ."""
        op = self.pick(["=", "=", "+=", "-=", "*="])
        bound = {"=": STORED, "*=": 1}.get(op, STEP)
        if kind in REALS:
            if op == "*=":
                return self.pick(["*= 0.5", "/= 2.0", "*= -1.0"])
            return f"{op} {self.clip(self.real_(ctx, kind, exact=exact), bound).text}"
        return f"{op} {self.fit(self.integer(ctx, kind=kind), -bound, bound).text}"

    def assign(self, ctx: Context) -> list[str]:
        v = self.pick([v for v in ctx.vars if v.mutable])
        if v.type == "bool":
            return [f"{v.name} = {self.condition(ctx)}"]
        return [f"{v.name} {self.update(ctx, v.type, v.exact)}"]

    def store(self, ctx: Context) -> list[str]:
        r = self.pick(ctx.targets)
        self.writes.add(r.view)
        if r.type == "uint8":
            return [f"{self.element(ctx, r)} = {self.fit(self.integer(ctx), 0, 255).text}"]
        return [f"{self.element(ctx, r)} {self.update(ctx, r.type, r.exact)}"]

    def atomic(self, ctx: Context) -> list[str]:
        own = [r for r in ctx.targets if r.type in ("int32", "int64")]
        if own and (not ctx.counters or self.number(0, 1)):
            # no other operation on its element: the value before is determined
            r, name, op = self.pick(own), self.fresh("n"), self.pick(["add", "sub", "max", "min"])
            place = ", ".join(self.places(ctx, r))
            value = self.small(ctx, r.type)
            self.writes.add(r.view)
            ctx.vars.append(Var(name, r.type, -READ, READ))
            return [f"{name}: {NAMES[r.type]} = pk.atomic_fetch_{op}({r.view}, [{place}], {value})"]
        if not ctx.counters:
            return ["pass"]
        c = self.pick(ctx.counters)
        op = self.pick(c.ops)
        place = ", ".join(self.index(ctx, n) for n in c.shape)
        self.writes.add(c.view)
        plain = op == "add" and self.number(0, 1)
        # the value before depends on the order: its name is not used
        start = "pk.atomic_add" if plain else f"{self.fresh('n')}: {NAMES[c.type]} = pk.atomic_fetch_{op}"
        return [f"{start}({c.view}, [{place}], {self.small(ctx, c.type)})"]

    def accumulate(self, ctx: Context) -> list[str]:
        name, kind = ctx.acc
        return [f"{name} += {self.small(ctx, kind)}"]

    def if_(self, ctx: Context) -> list[str]:
        lines = []
        for k in range(self.number(1, 3)):
            inner = ctx.child(depth=ctx.depth - 1)
            last = k > 0 and self.number(0, 1)
            lines += ["else:" if last else f"{'elif' if k else 'if'} {self.condition(ctx)}:"]
            body = self.block(inner, 3)
            ways = (["break", "continue"] if ctx.breakable else []) + (["return"] if ctx.returnable else [])
            if ways and self.number(0, 2) == 0:
                body.append(self.pick(ways))
            lines += indent(body)
            if last:
                break
        return lines

    def for_(self, ctx: Context) -> list[str]:
        before, name = [], f"j{ctx.loops}"
        how = self.number(0, 4)
        bound = self.name(ctx, ("int32",), lo=0, hi=4, fixed=True) if how == 0 else None
        if how == 1:
            e = self.fit(self.integer(ctx), 0, 4)
            bound = E(self.fresh("n"), "int32", 0, 4)
            ctx.vars.append(Var(bound.text, "int32", 0, 4))
            before = [f"{bound.text}: int = {e.text}"]
        k = self.number(0, 4)
        bound = bound or E(str(k), "int32", k, k)
        first, step = self.number(0, 3), self.number(1, 2)
        spans = ["{b}", "{first}, {b}", "{first}, {b}, {step}", "{b}, -1, -{step}"]
        span = self.pick(spans).format(b=bound.text, first=first, step=step)
        inner = ctx.child(depth=ctx.depth - 1, loops=ctx.loops + 1, breakable=True)
        inner.vars.append(Var(name, "int32", 0, 4))
        return [*before, f"for {name} in range({span}):", *indent(self.block(inner, 3))]

    def while_(self, ctx: Context) -> list[str]:
        name, most = self.fresh("n"), self.number(0, 4)
        ctx.vars.append(Var(name, "int32", 0, 4))
        test = f"{name} < {most}" + (f" and {self.condition(ctx, 0)}" if self.number(0, 1) else "")
        # counted first: a continue below cannot skip the count
        inner = ctx.child(depth=ctx.depth - 1, loops=ctx.loops + 1, breakable=True)
        body = [f"{name} += 1", *self.block(inner, 3)]
        return [f"{name}: int = 0", f"while {test}:", *indent(body)]

    def function(self) -> list[str]:
        """Draw a function of scalars that later code may call; return its lines."""
        name, kind = self.fresh("fun"), self.pick(["int32", self.real])
        params = []
        for _ in range(self.number(1, 3)):
            t = self.pick(["int32", self.real, "bool"])
            lo, hi = {"int32": (0, 31), "bool": (0, 1)}.get(t, (-1024.0, 1024.0))
            params.append(Var(self.fresh("p"), t, lo, hi))
        ctx = Context(vars=list(params), depth=2)
        body = self.digested(ctx, 3)
        digest = body[0].partition(":")[0]
        if kind == "int32":
            e = self.integer(ctx)
            result = self.fit(E(f"{e.text} + {digest}", kind, e.lo, e.hi + 199, minus=True), -999, 999)
        else:
            e = self.real_(ctx, kind, exact=True, bare=False)
            result = self.clip(E(f"{e.text} + pk.{kind}({digest}) * 0.25", kind, e.lo - 50, e.hi + 50), 1024)
        self.functions.append((name, params, E("", kind, result.lo, result.hi)))
        head = ", ".join(f"{p.name}: {NAMES[p.type]}" for p in params)
        body.append(f"return {result.text}")
        return ["@pk.function", f"def {name}({head}) -> {NAMES[kind]}:", *indent(body), ""]

    def stored(self, ctx, r) -> str:
        """Return a value for an element of `r`."""
        if r.type in REALS:
            return self.clip(self.real_(ctx, r.type), READ).text
        low, high = (0, 255) if r.type == "uint8" else (-READ, READ)
        return self.fit(self.integer(ctx, kind="int64" if r.type == "int64" else "int32"), low, high).text

    def scan_body(self, ctx, outputs: list, kind: str, acc: str, last: str) -> list[str]:
        """Return the lines of a scan that sums before or after its own term, and stores only under ``if last:``."""
        body = self.block(ctx, 3)
        same = [r for r in outputs if r.type == kind]
        publish = []
        for r in outputs:
            self.writes.add(r.view)
            value = acc if r in same else self.stored(ctx, r)
            publish.append(f"{self.element(ctx, r)} = {value}")
        parts = [[f"if {last}:", *indent(publish)], [f"{acc} += {self.small(ctx, kind)}"]]
        first, second = parts if self.number(0, 1) else parts[::-1]
        return [*body, *first, *second]

    def functions_(self) -> list[str]:
        return [line for _ in range(self.number(0, 2)) for line in self.function()]

    # Parameters ------------------------------------------------------------------------------------------------------
    def array(self, kind: str, shape: tuple[int, ...]) -> str:
        """Add a view parameter with random elements, in C or Fortran order; return its name."""
        if kind in REALS:
            data = self.rng.integers(-16, 17, shape) / 4
        else:
            data = self.rng.integers(0 if kind == "uint8" else -9, 10, shape)
        name = self.fresh("v")
        self.args[name] = np.array(data, TYPES[kind], order=self.pick("CF"))
        self.params.append(parameter(name, self.args[name]))
        return name

    def inputs(self, ctx) -> None:
        """Add read-only views and scalars."""
        for _ in range(self.number(1, 4)):
            kind = self.pick([self.real, self.real, self.other, "int32", "int32", "int64", "uint8"])
            shape = tuple(self.number(1, 5) for _ in range(self.number(1, 3)))
            name = self.array(kind, shape)
            lo = 0 if kind == "uint8" else -9
            ctx.readable.append(Region(name, kind, tuple(("{}", n) for n in shape), lo, 9))
            if self.number(0, 2) == 0:
                ctx.vars.append(Var(f"{name}.extent(0)", "int32", shape[0], shape[0]))
        for _ in range(self.number(0, 3)):
            kind = self.pick(["int32", "int32", "int64", self.real, "bool"])
            name, value = self.fresh("a"), self.number(0, 4)
            self.args[name] = {"bool": value > 2}.get(kind, value / 4 if kind in REALS else value)
            self.params.append(f"{name}: {NAMES[kind]}")
            ctx.vars.append(Var(name, kind, -4 if kind in REALS else 0, 4))

    def output(self, kind: str, shape: tuple[int, ...], parts: tuple[tuple[str, int], ...]) -> Region:
        """Add a written view; return the part of the view that an iteration owns."""
        name = self.array(kind, shape)
        self.written.append(name)
        limits = (0, 255) if kind == "uint8" else (-READ, READ)
        return Region(name, kind, parts, *limits, exact=not self.libm or kind not in REALS)

    def counters(self) -> list[Counter]:
        counters = []
        for _ in range(self.number(0, 2)):
            kind = self.pick(["int32", "int64", self.real])
            ops = ("add",) if kind in REALS else self.pick([("add", "sub"), ("max",), ("min",)])
            shape = tuple(self.number(1, 4) for _ in range(self.number(1, 2)))
            name = self.array(kind, shape)
            self.written.append(name)
            counters.append(Counter(name, kind, shape, ops))
        return counters
