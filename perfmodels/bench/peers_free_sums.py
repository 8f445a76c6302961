"""Sums and programs of `parki bench peers-free`: the forms that parki and other programs are brought into.

All sums are of the same points as targets and sources, in the units of `parki.direct.direct_sum`, without 1/4π and
1/8π.  Sums with gradients return the gradient alone, as all programs with gradients have it.
"""

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

KAPPA = 0.5  # of yukawa
Array = np.ndarray


@dataclass(frozen=True)
class PeerSum:
    """A kernel of `parki.pairs`, summed as it is, or with its gradient."""

    kernel: str
    gradient: bool = False

    @property
    def parameters(self) -> dict[str, float]:
        """Parameters of the kernel."""
        return {"kappa": KAPPA} if self.kernel == "yukawa" else {}

    @property
    def results(self) -> int:
        """Components of a result."""
        return 3 if self.gradient or self.kernel == "stokes_sl" else 1

    def __str__(self) -> str:
        return f"{self.kernel}-gradient" if self.gradient else self.kernel


class PeerSession:
    """A sum by one program with one setting.

    `keeps` tells whether a sum of new charges at the same points takes less time than a sum of new points.
    """

    keeps = True

    def points(self, x: Array, q: Array) -> Array:
        """Return the sum of charges at new points ``(3, n)``."""
        raise NotImplementedError

    def charges(self, q: Array) -> Array:
        """Return the sum of new charges at the points of the last call of `points`."""
        raise NotImplementedError

    def close(self) -> None:
        """Free the memory of a tree."""


class PeerProgram(abc.ABC):
    """A program with sums in free space.

    Attributes
    ----------
    name : str
    against : str
        The method of parki whose time is compared with the program's.
    alone : bool
        Whether its gradients come without potentials, and so those of parki that are compared with them.
    """

    name: str
    against = "kifmm"
    alone = False

    def side(self, sum_: PeerSum) -> tuple[str, bool]:
        """Return the method of parki beside which a sum stands, and whether gradients are alone."""
        return self.against, self.alone and sum_.gradient

    @abc.abstractmethod
    def settings(self, sum_: PeerSum) -> Sequence[Any]:
        """Return the settings that are tried, and none for sums that the program does not have."""

    @abc.abstractmethod
    def session(self, sum_: PeerSum, setting: Any) -> PeerSession:
        """Return a sum with one of the settings."""

    def label(self, setting: Any) -> str:
        """Return a setting as text."""
        return str(setting)
