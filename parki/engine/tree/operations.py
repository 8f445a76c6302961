"""Operations, loads and stores of a workunit, counted from its typed tree, by loops and branches.

Operations are counted after a compiler's work: a floating product that feeds an addition or subtraction is one fused
operation, equal values in reach are computed once, values that do not change in a loop are computed before it, and
unused values are not computed.  Loads of views that the workunit does not write are done once likewise, but not moved
out of loops.  Locals and private arrays are registers and count nothing, nor do addresses and the loops themselves.

A loop has the name of its index, and a branch the name that the kernel file gives its condition just before it, as in
``in_reach: bool = r2 < rc2``, else the condition's text.  A ``while`` loop has the name that its condition tests and
its body changes, the `else` of a branch ``not`` and the branch's name.  The path of an inner block is
``"outer:inner"``; any end of the path names the block, and all other blocks whose paths have this end.

>>> from parki import engine
>>> tree = engine.operations(engine.kernel("direct", "direct_sum"))
>>> tree.expected()
['t', 't:e']
>>> found = tree.total({"t": 16, "e": 1000})
>>> found.operations["rsqrt"], found.loads["src"], found.memory
(16000.0, 64000.0, 512512.0)
>>> tree.at("e").total().operations
{'add': 3.0, 'mul': 1.0, 'fma': 3.0, 'rsqrt': 1.0, 'compare': 1.0}
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from parki.engine.tree import ir
from parki.engine.tree.numbering import NumberedBlock, count
from parki.engine.tree.walk import children, walk
from parki.engine.workunit import Workunit

Key = tuple[str, str, bool]  # kind ("operation", "load", "store", "atomic"), its class or view, whether lanes differ


@dataclass(frozen=True)
class Totals:
    """Hold numbers of operations by class, and of elements moved by view or scratch array.

    Classes are ``"fma"``, ``"add"`` (and subtract), ``"mul"``, ``"div"``, the mathematical functions by their names,
    ``"compare"`` (of reals; minima, maxima, floor, ceil and absolute values, too), and ``"integer"``.

    Parameters
    ----------
    operations : dict
        Operations by class.
    loads, stores, updates : dict
        Elements loaded, stored and updated atomically, by view or scratch array.
    itemsize : dict
        Bytes of an element of each view or scratch array.
    arrays : frozenset of str
        Names of scratch arrays.

    See Also
    --------
    CodeBlock.total : Add up the operations of a workunit.

    Examples
    --------
    >>> from parki import engine
    >>> found = engine.operations(engine.kernel("direct", "direct_sum")).total({"t": 1, "e": 100})
    >>> found.operations["rsqrt"], found.updates
    (100.0, {})
    """

    operations: Mapping[str, float]
    loads: Mapping[str, float]
    stores: Mapping[str, float]
    updates: Mapping[str, float]
    itemsize: Mapping[str, int]
    arrays: frozenset[str]

    @property
    def flops(self) -> float:
        """Return the floating-point operations: a fused one is two, a function one, comparisons and integers none."""
        flops = {"fma": 2.0, "compare": 0.0, "integer": 0.0}
        return sum(flops.get(name, 1.0) * n for name, n in self.operations.items())

    @property
    def atomics(self) -> float:
        """Return the number of atomic updates."""
        return sum(self.updates.values())

    @property
    def memory(self) -> float:
        """Return the bytes of views loaded and stored; an atomic update counts as both."""
        return sum(self.bytes(name) for name in self.itemsize if name not in self.arrays)

    @property
    def scratch(self) -> float:
        """Return the bytes of scratch loaded and stored."""
        return sum(self.bytes(name) for name in self.arrays)

    def scaled(self, factor: float) -> "Totals":
        """Return all numbers times a factor.

        Parameters
        ----------
        factor : float
            The factor.

        Returns
        -------
        Totals
            The products.
        """
        parts = (self.operations, self.loads, self.stores, self.updates)
        return Totals(*({name: factor * n for name, n in part.items()} for part in parts), self.itemsize, self.arrays)

    def bytes(self, name: str) -> float:
        """Return the bytes of one view or scratch array loaded and stored.

        Parameters
        ----------
        name : str
            The view or scratch array.

        Returns
        -------
        float
            The bytes.
        """
        elements = self.loads.get(name, 0.0) + self.stores.get(name, 0.0) + 2 * self.updates.get(name, 0.0)
        return self.itemsize.get(name, 0) * elements


@dataclass(frozen=True)
class CodeBlock:
    """Hold the operations of a workunit, a loop or a branch: its own, and the loops and branches in it.

    Parameters
    ----------
    name, path : str
        Name, and names of the blocks down to this one with colons between; of the workunit its name and ``""``.
    kind : {"workunit", "loop", "branch", "else"}
        The kind of block.
    trips : int or None
        Number of turns of a loop with constant bounds, else None.
    lanes : bool
        Whether the turns are the lanes of vectors.
    own : dict
        Operations and accesses of one turn.
    children : tuple of CodeBlock
        Loops and branches directly in the block.
    itemsize : dict
        Bytes of an element of each view and scratch array.
    arrays : frozenset of str
        Names of scratch arrays.

    See Also
    --------
    parki.engine.tree.operations : Count the operations of a workunit.

    Examples
    --------
    >>> from parki import engine
    >>> block = engine.operations(engine.kernel("direct", "direct_sum")).at("e")
    >>> block.kind, block.path, block.own["operation", "rsqrt", True]
    ('loop', 't:e', 1.0)
    """

    name: str
    path: str
    kind: str
    trips: int | None
    lanes: bool
    own: Mapping[Key, float]
    children: tuple["CodeBlock", ...]
    itemsize: Mapping[str, int] = field(repr=False)
    arrays: frozenset[str] = field(repr=False)

    def expected(self) -> list[str]:
        """Return the paths for which `total` needs numbers: loops without constant bounds, and branches.

        Returns
        -------
        list of str
            The paths, each once.
        """
        paths = [b.path for b in self.inner() if b.trips is None and b.kind != "else"]
        return list(dict.fromkeys(paths))

    def missing(self, trips: Mapping[str, float]) -> list[str]:
        """Return the paths of `expected` for which `trips` has no number.

        Parameters
        ----------
        trips : dict
            Numbers by name, as for `total`.

        Returns
        -------
        list of str
            The paths.
        """
        return [path for path in self.expected() if _told(path, trips) is None]

    def at(self, path: str) -> "CodeBlock":
        """Return the first loop or branch with a name.

        Parameters
        ----------
        path : str
            Any end of a path.

        Returns
        -------
        CodeBlock
            The block.

        Raises
        ------
        ValueError
            If there is no such block.
        """
        for block in self.inner():
            if _ends(block.path, path):
                return block
        names = ", ".join(repr(b.path) for b in self.inner())
        raise ValueError(f"path: found {path!r}, expected an end of one of {names or 'none'}")

    def total(self, trips: Mapping[str, float] | None = None, lanes: int = 1, otherwise: float | None = None) -> Totals:
        """Add up the operations and accesses of one turn of this block.

        Parameters
        ----------
        trips : dict, optional
            Numbers by name: the average number of turns of a loop each time it is met, and the share of turns that
            take a branch; an `else` has the rest unless it has a number.  Loops with constant bounds need none.  Other
            names are ignored.
        lanes : int, default 1
            Lanes of a vector: an operation that is the same in all lanes counts once for each vector.
        otherwise : float, optional
            The number for names that `trips` does not have.

        Returns
        -------
        Totals
            The sums.

        Raises
        ------
        ValueError
            If a number is missing.
        """
        trips = trips or {}
        if otherwise is None and (missing := self.missing(trips)):
            names = ", ".join(map(repr, self.expected()))
            raise ValueError(
                f"trips: found no number of {', '.join(map(repr, missing))} of {self.name}, expected {names}"
            )
        counts = self._sum(trips, lanes, otherwise)
        if self.lanes:
            counts = _merged(counts, 1.0, 1.0 / lanes)
        parts: dict[str, dict[str, float]] = {"operation": {}, "load": {}, "store": {}, "atomic": {}}
        for (kind, name, _), n in counts.items():
            parts[kind][name] = parts[kind].get(name, 0.0) + n
        return Totals(*parts.values(), self.itemsize, self.arrays)

    def inner(self) -> Iterator["CodeBlock"]:
        """Yield the loops and branches in this block, each before those in it.

        Yields
        ------
        CodeBlock
            A loop or a branch.
        """
        for child in self.children:
            yield child
            yield from child.inner()

    def _sum(self, trips: Mapping[str, float], lanes: int, otherwise: float | None) -> dict[Key, float]:
        counts = dict(self.own)
        for child in self.children:
            n = child._turns(trips, otherwise)
            inner = child._sum(trips, lanes, otherwise)
            if child.lanes:
                inner, n = _merged(inner, n, n if lanes == 1 else -(-n // lanes)), 1.0
            for key, amount in inner.items():
                counts[key] = counts.get(key, 0.0) + n * amount
        return counts

    def _turns(self, trips: Mapping[str, float], otherwise: float | None) -> float:
        turns = _told(self.path, trips)
        if self.kind == "else" and turns is None:
            share = _told(self.path[: -len(self.name)] + self.name.removeprefix("not "), trips)
            turns = None if share is None else 1.0 - share
        if turns is None:
            turns = self.trips if self.trips is not None else otherwise
        return float(turns)


def _merged(counts: Mapping[Key, float], turns: float, vectors: float) -> dict[Key, float]:
    """Return the counts outside a range of lanes: `turns` times if lanes differ, else `vectors` times."""
    out: dict[Key, float] = {}
    for (kind, name, differs), n in counts.items():
        key = (kind, name, False)
        out[key] = out.get(key, 0.0) + n * (turns if differs else vectors)
    return out


def _ends(path: str, name: str) -> bool:
    return path == name or path.endswith(f":{name}")


def _told(path: str, trips: Mapping[str, float]) -> float | None:
    """Return the number of the longest name that this path ends with, or None."""
    parts = path.split(":")
    for first in range(len(parts)):
        number = trips.get(":".join(parts[first:]))
        if number is not None:
            return number
    return None


@lru_cache(maxsize=128)
def operations(unit: Workunit) -> CodeBlock:
    """Count the operations, loads and stores of a workunit after a compiler's work.

    A floating product that feeds an addition is one fused operation; equal values are computed once, and unused ones
    not at all.  Locals and private arrays are registers and count nothing, nor do addresses and the loops themselves.

    Parameters
    ----------
    unit : Workunit
        A result of `kernel`.

    Returns
    -------
    CodeBlock
        The tree of its loops and branches.

    See Also
    --------
    kernel : Make a workunit.

    Examples
    --------
    >>> from parki import engine
    >>> tree = engine.operations(engine.kernel("direct", "direct_sum"))
    >>> tree.expected()
    ['t', 't:e']
    >>> tree.total({"t": 16, "e": 1000}).operations["rsqrt"]
    16000.0
    """
    twin = copy.copy(unit)
    twin.ir = _needed(unit.ir)
    itemsize, arrays, root = count(twin)

    def block(node: NumberedBlock, path: str) -> CodeBlock:
        inner = [block(child, f"{path}:{child.name}".removeprefix(":")) for child in node.children]
        counts = dict(node.own)
        return CodeBlock(node.name, path, node.kind, node.trips, node.lanes, counts, tuple(inner), itemsize, arrays)

    return block(root, "")


def _needed(kernel: ir.KernelTree) -> ir.KernelTree:
    """Return the kernel without locals that only such locals read, and without branches and loops left empty."""
    bodies = [kernel.body, *(f.body for f in kernel.functions)]
    read: set[str] = set()
    while not read >= (names := {n.name for body in bodies for e in _read(_kept(body, read)) for n in _names(e)}):
        read |= names
    functions = tuple(replace(f, body=_kept(f.body, read)) for f in kernel.functions)
    return replace(kernel, body=_kept(kernel.body, read), functions=functions)


def _kept(body: tuple[ir.Stmt, ...], read: set[str]) -> tuple[ir.Stmt, ...]:
    """Return a body without assignments to names that are not in `read`."""
    statements = []
    for s in body:
        if isinstance(s, ir.Declare | ir.Assign) and s.name not in read:
            continue
        parts = {name: _kept(getattr(s, name), read) for name in ("body", "then", "orelse") if hasattr(s, name)}
        if isinstance(s, ir.If | ir.For) and not any(parts.values()):
            continue
        if isinstance(s, ir.If) and not parts["then"]:
            parts["then"] = s.then  # not empty: the other branch must stay the other one
        statements.append(replace(s, **parts) if parts else s)
    return tuple(statements)


def _read(body: Iterable[ir.Stmt]) -> Iterator[ir.Expr]:
    """Yield the expressions of statements, and of the statements within them."""
    for s in body:
        inner = children(s)
        yield from (e for e in inner if isinstance(e, ir.Expr))
        yield from _read(e for e in inner if isinstance(e, ir.Stmt))


def _names(e: ir.Expr) -> Iterator[ir.Name]:
    return (n for n in walk((e,)) if isinstance(n, ir.Name))
