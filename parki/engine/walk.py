"""Iteration over the typed tree, for every pass that only needs to look."""

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass

from parki.engine import ir


def children(node: object) -> Iterator[ir.Expr | ir.Stmt]:
    """The expressions and statements directly below `node`."""
    for f in fields(node):
        v = getattr(node, f.name)
        for x in v if isinstance(v, tuple) else (v,):
            if is_dataclass(x) and isinstance(x, ir.Expr | ir.Stmt):
                yield x


def walk(nodes: Iterable[ir.Expr | ir.Stmt]) -> Iterator[ir.Expr | ir.Stmt]:
    """All nodes at and below `nodes`, outer before inner."""
    for node in nodes:
        yield node
        yield from walk(children(node))


def has_vector_range(body: Iterable[ir.Stmt]) -> bool:
    """Whether a ThreadVectorRange stands anywhere in `body`."""
    return any(isinstance(n, ir.Range) and n.level == "vector" for n in walk(body))


def is_lane_range(node: ir.Range) -> bool:
    """Lanes run over a vector range, and over a team range that holds no vector range (B.3)."""
    return node.level == "vector" or not has_vector_range(node.body)


def const_trip(start: ir.Expr, stop: ir.Expr, step: int = 1) -> int | None:
    """The number of turns of a range with literal bounds."""
    if isinstance(start, ir.Const) and isinstance(stop, ir.Const):
        return len(range(start.value, stop.value, step))
    return None
