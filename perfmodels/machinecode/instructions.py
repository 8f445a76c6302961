"""Instructions of a kernel, and the pipes that they occupy."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

#: Units that execute instructions; AMD's GPUs have units of their own for scratch and for numbers that a wave shares.
Pipe = Literal["double", "single", "integer", "special", "memory", "atomic", "scratch", "scalar", "other"]
Role = Literal["sum", "root", "call", ""]


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
    role : Role
        ``"sum"`` of a sum, product or both; ``"root"`` of the first instruction of a reciprocal square root; ``"call"``
        of a call of the compiler's routines, such as the slow path of a root; empty for the rest.
    """

    opcode: str
    operands: str
    pipe: Pipe
    successors: tuple[int, ...]
    role: Role = ""


def by_pipe(instructions: Iterable[Instruction]) -> Counter[Pipe]:
    """Return the number of instructions of each pipe."""
    return Counter(instruction.pipe for instruction in instructions)
