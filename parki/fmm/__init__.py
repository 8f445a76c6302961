"""Fast multipole methods in free space: by equivalent sources (KIFMM), and by Chebyshev interpolation (black box)."""

from parki.fmm.api import chebyshev, kifmm, plan
from parki.fmm.params import Parameters
from parki.plan import Plan

__all__ = ["Parameters", "Plan", "chebyshev", "kifmm", "plan"]


def __dir__() -> list[str]:
    return sorted(__all__)
