"""Instructions of a kernel, and the pipes that they occupy."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

#: Units that execute instructions, and "issue", through which all of them go.
Pipe = Literal["double", "single", "integer", "special", "memory", "atomic", "other"]
PIPES: tuple[Pipe, ...] = ("double", "single", "integer", "special", "memory", "atomic", "other")


@dataclass(frozen=True)
class Instruction:
    """An instruction of a kernel.

    Attributes
    ----------
    opcode : str
        Its name with all suffixes, such as ``"DFMA"`` or ``"LDG.E.64.CONSTANT"``.
    operands : str
        Operands as the disassembler writes them.
    pipe : Pipe
        The unit that executes it.
    successors : tuple of int
        Indices of the instructions that may be next.
    calls : bool
        Whether it calls a routine of the compiler, such as the slow path of a root.
    """

    opcode: str
    operands: str
    pipe: Pipe
    successors: tuple[int, ...]
    calls: bool = False


def by_pipe(instructions: Iterable[Instruction]) -> Counter[Pipe]:
    """Return the number of instructions of each pipe."""
    return Counter(instruction.pipe for instruction in instructions)
