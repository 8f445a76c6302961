"""Loads of neighbours for GPUs: two reals beside each other in a row of a view become one load.

Neighbours are an even element of a row and the next one, both read in the same block, whatever branch runs.  Rows must
begin at even elements of memory (layout ``A``), and the kernel must not write the view.  Only loops of one thread are
changed: elsewhere a load is done once, and neighbours take registers.  Whole numbers stay alone: compilers move single
loads out of loops, but not loads of two.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import count
from typing import Any

from parki.engine.tree import ir, threads
from parki.engine.tree.lanes import NOWHERE
from parki.engine.tree.walk import children, rebuilt, walk

ENDS = (ir.Break, ir.Continue, ir.Return)
Body = tuple[ir.Stmt, ...]
Key = tuple[Any, ...]


def neighbour_views(kernel: ir.KernelTree) -> frozenset[str]:
    """Return the views of which a workunit reads neighbours."""
    views = {p.name for p in kernel.params if p.rank and not p.written and p.type in ir.REALS}
    return frozenset(s.view for s in walk(joined(kernel, views).body) if isinstance(s, threads.LoadTwo))


def joined(kernel: ir.KernelTree, views: Collection[str]) -> ir.KernelTree:
    """Return a kernel that reads neighbours in rows of these views at once."""
    return replace(kernel, body=_Neighbours(kernel, views).block(kernel.body, in_loop=False)) if views else kernel


@dataclass(frozen=True)
class _Use:
    """A load of one of two neighbours: the key of both, the first one's indices, and whether it is the second."""

    key: Key
    indices: tuple[ir.Expr, ...]
    second: bool


class _Neighbours:
    """Pass over blocks of a kernel."""

    def __init__(self, kernel: ir.KernelTree, views: Collection[str]) -> None:
        self.views = views
        self.constants = {p.name for p in kernel.params if p.rank and not p.written}
        self.numbers = count(1)
        self.even = _even_names(kernel)

    def block(self, body: Body, in_loop: bool) -> Body:
        """Return a block that reads neighbours where it read the first of both, in loops of one thread."""
        uses = list(self._uses(body)) if in_loop else []
        halves: dict[Key, set[bool]] = {}
        for use in (use for _, _, use in uses):
            halves.setdefault(use.key, set()).add(use.second)
        names: dict[Key, str] = {}
        loads: dict[int, list[threads.LoadTwo]] = {}
        elements: dict[int, dict[int, ir.Name]] = {}
        for place, load, use in uses:
            if len(halves[use.key]) < 2:
                continue
            if use.key not in names:
                names[use.key] = f"pk_two{next(self.numbers)}"
                two = threads.LoadTwo(
                    name=names[use.key], view=load.view, indices=use.indices, type=load.type, loc=load.loc
                )
                loads.setdefault(place, []).append(two)
            name = f"{names[use.key]}.{'xy'[use.second]}"
            elements.setdefault(place, {})[id(load)] = ir.Name(name=name, type=load.type, loc=load.loc)
        out: list[ir.Stmt] = []
        for place, s in enumerate(body):
            out += loads.get(place, ())
            loop = isinstance(s, ir.For | ir.While) or (in_loop and not isinstance(s, ir.Range))
            out.append(self._nested(s, elements.get(place, {}), loop))
        return tuple(out)

    def _nested(self, s: ir.Stmt, elements: dict[int, ir.Name], in_loop: bool) -> ir.Stmt:
        """Return a statement with elements in place of loads; the blocks within read neighbours, too."""

        def element(e: ir.Expr) -> ir.Expr:
            return elements[id(e)] if id(e) in elements else rebuilt(e, element)

        new: dict[str, Any] = {}
        for f in fields(s):
            value = getattr(s, f.name)
            if isinstance(value, ir.Expr):
                new[f.name] = element(value)
            elif isinstance(value, tuple) and value and isinstance(value[0], ir.Expr):
                new[f.name] = tuple(map(element, value))
            elif isinstance(value, tuple) and value and isinstance(value[0], ir.Stmt):
                new[f.name] = self.block(value, in_loop)
        return replace(s, **new)

    def _uses(self, body: Body) -> Iterator[tuple[int, ir.Load, _Use]]:
        """Yield the place of each load of a block that may have a neighbour, and the load.

        Loads before and after a change of a name are different, and so are loads before and after a jump.
        """
        versions: dict[str, int] = {}
        segment = 0
        for place, s in enumerate(body):
            for load in [] if isinstance(s, ir.While) else _loads(s):
                use = self._use(load, versions, segment)
                if use is not None:
                    yield place, load, use
            for node in walk((s,)):
                segment += isinstance(node, ENDS)
                if isinstance(node, ir.Stmt):
                    for name in _bound(node):
                        versions[name] = versions.get(name, 0) + 1

    def _use(self, load: ir.Load, versions: dict[str, int], segment: int) -> _Use | None:
        """Return a load as one of two neighbours; None if it may not be."""
        if load.view not in self.views:
            return None
        *rows, last = load.indices
        offset, terms = _split(last)
        if offset < 0 or load.indices[-1].type not in ir.INTEGERS or not all(_is_even(e, self.even) for e in terms):
            return None
        parts = [_text(e, versions, self.constants) for e in (*rows, *terms)]
        if None in parts:
            return None
        second = bool(offset % 2)
        first = replace(last, value=last.value - second) if isinstance(last, ir.Const) else last
        if second and not isinstance(last, ir.Const):
            step = ir.Const(value=1, type=last.type, loc=NOWHERE)
            first = ir.Binary(op="-", left=last, right=step, type=last.type, loc=last.loc)
        return _Use((load.view, segment, offset // 2, *parts), (*rows, first), second)


def _is_even(e: ir.Expr, names: Collection[str]) -> bool:
    """Tell whether a whole number is known to be even, where these names are."""
    match e:
        case ir.Const():
            return e.value % 2 == 0
        case ir.Name():
            return e.name in names
        case ir.Binary(op="*"):
            return _is_even(e.left, names) or _is_even(e.right, names)
        case ir.Binary(op="+" | "-"):
            return _is_even(e.left, names) and _is_even(e.right, names)
        case ir.Cast():
            return _is_even(e.arg, names)
    return False


def _even_names(kernel: ir.KernelTree) -> frozenset[str]:
    """Return the names that always hold even numbers: they are declared as such, or count in even steps."""
    values: dict[str, list[ir.Expr | None]] = {}
    for s in walk(kernel.body):
        if isinstance(s, ir.Stmt):
            for name in _bound(s):
                values.setdefault(name, []).append(_value(s))
    even: frozenset[str] = frozenset()
    while True:
        names = {
            name
            for name, bound in values.items()
            if all(v is not None and v.type in ir.INTEGERS and _is_even(v, even) for v in bound)
        }
        if names == even:
            return even
        even = frozenset(names)


def _value(s: ir.Stmt) -> ir.Expr | None:
    """Return a value that is even only if all that a statement gives its name are even; None if there is none."""
    match s:
        case ir.Declare():
            return s.value
        case ir.For() if s.step % 2 == 0:
            return s.start
    return None


def _bound(s: ir.Stmt) -> Iterator[str]:
    """Yield the names to which a statement itself gives values."""
    match s:
        case ir.Declare() | ir.Assign() | ir.For() | ir.Accumulate():
            yield s.name
        case ir.Atomic():
            yield from filter(None, (s.result,))
        case ir.Range():
            yield from filter(None, (s.index, s.acc, s.last, s.result))


def _loads(node: ir.Expr | ir.Stmt) -> Iterator[ir.Load]:
    """Yield the loads that a statement or an expression does itself, on every way through."""
    if isinstance(node, ir.Load):
        yield node
    if isinstance(node, ir.Bool):  # the other conditions may be left out
        yield from _loads(node.args[0])
        return
    for child in children(node):
        if isinstance(child, ir.Expr):
            yield from _loads(child)


def _split(index: ir.Expr) -> tuple[int, list[ir.Expr]]:
    """Return the sum of the constants of an index, and its other terms."""
    match index:
        case ir.Const():
            return int(index.value), []
        case ir.Binary(op="+"):
            (a, left), (b, right) = _split(index.left), _split(index.right)
            return a + b, left + right
    return 0, [index]


def _text(e: ir.Expr, versions: Mapping[str, int], constants: Collection[str]) -> Key | None:
    """Return a key that is equal for equal values; None for loads from other views than `constants`."""
    match e:
        case ir.Name():
            return e.name, versions.get(e.name, 0)
        case ir.Load() if e.view not in constants:
            return None
    parts: list[Any] = [type(e).__name__]
    for f in fields(e):
        value = getattr(e, f.name)
        if f.name == "loc":
            continue
        for v in value if isinstance(value, tuple) else (value,):
            part = _text(v, versions, constants) if isinstance(v, ir.Expr) else v
            if part is None and isinstance(v, ir.Expr):
                return None
            parts.append(part)
    return tuple(parts)
