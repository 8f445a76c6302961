"""Checks that arguments fit a workunit: their names, types, ranks, layouts and overlap."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from parki.engine import config
from parki.engine.calls.gpu import shared_memory
from parki.engine.errors import LaunchError
from parki.engine.lower.common import ALIGNED, DTYPE, VALUE
from parki.engine.run.spaces import Space
from parki.engine.tree import ir
from parki.engine.workunit import Workunit


@dataclass(frozen=True)
class Fixed:
    """An argument whose values stay as they are: a GPU may take them by value.

    Parameters
    ----------
    array : array
        The array, where the launch runs.
    values : array of NumPy, optional
        The same values on the host, if they are there.

    See Also
    --------
    prepare : Prepare a launch with arguments.

    Examples
    --------
    >>> import numpy as np
    >>> from parki import engine
    >>> unit = engine.kernel("cells", "gather_points", real="double")
    >>> x, order, out = np.arange(6.0).reshape(3, 2), np.array([1, 0], np.int32), np.zeros((3, 2))
    >>> engine.parallel_for(engine.RangePolicy("CPU", 2), unit, x=x, order=engine.Fixed(order), out=out)
    >>> out[0]
    array([1., 0.])
    """

    array: Any
    values: np.ndarray | None = None


@dataclass(frozen=True)
class Aligned:
    """An argument whose rows always begin at even elements of memory: a GPU may read two elements at once.

    Attributes
    ----------
    array : array
        The array, where the launch runs.
    """

    array: Any


def names(workunit: Workunit, args: Mapping[str, object]) -> None:
    """Raise LaunchError for arguments that are missing or unknown."""
    expected = workunit.params.keys()
    if args.keys() != expected:
        missing, unknown = sorted(expected - args.keys()), sorted(args.keys() - expected)
        raise LaunchError(f"{workunit.ir.name}: missing arguments {missing}, unknown arguments {unknown}")


def view(k: ir.KernelTree, p: ir.Param, a: Any, xp: Any) -> Any:
    """Return the array if it fits a view, else raise LaunchError."""
    if not isinstance(a, xp.ndarray):
        kind, expected = type(a), "NumPy" if xp is np else "CuPy"
        name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        raise LaunchError(f"{k.name}: '{p.name}' is a {name}, expected a {expected} array")
    if a.dtype != DTYPE[p.type] or a.ndim != p.rank:
        description = f"{p.rank} dimension(s) of {DTYPE[p.type]}"
        raise LaunchError(f"{k.name}: '{p.name}' has {a.ndim} dimension(s) of {a.dtype}, expected {description}")
    flags = a.flags if xp is np else None
    gaps = flags is None or not flags.c_contiguous
    unsuitable = gaps and any(s < 0 or s % a.itemsize for s in a.strides)
    unsuitable = unsuitable or (flags is not None and not flags.aligned)
    if a.size and (unsuitable or max(a.shape) >= 2**31):
        raise LaunchError(f"{k.name}: '{p.name}' has strides {a.strides}, shape {a.shape}: not supported")
    if p.written and flags is not None and not flags.writeable:
        raise LaunchError(f"{k.name}: '{p.name}' is written, but the array is read-only")
    if p.written and gaps and a.size and any(s == 0 and n > 1 for s, n in zip(a.strides, a.shape, strict=True)):
        raise LaunchError(f"{k.name}: '{p.name}' is written, but elements of the array share memory")
    return a


def taken(a: Any) -> bool:
    """Return whether launches take an array without a copy: unit stride along its first or last axis, and aligned."""
    is_whole = all(s >= 0 and s % a.itemsize == 0 for s in a.strides)
    return is_whole and layout(a) != "S" and getattr(a.flags, "aligned", True)


def layout(a: Any) -> str:
    """Return C, F or S, by the index of an array that has unit stride: the last, the first or none."""
    if a.size == 0 or a.strides[-1] == a.itemsize or a.shape[-1] == 1:
        return "C"
    return "F" if a.strides[0] == a.itemsize else "S"


def even(a: Any, first: int) -> bool:
    """Tell whether all rows of an array that begins at byte `first` begin at even elements."""
    two = 2 * a.itemsize
    return first % two == 0 and a.strides[-1] == a.itemsize and all(s % two == 0 for s in a.strides[:-1])


def _address(a: Any) -> int:
    """Return the address of the first element of an array."""
    return int(a.ctypes.data if isinstance(a, np.ndarray) else a.data.ptr)


@dataclass(frozen=True)
class Unwrapped:
    """Hold arguments of a launch, values of the fixed ones, and names of the arrays with even rows."""

    args: dict[str, object]
    constants: dict[str, Any]
    aligned: frozenset[str]


def unwrapped(args: dict[str, object]) -> Unwrapped:
    """Return the arguments without `Fixed` and `Aligned`; fixed values are on the host if they are there."""
    wrappers = {name: a for name, a in args.items() if isinstance(a, (Fixed, Aligned))}
    if not wrappers:
        return Unwrapped(args, {}, frozenset())
    constants = {name: a for name, a in wrappers.items() if isinstance(a, Fixed)}
    values = {name: a.array if a.values is None else a.values for name, a in constants.items()}
    arrays = {name: a.array for name, a in wrappers.items()}
    return Unwrapped(args | arrays, values, frozenset(wrappers.keys() - constants.keys()))


def layouts(arrays: Mapping[str, Any], wrappers: Unwrapped, workunit: Workunit, space: Space) -> dict[str, str]:
    """Return the layouts of arrays; on a GPU small constants go by value, and rows may be aligned."""
    result = {name: layout(a) for name, a in arrays.items()}
    if space.kind == "host" or space.engine != config.NAME:
        return result
    small = workunit.small.items() if wrappers.constants else ()
    by_value = (name for name, count in small if name in wrappers.constants and len(arrays[name]) >= count)
    aligned = (name for name in wrappers.aligned & workunit.neighbours if even(arrays[name], _address(arrays[name])))
    return result | dict.fromkeys(aligned, ALIGNED) | dict.fromkeys(by_value, VALUE)


def replacement(k: ir.KernelTree, name: str, a: Any, old: str) -> None:
    """Raise LaunchError unless an array has the layout of the one that a launch was prepared with."""
    if old == VALUE:
        raise LaunchError(f"{k.name}: '{name}' was fixed when the launch was prepared")
    if layout(a) != ("C" if old == ALIGNED else old):
        raise LaunchError(f"{k.name}: '{name}' has another layout than the array it was prepared with")


def scalar(k: ir.KernelTree, p: ir.Param, v: object) -> float | int:
    """Return the number as a plain Python one if it fits a parameter, else raise LaunchError."""
    if p.type in ir.REALS:
        if isinstance(v, int | float | np.floating | np.integer) and not isinstance(v, bool):
            return float(v)
    elif p.type == "bool":
        if isinstance(v, bool | np.bool_):
            return int(v)
    elif isinstance(v, int | np.integer) and not isinstance(v, bool):
        bits = 31 if p.type == "int32" else 63
        if -(2**bits) <= v < 2**bits:
            return int(v)
    raise LaunchError(f"{k.name}: '{p.name}' is {v!r}, expected a value of type {p.type}")


def overlap(k: ir.KernelTree, arrays: Mapping[str, Any], changes: Mapping[str, Any]) -> None:
    """Raise LaunchError if a written array overlaps another one, and one of the two has changed."""
    for p in k.params:
        if p.written and p.name in arrays:
            candidates = arrays if p.name in changes else changes
            for name, b in candidates.items():
                if name != p.name and shared_memory(arrays[p.name], b):
                    raise LaunchError(f"{k.name}: '{p.name}' is written and overlaps '{name}'")
