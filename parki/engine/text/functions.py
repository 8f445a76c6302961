"""Kernels that are Python functions: their source by `inspect`, as the text of a kernel file.

A function is read, never called.  The text is a whole kernel file: the function, the functions and numbers that it
refers to, its imports, and the module-level names of kernel files.  Two functions of the same text are the same kernel,
in any cell of a notebook, file or process.
"""

import ast
import hashlib
import inspect
import linecache
import math
import os
import symtable
import sys
import textwrap
import types
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from parki.engine import config
from parki.engine.errors import Loc
from parki.engine.text.syntax import changed, parsed

HEAD = "from typing import List, Tuple\n\nimport math\n\nimport pykokkos as pk\n"
PROVIDED = frozenset({"pk", "math", "List", "Tuple", "real"})
GENERIC = {"list": "List", "tuple": "Tuple"}  # generic types of Python since 3.9: their names in kernel files
COUNTS = ("NF", "NIN", "NOUT", "NP", "NS", "NU")
SWITCH = "SCREENED"  # name that is False if a function reads it and its module does not define it
EXPECTED = "expected a function made by def in a file or in a cell of a notebook"

Value = bool | int | float | tuple[bool | int | float, ...]


@dataclass(frozen=True)
class Passage:
    """Text of one function without indentation, from line `first` of a file or cell on."""

    text: str
    display: str = field(compare=False)
    first: int = field(compare=False)
    indent: int = field(compare=False)


@dataclass(frozen=True)
class FunctionText:
    """Text of the kernel file that a Python function stands for; it can be pickled.

    Attributes
    ----------
    name : str
        Name of the function.
    definitions : tuple of Passage
        The function and the functions that it refers to.
    imports : tuple of str
        Lines that import from parki's kernel files.
    constants : tuple of (name, value)
        Numbers, and tuples of numbers, that the functions refer to, as they were when the function was read.
    counts : tuple of (name, value)
        Module-level names that kernel files import from each other, such as ``NS``: the names beside the function, or,
        for the function of a pair, the values that follow from the pair.
    """

    name: str
    definitions: tuple[Passage, ...]
    imports: tuple[str, ...] = ()
    constants: tuple[tuple[str, Value], ...] = ()
    counts: tuple[tuple[str, int], ...] = ()

    def with_counts(self, **counts: int) -> "FunctionText":
        """Return the text with other values of `counts`."""
        return replace(self, counts=tuple(sorted(counts.items())))

    @property
    def display(self) -> str:
        """Place where the function was defined, for people."""
        return self.definitions[0].display

    def text(self) -> str:
        """Return the text of the kernel file."""
        return "".join(self._parts()[0])

    def places(self) -> list[Loc]:
        """Return the place of each line of `text`, with the columns before it; the function's for lines without one."""
        return self._parts()[1]

    def _parts(self) -> tuple[list[str], list[Loc]]:
        main, values = self.definitions[0], dict(self.counts) | dict(self.constants)
        texts = [HEAD, *(f"{line}\n" for line in self.imports), "\nreal = pk.double\n"]
        texts += [f"{name} = {value!r}\n" for name, value in values.items()]
        no_place = Loc(main.display, main.first, 0)
        places = [no_place] * "".join(texts).count("\n")
        for passage in self.definitions:
            lines = passage.text.split("\n")
            texts += ["\n\n", *(f"{line}\n" for line in lines)]
            places += [
                no_place,
                no_place,
                *(Loc(passage.display, passage.first + k, passage.indent) for k in range(len(lines))),
            ]
        return texts, places

    def __str__(self) -> str:
        # From the content alone: results kept by this name hold for the same function defined once more.
        return f"{self.name}@{hashlib.blake2b(self.text().encode(), digest_size=8).hexdigest()}"

    def __repr__(self) -> str:
        return f"{self} of {self.display}:{self.definitions[0].first}"


def read(function: types.FunctionType, argument: str) -> FunctionText:
    """Return the text of a function, and of the functions and numbers that it refers to, as they are now.

    Parameters
    ----------
    function : function
    argument : str
        Name of the argument that a caller gave it as, for messages.

    Raises
    ------
    ValueError
        For a lambda, a function that reads variables of a function around it, differs from the source of its file or
        has no source, and for names that stand for neither numbers nor functions.
    """
    reader = _Reader(argument)
    reader.function(function, function.__name__)
    names = inspect.unwrap(function).__globals__
    counts = tuple((name, names[name]) for name in COUNTS if type(names.get(name)) is int)
    numbers = tuple(reader.constants.items())
    return FunctionText(function.__name__, tuple(reader.definitions), tuple(sorted(reader.imports)), numbers, counts)


def is_function(value: object) -> bool:
    """Tell whether a value is a Python function, which may stand for a kernel file."""
    return isinstance(value, types.FunctionType)


def text_of(value: Any, argument: str) -> Any:
    """Return the text of a function, and any other value unchanged."""
    return read(value, argument) if is_function(value) else value


class _Reader:
    """Reader of a function, and of the functions and numbers that it refers to."""

    def __init__(self, argument: str) -> None:
        self.argument = argument
        self.definitions: list[Passage] = []
        self.imports: set[str] = set()
        self.constants: dict[str, Value] = {}
        self._seen: dict[str, types.FunctionType] = {}

    def function(self, function: types.FunctionType, name: str) -> None:
        """Read a function that is called `name` where it is used."""
        function = inspect.unwrap(function)
        if name in self._seen:
            if self._seen[name].__code__ != function.__code__:
                raise ValueError(f"{self.argument}: '{name}' stands for two functions; expected one name for each.")
            return
        self._seen[name] = function
        definition, names = self._definition(function, name)
        self.definitions.append(definition)
        module_names = function.__globals__
        for global_name in names:
            if global_name in PROVIDED or global_name == name:
                continue
            if global_name in module_names:
                self._name(global_name, module_names[global_name], name)
            elif global_name == SWITCH:
                self._constant(global_name, False)

    def _definition(self, function: types.FunctionType, name: str) -> tuple[Passage, list[str]]:
        """Return the text of a function, and the names of its module that it reads."""
        code, argument = function.__code__, self.argument
        file = _place(code.co_filename)
        subject = f"{argument} is the function '{name}' of {file}:{code.co_firstlineno}"
        if function.__name__ == "<lambda>":
            raise ValueError(f"{argument} is a lambda of {file}:{code.co_firstlineno}; {EXPECTED}.")
        if function.__name__ != name:
            raise ValueError(f"{subject}, which is made as '{function.__name__}'; expected the same name.")
        if code.co_freevars:
            names = ", ".join(f"'{n}'" for n in code.co_freevars)
            raise ValueError(f"{subject}, which reads {names} of the function around it; expected names of the module.")
        linecache.checkcache(code.co_filename)
        try:
            source = inspect.getsource(function)
        except (OSError, TypeError):
            raise ValueError(f"{subject}, of which there is no source; {EXPECTED}.") from None
        text = textwrap.dedent(source)
        try:
            tree = parsed(text)
            unchanged = _alike(compile(text, "text", "exec"), code)
        except SyntaxError:
            unchanged = False
        if not unchanged or not isinstance(tree.body[0], ast.FunctionDef):
            raise ValueError(f"{subject}, but other text stands there now; expected the text that it was made from.")
        passage = self._without_imports(text, tree.body[0])
        indent = len(source) - len(source.lstrip())
        return Passage(passage, file, code.co_firstlineno, indent), _globals(text)

    def _without_imports(self, text: str, node: ast.FunctionDef) -> str:
        """Return a function's text without its imports of parki's kernels, which kernel files have at the top."""
        lines = text.splitlines()
        for statement in node.body:
            if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith(f"{config.KERNELS}."):
                self.imports.add(ast.unparse(statement))
                for k in range(statement.lineno - 1, statement.end_lineno or statement.lineno):
                    lines[k] = ""
        return "\n".join(lines).rstrip()

    def _name(self, name: str, value: Any, reader: str) -> None:
        module = getattr(value, "__module__", None) or ""
        if module.startswith(f"{config.KERNELS}."):
            self.imports.add(f"from {module} import {value.__name__} as {name}".removesuffix(f" as {value.__name__}"))
        elif is_function(value):
            self.function(value, name)
        else:
            number = _number(value)
            if number is None:
                raise ValueError(
                    f"{self.argument}: '{reader}' reads '{name}', a {type(value).__name__}; expected a finite number, "
                    "a tuple of such, or a function."
                )
            self._constant(name, number)

    def _constant(self, name: str, value: Value) -> None:
        if repr(self.constants.setdefault(name, value)) != repr(value):
            values = f"{self.constants[name]!r} and {value!r}"
            raise ValueError(f"{self.argument}: '{name}' is {values} in two modules; expected one value.")


def _globals(text: str) -> list[str]:
    """Return the module-level names that a function refers to, in alphabetical order."""
    names: set[str] = set()
    tables = list(symtable.symtable(text, "text", "exec").get_children())
    while tables:
        table = tables.pop()
        names |= {s.get_name() for s in table.get_symbols() if s.is_global() and s.is_referenced()}
        tables += table.get_children()
    return sorted(names)


def _alike(module: types.CodeType, code: types.CodeType) -> bool:
    """Tell whether a module's only function with the name of `code` compiles to the same code."""
    candidates = [c for c in module.co_consts if isinstance(c, types.CodeType) and c.co_name == code.co_name]
    return len(candidates) == 1 and _doing(candidates[0]) == _doing(code)


def _doing(code: types.CodeType) -> tuple[Any, ...]:
    numbers = tuple(repr(c) for c in code.co_consts if isinstance(c, int | float | tuple))
    return code.co_code, code.co_names, code.co_varnames, numbers


def _number(value: object) -> Value | None:
    """Return a number, or a tuple of numbers, in plain Python; None for anything else."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, tuple) and value:
        numbers = [_number(v) for v in value]
        if not any(v is None or isinstance(v, tuple) for v in numbers):
            return tuple(v for v in numbers if isinstance(v, bool | int | float))
    return None


def _place(filename: str) -> str:
    """Return the name of a file, or of a notebook's cell as its tracebacks call it: ``Cell In[3]``."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    words = getattr(getattr(shell, "compile", None), "format_code_name", lambda name: None)(filename)
    if words is not None:
        return " ".join(words)
    short = os.path.relpath(filename) if os.path.isabs(filename) and filename.startswith(os.getcwd() + os.sep) else ""
    return short or filename


# Types ---------------------------------------------------------------------------------------------------------------
def placed(tree: ast.Module, places: list[Loc], name: str) -> None:
    """Give every node of a text the place where it was written, and complete its functions.

    Functions get the decorator, and types if they have none: lists where they subscript, else real numbers, and a real
    result if they return something.  The function `name` itself takes the types of its slot, see `typed`.
    """
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            if not node.decorator_list:
                node.decorator_list = [_at(node, "pk.function")]
            if node.name != name and untyped(node):
                _guess(node)
    for part in ast.walk(tree):
        if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name):
            part.value.id = GENERIC.get(part.value.id, part.value.id)
        if isinstance(part, ast.expr | ast.stmt | ast.arg):
            place = places[part.lineno - 1]
            part.lineno, part.col_offset = place.line, part.col_offset + place.col
            part.origin = place.file  # type: ignore[union-attr]


def untyped(function: ast.FunctionDef) -> bool:
    """Tell whether a function has no annotations at all."""
    return function.returns is None and not any(a.annotation for a in function.args.args)


def typed(function: ast.FunctionDef, model: ast.FunctionDef) -> ast.FunctionDef:
    """Return a function without types with the types of another function, which has as many arguments."""
    own_arguments, arguments_of_model = function.args.args, model.args.args
    arguments = [changed(a, annotation=b.annotation) for a, b in zip(own_arguments, arguments_of_model, strict=True)]
    return changed(function, args=changed(function.args, args=arguments), returns=model.returns)


def _guess(function: ast.FunctionDef) -> None:
    nodes = list(ast.walk(function))
    lists = {n.value.id for n in nodes if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name)}
    for a in function.args.args:
        a.annotation = _at(function, "List[real]" if a.arg in lists else "real")
    has_value = any(isinstance(n, ast.Return) and n.value is not None for n in nodes)
    function.returns = _at(function, "real" if has_value else "None")


def _at(function: ast.FunctionDef, text: str) -> ast.expr:
    """Return an expression at the place of a function."""
    expression = ast.parse(text, mode="eval").body
    for node in ast.walk(expression):
        ast.copy_location(node, function)
    return expression
