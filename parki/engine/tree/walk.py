"""Iteration over trees, for passes that read them, and replacement of children, for passes that rewrite them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, TypeVar

from parki.engine.tree import ir

NODES = (ir.Expr, ir.Stmt)
N = TypeVar("N", ir.Expr, ir.Stmt)


@lru_cache(maxsize=64)
def _members(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name not in ("loc", "type"))


def children(node: ir.Expr | ir.Stmt) -> list[ir.Expr | ir.Stmt]:
    """Return the expressions and statements directly below `node`, in order of its fields."""
    nodes: list[ir.Expr | ir.Stmt] = []
    for name in _members(type(node)):
        v = getattr(node, name)
        if isinstance(v, NODES):
            nodes.append(v)
        elif isinstance(v, tuple):
            nodes += [x for x in v if isinstance(x, NODES)]
    return nodes


def rebuilt(node: N, change: Callable[[Any], Any]) -> N:
    """Return a node with each expression and statement directly below it replaced by ``change`` of it."""
    new = {}
    for name in _members(type(node)):
        v = getattr(node, name)
        if isinstance(v, NODES):
            new[name] = change(v)
        elif isinstance(v, tuple):
            new[name] = tuple(change(x) if isinstance(x, NODES) else x for x in v)
    return replace(node, **new) if new else node


def walk(nodes: Iterable[ir.Expr | ir.Stmt]) -> Iterator[ir.Expr | ir.Stmt]:
    """Yield all nodes at and below `nodes`, outer before inner."""
    stack = list(nodes)[::-1]
    while stack:
        node = stack.pop()
        yield node
        stack += children(node)[::-1]


def has_vector_range(body: Iterable[ir.Stmt]) -> bool:
    """Return whether a ThreadVectorRange stands anywhere in `body`."""
    return any(isinstance(n, ir.Range) and n.level == "vector" for n in walk(body))


def is_lane_range(node: ir.Range) -> bool:
    """Return whether lanes run over a range: a vector range, or a team range that holds no vector range (B.3)."""
    return node.level == "vector" or not has_vector_range(node.body)


def const_trip(start: ir.Expr, stop: ir.Expr, step: int = 1) -> int | None:
    """Return the number of turns of a range with literal bounds, else None."""
    if isinstance(start, ir.Const) and isinstance(stop, ir.Const):
        return len(range(start.value, stop.value, step))
    return None
