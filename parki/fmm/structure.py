"""Tree, lists and expansions of a fast multipole sum."""

from dataclasses import dataclass

from parki.arrays import Array
from parki.fmm.expansion import Expansion
from parki.fmm.representations import Representation
from parki.trees.octlists import OctLists
from parki.trees.octree import Octree


@dataclass(frozen=True, eq=False)
class FmmStructure:
    """Tree, lists and expansions of a sum.

    Attributes
    ----------
    tree : Octree
    lists : OctLists
    representation : Representation or None
        Equivalent sources and check values of the kernel; None where its expansions interpolate.
    expansion : Expansion
    """

    tree: Octree
    lists: OctLists
    representation: Representation | None
    expansion: Expansion

    @property
    def arrays(self) -> list[Array]:
        """Return every array of the sorted points."""
        return [a for side in (self.tree.sources, self.tree.targets) for a in (side.points, side.order)]

    def originals(self) -> tuple[Array, Array]:
        """Return targets and sources in the caller's order, one array if they are the same."""
        sources = self.tree.sources.originals()
        return (sources if self.tree.targets is self.tree.sources else self.tree.targets.originals()), sources
