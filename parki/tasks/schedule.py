"""The schedule of a plan: its tasks, and the times of those of the last call."""

from pathlib import Path

from parki.engine import spaces
from parki.tasks import gantt
from parki.tasks.scheduled import Scheduled
from parki.tasks.trace import Trace


class Schedule:
    """Show how the tasks of a plan share the cores of a host.

    Parameters
    ----------
    scheduled : Scheduled
        The steps of one right-hand side.

    Attributes
    ----------
    policy : str
        Which of the ready tasks comes first, as in `parki.fmm.FmmOptions`.
    tasks, workers : int
        Numbers of tasks, and of threads that run them.

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
        self.workers = spaces.workers(scheduled.space)

    @property
    def last(self) -> Trace | None:
        """Return the trace of the last sum, None before the first."""
        return self._scheduled.last

    @property
    def seconds(self) -> float:
        """Return the seconds of the last sum, from its first task to its last; NaN before the first."""
        last = self.last
        return float("nan") if last is None else last.seconds

    @property
    def bound(self) -> float:
        """Return the least seconds that any order of the tasks takes, by their times in the last sum."""
        last = self.last
        if last is None:
            return float("nan")
        seconds = last.end - last.begin
        return max(float(seconds.sum()) / self.workers, self._scheduled.cut.graph.critical_path(seconds))

    @property
    def busy(self) -> list[float]:
        """Return the share of the last sum in which each worker ran tasks."""
        last = self.last
        return [] if last is None else (last.busy / last.seconds).tolist()

    def trace(self, path: str | Path) -> None:
        """Write the last sum for Perfetto and Chrome.

        Parameters
        ----------
        path : str or Path
            Of the file, as ``"sum.json"``.

        Raises
        ------
        RuntimeError
            Before the first sum.
        """
        self._present().write(Path(path))

    def gantt(self, path: str | Path) -> None:
        """Draw the last sum: a row for each worker, a bar for each task.

        Parameters
        ----------
        path : str or Path
            Of the picture, which ends in .png, .svg or .pdf.

        Raises
        ------
        RuntimeError
            Before the first sum.
        ValueError
            For another ending, and without matplotlib.
        """
        gantt.draw(self._present(), Path(path), f"{self.tasks} tasks, schedule {self.policy!r}")

    def _present(self) -> Trace:
        last = self.last
        if last is None:
            raise RuntimeError("the plan has not been called; expected a call before its schedule is shown.")
        return last

    def __str__(self) -> str:
        told = f"{self.tasks} tasks by {self.workers} workers, {self.policy}"
        last = self.last
        if last is None:
            return told
        busy = ", ".join(f"{share:.0%}" for share in self.busy)
        return f"{told}: {1e3 * self.seconds:.3g} ms, bound {1e3 * self.bound:.3g} ms, busy {busy}"
