"""Scratch that a launch asks for."""

from functools import lru_cache
from types import CodeType, SimpleNamespace

from parki.engine.errors import LaunchError
from parki.engine.tree import ir


def requested(kernel: ir.KernelTree, scalars: dict[str, float | int]) -> int:
    """Return the bytes of team scratch that decorator and integer arguments ask for; pieces start on 16 bytes.

    Raises
    ------
    LaunchError
        A size is negative or too large.
    """
    p, size = SimpleNamespace(**scalars), 0
    for kind, text in kernel.scratch_size:
        n = eval(_code(text), {"__builtins__": {}}, {"p": p})
        if not 0 <= n < 2**31:
            raise LaunchError(f"{kernel.name}: a scratch size is {n} ({text}), expected 0 … 2**31 - 1")
        size += (n * (4 if kind == "int" else 8) + 15) // 16 * 16
    return size


@lru_cache(maxsize=512)
def _code(text: str) -> CodeType:
    """Return the compiled form of a size: integer arithmetic only, as the parser refuses other texts."""
    return compile(text, "<scratch>", "eval")
