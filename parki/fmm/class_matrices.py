"""Operators that map each reflection class to itself: small matrices, laid out for `parki.kernels.translate`."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
TILE = 8  # rows of a tile of a matrix; entries of one column in a tile are contiguous


@dataclass(frozen=True)
class ClassMatrices:
    """Operator as one matrix for each class.

    Attributes
    ----------
    table : (lines, 8)
        Matrices one after another, in tiles of 8 rows, column after column; missing rows are zeros.
    part : (classes, 5) int32
        First row that is read, columns, first row that is written, rows, first line of `table`.
    """

    table: Floats
    part: NDArray[np.int32]

    @classmethod
    def of(cls, matrices: list[Floats]) -> "ClassMatrices":
        """Put matrices of the classes together."""
        tables, part, first_column, first_row, line = [np.zeros((0, TILE))], [], 0, 0, 0
        for a in matrices:
            rows, columns = a.shape
            tiles = -(-rows // TILE)
            padded = np.zeros((tiles * TILE, columns))
            padded[:rows] = a
            tables.append(padded.reshape(tiles, TILE, columns).transpose(0, 2, 1).reshape(-1, TILE))
            part.append((first_column, columns, first_row, rows, line))
            first_column, first_row, line = first_column + columns, first_row + rows, line + tiles * columns
        return cls(np.concatenate(tables), np.array(part, np.int32).reshape(-1, 5))

    @property
    def rows(self) -> int:
        """Return the number of rows of the result, summed over all classes."""
        return int(self.part[:, 3].sum())

    @property
    def columns(self) -> int:
        """Return the number of rows of the operand, summed over all classes."""
        return int(self.part[:, 1].sum())

    @property
    def flops(self) -> int:
        """Return the number of operations for one box."""
        return int(2 * (self.part[:, 1].astype(np.int64) * self.part[:, 3]).sum())

    def matrix(self, c: int) -> Floats:
        """Return the matrix of one class."""
        _, columns, _, rows, line = (int(v) for v in self.part[c])
        tiles = -(-rows // TILE)
        tile_rows = self.table[line : line + tiles * columns].reshape(tiles, columns, TILE)
        return tile_rows.transpose(0, 2, 1).reshape(-1, columns)[:rows]
