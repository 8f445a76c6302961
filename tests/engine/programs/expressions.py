"""Generator of the expressions of valid L0 programs, each with the interval of its values.

Each integer expression carries the interval that contains its value, so that indices stay in bounds, nothing
overflows and ``// % >>`` see no negative operand, in masked lanes as well.  Each real expression carries a bound of
its magnitude.  Terms of sums whose order is free (reductions, scans, atomics) are small multiples of 1/4: such sums
are exact in any order.
"""

import random
from dataclasses import dataclass, field, replace

NAMES = {"int32": "int", "int64": "pk.int64", "double": "pk.double", "float": "pk.float", "bool": "bool"}
LIMIT = {"int32": 2**31 - 1, "int64": 2**62}
REALS = ("double", "float")
STORED = 2**20  # largest magnitude that `=` gives to a local or an element that is read back
READ = 2**21  # largest magnitude that may be read from such a local or element: `+=` adds at most STEP a time
STEP = 64
CORRECT = ["sqrt", "fabs", "floor", "ceil"]  # functions that are correctly rounded: the same bits on every machine
LIBM = ["exp", "expm1", "log", "sin", "cos", "tanh", "erf", "erfc", "rsqrt"]


@dataclass(frozen=True)
class E:
    """Expression with text, type and interval; `exact`: the same bits everywhere; `bare`: literals only.

    `minus` marks differences, negations and ``~``, which the checks suspect to be negative.
    """

    text: str
    type: str
    lo: float
    hi: float
    exact: bool = True
    bare: bool = False
    minus: bool = False


@dataclass(frozen=True)
class Var:
    """Visible scalar: a name, or text that stands for a name (``v.extent(0)``)."""

    name: str
    type: str
    lo: float
    hi: float
    mutable: bool = False
    exact: bool = True


@dataclass(frozen=True)
class Region:
    """Part of a view that a statement may access: per dimension a text, and the extent of its ``{}`` (0: none)."""

    view: str
    type: str
    parts: tuple[tuple[str, int], ...]
    lo: float
    hi: float
    exact: bool = True


@dataclass(frozen=True)
class Counter:
    """View that any iteration updates atomically, with operations that commute."""

    view: str
    type: str
    shape: tuple[int, ...]
    ops: tuple[str, ...]


@dataclass
class Context:
    """Names, views and limits that the statement being drawn can use."""

    vars: list[Var] = field(default_factory=list)
    readable: list[Region] = field(default_factory=list)
    targets: list[Region] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)
    acc: tuple[str, str] | None = None
    depth: int = 3
    loops: int = 0
    breakable: bool = False
    returnable: bool = False
    digest: str | None = None

    def child(self, **changes) -> "Context":
        """Return the context of a nested block: its declarations end with the block."""
        return replace(self, vars=list(self.vars), **changes)

    def inner(self, **changes) -> "Context":
        """Return the context of an inner def's body: outer locals are read only."""
        frozen = [replace(v, mutable=False) for v in self.vars]
        return replace(self, vars=frozen, breakable=False, acc=None, digest=None, **changes)


class Expressions:
    """Generator of expressions that draws from `source`."""

    def __init__(self, source: random.Random, real: str, libm: bool) -> None:
        self.source, self.real, self.libm = source, real, libm
        self.other = "float" if real == "double" else "double"
        self.functions: list[tuple[str, list[Var], E]] = []
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        self.count = 0
        self.budget = 24

    def pick(self, options):
        return self.source.choice(list(options))

    def number(self, low: int, high: int) -> int:
        return self.source.randint(low, high)

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    # Integers --------------------------------------------------------------------------------------------------------
    def fit(self, e: E, lo: int, hi: int) -> E:
        """Return `e`, wrapped if its value may lie outside lo .. hi."""
        if lo <= e.lo and e.hi <= hi:
            return e
        n = hi - lo + 1
        if e.bare or n == 1:
            value = lo + int(e.lo) % n
            return E(str(value), e.type, value, value, bare=True)
        shift = 0 if e.lo >= 0 and not e.minus else n * max(1, -(e.lo // n))
        if e.hi + shift > LIMIT[e.type] or n > LIMIT["int32"]:
            return E(str(max(lo, 0)), e.type, max(lo, 0), max(lo, 0), bare=True)
        text = f"({e.text} + {shift}) % {n}" if shift else f"({e.text}) % {n}"
        text = text if lo == 0 else f"{text} - {-lo}" if lo < 0 else f"{text} + {lo}"
        return E(text, e.type, lo, hi, minus=lo < 0)

    def index(self, ctx: Context, extent: int, depth: int = 1) -> str:
        return self.fit(self.integer(ctx, depth), 0, extent - 1).text

    def places(self, ctx: Context, region: Region, depth: int = 1) -> list[str]:
        """Return the indices of an element of the region."""
        indices = []
        for template, extent in region.parts:
            hole = self.index(ctx, extent, depth) if extent else ""
            indices.append(template.format(hole if template == "{}" else f"({hole})"))
        return indices

    def element(self, ctx: Context, region: Region, depth: int = 1) -> str:
        """Return ``view[i][j]`` inside the region."""
        return region.view + "".join(f"[{place}]" for place in self.places(ctx, region, depth))

    def load(self, ctx: Context, types: tuple[str, ...], depth: int, exact: bool = True) -> E | None:
        """Return an element of some view of one of the types, or None if there is none."""
        regions = [r for r in ctx.readable + ctx.targets if r.type in types and (r.exact or not exact)]
        if not regions:
            return None
        r = self.pick(regions)
        self.reads.add(r.view)
        kind = "int32" if r.type == "uint8" else r.type
        return E(self.element(ctx, r, min(depth, 1)), kind, r.lo, r.hi, exact=r.exact)

    def name(self, ctx: Context, types: tuple[str, ...], exact: bool = True, **limits) -> E | None:
        """Return a visible scalar or None; `limits` may ask for lo >=, hi <=, and a name that is `fixed`."""
        names = [v for v in ctx.vars if v.type in types and (v.exact or not exact)]
        names = [v for v in names if v.lo >= limits.get("lo", -(2**63)) and v.hi <= limits.get("hi", 2**63)]
        names = [v for v in names if not limits.get("fixed") or (not v.mutable and v.name.isidentifier())]
        if not names:
            return None
        v = self.pick(names)
        return E(v.name, v.type, v.lo, v.hi, exact=v.exact)

    def integer(self, ctx: Context, depth: int = 2, kind: str = "int32") -> E:
        """Return an integer expression; one of type int64 may also turn out as int32, which widens."""
        types = ("int32", "int64") if kind == "int64" else ("int32",)
        if depth <= 0 or self.number(0, 3) == 0:
            how = self.number(0, 3)
            e = self.load(ctx, (*types, "uint8"), depth - 1) if how == 3 and depth > 0 else None
            e = e or (self.name(ctx, types) if how else None)
            k = self.number(0, 9)
            return e or E(str(k), "int32", k, k, bare=True)
        a = self.integer(ctx, depth - 1, kind)
        op = self.pick("+ - * // % & | ^ << >> ~ neg int call".split())
        if op == "neg":
            return E(f"(-{a.text})", a.type, -a.hi, -a.lo, minus=True) if not a.bare else a
        if op == "~":
            return E(f"(~{a.text})", a.type, -a.hi - 1, -a.lo - 1, minus=True) if not a.bare else a
        if op == "int":
            r = self.clip(self.real_(ctx, self.real, depth - 1, exact=True, bare=False), STEP)
            return E(f"int({r.text})", "int32", int(r.lo), int(r.hi))
        if op == "call":
            return self.call(ctx, "int32", depth - 1) or a
        if op in ("//", "%", "<<", ">>"):
            return self.safe_integer(ctx, op, a)
        b = self.integer(ctx, depth - 1, kind)
        if a.bare and b.bare:
            return a
        wider = "int64" if "int64" in (a.type, b.type) else "int32"
        if op == "*" and max(abs(a.lo), abs(a.hi), abs(b.lo), abs(b.hi)) > LIMIT["int32"]:
            return a
        corners = {
            "+": [a.lo + b.lo, a.hi + b.hi],
            "-": [a.lo - b.hi, a.hi - b.lo],
            "*": [x * y for x in (a.lo, a.hi) for y in (b.lo, b.hi)],
        }.get(op) or self.bitwise(op, a, b)
        if max(map(abs, corners)) > LIMIT[wider]:
            return a
        return E(f"({a.text} {op} {b.text})", wider, min(corners), max(corners), minus=op == "-")

    def bitwise(self, op: str, a: E, b: E) -> list[int]:
        top = 1 << max(int(v).bit_length() for v in (a.lo, a.hi, b.lo, b.hi))
        return [0 if a.lo >= 0 and b.lo >= 0 else -top, top - 1]

    def safe_integer(self, ctx: Context, op: str, a: E) -> E:
        """Return ``// % << >>`` with a non-negative left side; the right side is a literal or a positive name."""
        # differences are wrapped even where their interval is non-negative: the checks suspect them
        a = self.fit(replace(a, hi=max(a.hi, 1000)), 0, 999) if a.lo < 0 or a.minus else a
        if a.bare or (op == "//" and a.type == "int64"):
            return a
        low, high = (0, 4) if op in ("<<", ">>") else (1, 9)
        k = self.number(low, high)
        b = self.name(ctx, ("int32",), lo=low, hi=high if low == 0 else 2**20) if self.number(0, 1) else None
        b = b or E(str(k), "int32", k, k)
        hi = {"//": a.hi // max(b.lo, 1), "%": b.hi - 1, ">>": a.hi, "<<": int(a.hi) << int(min(b.hi, 40))}[op]
        return a if hi > LIMIT[a.type] else E(f"({a.text} {op} {b.text})", a.type, 0, hi)

    # Reals -----------------------------------------------------------------------------------------------------------
    def clip(self, e: E, bound: float) -> E:
        """Return `e`, cut to -bound .. bound where its magnitude may be larger."""
        if e.hi <= bound:
            return e
        return E(f"pk.fmin(pk.fmax({e.text}, -{float(bound)}), {float(bound)})", e.type, -bound, bound, exact=e.exact)

    def literal(self, kind: str) -> E:
        v = self.pick([0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.75, 0.1, 8.0])
        return E(repr(v), kind, -v, v, bare=True)

    def real_leaf(self, ctx: Context, kind: str, depth: int, exact: bool, bare: bool) -> E:
        how = self.number(0, 5)
        e = self.load(ctx, (kind,), depth, exact) if how < 3 else None
        e = e or (self.name(ctx, (kind,), exact) if how < 5 else None)
        if e or (bare and how < 5):
            return e or self.literal(kind)
        n = self.integer(ctx, 1)
        n = self.name(ctx, ("int32",)) if n.bare else n
        if n is None:
            return self.literal(kind) if bare else E(f"pk.{kind}({self.literal('double').text})", kind, -8.0, 8.0)
        bound = max(abs(n.lo), abs(n.hi))
        return E(f"pk.{kind}({n.text})", kind, -bound, bound)

    def real_(self, ctx: Context, kind: str, depth: int = 2, exact: bool = True, bare: bool = True) -> E:
        """Return a real expression of type `kind`; with `bare` false not a literal."""
        exact = exact or not self.libm
        if depth <= 0 or (exact and self.number(0, 3) == 0):
            return self.real_leaf(ctx, kind, depth, exact, bare)
        a = self.real_(ctx, kind, depth - 1, exact, bare=False)
        ops = ["+", "-", "*", "+", "-", "*", "/", "neg", "math", "min", "call", "cast"]
        op = self.pick(ops + ([] if exact else ["math"] * 9))
        if op == "neg":
            return replace(a, text=f"(-{a.text})")
        if op == "math":
            return self.math(a, exact)
        if op == "call":
            return self.call(ctx, kind, depth - 1) or a
        if op == "cast":
            e = self.clip(a, 2**20)
            return replace(e, text=f"pk.{kind}(pk.{self.other if kind == self.real else self.real}({e.text}))")
        if op == "/":
            b = self.real_(ctx, kind, depth - 1, exact, bare=False)
            d = self.pick(["2.0", "0.5", "3.0", f"(1.5 + pk.fabs({b.text}))"])
            return self.bounded(E(f"({a.text} / {d})", kind, 2 * a.lo, 2 * a.hi, a.exact and b.exact), a)
        b = self.real_(ctx, kind, depth - 1, exact)
        same = a.exact and b.exact
        if op == "min":
            f = self.pick(["pk.fmin", "pk.fmax"])
            return E(f"{f}({a.text}, {b.text})", kind, -max(a.hi, b.hi), max(a.hi, b.hi), same)
        x, y = (b, a) if self.number(0, 1) else (a, b)
        bound = a.hi * b.hi if op == "*" else a.hi + b.hi
        return self.bounded(E(f"({x.text} {op} {y.text})", kind, -bound, bound, same), a)

    def bounded(self, e: E, instead: E) -> E:
        return e if e.hi < 2.0**60 else instead

    def math(self, a: E, exact: bool) -> E:
        f = self.pick(CORRECT if exact else LIBM)
        if f in ("fabs", "floor", "ceil"):
            return E(f"pk.{f}({a.text})", a.type, -a.hi - 1, a.hi + 1, a.exact)
        if f in ("sqrt", "log", "rsqrt"):
            text = f"pk.fabs({a.text})" if f == "sqrt" else f"(0.5 + pk.fabs({a.text}))"
            bound = a.hi + 1
        else:
            a = self.clip(a, 4.0)
            text, bound = a.text, 64.0
        return E(f"pk.{f}({text})", a.type, -bound, bound, a.exact and f == "sqrt")

    def call(self, ctx: Context, kind: str, depth: int) -> E | None:
        """Return a call of one of the functions drawn before, or None if there is none."""
        functions = [f for f in self.functions if f[2].type == kind]
        if not functions:
            return None
        name, params, result = self.pick(functions)
        args = [self.argument(ctx, p, depth) for p in params]
        return replace(result, text=f"{name}({', '.join(args)})")

    def argument(self, ctx: Context, p: Var, depth: int) -> str:
        if p.type == "bool":
            flag = self.name(ctx, ("bool",))
            return flag.text if flag else "True"
        if p.type in REALS:
            return self.clip(self.real_(ctx, p.type, depth, exact=True, bare=False), p.hi).text
        return self.fit(self.integer(ctx, depth), p.lo, p.hi).text

    # Conditions ------------------------------------------------------------------------------------------------------
    def condition(self, ctx: Context, depth: int = 2) -> str:
        """Return a condition: ``and`` may stand inside ``or``, not the reverse; ``not`` takes no ``and`` or ``or``."""
        how = self.number(0, 5)
        if depth > 1 and how == 0:
            return " or ".join(self.condition(ctx, 1) for _ in range(2))
        if depth > 0 and how == 1:
            return " and ".join(self.condition(ctx, 0) for _ in range(self.number(2, 3)))
        sign = "not " if self.number(0, 7) == 0 else ""
        flag = self.name(ctx, ("bool",)) if how == 2 else None
        if flag:
            return sign + flag.text
        op = self.pick(["<", "<=", ">", ">=", "==", "!="])
        if how < 4:
            a, b = self.integer(ctx, 1), self.integer(ctx, 1)
        else:
            a = self.real_(ctx, self.real, 1, exact=True, bare=False)
            b = self.real_(ctx, self.real, 1, exact=True)
        return f"{sign}{a.text} {op} {b.text}"

    def small(self, ctx: Context, kind: str) -> str:
        """Return a term for sums in any order."""
        if kind in REALS:
            e = self.clip(self.real_(ctx, kind, exact=True, bare=False), STEP)
            return f"pk.floor({e.text}) * 0.25"
        return self.fit(self.integer(ctx, kind=kind), -STEP, STEP).text
