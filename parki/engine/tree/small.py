"""Views of a workunit that are small enough to be passed by value: a GPU reads them beside its other arguments.

Such a view has one index and is read alone, at places that constants and loops with constant bounds make.
"""

from collections.abc import Iterable, Mapping

from parki.engine.tree import ir
from parki.engine.tree.walk import children

BYTES = 2048  # of all views by value of a workunit; arguments of a launch have 4096 bytes on every device
ITEM = {"double": 8, "int64": 8, "float": 4, "int32": 4}
Bounds = Mapping[str, tuple[int, int]]  # least and largest value of loop indices


def small_views(kernel: ir.KernelTree) -> dict[str, int]:
    """Return the elements that a workunit reads of each view that can be passed by value."""
    body = (*kernel.body, *(s for f in kernel.functions for s in f.body))
    views = {p.name: p for p in kernel.params if p.rank == 1 and not p.written}
    last: dict[str, int | None] = {}
    _visit(body, {}, last)
    sizes = {name: n + 1 for name, n in last.items() if name in views and n is not None and views[name].type in ITEM}
    result, room = {}, BYTES
    for name, size in sorted(sizes.items(), key=lambda entry: entry[1] * ITEM[views[entry[0]].type]):
        room -= size * ITEM[views[name].type]
        if room >= 0:
            result[name] = size
    return {name: result[name] for name in views if name in result}


def _visit(nodes: Iterable[ir.Expr | ir.Stmt], bounds: Bounds, last: dict[str, int | None]) -> None:
    """Set the last place that is read of each view, None where places are not known or below 0, or extents are read."""
    for node in nodes:
        inner = bounds
        if isinstance(node, ir.Load):
            place = _range(node.indices[0], bounds) if len(node.indices) == 1 else None
            highest = last.get(node.view, 0)
            if place is None or place[0] < 0 or highest is None:
                last[node.view] = None
            else:
                last[node.view] = max(highest, place[1])
        elif isinstance(node, ir.Extent):
            last[node.view] = None
        elif isinstance(node, ir.For):
            turns = None
            if isinstance(node.start, ir.Const) and isinstance(node.stop, ir.Const):
                turns = range(node.start.value, node.stop.value, node.step)
            inner = {name: range_ for name, range_ in bounds.items() if name != node.name}
            if turns:
                inner[node.name] = min(turns[0], turns[-1]), max(turns[0], turns[-1])
        _visit(children(node), inner, last)


def _range(index: ir.Expr, bounds: Bounds) -> tuple[int, int] | None:
    """Return the least and the largest value of an index, None if they are not known."""
    match index:
        case ir.Const():
            return index.value, index.value
        case ir.Name():
            return bounds.get(index.name)
        case ir.Binary(op="+" | "-" | "*"):
            a, b = _range(index.left, bounds), _range(index.right, bounds)
            if a is None or b is None:
                return None
            if index.op == "*":
                values = [x * y for x in a for y in b]
            elif index.op == "+":
                values = [x + y for x in a for y in b]
            else:
                values = [x - y for x in a for y in b]
            return min(values), max(values)
    return None
