"""Kernel files (L1) as text: the names that a file defines at module level, and the targets of its imports.

Files are read and parsed, never executed or imported.  A parsed file is kept until it changes on disk.  The text of a
Python function (`functions`) is one more file, without a path.
"""

import ast
import difflib
import functools
import hashlib
import os
import re
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from parki.engine import config
from parki.engine.errors import KernelError, Loc
from parki.engine.text.functions import FunctionText, placed
from parki.engine.text.syntax import fail, parsed

TYPING = frozenset({"List", "Tuple"})


@dataclass(frozen=True)
class Import:
    """``from parki.kernels.module import name as local``: `module` is written as in ``pair/laplace``."""

    local: str
    name: str
    module: str
    node: ast.ImportFrom


@dataclass(frozen=True, eq=False)
class Source:
    """Kernel file, parsed.

    `key` tells files apart, `display` names the file in messages; `stamp` changes when the file does.  `title` is the
    name of the Python function that the text stands for, empty for a file.
    `order` numbers the module-level names in the order of the text.
    """

    key: str
    display: str
    stamp: tuple
    text: str
    hash: str
    constants: dict[str, ast.expr] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    workunits: dict[str, ast.FunctionDef] = field(default_factory=dict)
    imports: dict[str, Import] = field(default_factory=dict)
    order: dict[str, int] = field(default_factory=dict)
    title: str = ""

    @property
    def stem(self) -> str:
        """Return the file's name as part of an identifier."""
        return self.title or re.sub(r"\W", "_", Path(self.display).stem)

    def defines(self, name: str) -> bool:
        """Tell whether another file may import `name` from this one."""
        return name in self.functions or name in self.constants or name in self.imports


# Finding and reading -------------------------------------------------------------------------------------------------
@functools.cache
def kernels_root() -> Traversable:
    """Return the folder of the kernels that come with parki."""
    return files(config.KERNELS)


@dataclass(frozen=True)
class KernelLocation:
    """Place of a kernel file: `key` and `display` as in `Source`, and `path` to read it, or its text."""

    key: str
    display: str
    path: Traversable | Path | FunctionText

    def stamp(self) -> tuple:
        """Return time and size on disk; empty without a file, or in an archive, which does not change."""
        if isinstance(self.path, FunctionText):
            return ()
        try:
            s = os.stat(self.path)
        except (OSError, TypeError):
            return ()
        return s.st_mtime_ns, s.st_size


def package_place(module: str) -> KernelLocation:
    """Return the place of a file of the package, named as in ``pair/laplace``."""
    return _place(kernels_root(), module)


@functools.lru_cache(maxsize=256)
def _place(root: Traversable, module: str) -> KernelLocation:
    path = root.joinpath(*f"{module}.py".split("/"))
    return KernelLocation(str(path), f"{config.KERNELS_FOLDER}{module}.py", path)


def locate(source: str | os.PathLike | FunctionText) -> KernelLocation:
    """Return the place of a file named by a person: a name in the package, or the path of a file of their own.

    A path is an `os.PathLike`, or a string that ends in ``.py`` or is absolute.  A function's text is itself a place.
    """
    if isinstance(source, FunctionText):
        return KernelLocation(repr(source), source.display, source)
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"source is a {type(source).__name__}, expected the name or the path of a kernel file")
    if isinstance(source, os.PathLike) or is_path(source):
        text = os.fsdecode(source)
        path = Path(os.path.abspath(text))
        return KernelLocation(str(path), " ".join(text.splitlines()), path)
    return package_place(source)


def is_path(name: str) -> bool:
    """Tell whether a string is the path of a file, not a name in the package."""
    return name.endswith(".py") or os.path.isabs(name)


def package_modules() -> list[str]:
    """Return the names of the package's kernel files, as in ``pair/laplace``."""
    modules, stack = [], [("", kernels_root())]
    while stack:
        prefix, folder = stack.pop()
        for item in folder.iterdir():
            if item.is_dir() and item.name != "__pycache__":
                stack.append((f"{prefix}{item.name}/", item))
            elif item.name.endswith(".py") and item.name != "__init__.py":
                modules.append(prefix + item.name.removesuffix(".py"))
    return sorted(modules)


_parsed: dict[tuple[str, str], Source] = {}


def read(place: KernelLocation, origin: Loc | None = None) -> Source:
    """Return the parsed file at `place`; `origin` is the place of the request, for messages about a missing file.

    Raises
    ------
    KernelError
        K021: no such file.  K001: not UTF-8, not Python, or a module-level form that is not allowed.
    """
    stamp = place.stamp()
    entry = _parsed.get((place.key, place.display))
    if entry is not None and entry.stamp == stamp:
        return entry
    try:
        text = _text(place.path)
    except UnicodeDecodeError as e:
        raise KernelError("K001", Loc(place.display, 1), f"not UTF-8 text: {e.reason} at byte {e.start}") from None
    except OSError as e:
        reason = f"no kernel file '{place.display}' ({e.strerror})"
        raise KernelError("K021", origin or Loc(place.display, 1), reason, _suggestion(place)) from None
    source = _parse(place, stamp, text)
    _parsed[place.key, place.display] = source
    return source


_digests: dict[tuple[str, str], tuple[tuple, str]] = {}


def digest_at(place: KernelLocation) -> str:
    """Return the digest of the text at `place`, kept until the file changes; empty if no text can be read."""
    stamp, key = place.stamp(), (place.key, place.display)
    if key not in _digests or _digests[key][0] != stamp:
        try:
            _digests[key] = stamp, digest(_text(place.path))
        except (OSError, UnicodeDecodeError):
            return ""
    return _digests[key][1]


def digest(text: str) -> str:
    """Return 16 hexadecimal digits over a text."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _text(path: Traversable | Path | FunctionText) -> str:
    if isinstance(path, FunctionText):
        return path.text()
    return path.read_text(encoding="utf-8-sig")  # some editors begin a file with a byte-order mark


def constant(module: str, name: str) -> int | float:
    """Return a number at the module level of a file of the package, named as in ``pair/laplace``."""
    return ast.literal_eval(read(package_place(module)).constants[name])


def _suggestion(place: KernelLocation) -> str:
    if not place.display.startswith(config.KERNELS_FOLDER):
        return "Give the path of a kernel file"
    matches = difflib.get_close_matches(place.display[8:-3], package_modules(), n=3, cutoff=0.5)
    return f"Did you mean {' or '.join(matches)}?" if matches else "A file of your own is named by a path ending in .py"


# Module level --------------------------------------------------------------------------------------------------------
def _parse(place: KernelLocation, stamp: tuple, text: str) -> Source:
    try:
        tree = parsed(text)
    except (SyntaxError, ValueError) as e:
        line, column = getattr(e, "lineno", 1) or 1, getattr(e, "offset", 1) or 1
        reason = f"not Python: {getattr(e, 'msg', e)}"
        raise KernelError("K001", Loc(place.display, line, column), reason) from None
    title = ""
    if isinstance(place.path, FunctionText):
        title = place.path.name
        placed(tree, place.path.places(), title)
    for node in ast.walk(tree):
        if not title and isinstance(node, ast.expr | ast.stmt | ast.arg):
            node.origin = place.display  # type: ignore[union-attr]
    source = Source(place.key, place.display, stamp, text, digest(text), title=title)
    for position, node in enumerate(tree.body):
        match node:
            case ast.Expr(value=ast.Constant(value=str())) if position == 0:
                pass
            case ast.Import(names=[ast.alias(name="pykokkos", asname="pk") | ast.alias(name="math", asname=None)]):
                pass
            case ast.ImportFrom(module="typing", level=0) if {a.name for a in node.names} <= TYPING:
                if any(a.asname for a in node.names):
                    fail("K001", node, "List and Tuple keep their names")
            case ast.ImportFrom():
                _import(source, node)
            case ast.Assign(targets=[ast.Name(id=name)]):
                _define(source, name, node)
                source.constants[name] = node.value
            case ast.FunctionDef():
                _function(source, node)
            case _:
                statement = ast.unparse(node).splitlines()[0]
                advice = "A kernel file has imports, NAME = constant, @pk.function and @pk.workunit"
                fail("K001", node, f"'{statement}' at module level", advice)
    return source


def _define(source: Source, name: str, node: ast.stmt) -> None:
    if name in source.order:
        fail("K002", node, f"'{name}' is defined twice in this file")
    if name in ("pk", "math", *TYPING):
        fail("K003", node, f"'{name}' is a name of the subset")
    source.order[name] = len(source.order)


def _import(source: Source, node: ast.ImportFrom) -> None:
    module = node.module or ""
    if node.level or not module.startswith(config.KERNELS + "."):
        dots = "." * node.level
        fail("K021", node, f"import from '{dots}{module}'", f"Kernel files import from {config.KERNELS} only")
    for alias in node.names:
        if alias.name == "*":
            fail("K001", node, "import of *", "Name what is imported")
        local = alias.asname or alias.name
        _define(source, local, node)
        path = module.removeprefix(config.KERNELS + ".").replace(".", "/")
        source.imports[local] = Import(local, alias.name, path, node)


def _function(source: Source, node: ast.FunctionDef) -> None:
    _define(source, node.name, node)
    decorators = node.decorator_list
    if len(decorators) == 1:
        head = decorators[0].func if isinstance(decorators[0], ast.Call) else decorators[0]
        kind = ast.unparse(head)
        if kind == "pk.workunit":
            source.workunits[node.name] = node
            return
        if kind == "pk.function" and head is decorators[0]:
            source.functions[node.name] = node
            return
    fail("K001", node, f"'{node.name}' is neither a @pk.function nor a @pk.workunit")
