"""A rank's part of tree, lists and expansions, and sums over them."""

from __future__ import annotations

from dataclasses import dataclass

from parki.arrays import Array
from parki.distributed.comm import Comm
from parki.distributed.delivery import Delivery
from parki.distributed.fmm.part import RankPart
from parki.distributed.freespace import SumOverRanks
from parki.distributed.trees.shared import SharedTree
from parki.fmm.structure import FmmStructure
from parki.timing import PhaseTimes


@dataclass(frozen=True, eq=False)
class RankStructure(FmmStructure):
    """A rank's part of a sum: see `parki.distributed.freespace.Owned`.

    Attributes
    ----------
    shared : SharedTree
    part : RankPart
    given : tuple of arrays (3, n)
        The caller's targets and sources of this rank, one array if they are the same.
    """

    shared: SharedTree
    part: RankPart
    given: tuple[Array, Array]

    @property
    def comm(self) -> Comm:
        """Return the communicator."""
        return self.shared.comm

    @property
    def to_targets(self) -> Delivery:
        """Return the delivery of the caller's targets."""
        return self.shared.deliveries[-1]

    @property
    def to_sources(self) -> Delivery:
        """Return the delivery of the caller's sources."""
        return self.shared.deliveries[0]

    @property
    def arrays(self) -> list[Array]:
        """Return every array of the points, and of messages."""
        return [*super().arrays, *self.shared.arrays, *self.part.arrays, *self.given]

    def originals(self) -> tuple[Array, Array]:
        """Return the caller's targets and sources of this rank, one array if they are the same."""
        return self.given


class FmmSum(SumOverRanks):
    """A sum over a rank's part, whose near field is worked on while messages are under way."""

    def run(self, density: Array, normals: Array | None, out: Array, times: PhaseTimes) -> None:
        """Sum a density ``(rhs, components, Ns)`` with normals ``(3, Ns)`` to `out` ``(rhs, components, Nt)``."""
        beside = self._structure.part.beside
        if beside is not None:
            beside.reset()
        super().run(density, normals, out, times)
        for phase, seconds in (beside.worked if beside is not None else {}).items():
            times.shift(seconds, phase, "near")
