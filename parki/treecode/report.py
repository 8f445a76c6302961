"""Wall-clock times of a treecode sum by phase."""

import contextlib
from collections.abc import Callable, Iterator

from parki.timing import timed

PHASES = {
    "tree": "trees",
    "lists": "interaction lists",
    "upward": "upward pass",
    "pp": "particle–particle (PP)",
    "pc": "particle–cluster (PC)",
    "cp": "cluster–particle (CP)",
    "cc": "cluster–cluster (CC)",
    "downward": "downward pass",
}
PLANNED = ("tree", "lists")


class WallTime:
    """Seconds of wall-clock time of each phase of one or more sums; they add up.

    Attributes
    ----------
    time : dict
        Seconds by phase: ``"tree"`` and ``"lists"`` of making a plan, ``"upward"``, ``"pp"``, ``"pc"``, ``"cp"``,
        ``"cc"`` and ``"downward"`` of its sums.
    pairs : dict
        Evaluations of the kernel in one sum: ``"pp"``, ``"pc"``, ``"cp"``, ``"cc"``.

    With `wait`, which returns when everything launched before is done, a phase lasts until its launches are done;
    without, until they are made.
    """

    def __init__(self, wait: Callable[[], None] | None = None) -> None:
        self._wait = wait
        self.time = dict.fromkeys(PHASES, 0.0)
        self.pairs: dict[str, float] = {}

    @property
    def total(self) -> float:
        """All phases."""
        return sum(self.time.values())

    def reset(self) -> None:
        """Set the times of sums to zero; those of making the plan stay."""
        for name in PHASES:
            if name not in PLANNED:
                self.time[name] = 0.0

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time that the body takes to a phase."""
        before = self.time[name]  # before the clock starts: a wrong name fails without running the body

        def add(spent: float) -> None:
            self.time[name] = before + spent

        with timed(add, self._wait):
            yield

    def table(self) -> str:
        """Return a table of the phases: time, share of the whole, kernel evaluations and their rate."""
        lines = [f"{'phase':<24}{'time':>12}{'share':>8}{'pairs':>10}   rate"]
        for name, title in PHASES.items():
            seconds, pairs = self.time[name], self.pairs.get(name, 0.0)
            share = f"{100 * seconds / self.total:.1f} %" if self.total > 0 else "–"
            row = f"{title:<24}{1e3 * seconds:>9.2f} ms{share:>8}"
            if pairs:
                row += f"{pairs:>10.2e}" + (f"   {pairs / seconds / 1e9:.3g} G/s" if seconds > 0 else "")
            lines.append(row)
        return "\n".join([*lines, f"{'total':<24}{1e3 * self.total:>9.2f} ms"])

    def __repr__(self) -> str:
        return f"<WallTime {self.total:.3g} s>"
