"""Small steps between the kernels of a sum, which fill, copy, add and reorder arrays."""

from math import prod

import numpy as np

from parki.engine.run.policy import MAX_LEAGUE
from parki.engine.steps.handles import Handle
from parki.engine.steps.listing import Step
from parki.engine.workunit import Workunit, kernel


def fill(phase: str, out: Handle, value: float = 0.0, lane: str | None = None) -> list[Step]:
    """Return steps that set every entry of an array without gaps."""
    unit = kernel("glue", "fill", real=out.dtype)
    return [Step(phase, unit, len(a), {"out": a, "value": value}, lane=lane) for a in _pieces(out)]


def copy(phase: str, a: Handle, out: Handle, lane: str | None = None) -> list[Step]:
    """Return steps that copy an array without gaps to another one, in its dtype."""
    return _both(kernel("glue", "copy", real=out.dtype, other=a.dtype), phase, a, out, lane)


def add(phase: str, a: Handle, out: Handle, lane: str | None = None) -> list[Step]:
    """Return steps that add an array without gaps to another one, in the wider one of their dtypes."""
    wide = np.promote_types(a.dtype, out.dtype)
    return _both(kernel("glue", "add", real=out.dtype, other=a.dtype, wide=wide), phase, a, out, lane)


def gather(phase: str, a: Handle, order: Handle, out: Handle, lane: str | None = None) -> Step:
    """Return the step ``out[k, j] = a[k, order[j]]``."""
    return _ordered("gather", phase, a, order, out, lane)


def scatter(phase: str, a: Handle, order: Handle, out: Handle, lane: str | None = None) -> Step:
    """Return the step ``out[k, order[j]] = a[k, j]``."""
    return _ordered("scatter", phase, a, order, out, lane)


def gather_columns(phase: str, a: Handle, order: Handle, out: Handle, first: int, lane: str | None = None) -> Step:
    """Return the step ``out[j, first + k] = a[k, order[j]]``."""
    unit = kernel("glue", "gather_columns", real=out.dtype)
    args = {"a": a, "order": order, "out": out, "first": first, "rows": len(a)}
    return Step(phase, unit, len(order), args, lane=lane)


def _ordered(name: str, phase: str, a: Handle, order: Handle, out: Handle, lane: str | None) -> Step:
    args = {"a": a, "order": order, "out": out, "rows": len(a)}
    return Step(phase, kernel("glue", name, real=out.dtype), len(order), args, lane=lane)


def _both(unit: Workunit, phase: str, a: Handle, out: Handle, lane: str | None) -> list[Step]:
    if a.shape != out.shape:
        raise ValueError(f"{a.name} has shape {a.shape}; expected that of {out.name}, {out.shape}.")
    pairs = zip(_pieces(a), _pieces(out), strict=True)
    return [Step(phase, unit, len(b), {"a": part, "out": b}, lane=lane) for part, b in pairs]


def _pieces(a: Handle) -> list[Handle]:
    """Return all entries as arrays of one axis, as long as a launch may be."""
    size, itemsize = prod(a.shape), a.dtype.itemsize
    return [a.view(first * itemsize, (min(MAX_LEAGUE, size - first),), a.dtype) for first in range(0, size, MAX_LEAGUE)]
