"""Numbers per source and per result that pair functions declare: ``NS`` and ``NU`` of a file or a module."""

import ast
import os
import re
from collections.abc import Callable
from typing import Any

from parki.engine import kernel_files

NAMES = ("NS", "NU")
EXPECTED = "expected a number of components, as 3"


def of_kernel(name: str) -> tuple[int, int]:
    """Return ``NS`` and ``NU`` of a pair function of parki, as in ``pair/laplace``, whose file states both as numbers.

    Only these two lines are read, as all pairs are made when they are imported.
    """
    text = kernel_files.package_place(name).path.read_text("utf-8")
    counts = dict(re.findall(r"^(NS|NU) = (\d+)\b", text, re.MULTILINE))
    return int(counts["NS"]), int(counts["NU"])


def of_path(path: str | os.PathLike) -> tuple[str, int, int, str]:
    """Return the name, ``NS``, ``NU`` and the absolute path of a kernel file.

    Raises
    ------
    ValueError
        Where ``NS`` or ``NU`` is not a positive number in the file.
    KernelError
        For a file that is not there, or not in the language of the kernels.
    """
    place = kernel_files.locate(path)
    constants = kernel_files.read(place).constants
    counts = []
    for name in NAMES:
        value = constants.get(name)
        if not (isinstance(value, ast.Constant) and type(value.value) is int and value.value > 0):
            description = "nothing" if value is None else ast.unparse(value)
            raise ValueError(f"{name} is {description} in {place.display}; {EXPECTED}.")
        counts.append(value.value)
    return os.path.basename(place.display), counts[0], counts[1], place.key


def of_function(function: Callable[..., None]) -> tuple[str, int, int, Any]:
    """Return the name of a Python function, ``NS`` and ``NU`` of its module, and the function.

    Raises
    ------
    ValueError
        Where ``NS`` or ``NU`` is not a positive number there.
    """
    module_names, label = function.__globals__, function.__name__
    for name in NAMES:
        value = module_names.get(name)
        if type(value) is not int or value < 1:
            description = "nothing" if value is None else repr(value)
            raise ValueError(
                f"{name} is {description} beside the function '{label}'; {EXPECTED}, or parki.pairs.Pair('{label}', "
                f"dens, result, {label}), which says both."
            )
    return label, module_names["NS"], module_names["NU"], function
