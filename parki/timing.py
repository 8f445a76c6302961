"""Wall-clock time of work that may be launched but not yet done."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from parki.tables import TextTable

if TYPE_CHECKING:
    from parki.distributed.comm import Traffic

CallCounts = tuple[dict[str, float], dict[str, int], dict[str, int]]  # times, bytes and messages by phase


class PhaseTimes:
    """Add up the seconds of each phase of one or more sums.

    Parameters
    ----------
    phases : dict
        Titles of the phases by name.  A dotted name is a part of a phase: the time of ``"p2p.sort"`` is also one of
        ``"p2p"``.
    planned : sequence of str
        Phases of making a plan, which `reset` keeps.
    wait : callable, optional
        Function that returns when all work launched before is done; a phase then lasts until its launches are done,
        without it until they are made.
    clock : callable, optional
        Function that returns seconds.

    Attributes
    ----------
    time : dict
        Seconds by name.
    pairs : dict
        Evaluations of the kernel in one sum, by phase.
    nbytes, messages : dict
        Bytes and messages that this rank of a sum over ranks has sent, by phase.
    watch : callable or None
        Function that is called with the name of each phase as it begins.
    whole_phase : str or None
        The phase that is the whole of a call.
    comm : Comm or None
        Communicator of a sum over ranks.

    See Also
    --------
    parki.plan.Plan : The times of a plan are its `walltime`.
    parki.ewald.report.WallTime : The times of Ewald sums.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x, q = parki.samples.uniform(2000, seed=1), parki.samples.charges(2000, seed=2)
    >>> u, times = parki.treecode.bldtt(x, x, q, return_walltime=True)
    >>> times.total == sum(times.time.values()) > 0
    True
    """

    def __init__(
        self, phases: Mapping[str, str], planned: Sequence[str] = (), wait: Callable[[], None] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:  # fmt: skip
        self.phases, self.planned = dict(phases), tuple(planned)
        self._wholes = {name: name.partition(".")[0] for name in phases}
        self.wait, self.clock = wait, clock
        self.watch: Callable[[str], None] | None = None
        self.whole_phase: str | None = None
        self.time = dict.fromkeys(self.phases, 0.0)
        self.comm: Any = None
        self.nbytes: dict[str, int] = {}
        self.messages: dict[str, int] = {}
        self.pairs: dict[str, float] = {}

    @property
    def total(self) -> float:
        """Return the seconds of all phases."""
        return sum(seconds for name, seconds in self.time.items() if self._wholes[name] == name)

    def reset(self) -> None:
        """Set the times of sums to zero; those of making the plan stay."""
        for name, whole in self._wholes.items():
            if whole not in self.planned:
                self.time[name] = 0.0
        for counts in (self.nbytes, self.messages):
            counts.update(dict.fromkeys(counts, 0))

    def phase(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Add the time that the body takes to a phase, or to a part of a phase and to the phase, also if it fails.

        Raises
        ------
        KeyError
            For an unknown name; the body does not run.
        """
        if name not in self._wholes:
            raise KeyError(f"phase is {name!r}, expected one of {', '.join(self.phases)}")
        return _PhaseBody(self, name, self._wholes[name])

    def shift(self, seconds: float, phase: str, target: str) -> None:
        """Move seconds of one phase to another, on which work was done meanwhile."""
        for name, sign in ((phase, -1), (target, 1)):
            for key in {name, self._wholes[name]}:
                self.time[key] += sign * seconds

    def whole(self) -> contextlib.AbstractContextManager[None]:
        """Time the whole of a call, where that is a phase of its own."""
        return contextlib.nullcontext() if self.whole_phase is None else self.phase(self.whole_phase)

    def over(self, comm: Any, exchanges: Mapping[str, str]) -> None:
        """Add the phases of exchanges between ranks, with their titles."""
        self.comm = comm
        self.phases |= exchanges
        self._wholes |= {name: name for name in exchanges}
        self.time |= dict.fromkeys(exchanges, 0.0)
        self.nbytes, self.messages = dict.fromkeys(exchanges, 0), dict.fromkeys(exchanges, 0)

    def sent(self, traffic_now: Traffic, traffic_before: Traffic) -> None:
        """Add the bytes and messages that this rank has sent between two counts."""
        for name in self.nbytes:
            self.nbytes[name] += traffic_now.nbytes.get(name, 0) - traffic_before.nbytes.get(name, 0)
            self.messages[name] += traffic_now.messages.get(name, 0) - traffic_before.messages.get(name, 0)

    def counts(self) -> CallCounts:
        """Return the times, bytes and messages of the last call by phase, as `summary` takes them.

        Returns
        -------
        tuple of three dicts
            Seconds, bytes and messages by phase.
        """
        return dict(self.time), dict(self.nbytes), dict(self.messages)

    def summary(self, of: CallCounts | None = None) -> str:
        """Return a table of times over all ranks, the same on each: collective in a sum over ranks.

        Least, mean and largest time of each phase, and the bytes and messages that a rank sends on average; the last
        line is the largest over the mean of the time that ranks spend outside exchanges.

        Parameters
        ----------
        of : tuple, optional
            Result of `counts` for another call than the last.

        Returns
        -------
        str
            One line a phase.
        """
        counts = [of or self.counts()]
        if self.comm is not None:
            counts = self.comm.allgather(counts[0])
        exceptions = (*self.planned, *self.nbytes, self.whole_phase)
        phases = [name for name, whole in self._wholes.items() if name == whole and name not in exceptions]
        lines = [f"{'phase':<24}{'least':>12}{'mean':>12}{'largest':>12}   bytes, messages of a rank"]
        for name in [*phases, *self.nbytes, *filter(None, [self.whole_phase])]:
            times = [1e3 * time[name] for time, *_ in counts]
            shown = (min(times), sum(times) / len(times), max(times))
            line = f"{self.phases[name]:<24}" + "".join(f"{v:>9.2f} ms" for v in shown)
            if name in self.nbytes:
                nbytes, messages = (sum(rank_counts[i][name] for rank_counts in counts) / len(counts) for i in (1, 2))
                line += f"   {nbytes:.3g}, {messages:.3g}"
            lines.append(line)
        totals = [sum(time[name] for name in phases) for time, *_ in counts]
        share = max(totals) / max(sum(totals) / len(totals), 1e-300)
        return "\n".join([*lines, f"busy: largest over mean {share:.3f}"])

    @property
    def apart(self) -> bool:
        """Tell whether each phase is waited for, so that phases do not overlap."""
        return self.wait is not None

    @contextlib.contextmanager
    def members(self, size: int) -> Iterator[list[PhaseTimes]]:
        """Yield times for workers side by side; divide the elapsed time among phases by the workers' shares."""
        member_times = [PhaseTimes(self.phases, clock=self.clock) for _ in range(size)]
        member_times[0].watch = self.watch
        start = self.clock()
        try:
            yield member_times
        finally:
            elapsed, total = self.clock() - start, sum(member.total for member in member_times)
            for name in self.phases:
                self.time[name] += elapsed * sum(member.time[name] for member in member_times) / total if total else 0.0

    def cells(self) -> TextTable:
        """Return the cells of `table`.

        Returns
        -------
        TextTable
            One row a phase.
        """
        rows = []
        for name, title in self.phases.items():
            seconds, pairs = self.time[name], self.pairs.get(name, 0.0)
            indent = "" if self._wholes[name] == name else "  "
            rate = f"{pairs / seconds / 1e9:.3g} G/s" if pairs and seconds > 0 else ""
            rows.append((*row(indent + title, seconds, self.total), f"{pairs:.2e}" if pairs else "", rate))
        rows.append(("total", milliseconds(self.total), "", "", ""))
        return TextTable(("phase", "time", "share", "pairs", "rate"), rows, "{:<24}{:>12}{:>8}{:>10}   {}")

    def table(self) -> str:
        """Return a table of the phases and their parts: time, share of the whole, kernel evaluations and their rate.

        Returns
        -------
        str
            One line a phase.
        """
        return str(self.cells())

    def _repr_html_(self) -> str:
        return self.cells().html(repr(self))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.total:.3g} s>"


class _PhaseBody:
    """Body of a phase, whose seconds are added to two names."""

    __slots__ = ("_before", "_began", "_name", "_times", "_whole")

    def __init__(self, times: PhaseTimes, name: str, whole: str) -> None:
        self._times, self._name, self._whole = times, name, whole

    def __enter__(self) -> None:
        times = self._times
        if times.watch is not None:
            times.watch(self._whole)
        self._before = times.time[self._name], times.time[self._whole]
        if times.wait is not None:
            times.wait()
        self._began = times.clock()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        times = self._times
        if times.wait is not None:
            times.wait()
        elapsed, (part, whole) = times.clock() - self._began, self._before
        times.time[self._name] = part + elapsed
        times.time[self._whole] = whole + elapsed


def milliseconds(seconds: float) -> str:
    """Return a time in milliseconds as text, for tables."""
    return f"{1e3 * seconds:.2f} ms"


def row(title: str, seconds: float, whole: float) -> tuple[str, str, str]:
    """Return the first cells of a row of a table: a title, milliseconds, and their share of the whole."""
    return title, milliseconds(seconds), f"{100 * seconds / whole:.1f} %" if whole > 0 else "–"
