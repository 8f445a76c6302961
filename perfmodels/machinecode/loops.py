"""Loops of a kernel's machine code, and the instructions of their shortest and longest turns."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from parki.perfmodels.machinecode.instructions import Instruction

Kernel = Sequence[Instruction]
Edge = tuple[int, int]


@dataclass(frozen=True)
class MachineLoop:
    """A loop: all instructions between its head and the branches back to it, loops within included.

    Attributes
    ----------
    kernel : sequence of Instruction
        All instructions of the kernel.
    head : int
        Index of the first instruction of a turn.
    members : set of int
        Indices of all instructions of the loop.
    ends : set of int
        Indices of the instructions that go back to the head.
    backward : set of (int, int)
        All branches backward of the kernel, from and to.
    """

    kernel: Kernel
    head: int
    members: Set[int]
    ends: Set[int]
    backward: Set[Edge]

    @cached_property
    def slow(self) -> frozenset[int]:
        """Return the indices of straight code that leads to calls of the compiler's routines, such as for denormals.

        The numbers that kernels meet go around such code.
        """
        entries = {j for i in self.members for j in self.kernel[i].successors if j != i + 1} | {self.head}
        slow = set()
        for call in (i for i in self.members if self.kernel[i].role == "call"):
            i = call
            slow.add(i)
            while i not in entries and i - 1 in self.members and self.kernel[i - 1].successors == (i,):
                i -= 1
                slow.add(i)
        return frozenset(slow)

    @cached_property
    def longest(self) -> list[Instruction]:
        """Return the instructions of the longest turn: loops within take one turn, slow code is left out."""
        return self._turn(max)

    @cached_property
    def shortest(self) -> list[Instruction]:
        """Return the instructions of the shortest turn: loops within take one turn if any, slow code is left out."""
        return self._turn(min)

    def _turn(self, choose: Callable[..., int]) -> list[Instruction]:
        """Return the path from the head to an end with most or fewest instructions."""
        length: dict[int, int] = {}  # of the chosen path from an instruction to an end
        step: dict[int, int | None] = {}
        members = self.members - self.slow
        for i in _behind_successors(self.kernel, self.head, members, self.backward):
            lengths = {j: length[j] for j in self.kernel[i].successors if j in length and (i, j) not in self.backward}
            if i in self.ends:
                length[i], step[i] = 1, None
            elif lengths:
                j = choose(lengths, key=lengths.__getitem__)
                length[i], step[i] = lengths[j] + 1, j
        turn, index = [], self.head if self.head in step else None
        while index is not None:
            turn.append(self.kernel[index])
            index = step[index]
        return turn


def loops(kernel: Kernel) -> list[MachineLoop]:
    """Return the loops of a kernel, outer ones before the loops within them."""
    backward = frozenset(_backward(kernel))
    predecessors = defaultdict(list)
    for i, instruction in enumerate(kernel):
        for j in instruction.successors:
            predecessors[j].append(i)
    ends = defaultdict(set)
    for i, head in backward:
        ends[head].add(i)
    nest = [MachineLoop(kernel, head, _members(head, e, predecessors), e, backward) for head, e in ends.items()]
    return sorted(nest, key=lambda loop: (-len(loop.members), loop.head))


def innermost(kernel: Kernel) -> list[MachineLoop]:
    """Return the loops that have none within, in the order of their heads."""
    nest = loops(kernel)
    inner = [a for a in nest if not any(b is not a and b.head in a.members for b in nest)]
    return sorted(inner, key=lambda loop: loop.head)


def _members(head: int, ends: Set[int], predecessors: dict[int, list[int]]) -> frozenset[int]:
    """Return all instructions from which an end is reached without the head, and the head."""
    members, stack = {head}, list(ends)
    while stack:
        i = stack.pop()
        if i not in members:
            members.add(i)
            stack += predecessors[i]
    return frozenset(members)


def _backward(kernel: Kernel) -> Iterator[Edge]:
    """Yield the edges to instructions that are on the way from the kernel's begin, depth first."""
    way, visits = {0}, {0}
    stack = [(0, iter(kernel[0].successors))]
    while stack:
        i, rest = stack[-1]
        j = next(rest, None)
        if j is None:
            stack.pop()
            way.discard(i)
        elif j in way:
            yield i, j
        elif j not in visits:
            way.add(j)
            visits.add(j)
            stack.append((j, iter(kernel[j].successors)))


def _behind_successors(kernel: Kernel, head: int, members: Set[int], backward: Set[Edge]) -> Iterator[int]:
    """Yield the members that are reached from the head, each behind all that may be next."""
    visits = {head}
    stack = [(head, iter(kernel[head].successors))]
    while stack:
        i, rest = stack[-1]
        j = next(rest, None)
        if j is None:
            stack.pop()
            yield i
        elif j in members and j not in visits and (i, j) not in backward:
            visits.add(j)
            stack.append((j, iter(kernel[j].successors)))
