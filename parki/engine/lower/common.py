"""Type names, literals and addresses that all lowerings to C++ share, and the record that they return."""

import ctypes
import math
from dataclasses import dataclass
from typing import Any

from parki.engine.errors import Loc
from parki.engine.tree import ir, lanes
from parki.engine.tree.walk import walk

CTYPES = {
    "bool": "bool",
    "int32": "int32_t",
    "int64": "int64_t",
    "double": "double",
    "float": "float",
    "uint8": "uint8_t",
}
DTYPE = {"double": "float64", "float": "float32", "int32": "int32", "int64": "int64", "uint8": "uint8"}
# types of the members of an argument structure
FIELD: dict[str, Any] = {
    "ptr": ctypes.c_void_p,
    "int64": ctypes.c_int64,
    "int32": ctypes.c_int32,
    "double": ctypes.c_double,
    "float": ctypes.c_float,
}
VALUE = "V"  # layout of a view that is passed by value
ALIGNED = "A"  # layout C with rows that begin at even elements of memory
LOWEST = {"int32": -(2**31), "int64": -(2**63)}


@dataclass(frozen=True)
class Lowered:
    """A workunit as C++ text.

    `fields` lists the members of ``struct pk_args`` as (kind, name): kind is ``ptr int64 int32 double float``, or, of a
    view passed by value, that of its elements and their number, as in ``double[60]``.
    `sites` names the places that a checked build reports: site n is ``sites[n - 1]`` = (view, place).
    """

    source: str
    fields: tuple[tuple[str, str], ...]
    sites: tuple[tuple[str, Loc], ...]


def field(kind: str) -> Any:
    """Return the type of a member of an argument structure, of this kind."""
    kind, _, count = kind.partition("[")
    return FIELD[kind] * int(count.removesuffix("]")) if count else FIELD[kind]


def literal(value: float | bool, kind: str) -> str:
    """Return a constant as C++ text of exactly its type."""
    if kind == "bool":
        return "true" if value else "false"
    if kind in LOWEST:
        if value == LOWEST[kind]:  # C++ would read a minus sign, then a number that is too large
            return f"(({CTYPES[kind]})({value + 1}LL - 1))"
        text = str(value)
        return f"((int64_t){text}LL)" if kind == "int64" else f"({text})" if value < 0 else text
    if kind == "double":
        text = repr(float(value))
    else:
        # rounded to double first, as everywhere else; a decimal fraction read as float may differ
        single = ctypes.c_float(value).value
        text = f"{single!r}f" if math.isfinite(single) else f"{'-' if single < 0 else ''}__builtin_inff()"
    return f"({text})" if text.startswith("-") else text


def unit_dimension(layout: str, rank: int) -> int | None:
    """Return the index that has unit stride: the last (C, aligned, or by value), the first (F) or none (S)."""
    return {"C": rank - 1, ALIGNED: rank - 1, "F": 0, "S": None, VALUE: rank - 1}[layout]


def stride(view: str, dim: int) -> str:
    """Return the C++ name of a stride, in elements; no name of a kernel begins with ``pk``."""
    return f"pk_s{dim}_{view}"


def extent(view: str, dim: int) -> str:
    """Return the C++ name of an extent."""
    return f"pk_n{dim}_{view}"


def strides(view: str, rank: int, layout: str) -> list[str]:
    """Return the stride of each index as C++ text; ``1`` for unit stride."""
    unit = unit_dimension(layout, rank)
    return ["1" if d == unit else stride(view, d) for d in range(rank)]


def used_extents(kernel: ir.KernelTree) -> set[tuple[str, int]]:
    """Return the extents that a lowered tree reads, as (view, dimension)."""
    extents = set()
    for n in walk((*kernel.body, *(s for f in kernel.functions for s in f.body))):
        if isinstance(n, ir.Extent):
            extents.add((n.view, n.dim))
        elif isinstance(n, lanes.Checked):
            extents |= {(n.view, d) for d in range(len(n.indices))}
    return extents
