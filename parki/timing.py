"""Wall-clock time of work that may have been launched and not yet done."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, Self


@contextlib.contextmanager
def timed(add: Callable[[float], None], wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Give the seconds that the body takes to `add`, also if it fails.

    With `wait`, which returns when everything launched before is done, the time starts and ends there.
    """
    if wait is not None:
        wait()
    began = time.perf_counter()
    try:
        yield
    finally:
        if wait is not None:
            wait()
        add(time.perf_counter() - began)


class PhaseTimes:
    """Seconds of wall-clock time of each phase of one or more sums; they add up.

    Attributes
    ----------
    PHASES : dict
        Titles of the phases by name.
    PLANNED : sequence of str
        Those of making a plan.
    time : dict
        Seconds by phase.
    pairs : dict
        Evaluations of the kernel in one sum, by phase.

    With `wait`, which returns when everything launched before is done, a phase lasts until its launches are done;
    without, until they are made.
    """

    PHASES: ClassVar[Mapping[str, str]] = {}
    PLANNED: ClassVar[Sequence[str]] = ()

    def __init__(self, wait: Callable[[], None] | None = None) -> None:
        self._wait = wait
        self.time = dict.fromkeys(self.PHASES, 0.0)
        self.pairs: dict[str, float] = {}

    @property
    def total(self) -> float:
        """All phases."""
        return sum(self.time.values())

    def reset(self) -> None:
        """Set the times of sums to zero; those of making the plan stay."""
        for name in self.PHASES:
            if name not in self.PLANNED:
                self.time[name] = 0.0

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time that the body takes to a phase."""
        before = self.time[name]  # before the clock starts: a wrong name fails without running the body

        def add(spent: float) -> None:
            self.time[name] = before + spent

        with timed(add, self._wait):
            yield

    @property
    def apart(self) -> bool:
        """Whether each phase is waited for, so that none may go on beside another."""
        return self._wait is not None

    @contextlib.contextmanager
    def members(self, size: int) -> Iterator[list[Self]]:
        """Give times to workers side by side; the time that passes is shared out as theirs together is."""
        each = [type(self)() for _ in range(size)]
        began = time.perf_counter()
        try:
            yield each
        finally:
            spent = time.perf_counter() - began
            sums = {name: sum(one.time[name] for one in each) for name in self.PHASES}
            worked = sum(sums.values())
            for name, seconds in sums.items():
                self.time[name] += spent * seconds / worked if worked else 0.0

    def table(self) -> str:
        """Return a table of the phases: time, share of the whole, kernel evaluations and their rate."""
        lines = [f"{'phase':<24}{'time':>12}{'share':>8}{'pairs':>10}   rate"]
        for name, title in self.PHASES.items():
            seconds, pairs = self.time[name], self.pairs.get(name, 0.0)
            share = f"{100 * seconds / self.total:.1f} %" if self.total > 0 else "–"
            row = f"{title:<24}{1e3 * seconds:>9.2f} ms{share:>8}"
            if pairs:
                row += f"{pairs:>10.2e}" + (f"   {pairs / seconds / 1e9:.3g} G/s" if seconds > 0 else "")
            lines.append(row)
        return "\n".join([*lines, f"{'total':<24}{1e3 * self.total:>9.2f} ms"])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.total:.3g} s>"
