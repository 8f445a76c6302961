"""Nodes of vectorised trees: lanes, their masks and their accesses to memory are explicit.

`lower.vectorise` makes such trees for hosts.  A value is a scalar or a vector, one number per lane; a name of a vector
is an `ir.Name`, as that of a scalar.  A mask is a vector of bools.
"""

from dataclasses import dataclass

from parki.engine.errors import Loc
from parki.engine.tree import ir

NOWHERE = Loc("", 0, 0)  # place of nodes that stand for no statement of the kernel file


# Values of lanes ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class Lanewise(ir.Expr):
    """One operation in each lane.

    `op` is an operator, the name of a function of `pk_vec.h` without ``pk_`` or ``neg``, ``convert``, ``toint``.
    """

    op: str
    args: tuple[ir.Expr, ...]


@dataclass(frozen=True, kw_only=True)
class Splat(ir.Expr):
    """A scalar in all lanes."""

    arg: ir.Expr


@dataclass(frozen=True, kw_only=True)
class RowSplat(ir.Expr):
    """A scalar in all lanes of a row."""

    arg: ir.Expr


@dataclass(frozen=True, kw_only=True)
class Affine(ir.Expr):
    """The scalar `arg` in lane 0, and `step` more in each further lane."""

    arg: ir.Expr
    step: int


@dataclass(frozen=True, kw_only=True)
class LoadLanes(ir.Expr):
    """Elements `step` apart in memory; `indices` are those of lane 0, and lanes differ in index `dim`."""

    view: str
    indices: tuple[ir.Expr, ...]
    dim: int
    step: int
    mask: ir.Expr


@dataclass(frozen=True, kw_only=True)
class RowLoad(ir.Expr):
    """Neighbouring elements, one for each lane of a row."""

    view: str
    indices: tuple[ir.Expr, ...]
    dim: int


@dataclass(frozen=True, kw_only=True)
class Gather(ir.Expr):
    """Elements anywhere; index d is a vector if ``varies[d]``, else a scalar."""

    view: str
    indices: tuple[ir.Expr, ...]
    varies: tuple[bool, ...]
    mask: ir.Expr


@dataclass(frozen=True, kw_only=True)
class LanesCall(ir.Expr):
    """A call of a function of the kernel, for one lane or all; `mask` is given to functions that load or loop."""

    name: str
    args: tuple[ir.Expr, ...]
    lanes: bool
    mask: ir.Expr | None


@dataclass(frozen=True, kw_only=True)
class Checked(ir.Expr):
    """A load, store or ``atomic_OP`` (`access`) of a checked build, of scalars or one lane.

    `site` is the number of the place in reports, `extents` holds the extents as C++ text, `value` the number to store.
    """

    access: str
    lanes: bool
    view: str
    indices: tuple[ir.Expr, ...]
    extents: tuple[str, ...]
    site: int
    mask: ir.Expr
    value: ir.Expr | None = None


@dataclass(frozen=True, kw_only=True)
class Update(ir.Expr):
    """The new value ``old op value`` of an element in memory."""

    op: str
    old: ir.Expr
    value: ir.Expr


@dataclass(frozen=True, kw_only=True)
class AtomicScalar(ir.Expr):
    """One atomic update; its value is the element before it."""

    op: str
    view: str
    indices: tuple[ir.Expr, ...]
    value: ir.Expr


@dataclass(frozen=True, kw_only=True)
class AtomicLanes(ir.Expr):
    """One atomic update per lane, in the order of lanes."""

    op: str
    view: str
    indices: tuple[ir.Expr, ...]
    varies: tuple[bool, ...]
    value: ir.Expr
    mask: ir.Expr


# Masks ----------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class AllLanes(ir.Expr):
    """The mask of all lanes, known to the compiler."""


@dataclass(frozen=True, kw_only=True)
class Masked(ir.Expr):
    """A mask as a vector that can be changed."""

    mask: ir.Expr


@dataclass(frozen=True, kw_only=True)
class AnyLane(ir.Expr):
    """The test for an active lane, a scalar."""

    mask: ir.Expr


@dataclass(frozen=True, kw_only=True)
class ActiveLanes(ir.Expr):
    """The number of active lanes, a scalar."""

    mask: ir.Expr


# Statements -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class DeclareConst(ir.Stmt):
    """A scalar that stays as it is."""

    name: str
    type: str
    value: ir.Expr


@dataclass(frozen=True, kw_only=True)
class DeclareResult(ir.Stmt):
    """A scalar that gets its value later."""

    name: str
    type: str


@dataclass(frozen=True, kw_only=True)
class DeclareLanes(ir.Stmt):
    """A vector."""

    name: str
    type: str
    value: ir.Expr


@dataclass(frozen=True, kw_only=True)
class DeclareConstLanes(ir.Stmt):
    """A vector that stays as it is."""

    name: str
    type: str
    value: ir.Expr


@dataclass(frozen=True, kw_only=True)
class AssignLanes(ir.Stmt):
    """An assignment ``name op value`` in the lanes of `mask`, or in all lanes if `mask` is None."""

    name: str
    op: str
    value: ir.Expr
    mask: ir.Expr | None


@dataclass(frozen=True, kw_only=True)
class AccumulateLanes(ir.Stmt):
    """``name += value`` in the lanes of `mask`, or in all lanes if `mask` is None."""

    name: str
    value: ir.Expr
    mask: ir.Expr | None


@dataclass(frozen=True, kw_only=True)
class Evaluate(ir.Stmt):
    """An expression for the sake of its effect."""

    value: ir.Expr


@dataclass(frozen=True, kw_only=True)
class StoreLanes(ir.Stmt):
    """Store elements `step` apart in memory; `indices` are those of lane 0, and lanes differ in index `dim`."""

    view: str
    indices: tuple[ir.Expr, ...]
    dim: int
    step: int
    value: ir.Expr
    mask: ir.Expr


@dataclass(frozen=True, kw_only=True)
class StorePair(ir.Stmt):
    """Store two numbers side by side in each lane; lanes are two elements apart."""

    view: str
    indices: tuple[ir.Expr, ...]
    dim: int
    value: ir.Expr
    other: ir.Expr
    mask: ir.Expr


@dataclass(frozen=True, kw_only=True)
class RowStore(ir.Stmt):
    """Store neighbouring elements, one for each lane of a row."""

    view: str
    indices: tuple[ir.Expr, ...]
    dim: int
    value: ir.Expr


@dataclass(frozen=True, kw_only=True)
class Compress(ir.Stmt):
    """Store the values of active lanes side by side."""

    view: str
    indices: tuple[ir.Expr, ...]
    value: ir.Expr
    mask: ir.Expr
    is_scratch: bool


@dataclass(frozen=True, kw_only=True)
class Scatter(ir.Stmt):
    """Store elements anywhere; index d is a vector if ``varies[d]``, else a scalar."""

    view: str
    indices: tuple[ir.Expr, ...]
    varies: tuple[bool, ...]
    value: ir.Expr
    mask: ir.Expr


@dataclass(frozen=True, kw_only=True)
class LocalBlock(ir.Stmt):
    """Statements with names of their own."""

    body: tuple[ir.Stmt, ...]


@dataclass(frozen=True, kw_only=True)
class Loop(ir.For):
    """A counted loop; its end is kept as `end` unless it is constant; `turns` of it are written out."""

    end: str | None
    turns: int | None


@dataclass(frozen=True, kw_only=True)
class MaskedLoop(ir.Stmt):
    """A loop that runs while a lane is left.

    Before each turn lanes whose test `lanes_test` fails leave the mask `live`, and the loop ends where the scalar test
    `test` fails.  `turn` is the mask of one turn; `step` runs after it.
    """

    live: str
    turn: str
    mask: ir.Expr
    test: ir.Expr | None
    lanes_test: ir.Expr | None
    body: tuple[ir.Stmt, ...]
    step: tuple[ir.Stmt, ...]


@dataclass(frozen=True, kw_only=True)
class Leave(ir.Stmt):
    """Clear the lanes of `mask` from the masks called `masks`."""

    mask: ir.Expr
    masks: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ClearScratch(ir.Stmt):
    """Fill a piece of scratch with a value that no kernel means."""

    name: str
    type: str


# Ranges ---------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class SerialRange(ir.Range):
    """A range whose iterations run one after another, in a function called `body_name`."""

    body_name: str


@dataclass(frozen=True, kw_only=True)
class LaneRange(ir.Range):
    """A range (``for`` or ``reduce``) whose iterations are lanes, in a function called `body_name`.

    In the body `index` is the index of lane 0, ``pk_given`` the mask of lanes in the range, and `acc` a vector.  `trip`
    is the number of iterations if it is constant; with `row`, one value holds all of them.
    """

    body_name: str
    trip: int | None
    row: bool


@dataclass(frozen=True, kw_only=True)
class Compaction(ir.Range):
    """A scan whose iterations are lanes, in a function called `body_name`; all share one total, the scalar `acc`."""

    body_name: str
