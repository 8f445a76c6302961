"""Instructions of whole launches: those of each machine loop, as often as warps execute them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from parki.perfmodels.machinecode.bounds import bound
from parki.perfmodels.machinecode.instructions import Instruction, Pipe, by_pipe
from parki.perfmodels.machinecode.loops import Kernel, loops


@dataclass(frozen=True)
class LaunchTotals:
    """Instructions of warps by pipe, and the cycles that a scheduler takes for them if each loop meets its bound."""

    instructions: Counter[Pipe]
    cycles: float


def bodies(kernel: Kernel) -> list[list[Instruction]]:
    """Return the instructions outside all loops, and of each loop outside the loops within, in the order of the code.

    All sides of branches are included, except slow code.
    """
    nest = sorted(loops(kernel), key=lambda loop: loop.head)
    usual = _reached(kernel) - frozenset[int]().union(*(loop.slow for loop in nest))
    members = [frozenset(range(len(kernel))), *(loop.members for loop in nest)]
    result = []
    for body in members:
        inner = frozenset[int]().union(*(loop for loop in members if loop < body))
        result.append([kernel[i] for i in sorted(body & usual - inner)])
    return result


def _reached(kernel: Kernel) -> frozenset[int]:
    """Return the indices of the instructions that are reached from the begin without calls."""
    reached, stack = {0}, [0]
    while stack:
        new = [j for j in kernel[stack.pop()].successors if j not in reached]
        stack += new
        reached.update(new)
    return frozenset(reached)


def launch_totals(kernel: Kernel, turns: Sequence[float], arch: str) -> LaunchTotals:
    """Return the totals of a launch.

    Parameters
    ----------
    kernel
        All instructions.
    turns
        Numbers of warps, and of turns of each loop in all warps, in the order of `bodies`.
    arch
        Architecture, for the bounds.

    Raises
    ------
    ValueError
        For another number of turns than of bodies.
    """
    parts = bodies(kernel)
    if len(turns) != len(parts):
        raise ValueError(f"turns: found {len(turns)} numbers, expected {len(parts)}, one for each loop and one more")
    instructions: Counter[Pipe] = Counter()
    for part, n in zip(parts, turns, strict=True):
        instructions.update({pipe: n * count for pipe, count in by_pipe(part).items()})
    cycles = sum(n * bound(part, arch).cycles for part, n in zip(parts, turns, strict=True) if part)
    return LaunchTotals(instructions, cycles)
