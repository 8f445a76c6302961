"""Tree, lists and steps of a fast multipole sum."""

from dataclasses import dataclass

from parki.fmm.expansion import Expansion
from parki.fmm.representations import Representation
from parki.trees.octlists import OctLists
from parki.trees.octree import Octree


@dataclass(frozen=True, eq=False)
class FmmStructure:
    """Tree, lists and steps of a sum.

    Attributes
    ----------
    tree : Octree
    lists : OctLists
    representation : Representation, optional
        Of the pair by equivalent sources; None for interpolation.
    expansion : Expansion
    """

    tree: Octree
    lists: OctLists
    representation: Representation | None
    expansion: Expansion
