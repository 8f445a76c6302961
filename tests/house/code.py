"""Python files of the tree, parsed once, and measures of how modules, functions and classes are arranged."""

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.house.process import ROOT
from tests.test_structure import module_of, python_files

KINDS = {"host", "device", "sim"}
MOST_PARAMETERS = 8
#: Modules of parki that users import by name: their public functions and classes are public calls.
PUBLIC_MODULES = (
    "parki.direct",
    "parki.pairs",
    "parki.samples",
    "parki.utils",
    "parki.celllist",
    "parki.torch",
    "parki.jax",
)


@dataclass(frozen=True)
class Module:
    """File of Python: its path from the root, its module's name, its text and tree."""

    path: Path
    name: str
    text: str
    tree: ast.Module

    @functools.cached_property
    def nodes(self) -> list[ast.AST]:
        """Return all nodes of the tree."""
        return list(ast.walk(self.tree))


def modules(*folders: str) -> tuple[Module, ...]:
    """Return the modules of folders of the repository."""
    return tuple(module for folder in folders for module in _folder(folder))


@functools.cache
def _folder(folder: str) -> tuple[Module, ...]:
    texts = [(path, path.read_text("utf-8")) for path in python_files(ROOT, folder)]
    return tuple(Module(path.relative_to(ROOT), module_of(path, ROOT), text, ast.parse(text)) for path, text in texts)


# Imports --------------------------------------------------------------------------------------------------------------
def imports(of: tuple[Module, ...]) -> dict[str, set[str]]:
    """Return the modules that each module imports anywhere in its text, imports for types included."""
    names = {module.name for module in of}
    edges: dict[str, set[str]] = {name: set() for name in names}
    for module in of:
        for node in module.nodes:
            if isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                full = [f"{node.module}.{alias.name}" for alias in node.names]
                targets = [name if name in names else node.module for name in full]
            else:
                continue
            edges[module.name] |= {name for name in targets if name in names and name != module.name}
    return edges


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one module, sorted."""
    reached = {name: _reachable(name, edges) for name in edges}
    components = {
        frozenset(other for other in reached[name] if name in reached[other]) for name in edges if name in reached[name]
    }
    return sorted(sorted(component) for component in components)


def _reachable(start: str, edges: dict[str, set[str]]) -> set[str]:
    """Return the modules at the end of a path of at least one import."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        for name in edges[waiting.pop()] - reached:
            reached.add(name)
            waiting.append(name)
    return reached


# Workunits and spaces -------------------------------------------------------------------------------------------------
def workunits(of: tuple[Module, ...]) -> dict[str, list[str]]:
    """Return the places that name each workunit, `engine.kernel("file", "name")`, if there is more than one.

    A call whose second argument is no text names every workunit of the file that stands as a text in its module.
    """
    units = _units()
    places: dict[str, set[str]] = defaultdict(set)
    for module in of:
        texts = [n for n in module.nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        for call in module.nodes:
            if not (isinstance(call, ast.Call) and _is_engine_kernel(call.func) and len(call.args) > 1):
                continue
            file, name = call.args[:2]
            if isinstance(name, ast.Constant):
                named = [name]
            else:
                files = {part.value for part in ast.walk(file) if isinstance(part, ast.Constant)}
                names = {unit for file in files for unit in units.get(file, ())}
                named = [text for text in texts if text.value in names]
            for text in named if isinstance(file, ast.Constant) else ():
                places[f"{file.value}.{text.value}"].add(f"{module.path}:{text.lineno}")
    return {unit: sorted(found) for unit, found in sorted(places.items()) if len(found) > 1}


def _is_engine_kernel(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute) and function.attr == "kernel" and ast.unparse(function) == "engine.kernel"
    )


@functools.cache
def _units() -> dict[str, set[str]]:
    """Return the names of the workunits of each file of kernels."""
    return {
        module.path.relative_to("kernels").with_suffix("").as_posix(): {
            node.name for node in module.tree.body
            if isinstance(node, ast.FunctionDef) and any("workunit" in ast.unparse(d) for d in node.decorator_list)
        }
        for module in modules("kernels")
    }  # fmt: skip


def lists(of: tuple[Module, ...]) -> list[str]:
    """Return the functions that return a collection of workunits, as lists for compiling ahead do."""
    return [
        f"{module.path}:{function.lineno}"
        for module in of
        for _, function, _ in _functions(module.tree)
        if function.returns is not None and re.search(r"\[.*\bWorkunit\b", ast.unparse(function.returns))
    ]


def kinds(of: tuple[Module, ...]) -> list[str]:
    """Return the places that compare the kind of a space or a machine with a text, or match it."""
    return [f"{module.path}:{node.lineno}" for module in of for node in module.nodes if _tells_kind(node)]


def _tells_kind(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        texts = {part.value for side in sides for part in ast.walk(side) if isinstance(part, ast.Constant)}
    elif isinstance(node, ast.Match):
        sides = [node.subject]
        texts = {part.value for case in node.cases for part in ast.walk(case.pattern) if isinstance(part, ast.Constant)}
    else:
        return False
    return any(isinstance(side, ast.Attribute) and side.attr == "kind" for side in sides) and bool(texts & KINDS)


# Functions and classes ------------------------------------------------------------------------------------------------
def many_parameters(of: tuple[Module, ...]) -> list[str]:
    """Return functions with more than `MOST_PARAMETERS` parameters, besides `self` and `cls`, that are no public calls.

    Public calls are the functions and classes that an `__all__` of a package lists, and those of `PUBLIC_MODULES`: a
    function without leading underscore, and such a class's methods without leading underscore, `__init__`, `__new__`
    and `__call__`.
    """
    listed = {name for module in of for name in _exported(module)}
    wide = []
    for module in of:
        for path, function, owner in _functions(module.tree):
            if len(_parameters(function, owner)) > MOST_PARAMETERS and not _public(module, path, listed):
                wide.append(f"{module.path}:{function.lineno} {'.'.join(path)} {len(_parameters(function, owner))}")
    return wide


def _exported(module: Module) -> Iterator[str]:
    """Yield the full names of a package's `__all__`, by the modules that define them."""
    if module.path.name != "__init__.py":
        return
    origin = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in module.nodes if isinstance(node, ast.ImportFrom) for alias in node.names
    }  # fmt: skip
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            yield from (origin.get(name, f"{module.name}.{name}") for name in ast.literal_eval(node.value))


def _public(module: Module, path: tuple[str, ...], listed: set[str]) -> bool:
    calls = ("__init__", "__new__", "__call__")
    if any(name.startswith("_") and name not in calls for name in path):
        return False
    return f"{module.name}.{path[0]}" in listed or module.name in PUBLIC_MODULES


def _functions(
    node: ast.AST, path: tuple[str, ...] = (), owner: ast.AST | None = None
) -> Iterator[tuple[tuple[str, ...], ast.FunctionDef, ast.AST | None]]:
    """Yield functions at any depth: the names that lead to each, the function, and the class of a method."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (*path, child.name), child, owner
            yield from _functions(child, (*path, child.name))
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, (*path, child.name), child)
        else:
            yield from _functions(child, path, owner)


def _parameters(function: ast.FunctionDef, owner: ast.AST | None) -> list[ast.arg]:
    taken = function.args
    every = [*taken.posonlyargs, *taken.args, *taken.kwonlyargs, *filter(None, (taken.vararg, taken.kwarg))]
    static = any(ast.unparse(d) == "staticmethod" for d in function.decorator_list)
    return every[1:] if owner is not None and not static else every


def classes(of: tuple[Module, ...]) -> dict[str, list[str]]:
    """Return the places of each class whose name is defined more than once."""
    places = defaultdict(list)
    for module in of:
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{module.path}:{node.lineno}")
    return {name: found for name, found in sorted(places.items()) if len(found) > 1}


# Text -----------------------------------------------------------------------------------------------------------------
LEAST_EQUAL = 6  # lines of a run that counts as repeated, at least


def duplicates(of: tuple[Module, ...]) -> list[str]:
    """Return the places of runs of at least `LEAST_EQUAL` lines, without blank ones, that occur earlier, too."""
    seen: set[tuple[str, ...]] = set()
    places = []
    for module in of:
        numbered = [(n, " ".join(line.split())) for n, line in enumerate(module.text.splitlines(), 1) if line.strip()]
        last, waiting = None, []
        for i in range(len(numbered) - LEAST_EQUAL + 1):
            window = tuple(line for _, line in numbered[i : i + LEAST_EQUAL])
            if window in seen:
                if last != i - 1:
                    places.append(f"{module.path}:{numbered[i][0]}")
                last = i
            waiting.append(window)
            if i >= LEAST_EQUAL - 1:  # a run does not repeat itself
                seen.add(waiting[i - LEAST_EQUAL + 1])
        seen.update(waiting)
    return places
