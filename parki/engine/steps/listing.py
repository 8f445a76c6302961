"""Lists of steps: workunits over items, calls of libraries, and blocks of both."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from parki.engine.ahead import Wanted
from parki.engine.errors import LaunchError
from parki.engine.launch import layout
from parki.engine.spaces import Space
from parki.engine.steps.handles import Handle, Number
from parki.engine.workunit import Workunit

if TYPE_CHECKING:
    from parki.engine.steps.placing import Placed

LANES = ("near", "far")


@dataclass(frozen=True)
class Index:
    """A number of the block at hand, by the name that the block has it under."""

    name: str


class Block(dict[str, Any]):
    """One block of `Blocks`: its numbers by name, which steps take by `Index`, and calls as ``context.block``."""


@dataclass(frozen=True)
class Context:
    """Where a call runs: its space, the module of its arrays, the threads that it may use, its block if it has one."""

    space: Space
    xp: Any
    threads: int
    block: Block | None = None


Argument = Handle | Number | Index | float | int


@dataclass(frozen=True, eq=False)
class Step:
    """A workunit over `items` teams or iterations.

    Attributes
    ----------
    phase : str
        Name that its time is counted under.
    unit : Workunit
    items : int
    args : dict
        Handles and numbers by the names of the workunit's parameters.  Arrays that it reads and writes follow from its
        text.
    shape : tuple of int, optional
        Threads and lanes of a team on a device, or threads of a block alone; by default as the workunit asks for.
    lane : {"near", "far"}, optional
        Steps of two lanes may run beside each other; steps without one wait for both.
    """

    phase: str
    unit: Workunit
    items: int
    args: Mapping[str, Argument]
    shape: tuple[int, ...] = ()
    lane: str | None = None

    def __post_init__(self) -> None:
        k = self.unit.ir
        names = {p.name for p in k.params}
        if names != self.args.keys():
            missing, unknown = sorted(names - self.args.keys()), sorted(self.args.keys() - names)
            raise LaunchError(f"{k.name}: missing arguments {missing}, unknown arguments {unknown}")
        if self.lane not in (None, *LANES):
            raise ValueError(f"lane is {self.lane!r}; expected None or one of {', '.join(map(repr, LANES))}.")

    @property
    def handles(self) -> dict[str, Handle]:
        """The arrays among the arguments."""
        return {name: a for name, a in self.args.items() if isinstance(a, Handle)}

    @property
    def writes(self) -> list[Handle]:
        """The arrays that the workunit writes to."""
        return [a for name, a in self.handles.items() if self.unit.ir.param(name).written]

    @property
    def reads(self) -> list[Handle]:
        """The arrays that the workunit does not write to; some that it writes it may read as well."""
        return [a for name, a in self.handles.items() if not self.unit.ir.param(name).written]

    @property
    def layouts(self) -> dict[str, str]:
        """The layout of each view, in the order of the workunit's parameters."""
        return {p.name: layout(self.args[p.name].layout) for p in self.unit.ir.params if p.rank}

    @property
    def threads(self) -> int | None:
        """Threads of a block on a device, None for the default."""
        return None if not self.shape else self.shape[0] * (self.shape[1] if len(self.shape) > 1 else 1)


@dataclass(frozen=True, eq=False)
class Call:
    """Work of a library: ``function(context, *arrays)``, with the arrays of `reads`, then others of `writes`.

    Attributes
    ----------
    capturable : bool
        Whether a graph of a device may record it.
    threadsafe : bool
        Whether several threads may call it at once, for different arrays.
    blas_threads : bool
        Limit the threads of linear algebra on hosts to those of the space.
    units : sequence of (Workunit, layouts, threads of a block)
        Workunits that the function launches itself: they are compiled with those of steps.
    """

    phase: str
    function: Callable[..., None]
    reads: Sequence[Handle] = ()
    writes: Sequence[Handle] = ()
    capturable: bool = True
    threadsafe: bool = False
    blas_threads: bool = False
    lane: str | None = None
    units: Sequence[Wanted] = ()

    @property
    def handles(self) -> list[Handle]:
        """The arrays that the function is given."""
        return [*self.reads, *(a for a in self.writes if not any(a is b for b in self.reads))]


@dataclass(frozen=True, eq=False)
class Blocks:
    """A body of steps, once for every block; blocks touch different entries, and run in any order.

    Attributes
    ----------
    parts : sequence of (cut, body)
        ``cut(workers)`` returns the blocks of a body when the list is placed.
    lane : {"near", "far"}, optional
    """

    parts: Sequence[tuple[Callable[[int], Sequence[Block]], Sequence[Step | Call]]]
    lane: str | None = None


class Steps:
    """A list of steps in an order that may be run one after another.

    Parameters
    ----------
    steps : iterable of Step, Call or Blocks
    first : iterable of Step or Call, optional
        Run once, when the list is placed; of no argument or result.
    workers : callable, optional
        ``workers(space)`` returns how many threads of Python go through blocks side by side, and the threads that each
        may use; by default one with all.
    """

    def __init__(
        self,
        steps: Iterable[Step | Call | Blocks],
        first: Iterable[Step | Call] = (),
        workers: Callable[[Space], tuple[int, int]] | None = None,
    ) -> None:
        self.steps, self.first = list(steps), list(first)
        self.workers = workers

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step | Call | Blocks]:
        return iter(self.steps)

    @property
    def flat(self) -> list[Step | Call]:
        """Every step and call, those of blocks once."""
        return [leaf for step in (*self.first, *self.steps) for leaf in _leaves(step)]

    @property
    def handles(self) -> list[Handle]:
        """Every whole array."""
        found: dict[int, Handle] = {}
        for step in self.flat:
            for a in step.handles.values() if isinstance(step, Step) else step.handles:
                found.setdefault(id(a.whole), a.whole)
        return list(found.values())

    def units(self) -> list[Wanted]:
        """Return every workunit once for each layout of its views and number of threads of a block."""
        every = {(id(unit), *layouts.values(), threads): (unit, layouts, threads)
                 for step in self.flat for unit, layouts, threads in _launched(step)}  # fmt: skip
        return list(every.values())

    def nbytes(self, workers: int = 1) -> int:
        """Return the bytes of states, constants and scratch for so many workers."""
        size = {"state": 1, "constant": 1, "scratch": workers}
        return sum(size.get(a.role, 0) * a.nbytes for a in self.handles)

    def place(self, space: Space, arrays: Mapping[Handle, Any] | None = None, *, graph: bool = False) -> "Placed":
        """Return the list in a space: see `Placed`."""
        from parki.engine.steps.placing import Placed

        return Placed(self, space, arrays, graph=graph)


def _leaves(step: Step | Call | Blocks) -> list[Step | Call]:
    return [leaf for _, body in step.parts for leaf in body] if isinstance(step, Blocks) else [step]


def _launched(step: Step | Call) -> Sequence[Wanted]:
    if isinstance(step, Call):
        return step.units
    return [(step.unit, step.layouts, step.threads)] if step.items else []
