"""Scans that list entries for which a condition holds: hosts store the lanes' values side by side, without a scan.

Such a scan has one condition, with ``if last: found[n + acc] = …`` and ``acc += 1`` under it.  There may be several
stores, also in loops of known length.
"""

from collections.abc import Iterable

from parki.engine.tree import ir
from parki.engine.tree.walk import const_trip, walk

SIDE_EFFECTS = ir.Store | ir.Atomic | ir.For | ir.While | ir.Return | ir.Single | ir.Range


def is_compaction(s: ir.Range) -> bool:
    """Return whether a scan adds one under one condition, and its total is only the place of the values to keep."""
    if s.kind != "scan" or s.acc_type not in ir.INTEGERS or _count(s.body, ir.Accumulate) != 1:
        return False
    reads = sum(isinstance(n, ir.Name) and n.name == s.acc for n in walk(s.body))
    for n in walk(s.body):
        if isinstance(n, ir.If) and any(isinstance(m, ir.Accumulate) for m in n.then):
            *head, branch, total = n.then if len(n.then) > 1 else (None, None)
            if not isinstance(total, ir.Accumulate) or not _is_one(total.value) or not _stores(branch, s):
                return False
            stores = _count(branch.then, ir.Store)
            effects = _count(s.body, SIDE_EFFECTS) - stores - _count(branch.then, ir.For)
            return not effects and reads == stores and not _mentions(head, s.last)
    return False


def places(e: ir.Expr, acc: str) -> int:
    """Return how often `acc` is added in the sum `e`; other uses of `acc` do not count."""
    if isinstance(e, ir.Binary) and e.op == "+":
        return places(e.left, acc) + places(e.right, acc)
    return int(isinstance(e, ir.Name) and e.name == acc)


def _stores(s: ir.Stmt | None, scan: ir.Range) -> bool:
    """Return whether `s` is ``if last:`` with stores of one element each, at an index with the total as a summand."""
    if not isinstance(s, ir.If) or s.orelse or not (isinstance(s.cond, ir.Name) and s.cond.name == scan.last):
        return False
    return all(_is_kept(n, scan.acc) for n in s.then)


def _is_kept(s: ir.Stmt, acc: str) -> bool:
    """Return whether `s` is a store at the total, or a loop of known length over such stores."""
    if isinstance(s, ir.For):
        return const_trip(s.start, s.stop, s.step) is not None and all(_is_kept(n, acc) for n in s.body)
    return isinstance(s, ir.Store) and _at_total(s, acc)


def _at_total(s: ir.Store, acc: str) -> bool:
    return s.op == "=" and len(s.indices) == 1 and places(s.indices[0], acc) == 1


def _is_one(e: ir.Expr) -> bool:
    return isinstance(e, ir.Const) and e.value == 1


def _count(body: Iterable[ir.Stmt], kind: type) -> int:
    return sum(isinstance(n, kind) for n in walk(body))


def _mentions(body: Iterable[ir.Stmt], name: str) -> bool:
    return any(isinstance(n, ir.Name) and n.name == name for n in walk(body))
