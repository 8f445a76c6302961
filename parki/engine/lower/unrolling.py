"""Constant loops that hosts write out: short ones, unless they step through rows."""

from parki.engine.lower.values import Views
from parki.engine.tree import ir
from parki.engine.tree.walk import const_trip, walk

UNROLL = 40  # turns, at most, of a loop that is written out
MOST = 40 * UNROLL  # nodes, at most, of a loop that is written out


def turns_written_out(s: ir.For, trip: int, views: Views) -> int:
    """Return the number of turns of a loop of `trip` turns to write out; 1 if it stays a loop."""
    return max(trip, 1) if _worth_unrolling(s, trip, views) else 1


def _worth_unrolling(s: ir.For, trip: int, views: Views) -> bool:
    """Return whether a loop is short and does not step through rows: unrolled, each row costs its own addresses."""
    if trip > UNROLL or trip * _unrolled(s.body, views) > MOST:
        return False
    accesses = (n for n in walk(s.body) if isinstance(n, ir.Load | ir.Store | ir.Atomic))
    # a view that is not registered yet is a table of the body's own
    indices = ((n.indices, views.strides.get(n.view, ["1"])) for n in accesses)
    rows = (e for position, strides in indices for e, stride in zip(position, strides, strict=True) if stride != "1")
    return not any(isinstance(n, ir.Name) and n.name == s.name for n in walk(rows))


def _unrolled(body: tuple[ir.Stmt, ...], views: Views) -> int:
    """Count the nodes of a body, with those of its own loops as often as they are written out."""
    count, ids = 0, set()
    for n in walk(body):
        count += 1
        trip = const_trip(n.start, n.stop, n.step) if isinstance(n, ir.For) and id(n) not in ids else None
        if trip is not None:
            inner = list(walk(n.body))
            ids |= {id(m) for m in inner}
            if _worth_unrolling(n, trip, views):
                count += trip * _unrolled(n.body, views) - len(inner)
    return count
