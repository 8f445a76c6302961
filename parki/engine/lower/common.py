"""What every lowering to C++ shares: type names, literals, addresses, and the record that it returns."""

from dataclasses import dataclass

from parki.engine import ir
from parki.engine.errors import Loc

CTYPES = {
    "bool": "bool",
    "int32": "int32_t",
    "int64": "int64_t",
    "double": "double",
    "float": "float",
    "uint8": "uint8_t",
}


@dataclass(frozen=True)
class Lowered:
    """One workunit as C++ text.

    `fields` lists the members of ``struct pk_args`` as (kind, name): kind is ``ptr int64 int32 double float``.
    `sites` names the places that a checked build reports: site n is ``sites[n - 1]`` = (view, place).
    """

    source: str
    fields: tuple[tuple[str, str], ...]
    sites: tuple[tuple[str, Loc], ...]


def literal(value: float | bool, kind: str) -> str:
    """A constant as C++ text of exactly its type."""
    if kind == "bool":
        return "true" if value else "false"
    if kind == "int32":
        return f"({value})" if value < 0 else str(value)
    if kind == "int64":
        return f"((int64_t){value}LL)"
    text = repr(float(value))
    text += "f" if kind == "float" else ""
    return f"({text})" if value < 0 else text


def unit_dimension(layout: str, rank: int) -> int | None:
    """Which index has unit stride: the last (C), the first (F) or none (S)."""
    return {"C": rank - 1, "F": 0, "S": None}[layout]


def strides(view: str, rank: int, layout: str) -> list[str]:
    """The stride of each index as C++ text; ``1`` for the unit one."""
    unit = unit_dimension(layout, rank)
    return ["1" if d == unit else f"{view}_s{d}" for d in range(rank)]


def const_trip(start: ir.Expr, stop: ir.Expr) -> int | None:
    """The number of turns of a range with literal bounds."""
    if isinstance(start, ir.Const) and isinstance(stop, ir.Const):
        return max(0, stop.value - start.value)
    return None
