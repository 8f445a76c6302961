"""Expressions in host C++: uniform values are scalars, varying ones GCC vectors, affine ones a scalar and a step."""

from dataclasses import dataclass, field, replace

from parki.engine.errors import Loc
from parki.engine.lower.common import CTYPES, extent, literal, strides
from parki.engine.tree import ir
from parki.engine.tree.uniformity import Kind, LaneKinds

VECTOR = {"double": "pk_vd", "float": "pk_vf", "int32": "pk_vi", "int64": "pk_vi", "bool": "pk_vm"}
TRUE = "pk_true{}"
STEPS = {1: "pk_load", 2: "pk_load2", -1: "pk_load_back"}  # load functions by the distance in elements between lanes


@dataclass(frozen=True)
class LaneContext:
    """Place of a statement among masks and loops.

    `kinds` is None in scalar code.  `mask` is the C++ name of the mask in force, `masks` all live masks, outermost
    first.  An exit clears its lanes from all masks from one number on: a return from `returns`, a break from
    ``loop[0]``, a continue from ``loop[1]`` (`loop` is None if the loop is not masked).

    `kept` names the total of a compaction; in a `row` vectors are rows, and no mask is in force.
    """

    kinds: LaneKinds | None = None
    mask: str = TRUE
    masks: tuple[str, ...] = ()
    loop: tuple[int, int] | None = None
    returns: int = 0
    masked_return: bool = False
    acc_scalar: bool = True
    in_function: bool = False
    kept: str | None = None
    row: bool = False

    def under(self, mask: str) -> "LaneContext":
        """Return the same place under one more mask."""
        return replace(self, mask=mask, masks=(*self.masks, mask))


@dataclass
class Views:
    """Views that a kernel sees: element type, stride text, extent text."""

    types: dict[str, str] = field(default_factory=dict)
    strides: dict[str, list[str]] = field(default_factory=dict)
    extents: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, kind: str, rank: int, layout: str, extents: list[str]) -> None:
        """Register a view."""
        self.types[name] = kind
        self.strides[name] = strides(name, rank, layout)
        self.extents[name] = extents


class HostExpr:
    """Emitter of expressions: `emit` gives text of the expression's own kind, `vec` a vector, `scalar` a scalar."""

    def __init__(self, checked: bool) -> None:
        self.checked = checked
        self.views = Views()
        self.sites: list[tuple[str, Loc]] = []
        self.used_extents: set[tuple[str, int]] = set()
        self.guarded: set[str] = set()  # functions that take the argument struct and a mask as well

    def kind(self, e: ir.Expr, ctx: LaneContext) -> Kind:
        """Return 0 in scalar code, else the kind that the analysis found."""
        return 0 if ctx.kinds is None else ctx.kinds.of(e)

    def emit(self, e: ir.Expr, ctx: LaneContext) -> str:
        """Return text of `e`: a scalar if `e` is uniform or affine (then lane 0's value), else a vector."""
        return self.varying(e, ctx) if self.kind(e, ctx) is None else self.scalar(e, ctx)

    def vec(self, e: ir.Expr, ctx: LaneContext) -> str:
        """Return text of `e` as a vector of its type."""
        kind = self.kind(e, ctx)
        if kind is None:
            return self.varying(e, ctx)
        to, scalar = VECTOR[e.type], self.scalar(e, ctx)
        if kind == 0:
            name = "pk_to_mask" if e.type == "bool" else "pk_row_splat" if ctx.row else "pk_splat"
            return f"{name}<{to}>({scalar})"
        return f"pk_affine<{to}>({scalar}, {kind})"

    # Scalars ----------------------------------------------------------------------------------------------------------
    def scalar(self, e: ir.Expr, ctx: LaneContext) -> str:
        """Return text of a uniform value, or of lane 0's value of an affine one."""

        def go(x: ir.Expr) -> str:
            return self.scalar(x, ctx)

        match e:
            case ir.Const():
                return literal(e.value, e.type)
            case ir.Name():
                return e.name
            case ir.Unary():
                return f"({'!' if e.op == 'not' else e.op}{go(e.arg)})"
            case ir.Binary():
                op = "/" if e.op == "//" else e.op
                return f"({go(e.left)} {op} {go(e.right)})"
            case ir.Compare():
                return f"({go(e.left)} {e.op} {go(e.right)})"
            case ir.Bool():
                return "(" + (" && " if e.op == "and" else " || ").join(map(go, e.args)) + ")"
            case ir.FunctionCall():
                args = [*map(go, e.args), *(["pk_a", TRUE] if e.name in self.guarded else [])]
                return f"(({CTYPES[e.type]})pk_fn_{e.name}<1>({', '.join(args)}))"
            case ir.Math():
                return f"pk_{e.name}({', '.join(map(go, e.args))})"
            case ir.Cast():
                return f"(({CTYPES[e.type]}){go(e.arg)})"
            case ir.Extent():
                self.used_extents.add((e.view, e.dim))
                return extent(e.view, e.dim)
            case ir.LeagueRank():
                return "pk_rank"
            case ir.Load():
                return self.scalar_load(e, ctx)
        raise AssertionError(e)

    def scalar_load(self, e: ir.Load, ctx: LaneContext) -> str:
        """Return text of an element whose indices are uniform."""
        if self.checked and e.view in self.views.extents:
            return self.checked_access("load", e.view, e.indices, e.loc, ctx, CTYPES[e.type])
        text = f"{e.view}[{self.offset(e.view, e.indices, ctx)}]"
        return f"((int32_t){text})" if self.views.types[e.view] == "uint8" else text

    def offset(self, view: str, indices: tuple[ir.Expr, ...], ctx: LaneContext) -> str:
        """Return the scalar element offset, that of lane 0 where an index is affine."""
        parts = []
        for e, stride in zip(indices, self.views.strides[view], strict=True):
            i = self.scalar(e, ctx)
            if stride == "1":
                parts.append(i if isinstance(e, ir.Const) else f"(int64_t){i}")
            elif not (isinstance(e, ir.Const) and e.value == 0):
                parts.append(f"(int64_t){i} * {stride}")
        return " + ".join(parts) or "0"

    # Vectors ----------------------------------------------------------------------------------------------------------
    def varying(self, e: ir.Expr, ctx: LaneContext) -> str:
        """Return text of a value that differs between lanes."""

        def go(x: ir.Expr) -> str:
            return self.vec(x, ctx)

        match e:
            case ir.Name():
                return e.name
            case ir.Unary():
                return f"pk_not({go(e.arg)})" if e.op == "not" else f"({e.op}{go(e.arg)})"
            case ir.Binary():
                if e.type in ir.INTEGERS and e.op in ("//", "%"):
                    return f"pk_{'idiv' if e.op == '//' else 'imod'}({go(e.left)}, {go(e.right)})"
                return f"({go(e.left)} {e.op} {go(e.right)})"
            case ir.Compare():
                return f"pk_test<pk_vm>({go(e.left)} {e.op} {go(e.right)})"
            case ir.Bool():
                text = go(e.args[0])
                for a in e.args[1:]:
                    text = f"pk_{e.op}({text}, {go(a)})"
                return text
            case ir.FunctionCall():
                args = [*map(go, e.args), *(["pk_a", ctx.mask] if e.name in self.guarded else [])]
                return f"pk_fn_{e.name}<pk_L>({', '.join(args)})"
            case ir.Math():
                if e.name == "exp" and (factors := self.scaled(e.args[0], ctx)):
                    return f"pk_exp_of<{VECTOR[e.type]}>({self.scalar(factors[0], ctx)}, {go(factors[1])})"
                return f"pk_{e.name}({', '.join(map(go, e.args))})"
            case ir.Cast():
                if e.type == "int32":
                    return f"pk_toint<pk_vi>({go(e.arg)})"
                return go(e.arg) if e.type == "int64" else f"pk_convert<{VECTOR[e.type]}>({go(e.arg)})"
            case ir.Load():
                return self.vector_load(e, ctx)
        raise AssertionError(e)

    def scaled(self, e: ir.Expr, ctx: LaneContext) -> tuple[ir.Expr, ir.Expr] | None:
        """Return the uniform and the varying factor of a product, None if `e` is no such product."""
        if ctx.row or not isinstance(e, ir.Binary) or e.op != "*":
            return None
        kinds = self.kind(e.left, ctx), self.kind(e.right, ctx)
        if kinds == (0, None):
            return e.left, e.right
        return (e.right, e.left) if kinds == (None, 0) else None

    def vector_load(self, e: ir.Load, ctx: LaneContext) -> str:
        """Return text of the elements that the lanes load."""
        to = VECTOR[e.type]
        if self.checked and e.view in self.views.extents:
            return self.checked_access("load", e.view, e.indices, e.loc, ctx, to)
        if ctx.row:
            return f"pk_row_load<{to}>({e.view} + ({self.offset(e.view, e.indices, ctx)}))"
        step = self.step(e.view, e.indices, ctx)
        if step == 0:  # lanes store to the element, so it is not uniform although its index is
            return f"pk_splat<{to}>({self.scalar_load(e, ctx)})"
        if step in STEPS:
            return f"{STEPS[step]}<{to}>({e.view} + ({self.offset(e.view, e.indices, ctx)}), {ctx.mask})"
        return f"pk_gather<{to}>({e.view}, {self.vector_offset(e.view, e.indices, ctx)}, {ctx.mask})"

    def step(self, view: str, indices: tuple[ir.Expr, ...], ctx: LaneContext) -> Kind:
        """Return the distance in elements between lanes: 0, a constant, or None."""
        total: Kind = 0
        for e, stride in zip(indices, self.views.strides[view], strict=True):
            kind = self.kind(e, ctx)
            if kind != 0 and stride != "1":
                return None
            if kind != 0:
                total = kind
        return total

    def vector_offset(self, view: str, indices: tuple[ir.Expr, ...], ctx: LaneContext) -> str:
        """Return the element offsets of all lanes."""
        parts = [f"pk_splat<pk_vo>({self.base_offset(view, indices, ctx)})"]
        for e, stride in zip(indices, self.views.strides[view], strict=True):
            if self.kind(e, ctx) != 0:
                parts.append(f"pk_convert<pk_vo>({self.vec(e, ctx)}) * pk_splat<pk_vo>({stride})")
        return " + ".join(parts)

    def base_offset(self, view: str, indices: tuple[ir.Expr, ...], ctx: LaneContext) -> str:
        """Return the part of the offset that the lanes share."""
        parts = [
            f"(int64_t){self.scalar(e, ctx)} * {stride}"
            for e, stride in zip(indices, self.views.strides[view], strict=True)
            if self.kind(e, ctx) == 0
        ]
        return " + ".join(parts) or "0"

    # Checked builds: one lane, every index compared with its extent ---------------------------------------------------
    def checked_access(
        self, what: str, view: str, indices: tuple[ir.Expr, ...], loc: Loc, ctx: LaneContext, to: str, value: str = ""
    ) -> str:
        """Return a call that does a load, store or atomic_OP in bounds, and reports the first index out of bounds."""
        self.sites.append((view, loc))
        for d in range(len(indices)):
            self.used_extents.add((view, d))
        index = ", ".join(f"(int64_t)pk_get({self.emit(e, ctx)}, 0)" for e in indices)
        extents = ", ".join(self.views.extents[view])
        steps = ", ".join(self.views.strides[view])
        where = f"pk_at<{len(indices)}>{{pk_a.pk_fault_at, {len(self.sites)}, {{{index}}}, {{{extents}}}, {{{steps}}}}}"
        tail = f", {value}" if value else ""
        name = f"{what}<{to}>"
        if what.startswith("atomic_"):
            name = f"atomic<{to}, pk_op_{what.removeprefix('atomic_')}>"
        return f"pk_checked_{name}({view}, {where}, {ctx.mask}{tail})"
