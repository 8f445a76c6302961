"""Options of a sum whose method is chosen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from parki.ewald.options import required_share
from parki.keywords import Box
from parki.names import SumMethod
from parki.options import FreeOptions, count, one_of, option

METHODS = ("auto", "direct", "bldtt", "bltc", "kifmm", "chebyshev", "ewald")


@dataclass(frozen=True, kw_only=True)
class SumOptions(FreeOptions):
    """Options of a sum whose method is chosen.

    Parameters
    ----------
    method : {"auto", "direct", "bldtt", "bltc", "kifmm", "chebyshev", "ewald"}, default "auto"
        Method of the sum; ``"auto"`` is the one that is predicted to take the least time.
    box : list, tuple or array (3,) or (3, 3), optional
        Side lengths in the points' unit of length, or lattice vectors as rows, as of `parki.ewald.EwaldOptions`.
    periodicity : {0, 1, 2, 3} or three bools, optional
        Number of periodic axes, which are the first ones, or a mask of the axes; 3 by default if there is a box, else
        0, free space.  Only Ewald sums are periodic.
    tolerance : float, default 1e-6
        Relative error, as a 2-norm over all targets.
    calls : int, default 1
        Number of calls that a plan is made for: the more there are, the more time may be spent on making it.
    """

    TITLE: ClassVar[str] = "sums by a chosen method"
    method: SumMethod = option("auto", one_of(*METHODS), choices=METHODS)
    box: Box | None = None
    periodicity: int | Sequence[bool] | None = None
    tolerance: float = option(1e-6, required_share)
    calls: int = option(1, count)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.comm is not None:
            raise ValueError("comm was given; expected a method by name, as parki.fmm.plan: ranks choose none.")
        if self.periodic and self.method not in ("auto", "ewald"):
            found = f"method is {self.method!r} with periodicity={self.axes!r}"
            raise ValueError(f"{found}; expected 'ewald' or 'auto': other methods sum in free space.")

    @classmethod
    def refuse(cls, parameters: Iterable[str]) -> None:
        """Accept all keywords: the kernel's parameters."""

    @property
    def axes(self) -> int | Sequence[bool]:
        """Return the periodicity, by default that of the box."""
        if self.periodicity is None:
            return 0 if self.box is None else 3
        return self.periodicity

    @property
    def periodic(self) -> bool:
        """Tell whether any axis is periodic."""
        return any(self.axes) if isinstance(self.axes, Sequence) else bool(self.axes)

    def common(self) -> dict[str, Any]:
        """Return the options that all methods in free space share."""
        names = ("gradient", "layout", "execution_space", "threads", "verbose", "timed", "rhs", "own_term")
        return {name: getattr(self, name) for name in names}
