"""A list of steps in a space: its arrays, its prepared launches, and runs of it."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

from parki.engine import config
from parki.engine.lower.common import ALIGNED, VALUE
from parki.engine.run import devices, graphs, spaces
from parki.engine.run.ahead import compile_for
from parki.engine.run.fit import Aligned, Fixed, layout
from parki.engine.run.launch import Prepared, prepare
from parki.engine.run.policy import RangePolicy, TeamPolicy
from parki.engine.run.spaces import Space
from parki.engine.steps import workers
from parki.engine.steps.handles import BOUND, Handle, Number
from parki.engine.steps.listing import Blocks, Call, Context, Index, Step
from parki.engine.steps.memory import Memory, fits
from parki.engine.steps.steplist import StepList

Bound = Mapping[Handle | Number, Any]
_NOTHING = contextlib.nullcontext()


class NoTimes:
    """Times that are not taken."""

    apart = False

    def phase(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Run the body."""
        return _NOTHING

    @contextlib.contextmanager
    def members(self, size: int) -> Iterator[list[Any]]:
        """Give times to each of `size` workers."""
        yield [self] * size


class Launch:
    """A step in a space, prepared when its arrays are known: at once, or for each layout of the arrays of a run."""

    def __init__(self, step: Step, space: Space, memory: Memory, worker: int = 0) -> None:
        self.step, self._memory, self._worker = step, memory, worker
        shape = step.shape if space.kind != "host" else ()
        policy = RangePolicy if step.unit.ir.policy == "range" else TeamPolicy
        self._policy = policy(space, step.items, *shape)
        self.bound = {name: a for name, a in step.handles.items() if a.whole.role in BOUND}
        numbers = [(name, a) for name, a in step.args.items() if name not in step.handles]
        self._numbers = {name: a for name, a in numbers if isinstance(a, Number)}
        self._index = {name: a.name for name, a in numbers if isinstance(a, Index)}
        self._ready: dict[tuple[str, ...], Prepared] = {}
        self._changes = bool(self.bound or self._numbers or self._index)
        if not self.bound:
            self._prepared({})

    def _prepared(self, arrays: dict[str, Any]) -> Prepared:
        key = tuple(layout(a) for a in arrays.values())
        if key not in self._ready:
            args: dict[str, Any] = {}
            layouts = self.step.layouts if self._policy.space.kind != "host" else {}
            for name, a in self.step.args.items():
                match a:
                    case Handle():
                        args[name] = arrays[name] if name in arrays else self._memory.of(a, self._worker)
                        kind = layouts.get(name)
                        if kind == VALUE:
                            args[name] = Fixed(args[name], a.fixed)
                        elif kind == ALIGNED:
                            args[name] = Aligned(args[name])
                    case Number():
                        args[name] = a.value
                    case Index():
                        args[name] = 0
                    case _:
                        args[name] = a
            self._ready[key] = prepare(self._policy, self.step.unit, **args)
            self._ready[key].release(*arrays)
        return self._ready[key]

    def run(self, bound: Bound, context: Context | None = None) -> None:
        """Launch with the arrays and numbers of a run and a block; the launch keeps none of these arrays."""
        if not self._changes:
            self._ready[()].launch()
            return
        prepared = self.bind(bound, context)
        prepared.launch()
        prepared.release(*self.bound)

    def bind(self, bound: Bound, context: Context | None = None) -> Prepared:
        """Return the launch with the arrays and numbers of a run and a block."""
        args = {name: a.of(bound[a.whole]) for name, a in self.bound.items()}
        prepared = self._prepared(args) if args else self._ready[()]
        for name, number in self._numbers.items():
            args[name] = bound.get(number, number.value)
        if context is not None and context.block is not None:
            for name, key in self._index.items():
                args[name] = context.block[key]
        prepared.set(**args)
        return prepared

    @property
    def ready(self) -> list[Prepared]:
        """Return the launches that are prepared."""
        return list(self._ready.values())


class Called:
    """A call in a space."""

    def __init__(self, call: Call, context: Context, memory: Memory, worker: int = 0) -> None:
        self.step, self._context, self._kept = call, context, partial(memory.of, worker=worker)
        self._arrays: list[tuple[Handle, Any]] = []

    def run(self, bound: Bound, context: Context | None = None) -> None:
        """Call with the arrays of a run, and the context of a block; the first makes scratch that no launch uses."""
        if not self._arrays:
            self._arrays = [(a, None if a.whole.role in BOUND else self._kept(a)) for a in self.step.handles]
        arrays = [a.of(bound[a.whole]) if array is None else array for a, array in self._arrays]
        self.step.function(context or self._context, *arrays)


_Phases = list[tuple[str, list[Launch | Called]]]


class Placed:
    """Arrays and prepared launches of a list of steps in a space.

    Parameters
    ----------
    steps : StepList
    space : Space
    arrays : dict, optional
        Arrays of constants that have no values yet, by handle.
    graph : bool
        Record runs of steps that touch no argument or result as graphs of a device.

    Raises
    ------
    BuildError
        A workunit does not compile.
    LaunchError
        A constant has no array, or one of another shape or dtype.

    Attributes
    ----------
    size : int
        Number of workers.
    own : Space
        Space of each worker's launches: on one thread, if there are several workers.
    context : Context
        Context of calls, without a block.
    """

    def __init__(
        self, steps: StepList, space: Space, arrays: Mapping[Handle, Any] | None = None, *, graph: bool = False
    ) -> None:
        self.steps, self.space = steps, space
        compile_for(steps.units(space), space)
        divisible = space.engine == config.NAME and all(c.threadsafe for c in _blocked(steps) if isinstance(c, Call))
        total = spaces.workers(space)
        self.size, threads = (steps.workers(space) if steps.workers else (1, total)) if divisible else (1, total)
        self.memory_of = Memory(space, self.size)
        self.memory_of.take(arrays or {})
        handles = steps.handles
        self.memory_of.allocate(handles)
        self.own = replace(space, threads=1) if threads < total else space
        self.context = Context(space, self.memory_of.xp, threads)
        self.launches: list[Launch] = []
        laned = any(step.lane for step in steps)
        self.side = devices.SideStream() if laned and space.kind == "device" and space.engine == config.NAME else None
        self._segments = [_Segment(list(group), graph and capturable) for capturable, group in groupby(
            (self._action(step) for step in steps), key=lambda action: action.free)]  # fmt: skip

        self._numbers: dict[Number, float | int] = {}
        self._inputs = [handle for handle in handles if handle.role in BOUND]
        for step in steps.first:
            self.made(step, 0, space).run({})

    def __getitem__(self, handle: Handle) -> Any:
        """Return the array of a handle that is neither argument nor result."""
        return self.memory_of.of(handle)

    @property
    def memory(self) -> int:
        """Return the bytes of all arrays, including arrays that launches keep and that the first run makes."""
        return sum(a.nbytes for a in {id(a): a for a in self.arrays}.values()) + self.memory_of.unmade

    @property
    def arrays(self) -> list[Any]:
        """Return the arrays made so far, including arrays that launches keep for themselves."""
        scratch = [a for launch in self.launches for prepared in launch.ready for a in prepared.own]
        return [*self.memory_of.arrays, *scratch]

    @property
    def replays(self) -> list[graphs.Replay]:
        """Return the graphs of runs of steps, recorded or not."""
        return [segment.replay for segment in self._segments if segment.replay is not None]

    def run(self, bound: Bound | None = None, times: Any = None) -> None:
        """Run all steps, in their order, or beside each other where lanes and blocks allow.

        Parameters
        ----------
        bound : dict
            Arrays by handle for every argument and result, and values of numbers.
        times : optional
            Takes the time of each phase by ``times.phase(name)``; if ``times.apart``, each phase is waited for.
        """
        bound, times = self._checked(bound or {}), times or NoTimes()
        numbers = {number: value for number, value in bound.items() if isinstance(number, Number)}
        if numbers != self._numbers:  # graphs have recorded the old numbers
            self._numbers = numbers
            for segment in self._segments:
                segment.replay = graphs.Replay() if segment.replay is not None else None
        for segment in self._segments:
            if segment.replay is None or times.apart:
                self._run(segment, bound, times)
            else:
                segment.replay.run(lambda segment=segment: self._run(segment, bound, times))

    def again(self, *phases: str) -> None:
        """Run the steps of some phases, which touch no argument or result, once more: for measurements and checks."""
        for action in (action for segment in self._segments for action in segment.actions):
            if action.phase in phases and action.one is not None:
                action.one.run({})

    def _checked(self, bound: Bound) -> Bound:
        for handle in self._inputs:
            fits(handle, bound.get(handle))
        return bound

    def _action(self, step: Step | Call | Blocks) -> "_Action":
        if isinstance(step, Blocks):
            return _Action("", step.lane, True, None, _Pieces(self, step))
        action = self.made(step, 0, self.space)
        if isinstance(action, Launch):
            capturable = not action.bound
        else:
            capturable = step.capturable and not any(a.whole.role in BOUND for a in step.handles)
        return _Action(step.phase, step.lane, capturable, action, None)

    def made(self, step: Step | Call, worker: int, space: Space) -> Launch | Called:
        """Return a step or call that a worker can run in its space."""
        if isinstance(step, Call):
            return Called(step, self.context, self.memory_of, worker)
        self.launches.append(Launch(step, space, self.memory_of, worker))
        return self.launches[-1]

    def _run(self, segment: "_Segment", bound: Bound, times: Any) -> None:
        side = None if times.apart else self.side
        for laned, groups in segment.regions:
            try:
                for group in groups:
                    with side.work() if side is not None and group.lane == "near" else _NOTHING:
                        self._run_group(group, bound, times)
            finally:
                if side is not None and laned:
                    side.join()

    def _run_group(self, group: "_Group", bound: Bound, times: Any) -> None:
        for phase, launches in group.phases:
            with times.phase(phase):
                for launch in launches:
                    launch.run(bound)
        if group.pieces:
            self._rest()
            with times.members(self.size) if self.size > 1 else contextlib.nullcontext([times]) as members:
                workers.run([pieces.of(bound) for pieces in group.pieces], members)

    def _rest(self) -> None:
        """Free the cores for several workers: OpenMP's idle threads would keep them busy for milliseconds."""
        if self.size > 1 and self.launches and (launches := self.launches[0].ready):
            launches[0].rest()


class _Group:
    """Steps of one lane that follow each other: phases of single steps, or stages of blocks."""

    def __init__(self, lane: str | None, actions: list["_Action"]) -> None:
        self.lane = lane
        self.pieces = [action.pieces for action in actions if action.pieces is not None]
        self.phases = _phases(action.one for action in actions if action.one is not None)


class _Action:
    """A step to be run by itself or by blocks; `free` tells whether a graph may record the step."""

    def __init__(
        self, phase: str, lane: str | None, capturable: bool, launch: "Launch | Called | None", pieces: "_Pieces | None"
    ) -> None:
        self.phase, self.lane, self.free, self.one, self.pieces = phase, lane, capturable, launch, pieces


class _Segment:
    """Steps that follow each other; a graph may record all of them, or none.

    Attributes
    ----------
    regions : list of (laned, groups)
        Steps with lanes, which may run beside each other, and steps without.
    """

    def __init__(self, actions: list[_Action], record: bool) -> None:
        self.actions, self.replay = actions, graphs.Replay() if record else None
        self.regions = [
            (
                laned,
                [
                    _Group(lane, list(members))
                    for (lane, _), members in groupby(region, key=lambda a: (a.lane, a.pieces is None))
                ],
            )
            for laned, region in groupby(actions, key=lambda a: a.lane is not None)
        ]


class _Pieces:
    """Blocks, and the launches of each worker on them."""

    def __init__(self, placed: Placed, blocks: Blocks) -> None:
        self._parts: list[tuple[list[Context], list[_Phases]]] = []
        for cut, body in blocks.parts:
            contexts = [replace(placed.context, block=block) for block in cut(placed.size)]
            phases = [_phases(placed.made(s, w, placed.own) for s in body) for w in range(placed.size)]
            self._parts.append((contexts, phases))

    def of(self, bound: Bound) -> list[workers.Piece]:
        """Return a function of a worker's number and times for each block."""
        return [_piece(context, phases, bound) for contexts, phases in self._parts for context in contexts]


def _phases(launches: Iterable[Launch | Called]) -> _Phases:
    """Return steps, grouped by phases that follow each other."""
    return [(phase, list(group)) for phase, group in groupby(launches, key=lambda launch: launch.step.phase)]


def _piece(context: Context, phases: list[_Phases], bound: Bound) -> workers.Piece:
    def run(worker: int, times: Any) -> None:
        for phase, launches in phases[worker]:
            with times.phase(phase):
                for launch in launches:
                    launch.run(bound, context)

    return run


def _blocked(steps: StepList) -> list[Step | Call]:
    """Return the steps and calls that blocks are made of."""
    return [leaf for step in steps if isinstance(step, Blocks) for _, body in step.parts for leaf in body]
