"""Options of a fast multipole method."""

from dataclasses import dataclass
from typing import ClassVar

from parki.fmm import params
from parki.names import FmmMethod
from parki.options import ToleranceOptions, option, whole

METHODS = ("kifmm", "chebyshev")


@dataclass(frozen=True, kw_only=True)
class FmmOptions(ToleranceOptions):
    """Options of a fast multipole method.

    Parameters
    ----------
    method : {"kifmm", "chebyshev"}, default "kifmm"
        Equivalent sources on surfaces around boxes, or interpolation at Chebyshev points in them.  Sums by the first
        may run as tasks.
    order : int, optional
        Points per edge of the surfaces, or Chebyshev points per direction of a box, 3 to 16, instead of a tolerance.
    tolerance : float, default 1e-6
        Relative error, as a 2-norm over all targets.
    """

    TITLE: ClassVar[str] = "fast multipole methods"
    method: FmmMethod = option("kifmm", choices=METHODS)
    order: int | None = option(None, whole(params.MOST_ORDER))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tolerance is not None and self.order is not None:
            raise ValueError("tolerance was given with order, which it chooses; expected one or the other.")
        if self.tasks and self.method != "kifmm":
            raise ValueError(f"schedule is {self.schedule!r} with method={self.method!r}; expected method='kifmm'.")
        if self.order is not None and self.order < params.LEAST_ORDER:
            raise ValueError(f"order is {self.order}; expected {params.LEAST_ORDER} to {params.MOST_ORDER}.")
