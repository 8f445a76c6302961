"""Scratch that a launch asks for."""

from types import SimpleNamespace

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
        n = eval(text, {"__builtins__": {}}, {"p": p})  # integer arithmetic only: the parser refuses other texts
        if not 0 <= n < 2**31:
            raise LaunchError(f"{kernel.name}: a scratch size is {n} ({text}), expected 0 … 2**31 - 1")
        size += (n * (4 if kind == "int" else 8) + 15) // 16 * 16
    return size
