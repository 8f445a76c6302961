"""Blocks of boxes of one level whose translations have the same matrices: units of work of the Chebyshev method.

Source: E. Agullo et al., "Task-based FMM for heterogeneous architectures", Inria RR-8513 (2014), section 2.2.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
DIRECTIONS = 26  # neighbours of an octet


@dataclass(frozen=True, eq=False)
class BoxBlocks:
    """Boxes in blocks.

    Attributes
    ----------
    boxes : array (blocks, lanes)
        Number of each box; −1 in lanes without one.
    table : array (blocks,)
        Number of the matrices of each block, ascending.
    """

    boxes: Ints
    table: Ints

    @classmethod
    def of(cls, boxes: Ints, table: Ints, lanes: int) -> "BoxBlocks":
        """Return blocks of boxes in their order, separated by the numbers (n,) of their matrices."""
        rows, tables = [np.empty((0, lanes), np.int32)], [np.empty(0, np.int32)]
        for number in np.unique(table):
            members = boxes[table == number]
            count = -(-len(members) // lanes)
            row = np.full(count * lanes, -1, np.int32)
            row[: len(members)] = members
            rows.append(row.reshape(count, lanes))
            tables.append(np.full(count, number, np.int32))
        return cls(np.concatenate(rows), np.concatenate(tables))

    def __len__(self) -> int:
        return len(self.boxes)

    def items(self, limit: int, lines: int) -> Ints:
        """Return rows (first block, blocks, first line): up to `limit` blocks of a matrix, which has `lines` lines."""
        parts = [np.empty((0, 3), np.int64)]
        for number in np.unique(self.table):
            begin, end = np.searchsorted(self.table, [number, number + 1])
            first = np.arange(begin, end, limit)
            parts.append(np.column_stack([first, np.minimum(limit, end - first), np.full(len(first), number * lines)]))
        return np.concatenate(parts).astype(np.int32)

    def placed(self, values: NDArray[np.integer], filler: int) -> Ints:
        """Return the values of boxes by block and lane, and `filler` in lanes without a box."""
        return np.where(self.boxes < 0, filler, values[self.boxes]).astype(np.int32)


def neighbours(target: Ints, source: Ints, direction: Ints, octets: int) -> Ints:
    """Return the source's octet (octets, 26) by target octet and direction, −1 where the list has none."""
    near = np.full((octets, DIRECTIONS), -1, np.int32)
    near[target, direction] = source
    return near


def rows_by_place(blocks: BoxBlocks, slot: Ints, octets: int) -> Ints:
    """Return the row of each place 8 · octet + octant (8 · octets,), −1 for a place without a box; `slot` is by box."""
    row, boxes = np.full(8 * octets, -1, np.int32), blocks.boxes.ravel()
    places = np.flatnonzero(boxes >= 0).astype(np.int32)
    row[slot[boxes[places]]] = places
    return row
