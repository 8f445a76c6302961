"""Hot loops of workunits, read from their machine code for a GPU, beside the work that the kernel files state."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from parki.engine import Wanted, Workunit, operations
from parki.perfmodels.machinecode.bounds import TurnBound, bound
from parki.perfmodels.machinecode.compiled import CompiledUnit, compiled
from parki.perfmodels.machinecode.instructions import Instruction, Pipe, by_pipe
from parki.perfmodels.machinecode.loops import innermost, loops

# Arithmetic instructions of a function, at least: refinements of a seed, polynomials.
FUNCTIONS = {"rsqrt": 5.0, "sqrt": 7.0, "div": 6.0, "exp": 14.0, "erfc": 24.0, "log": 20.0, "sin": 20.0, "cos": 20.0}
OPERATIONS = {"fma": 1.0, "add": 1.0, "mul": 1.0} | FUNCTIONS


@dataclass(frozen=True)
class HotLoop:
    """Hold the loop of a workunit with most arithmetic in a turn, of the loops that are nested deepest.

    Attributes
    ----------
    unit : Workunit
        The workunit.
    turn : list of Instruction
        The longest turn.
    bound : TurnBound
        Its bound.
    pairs : int
        Reciprocal roots of a turn, one for each pair of particles; 0 where the loop takes none.
    work : float
        Arithmetic instructions that a turn needs by the kernel file: those of its pairs, or all sums and products.
    registers, spills : int
        Registers of a thread, and bytes that it stores because there are too few.
    """

    unit: Workunit
    turn: Sequence[Instruction]
    bound: TurnBound
    pairs: int
    work: float
    registers: int
    spills: int

    @property
    def arithmetic(self) -> Pipe:
        """Return the pipe of the arithmetic: "double" or "single"."""
        counts = by_pipe(self.turn)
        return "double" if counts["double"] else "single"

    @property
    def useful(self) -> float:
        """Return the share of the arithmetic limit that needed instructions reach if the bound is met."""
        count = by_pipe(self.turn)[self.arithmetic]
        return self.bound.share(self.arithmetic) * min(1.0, self.work / count) if count else 0.0


def hot_loops(requests: Iterable[Wanted], arch: str) -> list[HotLoop]:
    """Return the hot loops of workunits, compiled for layouts of their views and threads of a block.

    Workunits without loops are left out.

    Raises
    ------
    BuildError, FileNotFoundError
        As `compiled`.
    """
    return [loop for entry in compiled(requests, arch) for loop in _hottest(entry, arch)]


def _hottest(entry: CompiledUnit, arch: str) -> Iterator[HotLoop]:
    """Yield the hot loop of a workunit, if it has loops."""
    unit, kernel = entry.unit, entry.kernel
    candidates = innermost(kernel)
    if not candidates:
        return
    of_pair = _of_pair(unit)
    if of_pair:  # pairs are in the deepest loop; sources may be looked for by roots, too
        nest = loops(kernel)
        depth = {loop.head: sum(loop.head in outer.members for outer in nest) for loop in candidates}
        candidates = [loop for loop in candidates if _seeds(loop.longest)] or candidates
        candidates = [loop for loop in candidates if depth[loop.head] == max(depth[a.head] for a in candidates)]
    turn = max((loop.longest for loop in candidates), key=_arithmetic)
    pairs = _seeds(turn)
    work = pairs * of_pair if pairs else sum(i.role == "sum" for i in turn)
    yield HotLoop(unit, turn, bound(turn, arch), pairs, work, entry.usage.registers, entry.usage.spill_stores)


def _seeds(turn: Sequence[Instruction]) -> int:
    return sum(instruction.role == "root" for instruction in turn)


def _arithmetic(turn: Sequence[Instruction]) -> int:
    counts = by_pipe(turn)
    return counts["double"] + counts["single"]


def _of_pair(unit: Workunit) -> float:
    """Return the arithmetic instructions of a pair, from the smallest loop of the kernel file that takes roots."""
    loops = [block for block in operations(unit).inner() if block.kind == "loop" and block.trips is None]
    counts = [block.total(otherwise=1.0).operations for block in loops]
    counts = [count for count in counts if count.get("rsqrt")]
    if not counts:
        return 0.0
    count = min(counts, key=lambda count: sum(count.values()))
    return sum(OPERATIONS.get(name, 0.0) * n for name, n in count.items()) / count["rsqrt"]
