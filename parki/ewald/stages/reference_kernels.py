"""Functions of kernel files as Python functions of numbers or NumPy arrays: references for compiled kernels."""

import ast
from collections.abc import Callable, Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
from scipy.special import erf, erfc

from parki.engine import FunctionText, KernelLocation, kernel_files, parsed

_PK = SimpleNamespace(
    function=lambda f: f, double=float, float=float, int32=int, int64=int, rsqrt=lambda x: 1.0 / np.sqrt(x),
    sqrt=np.sqrt, exp=np.exp, expm1=np.expm1, log=np.log, sin=np.sin, cos=np.cos, tan=np.tan, sinh=np.sinh,
    cosh=np.cosh, tanh=np.tanh, fabs=np.abs, fmin=np.minimum, fmax=np.maximum, floor=np.floor, ceil=np.ceil,
    pow=np.power, erf=erf, erfc=erfc,
)  # fmt: skip


def function(source: str | FunctionText, name: str, **slots: Any) -> Callable[..., Any]:
    """Return a ``@pk.function`` of a kernel file, with `slots` in place of some of its constants and functions.

    A function text that is not in a file brings its own name.
    """
    names = _loaded(kernel_files.locate(source), slots)
    return names[source.name if isinstance(source, FunctionText) else name]


def _loaded(place: KernelLocation, slots: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """Return the names of a file, including imported ones, with slots filled, constants in imported files as well."""
    file = kernel_files.read(place)
    names: dict[str, Any] = {"pk": _PK, "math": np, "List": list, "Tuple": tuple}
    numbers = {name: value for name, value in slots.items() if isinstance(value, int | float)}
    slots_by_module = {item.module: slots[local] for local, item in file.imports.items() if local in slots}
    for local, source in file.imports.items():
        slot = slots_by_module.get(source.module)
        file_of = kernel_files.package_place(source.module) if slot is None else kernel_files.locate(slot)
        names[local] = _loaded(file_of, numbers)[source.name]
    constants = {name: value for name, value in slots.items() if name in file.constants}
    names |= constants
    tree = parsed(file.text)
    tree.body = [
        node
        for node in tree.body
        if (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) not in constants)
        or (isinstance(node, ast.FunctionDef) and node.name in file.functions)
    ]
    # Types of arguments and locals are only for the compiler.
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            for argument in node.args.args:
                argument.annotation = None
    exec(compile(tree, file.display, "exec"), names)
    return names


def pairs(
    source: str | FunctionText, results: int, r: Any, far: list[Any], s: list[Any], w: Any,
    slots: Mapping[str, Any] = MappingProxyType({}),
) -> np.ndarray:  # fmt: skip
    """Evaluate a screened pair function for pairs at `r` (3, M), with w = 1/|r| or 0; return (results, M)."""
    pair = function(source, "pair", SCREENED=True, **slots)
    return _applied(pair, results, [*r, np.sum(r * r, axis=0), w, far, s])


def modes(source: str | FunctionText, results: int, k: Any, g: Any, v: list[Any]) -> np.ndarray:
    """Evaluate a multiplier for modes `k` (3, M) and complex components `v`; return (results, M), complex."""
    size = np.sqrt(np.sum(k * k, axis=0))
    n = np.where(size > 0, k / np.where(size > 0, size, 1.0), np.array([0.0, 0.0, 1.0])[:, None])
    split = [part for component in v for part in (component.real, component.imag)]
    values = _applied(function(source, "multiply"), 2 * results, [*k, *n, g, split])
    return values[::2] + 1j * values[1::2]


def _applied(f: Callable, results: int, arguments: list[Any]) -> np.ndarray:
    """Apply a function to all columns at once, or one by one if the function compares two numbers."""
    width = len(arguments[0])
    out = [np.zeros(width) for _ in range(results)]
    try:
        # Copies, because an augmented assignment to a number would here change an array of the caller.
        f(*([x.copy() for x in a] if isinstance(a, list) else a.copy() for a in arguments), out)
    except ValueError:
        out = [np.zeros(width) for _ in range(results)]
        for i in range(width):
            column = [0.0] * results
            f(*([x[i] for x in a] if isinstance(a, list) else a[i] for a in arguments), column)
            for c in range(results):
                out[c][i] = column[c]
    return np.array([np.broadcast_to(x, width) for x in out])
