"""Near field in parts, which are summed while messages of the far field are under way."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from parki import engine
from parki.distributed.comm import Pending
from parki.engine import Prepared, Space, TeamPolicy
from parki.engine.steps import Call, Context, Handle, Number, Step

PARTS = 16  # parts of a step; messages are looked at between two of them


class Exchange:
    """Steps of an exchange of values, and a step beside it that does not need them.

    A device gets the step before and runs it by itself; a host runs it in parts between looks at messages.

    Parameters
    ----------
    rounds : Rounds
    phase : str
    space : Space

    Attributes
    ----------
    beside : Meanwhile or None
        Work that is done in parts, once there are steps.
    """

    def __init__(self, rounds: Any, phase: str, space: Space) -> None:
        self._rounds, self._phase, self._parts = rounds, phase, space.native and space.engine == "parki"
        self.beside: Meanwhile | None = None

    def steps(self, shelves: list[Handle], near: Step | None) -> list[Step | Call]:
        """Return the steps; `shelves` are the arrays whose rows travel, `near` is the step that is done meanwhile."""
        rounds, overlap = self._rounds, None if near is None or not self._parts else Meanwhile(near, {})

        def run(context: Context, *arrays: Any) -> None:
            rounds.start(arrays)
            if overlap is not None:
                overlap.until(rounds, self._phase)
            rounds.finish()

        exchange = Call(self._phase, run, [], shelves, capturable=False)
        self.beside = overlap
        if overlap is not None:
            return [overlap.begin, exchange, overlap.rest]
        return [exchange] if near is None else [near, exchange]


class Meanwhile:
    """Work that is done while messages are under way: parts of a step.

    Parameters
    ----------
    step : Step
    numbers : dict
        Values of the step's numbers, bound for each run.

    Attributes
    ----------
    phase : str
        Phase of the step.
    begin, rest : Call
        Steps before all messages, and after them.
    worked : dict
        Seconds of parts that were summed while messages of a phase were under way.
    waited : float
        Seconds in which there was no work left to do.
    """

    def __init__(self, step: Step, numbers: Mapping[Number, float]) -> None:
        self._step, self._numbers, self.phase = step, numbers, step.phase
        self._names = [name for name, a in step.args.items() if isinstance(a, Handle)]
        handles = [step.args[name] for name in self._names]
        writes = list(step.writes)
        units = [(step.unit, step.orders, step.threads)]
        self.begin = Call(step.phase, self._begin, handles, writes, capturable=False, units=units)
        self.rest = Call(step.phase, self._rest, handles, writes, capturable=False, units=units)
        self._whole: Prepared | None = None
        self._cuts: list[int] = []
        self._ranges: dict[tuple[int, int], Any] = {}
        self._next = 0
        self.worked: dict[str, float] = {}
        self.waited = 0.0

    def reset(self) -> None:
        """Set the seconds to zero."""
        self.worked, self.waited = {}, 0.0

    def _begin(self, context: Context, *arrays: Any) -> None:
        """Prepare the parts, none of which is done yet."""
        if self._whole is None:
            step = self._step
            args: dict[str, Any] = {name: self._numbers.get(a, getattr(a, "value", a)) if isinstance(a, Number) else a
                                    for name, a in step.args.items()}  # fmt: skip
            args |= zip(self._names, arrays, strict=True)
            self._whole = engine.prepare(TeamPolicy(context.space, step.items), step.unit, **args)
            self._cuts = np.linspace(0, step.items, PARTS + 1).astype(int).tolist()
        self._next = 0

    def _rest(self, context: Context, *arrays: Any) -> None:
        """Run the remaining parts."""
        if self._next < PARTS:
            self._run(self._cuts[self._next], self._cuts[-1])
        self._next = PARTS

    def _run(self, first: int, end: int) -> None:
        if first == end:
            return
        if (first, end) not in self._ranges:
            self._ranges[first, end] = self._whole.range(first, end - first)
        self._ranges[first, end].run()

    def until(self, messages: Pending, phase: str) -> None:
        """Work until messages have come and gone; wait for them once no parts remain."""
        start = time.perf_counter()
        while self._whole is not None and self._next < PARTS and not messages.test():
            self._run(*self._cuts[self._next : self._next + 2])
            self._next += 1
        end = time.perf_counter()
        messages.finish()
        self.worked[phase] = self.worked.get(phase, 0.0) + end - start
        self.waited += time.perf_counter() - end
