"""Lines of grids in messages: in their own type, in single precision, or as 40-bit integers with a norm per row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from parki import engine
from parki.engine.steps import Handle, Step, constant, state

BITS = (64, 40, 32)  # bits of a number in messages
THREADS, LANES = 128, 32  # threads of a team on a GPU, lanes of a warp
ALIGNED = 8  # bytes; parts of a message with 40-bit integers take multiples of this


class Lines(NamedTuple):
    """Lines of a grid (components, lines, rows, points), named as in `kernels/bricks.py`; without names all lines."""

    grid: Handle
    names: NDArray[np.int64] | None = None

    def named(self) -> Handle:
        """Return the names."""
        rows = self.grid.shape[2]
        names = np.arange(self.grid.shape[1]) * rows if self.names is None else self.names
        return constant("lines", np.asarray(names, np.int32))


class Piece(NamedTuple):
    """Lines in a message.

    Attributes
    ----------
    rank : int
        Rank from or to which the lines travel.
    first, end : int
        Range of bytes in `whole`.
    """

    rank: int
    whole: Handle
    first: int
    end: int
    shape: tuple[int, ...]
    bits: int
    dtype: np.dtype

    @property
    def numbers(self) -> Handle:
        """Return the numbers, which are not integers."""
        return self.whole.view(self.first, self.shape, f"float{self.bits}")

    @property
    def integers(self) -> dict[str, Handle]:
        """Return the norms of rows, and the two parts of integers."""
        *outer, n2 = self.shape
        rows = math.prod(outer)
        high = self.first + rows * self.dtype.itemsize
        return {
            "norm": self.whole.view(self.first, (rows,), self.dtype),
            "high": self.whole.view(high, (rows, n2), np.int32),
            "low": self.whole.view(high + 4 * rows * n2, (rows, n2), np.uint8),
        }


def at_most(bits: int, dtype: DTypeLike) -> int:
    """Return the bits of a number in messages, at most those of the grid's type."""
    return min(bits, 8 * np.dtype(dtype).itemsize)


def nbytes(shape: Sequence[int], bits: int, itemsize: int = 8) -> int:
    """Return the bytes of lines in a message; 40-bit numbers have a norm of `itemsize` bytes a row."""
    numbers = math.prod(shape)
    size = numbers * bits // 8 + (itemsize * math.prod(shape[:-1]) if bits == 40 else 0)
    return -(-size // ALIGNED) * ALIGNED if bits == 40 else size


class Buffer:
    """Memory for messages between grids, with `bits` bits per number.

    Parameters
    ----------
    name : str
    room : int
        Size in bytes.
    bits : int
    dtype : dtype
        Type of the grids.
    """

    def __init__(self, name: str, room: int, bits: int, dtype: np.dtype) -> None:
        self.bits, self.dtype = bits, np.dtype(dtype)
        self.whole = state(name, (max(1, room),), np.uint8, zero=False)

    def parts(self, shapes: Sequence[tuple[int, tuple[int, ...]]]) -> list[Piece]:
        """Return contiguous parts of a message, by their ranks and shapes."""
        pieces, first = [], 0
        for rank, shape in shapes:
            end = first + nbytes(shape, self.bits, self.dtype.itemsize)
            pieces.append(Piece(rank, self.whole, first, end, shape, self.bits, self.dtype))
            first = end
        return pieces


def copy(phase: str, a: Lines, out: Lines, *, add: bool = False) -> Step:
    """Return the step that copies or adds lines to others."""
    source, target = a.named(), out.named()
    n1, n2 = min(a.grid.shape[2], out.grid.shape[2]), out.grid.shape[3]
    args = {"a": a.grid, "out": out.grid, "source": source, "target": target, "lines": len(source), "n1": n1, "n2": n2}
    args |= {"source_rows": a.grid.shape[2], "target_rows": out.grid.shape[2]}
    unit = engine.kernel("bricks", "lines_to_lines", real=a.grid.dtype, wire=out.grid.dtype, ADD=add)
    return Step(phase, unit, len(out.grid) * len(source), args, _block(n1, n2), lane="far")


def _block(n1: int, n2: int) -> tuple[int, int]:
    """Return the threads and lanes of a team on a GPU: lanes for the points of a row, at most a warp."""
    lanes = min(LANES, 1 << max(n2 - 1, 0).bit_length())
    return max(1, min(n1, THREADS // lanes)), lanes


def pack(phase: str, a: Lines, part: Piece) -> Step:
    """Return the step that writes lines into a message."""
    if part.bits != 40:
        return copy(phase, a, Lines(part.numbers))
    args = {"a": a.grid, "source": a.named(), "source_rows": a.grid.shape[2]}
    return _integers(phase, "lines_to_integers", part, args)


def unpack(phase: str, part: Piece, out: Lines, *, add: bool = False) -> Step:
    """Return the step that copies or adds lines from a message; 40-bit integers are not added."""
    if part.bits != 40:
        return copy(phase, Lines(part.numbers), out, add=add)
    args = {"out": out.grid, "target": out.named(), "target_rows": out.grid.shape[2]}
    return _integers(phase, "integers_to_lines", part, args)


def _integers(phase: str, name: str, part: Piece, args: dict[str, object]) -> Step:
    _, lines, n1, n2 = part.shape
    args |= part.integers | {"lines": lines, "n1": n1, "n2": n2}
    return Step(phase, engine.kernel("bricks", name, real=part.dtype), math.prod(part.shape[:-1]), args, lane="far")
