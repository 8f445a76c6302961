"""Specialising: a kernel file as people write it (L1) and values for its slots give one complete, readable file (L0).

Specialising works on syntax trees alone: kernel text is never executed or imported.  The result is in the workunit
subset if the input is.  Only properties that specialising relies on are checked here; the checks on L0 do the rest.
"""

import ast
import os
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from parki.engine import forks
from parki.engine.compile import translations
from parki.engine.errors import KernelError, Loc
from parki.engine.text import functions
from parki.engine.text.constants import Constant
from parki.engine.text.inline import Inliner
from parki.engine.text.l0text import TracedText
from parki.engine.text.literals import hoisted
from parki.engine.text.rewrite import Rewriter
from parki.engine.text.routines import WORKUNIT, Routine, Routines, callee
from parki.engine.text.slots import Asked, FileRef, Program, normal, printable
from parki.engine.text.source import KernelLocation, digest, digest_at, is_path, locate
from parki.engine.text.syntax import Names, bound_names, expressions, statements, table_of
from parki.engine.text.unroll import scalars_only

CACHE_SIZE = 512


@dataclass(frozen=True)
class L0:
    """Specialised workunit.

    `text` is the whole file, header line included; `hash` has 16 hex digits of BLAKE2b over the text without that line,
    and `filename` is ``name_hash.py``.  Line i + 1 came from ``linemap[i]``, a display path such as ``kernels/p2p.py``
    and a line, or from nowhere: ``("", 0)``.  `slots` holds the values asked for, and `sources` the files used.
    """

    name: str
    text: str
    hash: str
    filename: str
    linemap: tuple[tuple[str, int], ...]
    slots: tuple[tuple[str, str], ...]
    sources: tuple[str, ...]

    def __hash__(self) -> int:
        return hash(self.filename)


_cache: OrderedDict[tuple, tuple[dict[KernelLocation, tuple], L0]] = OrderedDict()
_lock = forks.lock()


def specialise(source: str | os.PathLike, workunit: str, **slots: object) -> L0:
    """Return the L0 file of one workunit with its slots filled.

    Parameters
    ----------
    source : str or path
        A kernel file of parki, named as in ``p2p`` or ``pair/laplace``, or the path of a file of one's own: an
        `os.PathLike`, or a string that ends in ``.py`` or is absolute.
    workunit : str
        The name of the workunit in that file.
    **slots
        Values for module-level constants of the file and of the files it imports from: ``real="float"`` (or a NumPy
        dtype), numbers, tuples of numbers.  An imported function is replaced by naming the kernel file with the new one
        (``pair="pair/stokes_comb"``), a path, ``(file, function)`` or a Python function; everything else imported from
        the old file then comes from the new one.

    Returns
    -------
    L0
        Results are kept until one of the files changes.

    Raises
    ------
    KernelError
        K021 for slots, imports, tables and loops that cannot be specialised; K001, K002, K003, K004, K008, K010, K011
        and K020 where the text is outside L1.  Places are in the L1 files.
    """
    place = locate(source)
    requests = _normal(place, slots)
    shown = tuple((name, printable(value)) for name, value in requests.items())
    # repr, as 1, 1.0 and True are different slots; relative paths depend on the working directory.
    names_files = any(isinstance(v, FileRef) or (isinstance(v, str) and is_path(v)) for v in requests.values())
    key = place.key, place.display, workunit, repr(requests), os.getcwd() if names_files else ""
    with _lock:
        entry = _cache.get(key)
    if entry is not None and all(p.stamp() == stamp for p, stamp in entry[0].items()):
        return entry[1]
    entry = _recalled(key)
    if entry is None:
        program = Program(place, workunit, requests)
        result = _specialise(program, workunit, shown)
        translations.keep(({p: s.hash for p, s in program.places.items()}, result), *key)
        entry = {p: s.stamp for p, s in program.places.items()}, result
    with _lock:
        _cache[key] = entry
        _cache.move_to_end(key)
        if len(_cache) > CACHE_SIZE:
            _cache.popitem(last=False)
    return entry[1]


def _recalled(key: tuple[str, ...]) -> tuple[dict[KernelLocation, tuple], L0] | None:
    """Return the stamps of the files and the result that another process kept, None if one of the files changed."""
    record = translations.recall(*key)
    if record is None:
        return None
    digests, result = record
    stamps = {p: p.stamp() for p in digests}  # before the files are read: a later change is then seen
    return (stamps, result) if all(digest_at(p) == old for p, old in digests.items()) else None


def constants(source: str | os.PathLike, workunit: str, names: Iterable[str], **slots: object) -> tuple[Constant, ...]:
    """Return the values of module-level names of a kernel file, its own or imported, with its slots filled.

    Parameters
    ----------
    source : str or path
        Name of a kernel file of parki, or the path of a file of your own.
    workunit : str
        Name of a ``@pk.workunit`` in it.
    names : iterable of str
        Names of constants.
    **slots
        Values of module-level names, as for `parki.engine.kernel`.

    Returns
    -------
    tuple
        The values.

    Raises
    ------
    KernelError
        The file, or its form with these slots, is outside the workunit subset; K003 for a name that the file has not.

    See Also
    --------
    kernel : Make the workunit.

    Examples
    --------
    >>> from parki import engine
    >>> engine.constants("clusters", "ranges", ("NS", "NU"), pair="pair/stokes_comb")
    (9, 3)
    """
    place = locate(source)
    program = Program(place, workunit, _normal(place, slots))
    values = []
    for name in names:
        definition = program.find(program.main, name)
        if definition is None or definition.kind != "constant":
            raise KernelError("K003", Loc(place.display, 1), f"no constant '{name}' in this file")
        values.append(program.value(definition))
    return tuple(values)


def _normal(place: KernelLocation, slots: dict[str, object]) -> dict[str, Asked]:
    """Return the slot values in plain Python, sorted by name."""
    requests: dict[str, Asked] = {}
    for name, value in sorted(slots.items()):
        try:
            requests[name] = normal(functions.text_of(value, f"slot '{name}'"))
        except TypeError as e:
            raise KernelError("K021", Loc(place.display, 1), f"slot '{name}' is {e}") from None
    return requests


def _specialise(program: Program, workunit: str, shown: tuple[tuple[str, str], ...]) -> L0:
    routines = Routines(program)
    units = {**routines.found, WORKUNIT: routines.workunit}
    names = _function_names(units)
    for unit in units.values():  # callees first
        _lower(unit, units, names, program.real)
    callees = _called(routines.workunit, units)
    function_keys = [k for k in routines.found if k in callees]
    text = TracedText()
    text.add(_header(program, units, shown))
    body = TracedText()
    names_used: set[str] = set()
    for k in (*function_keys, WORKUNIT):
        unit = units[k]
        final = Rewriter(program.real, {n: names[n] for n in function_keys}).block(unit.body)
        names_used |= {n.id for s in statements(final) for n in expressions(s) if isinstance(n, ast.Name)}
        body.definition(names[k], unit, final, ast.get_docstring(unit.node) if k == WORKUNIT else None)
    text.add("import pykokkos as pk")
    if "List" in names_used:
        text.add("from typing import List")
    if "math" in names_used:
        text.add("import math")
    lines, origins = text.lines + body.lines, text.origins + body.origins
    number = digest("".join(f"{line}\n" for line in lines[1:]))
    return L0(
        name=workunit,
        text="".join(f"{line}\n" for line in lines),
        hash=number,
        filename=f"{workunit}_{number}.py",
        linemap=tuple(origins),
        slots=shown,
        sources=tuple(dict.fromkeys(s.display for s in program.sources.values())),
    )


def _lower(unit: Routine, units: dict[str, Routine], names: dict[str, str], real: str) -> None:
    """Do steps 7 to 10 and the literals: inline, unroll, split, drop.  Inline functions are only expanded."""
    params = {a.arg for a in unit.params}
    nodes = (n for s in statements(unit.body) for n in expressions(s))
    names_used = {n.id for n in nodes if isinstance(n, ast.Name) and table_of(n) is None}
    local = Names(params | bound_names(unit.body) | names_used | set(names.values()))
    unit.body = Inliner(units, local, real).block(unit.body, params)
    if not unit.inline:
        unit.body = scalars_only(unit.body, local, real)
        unit.body = hoisted(unit, unit.body, local, real, units)


def _function_names(units: dict[str, Routine]) -> dict[str, str]:
    """Return the L0 names of functions and workunit, by id: their own, or ``file__name`` where that is taken."""
    reserved = {units[WORKUNIT].node.name}
    for unit in units.values():
        reserved |= bound_names(unit.body) | {a.arg for a in unit.params}
    names = {WORKUNIT: units[WORKUNIT].node.name}
    for k, unit in units.items():
        if k == WORKUNIT or unit.inline:
            continue
        name = base = unit.node.name
        if name in reserved:
            name = base = f"{unit.source.stem}__{name}"
        number = 2
        while name in reserved:
            name, number = f"{base}_{number}", number + 1
        reserved.add(name)
        names[k] = name
    return names


def _called(unit: Routine, units: dict[str, Routine]) -> set[str]:
    """Return the ids of the functions that a lowered routine calls, directly or not."""
    keys: set[str] = set()
    stack = [unit]
    while stack:
        for s in statements(stack.pop().body):
            for n in expressions(s):
                k = callee(n)
                if k is not None and k not in keys:
                    keys.add(k)
                    stack.append(units[k])
    return keys


def _header(program: Program, units: dict[str, Routine], shown: tuple[tuple[str, str], ...]) -> str:
    files = ", ".join(f"{u.node.name} from {u.source.display}" for u in reversed(units.values()))
    slots = ", ".join([f"real=pk.{program.real}", *(f"{k}={_short(v)}" for k, v in shown if k != "real")])
    return " ".join(f"# parki L0 · {files} · {slots}".splitlines())


def _short(value: str) -> str:
    """Return a slot value that fits in a line: long tables are cut."""
    return value if len(value) <= 60 else value[:56] + " …)"
