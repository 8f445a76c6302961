"""Interpreter of vectorised trees (`parki.engine.tree.lanes`): groups of lanes in plain Python, without a compiler.

Tests run the tree of a kernel before and after `lower.vectorise`.  A vector is a list with one value per lane.  Lanes
that are masked off hold `UNDEFINED`, which no active lane may store: values that a mask had to hide are found.
"""

from collections.abc import Callable, Iterator

import numpy as np

from parki.engine.errors import CheckedFault, Loc
from parki.engine.interpreter.launching import Env, KernelRun
from parki.engine.interpreter.memory import Array, bind
from parki.engine.interpreter.values import COMPARISONS, Value, binary, cast, compare, fault, mathematics, typed, unary
from parki.engine.tree import ir, lanes

UNDEFINED = object()
SYMBOLS = {"idiv": "//", "imod": "%"}
ARITHMETIC = ("+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>")

Vector = list


def run_lanes(kernel: ir.KernelTree, *, width: int, league: int, args: dict[str, object]) -> float | int | None:
    """Run one launch of a vectorised tree on C-ordered views.

    Parameters
    ----------
    kernel : ir.KernelTree
        A result of `lower.vectorise`, not of a checked build.
    width : int
        Lanes per group; a row has as many as its range.
    league : int
        Number of iterations or teams.
    args : dict
        One entry per parameter, as `launching.run` takes them.

    Returns
    -------
    float or int or None
        The total of a reduction or scan over the league, else None.

    Raises
    ------
    CheckedFault
        An active lane used a value that is not defined, or the launch broke a rule (races are not found).
    """
    with np.errstate(all="ignore"):
        return _LaneLaunch(kernel, width).run(league, bind(kernel, args))


class _LaneLaunch(KernelRun):
    """KernelRun of a vectorised tree; `lanes` is the number of lanes of the code that runs now."""

    def __init__(self, kernel: ir.KernelTree, width: int) -> None:
        super().__init__(kernel, 1, None)
        self.width, self.lanes = width, 1

    def run(self, league: int, env: Env) -> float | int | None:
        """Run all iterations or teams."""
        if self.kernel.policy == "team":
            return super().run(league, env)
        env |= {"pk_begin": 0, "pk_end": league}
        (all_iterations,) = self.kernel.body
        self.block(self.kernel.body, env)
        total = env.get(all_iterations.result)
        return total.item() if isinstance(total, np.generic) else total

    def touch(self, array: Array, index: tuple[int, ...], access: str, loc: Loc) -> None:
        """Record nothing: the scalar tree is checked for races."""

    # Values of lanes --------------------------------------------------------------------------------------------------
    def each(self, change: Callable, *values: Value | Vector) -> Vector:
        """Return ``change(values)`` in each lane; undefined values, and operations that fault, are undefined."""
        columns = [v if isinstance(v, Vector) else [v] * self.lanes for v in values]
        return [self.defined(change, *row) for row in zip(*columns, strict=True)]

    @staticmethod
    def defined(change: Callable, *values: Value) -> Value | object:
        """Return ``change(values)``, `UNDEFINED` where it faults or a value is undefined."""
        if any(v is UNDEFINED for v in values):
            return UNDEFINED
        try:
            return change(*values)
        except CheckedFault:
            return UNDEFINED

    def lanewise(self, e: lanes.Lanewise, env: Env) -> Vector:
        args = [self.value(a, env) for a in e.args]
        if e.op in ("and", "or", "andnot"):
            if e.op == "andnot":
                args[1] = self.each(lambda b: not b, args[1])
            decisive = e.op == "or"
            return [
                decisive if a is decisive or b is decisive else UNDEFINED if UNDEFINED in (a, b) else not decisive
                for a, b in zip(*args, strict=True)
            ]
        return self.each(lambda *values: operation(e, values), *args)

    def splat(self, e: lanes.Splat, env: Env) -> Vector:
        try:
            return [self.value(e.arg, env)] * self.lanes
        except CheckedFault:  # a branch that no lane takes may run
            return [UNDEFINED] * self.lanes

    def affine(self, e: lanes.Affine, env: Env) -> Vector:
        (first, *_) = self.splat(e, env)
        return [self.defined(lambda v: typed(v, e.type, e.loc), first + e.step * n) for n in range(self.lanes)]

    def places(self, node: ir.Expr | ir.Stmt, env: Env) -> list[tuple[int, ...]]:
        """Return the index of the element of each lane; no index is compared with the extents yet."""
        values = [self.value(i, env) for i in node.indices]
        if hasattr(node, "varies"):
            columns = [v if varies else [v] * self.lanes for v, varies in zip(values, node.varies, strict=True)]
            return list(zip(*columns, strict=True))
        step = 2 if isinstance(node, lanes.StorePair) else getattr(node, "step", 1)
        return [self.beside(values, node.dim, step * n) for n in range(self.lanes)]

    @staticmethod
    def beside(index: list[int], dim: int, distance: int) -> tuple[int, ...]:
        """Return the index of an element at a distance along a dimension."""
        return tuple(i + distance * (d == dim) for d, i in enumerate(index))

    def active(self, node: ir.Expr | ir.Stmt, env: Env) -> list[int]:
        """Return the lanes in which a node has an effect."""
        mask = self.value(node.mask, env) if hasattr(node, "mask") else [True] * self.lanes
        return [n for n, live in enumerate(mask) if self.certain(live, node.loc)]

    @staticmethod
    def certain(value: Value | object, loc: Loc) -> Value:
        """Return a value; raise CheckedFault if it is undefined."""
        if value is UNDEFINED:
            raise fault(loc, "a lane uses a value that is not defined")
        return value

    def load_lanes(self, e: lanes.LoadLanes | lanes.RowLoad | lanes.Gather, env: Env) -> Vector:
        array, places, loaded = env[e.view], self.places(e, env), [UNDEFINED] * self.lanes
        for n in self.active(e, env):
            loaded[n] = array.read(self.located(array, places[n], e), e.loc)
        return loaded

    def located(self, array: Array, place: tuple[int, ...], node: ir.Expr | ir.Stmt) -> tuple[int, ...]:
        """Return an index that is within the extents; raise CheckedFault otherwise."""
        return array.locate(node.indices, [self.certain(i, node.loc) for i in place], node.loc)

    def lanes_call(self, e: lanes.LanesCall, env: Env) -> Value | Vector:
        f, lanes_outside = self.functions[e.name], self.lanes
        args = [self.value(a, env) for a in e.args]
        self.lanes = lanes_outside if e.lanes else 1
        scope = {name: a if e.lanes else [a] for (name, _), a in zip(f.params, args, strict=True)}
        scope["pk_given"] = self.value(e.mask, env) if e.mask else [True] * self.lanes
        *body, last = f.body
        self.block(tuple(body), scope)
        result = self.value(last.value, scope)
        self.lanes = lanes_outside
        return result if e.lanes else self.certain(result[0], e.loc)

    def update(self, e: lanes.Update, env: Env) -> Value | Vector:
        old, value = self.value(e.old, env), self.value(e.value, env)
        if isinstance(value, Vector):
            return self.each(lambda a, b: binary(e.op, e.type, a, b, e.loc), old, value)
        return binary(e.op, e.type, old, value, e.loc)

    def atomic_scalar(self, e: lanes.AtomicScalar, env: Env) -> Value:
        array, index = self.element(e, env)
        return self.updated(array, index, e, self.value(e.value, env))

    def atomic_lanes(self, e: lanes.AtomicLanes, env: Env) -> Vector:
        array, places, olds = env[e.view], self.places(e, env), [UNDEFINED] * self.lanes
        values = self.value(e.value, env)
        for n in self.active(e, env):
            olds[n] = self.updated(array, self.located(array, places[n], e), e, self.certain(values[n], e.loc))
        return olds

    # Statements -------------------------------------------------------------------------------------------------------
    def assign_lanes(self, s: lanes.AssignLanes, env: Env) -> None:
        value = self.value(s.value, env)
        if s.op != "=":
            value = self.each(lambda a, b: binary(s.op[0], s.value.type, a, b, s.loc), env[s.name], value)
        self.select(s, value, env)

    def accumulate_lanes(self, s: lanes.AccumulateLanes, env: Env) -> None:
        terms = self.value(s.value, env)
        self.select(s, self.each(lambda a, b: binary("+", s.value.type, a, b, s.loc), env[s.name], terms), env)

    def select(self, s: lanes.AssignLanes | lanes.AccumulateLanes, value: Vector, env: Env) -> None:
        """Set the active lanes of a local."""
        if s.mask is None:
            env[s.name] = value
            return
        rows = zip(self.value(s.mask, env), value, env[s.name], strict=True)
        env[s.name] = [UNDEFINED if live is UNDEFINED else new if live else old for live, new, old in rows]

    def store_lanes(self, s: lanes.StoreLanes | lanes.RowStore | lanes.Scatter, env: Env) -> None:
        self.write(s, self.value(s.value, env), self.places(s, env), env)

    def write(self, s: ir.Stmt, values: Vector, places: list[tuple[int, ...]], env: Env) -> None:
        """Store the values of active lanes."""
        for n in self.active(s, env):
            place = self.located(env[s.view], places[n], s)
            env[s.view].write(place, self.certain(values[n], s.loc), s.loc)

    def store_pair(self, s: lanes.StorePair, env: Env) -> None:
        values, partners, places = self.value(s.value, env), self.value(s.other, env), self.places(s, env)
        self.write(s, values, places, env)
        self.write(s, partners, [self.beside(list(p), s.dim, 1) for p in places], env)

    def compress(self, s: lanes.Compress, env: Env) -> None:
        values, first = self.value(s.value, env), [self.value(i, env) for i in s.indices]
        for count, n in enumerate(self.active(s, env)):
            place = self.located(env[s.view], self.beside(first, 0, count), s)
            env[s.view].write(place, self.certain(values[n], s.loc), s.loc)

    def masked_loop(self, s: lanes.MaskedLoop, env: Env) -> str | None:
        env[s.live] = list(self.value(s.mask, env))
        while True:
            if s.lanes_test is not None:
                test = self.value(s.lanes_test, env)
                env[s.live] = [live and self.certain(t, s.loc) for live, t in zip(env[s.live], test, strict=True)]
            if not (s.test is None or self.value(s.test, env)) or not any(env[s.live]):
                return None
            env[s.turn] = list(env[s.live])
            exit_kind = self.block(s.body, env)
            if exit_kind:
                return exit_kind
            self.block(s.step, env)

    def leave_masks(self, s: lanes.Leave, env: Env) -> None:
        leavers = self.active(s, env)
        for name in s.masks:
            env[name] = [live and n not in leavers for n, live in enumerate(env[name])]

    # Ranges -----------------------------------------------------------------------------------------------------------
    def groups(self, s: lanes.LaneRange | lanes.Compaction, env: Env, width: int) -> Iterator[Env]:
        """Yield the environment of each group of lanes, with its mask and the index of lane 0."""
        begin, end = self.value(s.begin, env), self.value(s.end, env)
        lanes_outside, self.lanes = self.lanes, width
        for first in range(begin, end, width):
            yield {**env, s.index: first, "pk_given": [first + n < end for n in range(width)]}
        self.lanes = lanes_outside

    def lane_range(self, s: lanes.LaneRange, env: Env) -> None:
        total = typed(0, s.acc_type, s.loc) if s.acc else None
        for scope in self.groups(s, env, s.trip if s.row else self.width):
            if s.acc:
                scope[s.acc] = [typed(0, s.acc_type, s.loc)] * self.lanes
            self.block(s.body, scope)
            if s.acc:
                for live, term in zip(scope["pk_given"], scope[s.acc], strict=True):
                    total = binary("+", s.acc_type, total, self.certain(term, s.loc), s.loc) if live else total
        env[s.result] = total

    def compaction(self, s: lanes.Compaction, env: Env) -> None:
        env[s.result] = 0
        for scope in self.groups(s, env, self.width):
            scope |= {s.acc: env[s.result], s.last: True}
            self.block(s.body, scope)
            env[s.result] = scope[s.acc]

    def serial_range(self, s: lanes.SerialRange, env: Env) -> None:
        order = list(range(self.value(s.begin, env), self.value(s.end, env)))
        env[s.result] = self.iterate(s.kind, order, s.body, env, s.index, s.acc, s.acc_type, s.last)

    STATEMENTS = KernelRun.STATEMENTS | {
        lanes.DeclareConst: KernelRun.declare,
        lanes.DeclareLanes: KernelRun.declare,
        lanes.DeclareConstLanes: KernelRun.declare,
        lanes.AssignLanes: assign_lanes,
        lanes.AccumulateLanes: accumulate_lanes,
        lanes.Evaluate: lambda self, s, env: self.value(s.value, env) and None,
        lanes.StoreLanes: store_lanes,
        lanes.StorePair: store_pair,
        lanes.RowStore: store_lanes,
        lanes.Compress: compress,
        lanes.Scatter: store_lanes,
        lanes.LocalBlock: lambda self, s, env: self.block(s.body, env),
        lanes.Loop: KernelRun.for_,
        lanes.MaskedLoop: masked_loop,
        lanes.Leave: leave_masks,
        lanes.LaneRange: lane_range,
        lanes.Compaction: compaction,
        lanes.SerialRange: serial_range,
    }
    EXPRESSIONS = KernelRun.EXPRESSIONS | {
        lanes.Lanewise: lanewise,
        lanes.Splat: splat,
        lanes.RowSplat: splat,
        lanes.Affine: affine,
        lanes.LoadLanes: load_lanes,
        lanes.RowLoad: load_lanes,
        lanes.Gather: load_lanes,
        lanes.LanesCall: lanes_call,
        lanes.Update: update,
        lanes.AtomicScalar: atomic_scalar,
        lanes.AtomicLanes: atomic_lanes,
        lanes.AllLanes: lambda self, e, env: [True] * self.lanes,
        lanes.Masked: lambda self, e, env: list(self.value(e.mask, env)),
        lanes.AnyLane: lambda self, e, env: any(self.value(e.mask, env)),  # functions may get undefined lanes
        lanes.ActiveLanes: lambda self, e, env: len(self.active(e, env)),
    }


def operation(e: lanes.Lanewise, values: tuple[Value, ...]) -> Value:
    """Return the value of an operation in one lane."""
    op = SYMBOLS.get(e.op, e.op)
    if op in COMPARISONS:
        return compare(op, *values)
    if op in ARITHMETIC:
        return binary(op, e.type, *values, e.loc)
    if op in ("neg", "~", "not"):
        return unary("-" if op == "neg" else op, e.type, *values, e.loc)
    if op in ("toint", "convert"):
        return cast(*values, e.type, e.loc)
    if op == "exp_of":
        return mathematics("exp", e.type, [binary("*", e.type, *values, e.loc)])
    if op == "rsqrt_above":
        is_low = compare("<=", *values)
        return cast(0.0, e.type, e.loc) if is_low else mathematics("rsqrt", e.type, [values[0]])
    return mathematics(op, e.type, list(values))
