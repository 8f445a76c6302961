"""Vectorisation of expressions: uniform values stay scalars, varying ones become vectors with explicit nodes."""

from dataclasses import dataclass, field, replace

from parki.engine.errors import Loc
from parki.engine.lower.common import extent, strides
from parki.engine.tree import ir, lanes
from parki.engine.tree.uniformity import Kind, LaneKinds
from parki.engine.tree.walk import rebuilt

ALL_LANES = lanes.AllLanes(type="bool", loc=lanes.NOWHERE)
STEPS = (1, 2, -1)  # distances in elements between lanes for which there are loads of vectors
LANE_OPERATORS = {"//": "idiv", "%": "imod"}


def mask_name(name: str) -> ir.Name:
    """Return the value of a mask."""
    return ir.Name(name=name, type="bool", loc=lanes.NOWHERE)


def lanewise(op: str, *args: ir.Expr, type: str = "bool") -> lanes.Lanewise:
    """Return an operation on masks, or on values of `type`, in each lane."""
    return lanes.Lanewise(op=op, args=args, type=type, loc=lanes.NOWHERE)


@dataclass(frozen=True)
class LanePlace:
    """Place of a statement among masks and loops.

    `kinds` is None in scalar code.  `mask` is the mask in force, `masks` are the names of all live masks, outermost
    first.  An exit clears its lanes from all masks from one number on: a return from `returns`, a break from
    ``loop[0]``, a continue from ``loop[1]`` (`loop` is None if the loop is not masked).

    `kept` names the total of a compaction; in a `row` vectors are rows, and no mask is in force.
    """

    kinds: LaneKinds | None = None
    mask: ir.Expr = ALL_LANES
    masks: tuple[str, ...] = ()
    loop: tuple[int, int] | None = None
    returns: int = 0
    masked_return: bool = False
    in_function: bool = False
    kept: str | None = None
    row: bool = False

    def under(self, mask: str) -> "LanePlace":
        """Return the same place under one more mask."""
        return replace(self, mask=mask_name(mask), masks=(*self.masks, mask))

    @property
    def select(self) -> ir.Expr | None:
        """Return the mask in force, None if all lanes are active."""
        return None if self.mask is ALL_LANES else self.mask


@dataclass
class Views:
    """Views, scratch and tables that a kernel sees: element type, stride text, extent text."""

    types: dict[str, str] = field(default_factory=dict)
    strides: dict[str, list[str]] = field(default_factory=dict)
    extents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    scratch: set[str] = field(default_factory=set)

    def add(self, name: str, kind: str, layout: str, extents: tuple[str, ...]) -> None:
        """Register a view."""
        self.types[name], self.extents[name] = kind, extents
        self.strides[name] = strides(name, len(extents), layout)

    def add_parameters(self, kernel: ir.KernelTree, layouts: dict[str, str]) -> None:
        """Register the views that a kernel gets."""
        for p in kernel.params:
            if p.rank:
                self.add(p.name, p.type, layouts[p.name], tuple(extent(p.name, d) for d in range(p.rank)))


class LaneValues:
    """Pass over expressions: `scalar` gives a scalar, `vector` a vector, `own` either, by the expression's kind.

    `guarded` names the functions that get a mask as well.
    """

    def __init__(self, views: Views, guarded: frozenset[str], checked: bool) -> None:
        self.views, self.guarded, self.checked = views, guarded, checked
        self.sites: list[tuple[str, Loc]] = []

    @staticmethod
    def kind(e: ir.Expr, place: LanePlace) -> Kind:
        """Return 0 in scalar code, else the kind that the analysis found."""
        return 0 if place.kinds is None else place.kinds.of(e)

    def own(self, e: ir.Expr, place: LanePlace) -> ir.Expr:
        """Return a scalar if `e` is uniform or affine (then lane 0's value), else a vector."""
        return self.varying(e, place) if self.kind(e, place) is None else self.scalar(e, place)

    def value(self, e: ir.Expr, place: LanePlace) -> ir.Expr:
        """Return a scalar in scalar code, else a vector."""
        return self.scalar(e, place) if place.kinds is None else self.vector(e, place)

    def vector(self, e: ir.Expr, place: LanePlace) -> ir.Expr:
        """Return a vector."""
        kind = self.kind(e, place)
        if kind is None:
            return self.varying(e, place)
        scalar = self.scalar(e, place)
        if kind != 0:
            return lanes.Affine(arg=scalar, step=kind, type=e.type, loc=e.loc)
        splat = lanes.RowSplat if place.row and e.type != "bool" else lanes.Splat
        return splat(arg=scalar, type=e.type, loc=e.loc)

    # Scalars ----------------------------------------------------------------------------------------------------------
    def scalar(self, e: ir.Expr, place: LanePlace) -> ir.Expr:
        """Return a uniform value, or lane 0's value of an affine one."""
        match e:
            case ir.Const() | ir.Name():
                return e
            case ir.FunctionCall():
                args = tuple(self.scalar(a, place) for a in e.args)
                return self.call(e, args, False, ALL_LANES)
            case ir.Load():
                return self.scalar_load(e, place)
        return rebuilt(e, lambda x: self.scalar(x, place))

    def call(self, e: ir.FunctionCall, args: tuple[ir.Expr, ...], vector: bool, mask: ir.Expr) -> lanes.LanesCall:
        """Return a call, with the mask if the function takes one."""
        guard = mask if e.name in self.guarded else None
        return lanes.LanesCall(name=e.name, args=args, lanes=vector, mask=guard, type=e.type, loc=e.loc)

    def scalar_load(self, e: ir.Load, place: LanePlace) -> ir.Expr:
        """Return an element whose indices are uniform."""
        if self.checks(e.view):
            return self.checked_access("load", e, place, e.type, vector=False)
        kind = self.views.types[e.view]
        load = replace(e, indices=self.scalars(e.indices, place), type=kind)
        return ir.Cast(arg=load, type="int32", loc=e.loc) if kind == "uint8" else load

    def scalars(self, indices: tuple[ir.Expr, ...], place: LanePlace) -> tuple[ir.Expr, ...]:
        """Return the indices of lane 0."""
        return tuple(self.scalar(e, place) for e in indices)

    # Vectors ----------------------------------------------------------------------------------------------------------
    def varying(self, e: ir.Expr, place: LanePlace) -> ir.Expr:
        """Return a value that differs between lanes."""

        def each(op: str, *args: ir.Expr) -> lanes.Lanewise:
            return lanes.Lanewise(op=op, args=tuple(self.vector(a, place) for a in args), type=e.type, loc=e.loc)

        match e:
            case ir.Name():
                return e
            case ir.Unary():
                return each("neg" if e.op == "-" else e.op, e.arg)
            case ir.Binary():
                return each(LANE_OPERATORS.get(e.op, e.op), e.left, e.right)
            case ir.Compare():
                return each(e.op, e.left, e.right)
            case ir.Bool():
                return self.condition(e, place)
            case ir.FunctionCall():
                return self.call(e, tuple(self.vector(a, place) for a in e.args), True, place.mask)
            case ir.Math():
                return self.exponential(e, place) or each(e.name, *e.args)
            case ir.Cast():
                if e.type == "int64":  # integers of lanes have one width
                    return self.vector(e.arg, place)
                return each("toint" if e.type == "int32" else "convert", e.arg)
            case ir.Load():
                return self.vector_load(e, place)
        raise AssertionError(e)

    def condition(self, e: ir.Bool, place: LanePlace) -> ir.Expr:
        """Return conditions joined one after another."""
        value, *rest = (self.vector(a, place) for a in e.args)
        for term in rest:
            value = lanes.Lanewise(op=e.op, args=(value, term), type="bool", loc=e.loc)
        return value

    def exponential(self, e: ir.Math, place: LanePlace) -> ir.Expr | None:
        """Return the exponential of a product of a uniform and a varying factor, None for others."""
        product = e.args[0]
        if e.name != "exp" or place.row or not isinstance(product, ir.Binary) or product.op != "*":
            return None
        kinds = self.kind(product.left, place), self.kind(product.right, place)
        if kinds not in ((0, None), (None, 0)):
            return None
        uniform, varying = (product.left, product.right)[:: 1 if kinds[0] == 0 else -1]
        args = self.scalar(uniform, place), self.vector(varying, place)
        return lanes.Lanewise(op="exp_of", args=args, type=e.type, loc=e.loc)

    def vector_load(self, e: ir.Load, place: LanePlace) -> ir.Expr:
        """Return the elements that the lanes load."""
        if self.checks(e.view):
            return self.checked_access("load", e, place, e.type)
        shared = {"view": e.view, "type": e.type, "loc": e.loc}
        if place.row:
            return lanes.RowLoad(indices=self.scalars(e.indices, place), dim=self.lane_dim(e.indices, place), **shared)
        step = self.step(e.view, e.indices, place)
        if step == 0:  # lanes store to the element, so it is not uniform although its index is
            return lanes.Splat(arg=self.scalar_load(e, place), type=e.type, loc=e.loc)
        if step in STEPS:
            return lanes.LoadLanes(**self.spaced(e.indices, place, step), **shared)
        return lanes.Gather(**self.anywhere(e.indices, place), **shared)

    def step(self, view: str, indices: tuple[ir.Expr, ...], place: LanePlace) -> Kind:
        """Return the distance in elements between lanes: 0, a constant, or None."""
        total: Kind = 0
        for e, stride in zip(indices, self.views.strides[view], strict=True):
            kind = self.kind(e, place)
            if kind != 0 and stride != "1":
                return None
            if kind != 0:
                total = kind
        return total

    def spaced(self, indices: tuple[ir.Expr, ...], place: LanePlace, step: int) -> dict:
        """Return the fields of an access to elements a constant distance apart."""
        dim = self.lane_dim(indices, place)
        return {"indices": self.scalars(indices, place), "dim": dim, "step": step, "mask": place.mask}

    def lane_dim(self, indices: tuple[ir.Expr, ...], place: LanePlace) -> int:
        """Return the only dimension whose index differs between lanes."""
        return next(d for d, e in enumerate(indices) if self.kind(e, place) != 0)

    def anywhere(self, indices: tuple[ir.Expr, ...], place: LanePlace) -> dict:
        """Return the fields of an access to elements of any distance."""
        varies = tuple(self.kind(e, place) != 0 for e in indices)
        values = tuple(
            self.vector(e, place) if varying else self.scalar(e, place)
            for e, varying in zip(indices, varies, strict=True)
        )
        return {"indices": values, "varies": varies, "mask": place.mask}

    # Checked builds: one lane, every index compared with its extent ---------------------------------------------------
    def checks(self, view: str) -> bool:
        """Return whether accesses to a view, scratch or table are checked."""
        return self.checked and view in self.views.extents

    def checked_access(
        self,
        access: str,
        node: ir.Load | ir.Store | ir.Atomic,
        place: LanePlace,
        kind: str,
        value: ir.Expr | None = None,
        vector: bool | None = None,
    ) -> lanes.Checked:
        """Return a load, store or ``atomic_OP`` in bounds, which reports the first index out of bounds."""
        self.sites.append((node.view, node.loc))
        return lanes.Checked(
            access=access,
            lanes=place.kinds is not None if vector is None else vector,
            view=node.view,
            site=len(self.sites),
            indices=tuple(self.own(e, place) for e in node.indices),
            extents=self.views.extents[node.view],
            mask=place.mask,
            value=value,
            type=kind,
            loc=node.loc,
        )
