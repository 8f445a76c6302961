"""Groups of boxes: the units of work of the Chebyshev method.

A group is a number of boxes of one level that follow each other in Morton order.  A group takes few launches or
matrix products, in memory that a group needs.  Within a group boxes are sorted by octant: those of one
octant have the same lists of translations, up to a reflection.

Source: E. Agullo et al., "Task-based FMM for heterogeneous architectures", Inria RR-8513 (2014), section 2.2.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
DIRECTIONS = 26  # neighbours of an octet
SIZE = 2000  # boxes of a group


@dataclass(frozen=True)
class Groups:
    """Groups of some boxes of one level.

    Attributes
    ----------
    boxes : array (n,)
        All boxes, group by group, sorted by octant within each; a box's place is its row.
    begin : array (groups + 1,)
        Group g has rows begin[g] … begin[g + 1] − 1.
    octant : array (groups, 9)
        In group g those of octant o have rows octant[g, o] … octant[g, o + 1] − 1.
    """

    boxes: Ints
    begin: Ints
    octant: Ints

    def __len__(self) -> int:
        return len(self.begin) - 1

    def slices(self) -> Iterator[tuple[slice, list[tuple[int, slice]]]]:
        """Return the rows of each group, and its octants with their rows, empty ones left out."""
        for g in range(len(self)):
            octants = [(o, slice(int(self.octant[g, o]), int(self.octant[g, o + 1]))) for o in range(8)]
            yield slice(int(self.begin[g]), int(self.begin[g + 1])), [(o, s) for o, s in octants if s.start < s.stop]


def cut(boxes: Ints, octant: Ints, size: int) -> Groups:
    """Cut boxes of one level, in Morton order, into groups of nearly the same size, at most `size`.

    Parameters
    ----------
    boxes, octant : arrays (n,)
        Box numbers, and which child of its parent each is.
    size : int
        At least 1.
    """
    n = len(boxes)
    count = -(-n // size)
    begin = (np.arange(count + 1) * n // max(count, 1)).astype(np.int32)
    group = np.repeat(np.arange(count), np.diff(begin))
    key = group * 8 + octant
    order = np.argsort(key, kind="stable")
    ends = np.searchsorted(key[order], np.arange(count * 8 + 1)).astype(np.int32)
    rows = np.arange(count)[:, None] * 8 + np.arange(9)
    return Groups(np.ascontiguousarray(boxes[order], np.int32), begin, ends[rows])


def neighbours(target: Ints, source: Ints, direction: Ints, octets: int) -> Ints:
    """Return the source's octet (octets, 26) by the target's and direction, −1 where the list has none."""
    near = np.full((octets, DIRECTIONS), -1, np.int32)
    near[target, direction] = source
    return near


def rows_by_place(groups: Groups, slot: Ints, octets: int) -> Ints:
    """Return the row of each place 8 · octet + octant (8 · octets,), −1 where no box has it; `slot` is by box."""
    row = np.full(8 * octets, -1, np.int32)
    row[slot[groups.boxes]] = np.arange(len(groups.boxes), dtype=np.int32)
    return row
