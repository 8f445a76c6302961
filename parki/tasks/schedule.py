"""Schedule of a plan: its tasks, and their times in the last call."""

from pathlib import Path

from parki.tasks import gantt
from parki.tasks.scheduled import Scheduled
from parki.tasks.trace import Trace


class Schedule:
    """Show the tasks of a plan on its units: cores of a host, and devices beside them.

    Parameters
    ----------
    scheduled : Scheduled
        Steps of one right-hand side.

    Attributes
    ----------
    policy : str
        Name of the rule that orders ready tasks, as in `parki.fmm.FmmOptions`.
    tasks, workers : int
        Number of tasks, and number of threads that run tasks on cores.
    units : list of str
        Names of all units: cores, then devices.

    See Also
    --------
    parki.plan.Plan.schedule : The schedule of a plan.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x = parki.samples.uniform(2000, seed=1)
    >>> plan = parki.fmm.plan("coulomb", x, x, schedule="drain", threads=2)
    >>> u = plan(np.ones(2000))
    >>> plan.schedule.workers, plan.schedule.bound <= plan.schedule.seconds
    (2, True)
    """

    def __init__(self, scheduled: Scheduled) -> None:
        self._scheduled = scheduled
        self.policy, self.tasks = scheduled.order, len(scheduled.cut.graph)
        self.workers, self.units = scheduled.node.cores, scheduled.names

    @property
    def last(self) -> Trace | None:
        """Trace of the last sum, None before the first."""
        return self._scheduled.last

    @property
    def seconds(self) -> float:
        """Seconds of the last sum, from its first task to its last; NaN before the first."""
        last = self.last
        return float("nan") if last is None else last.seconds

    @property
    def bound(self) -> float:
        """Least seconds that any order of the tasks needs, by their times in the last sum.

        With devices, the bound keeps each task on its class of unit, and ignores that tasks wait for each other.
        """
        last, cores = self.last, self.workers
        if last is None:
            return float("nan")
        if cores < len(self.units):
            return max(float(seconds.mean()) for seconds in (last.busy[:cores], last.busy[cores:]))
        seconds = last.end - last.begin
        return max(float(seconds.sum()) / self.workers, self._scheduled.cut.graph.critical_path(seconds))

    @property
    def busy(self) -> list[float]:
        """Fraction of the last sum in which each unit ran tasks."""
        last = self.last
        return [] if last is None else (last.busy / last.seconds).tolist()

    def trace(self, path: str | Path) -> None:
        """Write a trace of the last sum for Perfetto and Chrome.

        Parameters
        ----------
        path : str or Path
            File name, such as ``"sum.json"``.

        Raises
        ------
        RuntimeError
            Before the first sum.
        """
        self._present().write(Path(path))

    def gantt(self, path: str | Path) -> None:
        """Draw the last sum: one row per unit, one bar per launch.

        Parameters
        ----------
        path : str or Path
            File name of the picture, which ends in .png, .svg or .pdf.

        Raises
        ------
        RuntimeError
            Before the first sum.
        ValueError
            For another ending, or without matplotlib.
        """
        gantt.draw(self._present(), Path(path), f"{self.tasks} tasks, schedule {self.policy!r}")

    def _present(self) -> Trace:
        last = self.last
        if last is None:
            raise RuntimeError("the plan has not been called; expected a call before its schedule is shown.")
        return last

    def __str__(self) -> str:
        names = "".join(f" and {name}" for name in self.units[self.workers :])
        text = f"{self.tasks} tasks by {self.workers} workers{names}, {self.policy}"
        last = self.last
        if last is None:
            return text
        shares = ", ".join(f"{share:.0%}" for share in self.busy)
        return f"{text}: {1e3 * self.seconds:.3g} ms, bound {1e3 * self.bound:.3g} ms, busy {shares}"
