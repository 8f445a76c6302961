"""A rank's part of tree, lists and expansions."""

from __future__ import annotations

from dataclasses import dataclass

from parki.arrays import Array
from parki.distributed.comm import Comm
from parki.distributed.delivery import Delivery
from parki.distributed.fmm.part import RankPart
from parki.distributed.overlap import Meanwhile
from parki.distributed.trees.shared import SharedTree
from parki.fmm.structure import FmmStructure


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

    @property
    def handled(self) -> tuple[int, int]:
        """Return counts of handled items: items that every rank handles (boxes of top levels), and this rank's own."""
        nodes, lists = self.tree.nodes, self.lists
        points = sum(a.shape[1] for a in self.shared.points) * (nodes.depth + 1) + self.tree.sources.points.shape[1]
        return self.shared.repeated, points + nodes.n + sum(len(getattr(lists, f"{name}_t")) for name in "uwxv")

    @property
    def beside(self) -> Meanwhile | None:
        """Return the near field that is summed while messages are under way."""
        return self.part.beside

    def originals(self) -> tuple[Array, Array]:
        """Return the caller's targets and sources of this rank, one array if they are the same."""
        return self.given
