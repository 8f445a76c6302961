"""Memory of a fast multipole sum, known before its arrays are made."""

from parki import memory
from parki.engine import Space
from parki.engine.steps import Steps
from parki.trees.octree import Octree

ADVICE = "A larger leaf_size, a smaller order or a larger tolerance takes less."


def require(steps: Steps, tree: Octree, space: Space) -> None:
    """Raise if steps take more memory of the host than is free.

    Raises
    ------
    MemoryError
        With the bytes needed and free, and the options that lower them.
    """
    _require(steps.nbytes(), tree, space)


def require_values(tree: Octree, points: int, components: int, space: Space) -> None:
    """Raise if the values at `points` points of each box alone take more memory of the host than is free.

    The check comes before operators, tables and lists are made.

    Raises
    ------
    MemoryError
        As `require` does.
    """
    _require(tree.nodes.n * points * components * tree.sources.points.dtype.itemsize, tree, space)


def _require(nbytes: int, tree: Octree, space: Space) -> None:
    if not space.own_memory:
        memory.require(nbytes, f"an octree of {tree.nodes.n} boxes", ADVICE)
