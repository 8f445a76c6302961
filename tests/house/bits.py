"""Results of both trees, bit for bit."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from tests.house.cases import Case
from tests.house.process import Died, Tree


def differences(case: Case, old: Tree, new: Tree) -> list[str]:
    """Return a line for each result of a case that differs."""
    with ThreadPoolExecutor(2) as pool:
        before, after = pool.map(lambda tree: _results(tree, case), (old, new))
    return compared(before, after)


def _results(tree: Tree, case: Case) -> list[tuple[str, Any]]:
    try:
        return tree.ask("bits", case)
    except Died as error:
        return [("process", str(error).replace(str(tree.root), ""))]


def compared(before: list[tuple[str, Any]], after: list[tuple[str, Any]]) -> list[str]:
    """Return a line for each label whose values differ, or which is missing on one side."""
    lines = []
    if [label for label, _ in before] != [label for label, _ in after]:
        lines.append(f"results: {_outline(before)} became {_outline(after)}")
    later = dict(after)
    for label, value in before:
        if label in later and (why := difference(value, later[label])):
            lines.append(f"{label}: {why}")
    return lines


def _outline(results: Iterable[tuple[str, Any]]) -> str:
    return ", ".join(f"{label} ({value})" if isinstance(value, str) else label for label, value in results)


def difference(a: Any, b: Any) -> str:
    """Return a text on how two values differ, empty if they are the same bit for bit."""
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        return "" if type(a) is type(b) and np.array_equal(a, b) else f"{a} became {b}"
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return f"{a.shape} {a.dtype} became {b.shape} {b.dtype}"
    if a.tobytes() == b.tobytes():
        return ""
    if a.dtype.kind != "f":
        return f"{int((a != b).sum())} of {a.size} integers differ"
    scale = float(np.nanmax(np.abs(a), initial=0.0)) or 1.0
    unlike = a.view(f"u{a.itemsize}") != b.view(f"u{b.itemsize}")
    apart = np.abs(a.astype(float) - b.astype(float))[unlike] / scale
    return f"{int(unlike.sum())} of {a.size} differ, by up to {apart.max():.1e} of the largest value"
