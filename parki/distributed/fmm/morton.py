"""Morton keys of boxes, and the keys of the places around them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parki.trees.octlists import DIRECTIONS
from parki.trees.octree import MAX_LEVEL

Keys = NDArray[np.int64]
# Shifts and masks that move the bits of a number two places apart.
_SPREAD = (
    (32, 0x1F00000000FFFF), (16, 0x1F0000FF0000FF), (8, 0x100F00F00F00F00F), (4, 0x10C30C30C30C30C3),
    (2, 0x1249249249249249),
)  # fmt: skip


def keys(anchor: NDArray[np.integer]) -> Keys:
    """Return the keys of boxes at anchors (…, 3)."""
    x = anchor.astype(np.int64)
    for shift, mask in _SPREAD:
        x = (x | x << shift) & mask
    return x[..., 0] << 2 | x[..., 1] << 1 | x[..., 2]


def anchors(key: Keys) -> Keys:
    """Return the anchors (…, 3) of boxes of these keys."""
    x = (key[..., None] >> np.array([2, 1, 0])) & _SPREAD[-1][1]
    masks = [mask for _, mask in _SPREAD[-2::-1]] + [(1 << MAX_LEVEL + 1) - 1]
    for (shift, _), mask in zip(_SPREAD[::-1], masks, strict=True):
        x = (x | x >> shift) & mask
    return x


def finest(key: Keys, level: NDArray[np.integer]) -> Keys:
    """Return the first keys on the last level below boxes."""
    return key << 3 * (MAX_LEVEL - level.astype(np.int64))


def around(key: Keys, level: NDArray[np.integer]) -> tuple[NDArray[np.intp], Keys, Keys]:
    """Return the places of a box and its neighbours that are within the root.

    Returns
    -------
    box : array (n,)
        Numbers of the boxes that the places are around.
    begin, end : arrays (n,)
        Ranges of their keys on the last level.
    """
    anchor = anchors(key)[:, None] + DIRECTIONS
    level = level.astype(np.int64)
    inside = ((anchor >= 0) & (anchor < (1 << level)[:, None, None])).all(axis=-1)
    box = np.nonzero(inside)[0]
    begin = finest(keys(anchor[inside]), level[box])
    return box, begin, begin + (np.int64(1) << 3 * (MAX_LEVEL - level[box]))
