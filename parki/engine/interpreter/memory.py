"""Memory of the reference interpreter: views, scratch and tables with bounds, first writes and races checked."""

from dataclasses import dataclass, field

import numpy as np

from parki.engine.errors import LaunchError, Loc
from parki.engine.interpreter.values import LIMITS, Value, fault, typed
from parki.engine.tree import ir

DTYPES = {
    "bool": np.bool_,
    "int32": np.int32,
    "int64": np.int64,
    "double": np.float64,
    "float": np.float32,
    "uint8": np.uint8,
}
HARMLESS = {("read", "read"), ("atomic", "atomic")}
VERBS = {"read": "read", "write": "written", "atomic": "atomically updated"}


@dataclass(eq=False)
class Array:
    """View, scratch view or constant table.

    `type` is the element type; `defined` marks the elements of a scratch view that have been written (None: all are).
    """

    name: str
    type: str
    data: np.ndarray
    writable: bool
    defined: np.ndarray | None = None

    def locate(self, indices: tuple[ir.Expr, ...], values: list[int], loc: Loc) -> tuple[int, ...]:
        """Return the element's index; raise CheckedFault if a value is outside its dimension."""
        for dim, (expr, value, extent) in enumerate(zip(indices, values, self.data.shape, strict=True)):
            if not 0 <= value < extent:
                label = f"{expr.name}={value}" if isinstance(expr, ir.Name) else str(value)
                raise fault(loc, f"index {label} of view '{self.name}' dim {dim} is outside 0..{extent - 1}")
        return tuple(values)

    def read(self, index: tuple[int, ...], loc: Loc) -> Value:
        """Return the element as a value, a uint8 as int32; raise CheckedFault for scratch that was never written."""
        if self.defined is not None and not self.defined[index]:
            raise fault(loc, f"scratch view '{self.name}' is read at {index[0]} before it was written")
        return typed(self.data[index], self.type, loc)

    def write(self, index: tuple[int, ...], value: Value, loc: Loc) -> None:
        """Set one element; raise CheckedFault if the array is read-only or an integer does not fit the element type."""
        if not self.writable:
            raise fault(loc, f"store to '{self.name}', which is read only")
        if self.type in LIMITS:
            typed(value, self.type, loc, f"the value stored in '{self.name}'")
        self.data[index] = value
        if self.defined is not None:
            self.defined[index] = True


@dataclass
class Shadow:
    """Record of the actors that touched each element in one stretch of parallel work.

    Two different actors (iterations, teams, constructs) race if they touch one element, unless both read or both
    update it atomically.  `what` names the actors in messages.
    """

    what: str
    seen: dict[tuple[Array, tuple[int, ...]], dict[str, dict[int, Loc]]] = field(default_factory=dict)

    def touch(self, array: Array, index: tuple[int, ...], actor: int, access: str, loc: Loc) -> None:
        """Record an access of kind `access` (``read write atomic``); raise CheckedFault if it races with another."""
        element = self.seen.setdefault((array, index), {})
        for access_before, actors in element.items():
            if (access_before, access) in HARMLESS:
                continue
            for actor_before, place in actors.items():
                if actor_before != actor:
                    raise fault(
                        loc,
                        f"race on view '{array.name}' at {list(index)}: {VERBS[access]} here and "
                        f"{VERBS[access_before]} at {place.file}:{place.line} by {self.what}",
                    )
        element.setdefault(access, {}).setdefault(actor, loc)


def bind(kernel: ir.KernelTree, args: dict[str, object]) -> dict[str, object]:
    """Make the kernel's first environment from its arguments: an `Array` per view, a value per scalar.

    Raises
    ------
    LaunchError
        A name is missing or unknown, an argument has the wrong type or rank, or a written view overlaps another.
    """
    expected = {p.name for p in kernel.params}
    if expected != set(args):
        missing, unknown = sorted(expected - set(args)), sorted(set(args) - expected)
        raise LaunchError(f"{kernel.name}: arguments missing: {missing}, unknown: {unknown}")
    env: dict[str, object] = {}
    for p in kernel.params:
        value = args[p.name]
        if p.rank == 0:
            if p.type in ir.INTEGERS and not isinstance(value, int | np.integer):
                raise LaunchError(f"{kernel.name}: '{p.name}' is {type(value).__name__}, expected {p.type}")
            env[p.name] = typed(value, p.type, p.loc, p.name)
            continue
        if not isinstance(value, np.ndarray) or value.dtype != DTYPES[p.type] or value.ndim != p.rank:
            description = (
                f"{value.dtype} of rank {value.ndim}" if isinstance(value, np.ndarray) else type(value).__name__
            )
            raise LaunchError(f"{kernel.name}: '{p.name}' is {description}, expected {p.type} of rank {p.rank}")
        for value_before in env.values():
            if (
                isinstance(value_before, Array)
                and (p.written or value_before.writable)
                and np.shares_memory(value, value_before.data)
            ):
                raise LaunchError(f"{kernel.name}: written views '{value_before.name}' and '{p.name}' overlap")
        env[p.name] = Array(p.name, p.type, value, p.written)
    return env
