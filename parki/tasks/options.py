"""Options of sums that may run as tasks."""

from dataclasses import dataclass

from parki.names import TaskSchedule
from parki.options import ToleranceOptions, option
from parki.tasks.scheduled import ORDERS


@dataclass(frozen=True, kw_only=True)
class TaskOptions(ToleranceOptions):
    """Options of approximate sums in free space that may run as tasks.

    Parameters
    ----------
    schedule : {"phases", "drain", "fifo"}, default "phases"
        How the steps of a sum share the cores of a host: one phase after another, or as tasks, which begin when others
        have made what they read.  Of ready tasks the one with the longest way to the end comes first (``"drain"``), or
        the one that has been ready longest (``"fifo"``).
    """

    schedule: TaskSchedule = option("phases", choices=("phases", *ORDERS))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tasks and self.comm is not None:
            raise ValueError(f"schedule is {self.schedule!r} with comm; expected 'phases' over ranks.")

    @property
    def tasks(self) -> bool:
        """Tell whether sums run as tasks."""
        return self.schedule != "phases"
