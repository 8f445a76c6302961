"""Named conditions, a part of step 2 of specialising: a name that only the next ``if`` tests becomes its value.

A kernel names the conditions that models count (``in_reach: bool = r2 < rc2``); the name costs nothing.
"""

import ast
from collections import Counter
from itertools import pairwise

from parki.engine.text.syntax import BLOCKS, NESTING, changed, expressions, statements


def named_conditions_in_place(body: list[ast.stmt]) -> list[ast.stmt]:
    """Replace each ``name: bool = value`` and ``if name`` after it, the only use of the name, by ``if value``."""
    tests = Counter(name for block in _blocks(body) for s, test in pairwise(block) if (name := _tested(s, test)))
    if not tests:
        return body
    uses = Counter(n.id for s in statements(body) for n in expressions(s) if isinstance(n, ast.Name))
    return _replaced(body, {name for name, n in tests.items() if uses[name] == 2 * n})


def _blocks(body: list[ast.stmt]) -> list[list[ast.stmt]]:
    """Return a block and all blocks within it."""
    return [body, *(getattr(s, name) for s in statements(body) if isinstance(s, NESTING) for name in BLOCKS
                    if hasattr(s, name))]  # fmt: skip


def _tested(s: ast.stmt, test: ast.stmt) -> str:
    """Return the name that `s` gives to a condition and `test` tests, else an empty text."""
    declares = isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name) and isinstance(s.annotation, ast.Name)
    if not declares or s.annotation.id != "bool" or s.value is None or isinstance(s.value, ast.Call):
        return ""
    tests = isinstance(test, ast.If) and isinstance(test.test, ast.Name) and test.test.id == s.target.id
    return s.target.id if tests else ""


def _replaced(body: list[ast.stmt], names: set[str]) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    for s in body:
        if isinstance(s, NESTING):
            s = changed(s, **{name: _replaced(getattr(s, name), names) for name in BLOCKS if hasattr(s, name)})
        if out and _tested(out[-1], s) in names:
            s = changed(s, test=out.pop().value)
        out.append(s)
    return out
