"""Interpolation between clusters, and between numbers of proxy points of one cluster."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki.engine.steps import Handle, Step
from parki.proxies import THREADS
from parki.treecode.structure import TreecodeStructure, indices


def transfer(
    s: TreecodeStructure, is_upward: bool, m: tuple[int, int], items: NDArray[Any], boxes: tuple[Handle, Handle],
    values: tuple[Handle, Handle],
) -> list[Step]:  # fmt: skip
    """Return the step from m[0] to m[1] points per direction, if there are items.

    Parameters
    ----------
    s : TreecodeStructure
    up : bool
        Whether charges are transferred; else potentials.
    m : (int, int)
    items : array (I, 3)
        Row that receives, and rows begin … end − 1 that give.
    boxes, values : (Handle, Handle)
        Those of clusters that give and that receive.
    """
    if not len(items):
        return []
    args = {"item": indices("transfers", items), "box": boxes[0], "to_box": boxes[1], **s.tables}
    args |= {"given": values[0], "made": values[1], "m": m[0], "n": m[1]}
    return [Step("upward" if is_upward else "downward", s.kernels.transfer(is_upward), len(items), args, THREADS)]


def ranges(first: NDArray[np.integer], begin: NDArray[np.integer], count: Any = 1) -> NDArray[np.integer]:
    """Return items (I, 3): rows that receive, and for each `count` rows that give, starting at `begin`."""
    return np.column_stack([first, begin, begin + count])
