"""Options of a fast multipole method."""

from dataclasses import dataclass
from typing import ClassVar

from parki.fmm import params
from parki.names import FmmMethod, FmmSchedule
from parki.options import ToleranceOptions, one_of, option, whole
from parki.tasks import starpu
from parki.tasks.scheduled import ORDERS

METHODS = ("kifmm", "chebyshev")
SCHEDULES = ("phases", *ORDERS, *starpu.SCHEDULES)  # StarPU says which others it has when a plan is made
NAMED = ("phases", *ORDERS, "starpu", "starpu:NAME")


@dataclass(frozen=True, kw_only=True)
class FmmOptions(ToleranceOptions):
    """Options of a fast multipole method.

    Parameters
    ----------
    method : {"kifmm", "chebyshev"}, default "kifmm"
        Equivalent sources on surfaces around boxes, or interpolation at Chebyshev points in them.
    order : int, optional
        Points per edge of the surfaces, or Chebyshev points per direction of a box, 3 to 16, instead of a tolerance.
    tolerance : float, default 1e-6
        Relative error, as a 2-norm over all targets.
    schedule : {"phases", "drain", "fifo", "starpu", "starpu:NAME"}, default "phases"
        How the steps of method ``"kifmm"`` share the cores of a host: one phase after another, or as tasks, which begin
        when others have made what they read.  Of ready tasks the one with the longest way to the end comes first
        (``"drain"``), or the one that has been ready longest (``"fifo"``).  Where StarPU is installed it runs them by
        the policy ``NAME`` of its own, as ``"starpu:lws"``; ``"starpu"`` is ``"starpu:prio"``.
    """

    TITLE: ClassVar[str] = "fast multipole methods"
    method: FmmMethod = option("kifmm", choices=METHODS)
    order: int | None = option(None, whole(params.MOST_ORDER))
    schedule: FmmSchedule = option("phases", one_of(*NAMED, prefix=starpu.PREFIX), choices=SCHEDULES)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.schedule == "starpu":
            object.__setattr__(self, "schedule", starpu.USUAL)
        if self.tolerance is not None and self.order is not None:
            raise ValueError("tolerance was given with order, which it chooses; expected one or the other.")
        if self.schedule != "phases" and self.method != "kifmm":
            raise ValueError(f"schedule is {self.schedule!r} with method={self.method!r}; expected method='kifmm'.")
        if self.schedule != "phases" and self.comm is not None:
            raise ValueError(f"schedule is {self.schedule!r} with comm; expected 'phases' over ranks.")
        if self.order is not None and self.order < params.LEAST_ORDER:
            raise ValueError(f"order is {self.order}; expected {params.LEAST_ORDER} to {params.MOST_ORDER}.")
