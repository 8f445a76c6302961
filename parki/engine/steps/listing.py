"""Entries of a list of steps: workunits over items, calls of libraries, and blocks of both."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from parki.engine.lower.common import ALIGNED, VALUE
from parki.engine.run import fit
from parki.engine.run.ahead import Wanted
from parki.engine.run.spaces import Space
from parki.engine.steps.cutting import Cut
from parki.engine.steps.handles import Handle, Number
from parki.engine.workunit import Workunit

LANES = ("near", "far")


@dataclass(frozen=True)
class Index:
    """A number of the current block, by its name in the block."""

    name: str


class Block(dict[str, Any]):
    """A block of `Blocks`: its numbers by name, which steps take by `Index`, and calls as ``context.block``."""


@dataclass(frozen=True)
class Context:
    """Surroundings of a call: its space, the module of its arrays, the threads that it may use, its block if any."""

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
        Handles and numbers by the names of the workunit's parameters.  The workunit's text tells which arrays it reads
        and writes.
    shape : tuple of int, optional
        Threads and lanes of a team on a device, or threads of a block alone; by default as the workunit asks for.
    lane : {"near", "far"}, optional
        Steps of two lanes may run beside each other; steps without one wait for both.
    cut : Cut, optional
        How the step is cut into tasks.
    """

    phase: str
    unit: Workunit
    items: int
    args: Mapping[str, Argument]
    shape: tuple[int, ...] = ()
    lane: str | None = None
    cut: Cut | None = None

    def __post_init__(self) -> None:
        fit.names(self.unit, self.args)
        if self.lane not in (None, *LANES):
            raise ValueError(f"lane is {self.lane!r}; expected None or one of {', '.join(map(repr, LANES))}.")

    @cached_property
    def handles(self) -> dict[str, Handle]:
        """Return the arrays among the arguments."""
        return {name: a for name, a in self.args.items() if isinstance(a, Handle)}

    @property
    def writes(self) -> list[Handle]:
        """Return the arrays that the workunit writes to."""
        return [a for name, a in self.handles.items() if self.unit.ir.param(name).written]

    @property
    def reads(self) -> list[Handle]:
        """Return the arrays that the workunit does not write to; written arrays may be read as well."""
        return [a for name, a in self.handles.items() if not self.unit.ir.param(name).written]

    @cached_property
    def orders(self) -> dict[str, str]:
        """Return the layout of each view on a host, in the order of the workunit's parameters."""
        return {p.name: self.args[p.name].order for p in self.unit.views}

    @cached_property
    def layouts(self) -> dict[str, str]:
        """Return the layout of each view on a GPU, in the order of the workunit's parameters."""
        sizes = {name: a.size for name, a in self.handles.items() if a.ndim == 1 and a.fixed is not None}
        small = self.unit.small if sizes else {}
        even = (name for name in self.unit.neighbours if self.handles[name].even)
        by_value = {name: VALUE for name, count in small.items() if sizes.get(name, -1) >= count}
        return self.orders | dict.fromkeys(even, ALIGNED) | by_value

    @property
    def threads(self) -> int | None:
        """Threads of a block on a device, None for the default."""
        return None if not self.shape else self.shape[0] * (self.shape[1] if len(self.shape) > 1 else 1)


@dataclass(frozen=True, eq=False)
class Call:
    """Work of a library: ``function(context, *arrays)``, with the arrays of `reads`, then the others of `writes`.

    Attributes
    ----------
    capturable : bool
        Whether a graph of a device may record it.
    threadsafe : bool
        Whether several threads may call it at once, for different arrays.
    units : sequence of (Workunit, layouts, threads of a block)
        Workunits that the function launches itself: they are compiled with those of steps.
    """

    phase: str
    function: Callable[..., None]
    reads: Sequence[Handle] = ()
    writes: Sequence[Handle] = ()
    capturable: bool = True
    threadsafe: bool = False
    lane: str | None = None
    units: Sequence[Wanted] = ()

    @property
    def handles(self) -> list[Handle]:
        """Return the arrays that the function is given."""
        return [*self.reads, *(a for a in self.writes if not any(a is b for b in self.reads))]


@dataclass(frozen=True, eq=False)
class Blocks:
    """Bodies of steps, each run once for every block; blocks touch different entries, and run in any order.

    Attributes
    ----------
    parts : sequence of (cut, body)
        ``cut(workers)`` returns the blocks of a body when the list is placed.
    lane : {"near", "far"}, optional
    first : sequence of Step or Call
        Run once, when the list is placed; they use no argument or result.
    """

    parts: Sequence[tuple[Callable[[int], Sequence[Block]], Sequence[Step | Call]]]
    lane: str | None = None
    first: Sequence[Step | Call] = ()


def leaves(step: Step | Call | Blocks) -> list[Step | Call]:
    """Return the steps and calls that an entry of a list is made of."""
    return [leaf for _, body in step.parts for leaf in body] if isinstance(step, Blocks) else [step]


def launched(step: Step | Call, on_host: bool = False) -> Sequence[Wanted]:
    """Return the workunits that a step or a call launches, with layouts and threads of a block."""
    if isinstance(step, Call):
        return step.units
    return [(step.unit, step.orders if on_host else step.layouts, step.threads)] if step.items else []
