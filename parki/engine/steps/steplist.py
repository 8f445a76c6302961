"""A list of steps as data: its arrays, the workunits to compile, and the bytes that it takes."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from parki.engine.run.ahead import Wanted
from parki.engine.run.spaces import Space
from parki.engine.steps.handles import Handle
from parki.engine.steps.listing import Blocks, Call, Step, launched, leaves


class StepList:
    """A list of steps in an order that may be run one after another.

    Parameters
    ----------
    steps : iterable of Step, Call or Blocks
    first : iterable of Step or Call, optional
        Run once, when the list is placed, before those of blocks; they use no argument or result.
    workers : callable, optional
        ``workers(space)`` returns the number of workers (threads of Python) that run blocks side by side, and the
        threads that each may use; by default one worker with all threads.
    """

    def __init__(
        self,
        steps: Iterable[Step | Call | Blocks],
        first: Iterable[Step | Call] = (),
        workers: Callable[[Space], tuple[int, int]] | None = None,
    ) -> None:
        self.steps = list(steps)
        self.first = [*first, *(step for blocks in self.steps if isinstance(blocks, Blocks) for step in blocks.first)]
        self.workers = workers

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step | Call | Blocks]:
        return iter(self.steps)

    @property
    def flat(self) -> list[Step | Call]:
        """Steps and calls, those of blocks once."""
        return [leaf for step in (*self.first, *self.steps) for leaf in leaves(step)]

    @cached_property
    def handles(self) -> list[Handle]:
        """Whole arrays of all steps."""
        handles: dict[int, Handle] = {}
        for step in self.flat:
            for a in step.handles.values() if isinstance(step, Step) else step.handles:
                handles.setdefault(id(a.whole), a.whole)
        return list(handles.values())

    def units(self, space: Space | None = None) -> list[Wanted]:
        """Return all workunits, once for each layout of its views and number of threads of a block.

        Layouts are those of a host if `space` is one, otherwise those of GPUs.
        """
        on_host = space is not None and space.kind == "host"
        requests = {(id(unit), *layouts.values(), threads): (unit, layouts, threads)
                 for step in self.flat for unit, layouts, threads in launched(step, on_host)}  # fmt: skip
        return list(requests.values())

    def nbytes(self, workers: int = 1) -> int:
        """Return the bytes of states, constants and scratch for a number of workers."""
        size = {"state": 1, "constant": 1, "scratch": workers}
        return sum(size.get(a.role, 0) * a.nbytes for a in self.handles)
