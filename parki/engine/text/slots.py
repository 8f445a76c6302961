"""Slots: names that a caller may replace in a kernel file and its imports, and the meaning that names then have."""

import ast
import difflib
import math
import os
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from parki.engine.errors import KernelError, Loc
from parki.engine.text import functions
from parki.engine.text.constants import Constant, evaluate
from parki.engine.text.functions import FunctionText
from parki.engine.text.source import Import, KernelLocation, Source, locate, package_place, read
from parki.engine.text.syntax import PkType, fail, loc

TYPE_NAMES = {"double": "double", "float": "float", "float64": "double", "float32": "float"}
TYPE_NAMES |= {"int32": "int32", "int64": "int64"}
REALS = frozenset({"double", "float"})


@dataclass(frozen=True)
class FileRef:
    """A function slot's value: the file, and the function in it (None: the name of the function that is replaced)."""

    file: str | os.PathLike | FunctionText
    function: str | None = None

    def __str__(self) -> str:
        if isinstance(self.file, FunctionText):
            return str(self.file)
        name = os.fsdecode(self.file)
        return f"{name}:{self.function}" if self.function else name


Asked = Constant | str | FileRef


def normal(value: object) -> Asked:
    """Return a slot value in plain Python: NumPy numbers and dtypes, lists and paths take one form each.

    Raises TypeError for values that no slot takes.
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        name = np.dtype(value).name
        return PkType(TYPE_NAMES.get(name, name))
    if isinstance(value, str | FileRef | PkType):
        return value
    if isinstance(value, FunctionText):
        return FileRef(value, value.name)
    if isinstance(value, os.PathLike):
        return FileRef(value)
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str | os.PathLike):
        if isinstance(value[1], str):
            return FileRef(*value)
    elif isinstance(value, tuple | list) or (isinstance(value, np.ndarray) and value.ndim == 1):
        return tuple(normal(v) for v in value)
    raise TypeError(
        f"a {type(value).__name__}, expected a type, a number, a tuple of numbers, a kernel file or a function"
    )


def printable(value: Asked) -> str:
    """Return a slot value as it is shown."""
    if isinstance(value, PkType):
        return value.name
    return str(value) if isinstance(value, str | FileRef) else repr(value)


@dataclass(frozen=True)
class Definition:
    """Meaning of a name: `kind` is ``constant`` or ``function``, defined as `name` in `source`."""

    kind: str
    source: Source
    name: str


class Program:
    """A kernel file, the files it imports from once the function slots are filled, and the values of its constants.

    Raises KernelError K021 for slots that fit nothing, imports that lead nowhere, and import cycles.
    """

    def __init__(self, place: KernelLocation, workunit: str, slots: dict[str, Asked]) -> None:
        self.main = read(place)
        self.sources: dict[str, Source] = {}
        self.places: dict[KernelLocation, Source] = {}
        self._links: dict[tuple[str, str], tuple[Source, str]] = {}
        self._slots, self._used = slots, set()
        self._values: dict[tuple[str, str], Constant] = {}
        if workunit not in self.main.workunits:
            names = ", ".join(self.main.workunits) or "none"
            head = Loc(place.display, 1)
            raise KernelError("K021", head, f"no workunit '{workunit}' in this file", f"Its workunits: {names}")
        self.workunit = self.main.workunits[workunit]
        self._load(self.main, place, ())
        self._check_slots()
        self.real = self._real()

    # Files -----------------------------------------------------------------------------------------------------------
    def _load(self, source: Source, place: KernelLocation, path: tuple[str, ...]) -> None:
        if source.key in self.sources:
            return
        self.sources[source.key] = source
        self.places[place] = source
        path = (*path, source.key)
        targets, places = self._replacements(source)
        for item in source.imports.values():
            old = package_place(item.module)
            new, name = targets.get(item.local, (places.get(old.key, old), item.name))
            target = read(new, loc(item.node))
            if target.key in path:
                chain = " → ".join(self.sources[k].display for k in (*path[path.index(target.key) :], target.key))
                fail("K021", item.node, f"import cycle: {chain}")
            if not target.defines(name):
                reason = f"'{target.display}' does not define '{name}', which {source.display} imports"
                fail("K021", item.node, reason, f"It defines: {', '.join(target.order) or 'nothing'}")
            self._links[source.key, item.local] = target, name
            self._load(target, new, path)

    def _replacements(self, source: Source) -> tuple[dict[str, tuple[KernelLocation, str]], dict[str, KernelLocation]]:
        """Return the new targets of a file's imports: by name for function slots, by file for its other imports."""
        targets: dict[str, tuple[KernelLocation, str]] = {}
        places: dict[str, KernelLocation] = {}
        for item in source.imports.values():
            if item.local not in self._slots:
                continue
            old = package_place(item.module)
            original = read(old, loc(item.node))
            self.places[old] = original
            if item.name not in original.functions:
                continue
            self._used.add(item.local)
            ref = self._reference(item)
            new = locate(ref.file)
            if new.key == source.key:  # a replacement that wraps the function that it replaces
                continue
            targets[item.local] = new, ref.function or item.name
            self._same_parameters(item, original, read(new, loc(item.node)), targets[item.local][1])
            siblings = [
                i.local for i in source.imports.values() if i.module == item.module and i.local not in self._slots
            ]
            if places.setdefault(old.key, new).key != new.key and siblings:
                reason = f"slots replace '{old.display}' by two files, and it is unclear whose '{siblings[0]}' is meant"
                fail("K021", item.node, reason)
        return targets, places

    def _reference(self, item: Import) -> FileRef:
        value = self._slots[item.local]
        if isinstance(value, FileRef):
            return value
        if not isinstance(value, str):
            reason = f"slot '{item.local}' is a function, found {printable(value)}"
            fail("K021", item.node, reason, "Give a kernel file, or (file, function)")
        return FileRef(value)

    def _same_parameters(self, item: Import, old: Source, new: Source, function: str) -> None:
        """Raise unless a function has the parameter types and result of the function that it replaces.

        A Python function without types takes them first.
        """
        if function not in new.functions:
            reason = f"slot '{item.local}': '{new.display}' has no function '{function}'"
            fail("K021", item.node, reason, f"Its functions: {', '.join(new.functions) or 'none'}")
        model, node = old.functions[item.name], new.functions[function]
        node = getattr(node, "untyped", node)
        if new.title and functions.untyped(node) and len(node.args.args) == len(model.args.args):
            new.functions[function] = functions.typed(node, model)
            new.functions[function].untyped = node  # type: ignore[attr-defined]
        expected, signature = _signature(model), _signature(new.functions[function])
        if expected != signature:
            fail("K021", new.functions[function], f"slot '{item.local}': found {signature}, expected {expected}")

    # Names -----------------------------------------------------------------------------------------------------------
    def find(self, source: Source, name: str) -> Definition | None:
        """Return the meaning of `name` at the module level of `source`, or None."""
        if name in source.functions:
            return Definition("function", source, name)
        if name in source.constants:
            return Definition("constant", source, name)
        if name in source.imports:
            return self.find(*self._links[source.key, name])
        return None

    def value(self, definition: Definition) -> Constant:
        """Return the value of a constant, with slots filled."""
        key = definition.source.key, definition.name
        if key not in self._values:
            self._values[key] = (
                self._filled(definition) if definition.name in self._slots else self._default(definition)
            )
        return self._values[key]

    def _default(self, definition: Definition) -> Constant:
        """Return the value of a constant by its own file, from constants above it and imports."""
        source, position = definition.source, definition.source.order[definition.name]

        def earlier(node: ast.Name) -> Constant:
            definition = self.find(source, node.id)
            if definition is None or definition.kind != "constant" or source.order[node.id] >= position:
                fail("K003", node, f"unknown name '{node.id}' in a constant expression", "Define it above")
            return self.value(definition)

        return evaluate(source.constants[definition.name], earlier)

    def _filled(self, definition: Definition) -> Constant:
        """Return the slot's value for a constant, which must be of the kind of the default."""
        request = self._slots[definition.name]
        try:
            default = self._default(definition)
        except KernelError as e:
            if e.code != "K021":
                raise
            default = None  # no default under these slots: any kind will do
        value = _of_kind(request, default)
        if value is None:
            kind = "a constant" if default is None else "a " + _kind(default)
            fail(
                "K021",
                definition.source.constants[definition.name],
                f"slot '{definition.name}' is {kind}, found {printable(request)}",
            )
        return value

    def _check_slots(self) -> None:
        """Raise unless a reachable file uses every slot; evaluate all constants that are slots to check their kind."""
        for name in self._slots:
            for source in self.sources.values():
                if name in source.constants:
                    self._used.add(name)
                    self.value(Definition("constant", source, name))
            if name not in self._used:
                self._unknown(name)

    def _unknown(self, name: str) -> NoReturn:
        names = {n for s in self.sources.values() for n in s.constants}
        names |= {n for s in self.sources.values() for n, i in s.imports.items() if self.find(s, n).kind == "function"}
        matches = difflib.get_close_matches(name, sorted(names), n=1)
        advice = f"Did you mean '{matches[0]}'?" if matches else f"Slots: {', '.join(sorted(names)) or 'none'}"
        fail("K021", self.workunit, f"unknown slot '{name}'", advice)

    def _real(self) -> str:
        """Return the kernel's real type: that of ``real`` in the main file, else in any file, else double."""
        for source in self.sources.values():
            if "real" in source.constants:
                value = self.value(Definition("constant", source, "real"))
                if isinstance(value, PkType) and value.name in REALS:
                    return value.name
                fail("K021", source.constants["real"], "'real' is not pk.double or pk.float")
        return "double"


def _signature(node: ast.FunctionDef) -> str:
    types = ", ".join(ast.unparse(a.annotation) if a.annotation else "?" for a in node.args.args)
    return f"({types}) -> {ast.unparse(node.returns) if node.returns else '?'}"


def _kind(value: Constant) -> str:
    if isinstance(value, PkType):
        return "real type" if value.name in REALS else "integer type"
    names = {bool: "bool", int: "int", float: "real number", tuple: "tuple of numbers"}
    return names[type(value)]


def _of_kind(request: Asked, default: Constant | None) -> Constant | None:
    """Return `request` as a value of the kind of `default` (None: of any kind), or None if it has another kind."""
    if isinstance(default, PkType) or (default is None and isinstance(request, str | PkType)):
        name = (
            request.name
            if isinstance(request, PkType)
            else TYPE_NAMES.get(request)
            if isinstance(request, str)
            else None
        )
        is_type = name in TYPE_NAMES.values()
        matches = is_type and (default is None or (name in REALS) == (default.name in REALS))
        return PkType(name) if matches else None
    if isinstance(request, str | FileRef | PkType):
        return None
    if isinstance(request, tuple) and not all(isinstance(v, bool | int | float) for v in request):
        return None
    if any(
        isinstance(v, float) and not math.isfinite(v) for v in (request if isinstance(request, tuple) else (request,))
    ):
        return None
    if type(default) is float and type(request) is int:
        return float(request)
    if isinstance(request, tuple) and isinstance(default, tuple):
        reals = any(isinstance(v, float) for v in (*request, *default))
        return tuple(float(v) for v in request) if reals else request
    return request if default is None or type(request) is type(default) else None
