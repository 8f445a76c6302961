"""Options of a fast multipole method."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from parki.arrays import PRECISIONS
from parki.engine import Space
from parki.fmm import params
from parki.names import FmmMethod, FmmSchedule, Precision, SpaceName
from parki.options import STARPU, ToleranceOptions, flag, numbers_from_0, one_of, one_or_several, option, whole
from parki.tasks import starpu
from parki.tasks.scheduled import ORDERS

METHODS = ("kifmm", "chebyshev")
SCHEDULES = ("auto", "phases", *ORDERS, *starpu.SCHEDULES)
NAMED = ("auto", "phases", *ORDERS, *STARPU)
UNMODELLED = ("drain", "fifo")  # policies that need no seconds of tasks on cores before any was measured


def needs_no_model(schedule: str) -> bool:
    """Tell whether a schedule needs no modelled seconds of tasks on cores."""
    return schedule in UNMODELLED or schedule.startswith(starpu.PREFIX)


@dataclass(frozen=True, kw_only=True)
class FmmOptions(ToleranceOptions):
    """Options of a fast multipole method.

    Parameters
    ----------
    method : {"kifmm", "chebyshev"}, default "kifmm"
        Equivalent sources on surfaces around boxes, or interpolation at Chebyshev points in them.
    order : int, optional
        Points per edge of the surfaces, or Chebyshev points per direction of a box, 3 to 16, instead of a tolerance.
    far_precision : {"double", "single"}, optional
        Precision of the transforms by which boxes meet, of method ``"kifmm"``; by default single where the error
        allows.
    tolerance : float, default 1e-6
        Relative error, as a 2-norm over all targets.
    execution_space : str, Space or tuple of these, optional
        As of other sums; or a host and a kind of devices, as ``("Cuda", "OpenMP")``, which share the tasks of method
        ``"kifmm"``: arrays are the host's then.
    schedule : {"auto", "phases", "drain", "heteroprio", "heft", "fifo", "static", "starpu:NAME"}, default "auto"
        How the steps of a sum share units: one phase after another, or as tasks, which begin when others
        have made their input.  Of ready tasks the one with the longest way to the end comes first (``"drain"``), or
        the one that has been ready longest (``"fifo"``); others are those of `parki.tasks.policy`, and ``"static"`` is
        a simulated run of ``"drain"``.  Where StarPU is installed it runs them on cores by the policy ``NAME`` of its
        own, as ``"starpu:lws"``; ``"starpu"`` is ``"starpu:prio"``.  ``"auto"`` takes tasks where models promise a
        gain, and says why.  Method ``"chebyshev"``, which has no such models, takes ``"phases"``, ``"drain"``,
        ``"fifo"`` and StarPU's; ``"auto"`` is ``"phases"`` there.
    devices : sequence of int or "all", optional
        Numbers of the devices of `execution_space` that share the tasks; the first one if not given.
    deterministic : bool, default False
        Give each task to the same unit in all calls of a plan that several kinds of units share, so that results are
        the same to the last bit.
    """

    TITLE: ClassVar[str] = "fast multipole methods"
    method: FmmMethod = option("kifmm", choices=METHODS)
    order: int | None = option(None, whole(params.MOST_ORDER))
    far_precision: Precision | None = option(None, choices=(None, *PRECISIONS))
    execution_space: SpaceName | Space | Sequence[SpaceName | Space] | None = option(None, one_or_several)
    schedule: FmmSchedule = option("auto", one_of(*NAMED, prefix=starpu.PREFIX), choices=SCHEDULES)
    devices: Sequence[int] | Literal["all"] | None = option(None, numbers_from_0)
    deterministic: bool = option(False, flag)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tolerance is not None and self.order is not None:
            raise ValueError("tolerance was given with order, which it chooses; expected one or the other.")
        if self.tasks and self.method != "kifmm" and not needs_no_model(self.schedule):
            text = f"schedule is {self.schedule!r} with method={self.method!r}"
            raise ValueError(f"{text}; expected method='kifmm', or one of {', '.join((*UNMODELLED, STARPU[1]))}.")
        if self.far_precision == "single" and self.method != "kifmm":
            text = f"far_precision is 'single' with method={self.method!r}"
            raise ValueError(f"{text}; expected method='kifmm', or points of float32.")
        self._check_units()
        if self.order is not None and self.order < params.LEAST_ORDER:
            raise ValueError(f"order is {self.order}; expected {params.LEAST_ORDER} to {params.MOST_ORDER}.")

    def _check_units(self) -> None:
        """Raise ValueError for several units where one space does the whole sum."""
        if self.devices is None and not isinstance(self.execution_space, tuple):
            return
        text = "devices was given" if self.devices is not None else "execution_space names several spaces"
        if self.method != "kifmm":
            raise ValueError(f"{text} with method={self.method!r}; expected method='kifmm', or one space.")
        if self.comm is not None:
            raise ValueError(f"{text} with comm; expected one space for each rank.")
        if self.schedule == "phases" or self.schedule.startswith(starpu.PREFIX):
            raise ValueError(f"{text} with schedule={self.schedule!r}; expected 'auto', or a policy of parki's.")
