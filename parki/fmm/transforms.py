"""Transforms of a kernel between boxes of some sizes, kept for later plans, in double or in single precision."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from parki.fmm import memory, representations, spectra
from parki.pairs import Pair

#: Range of the largest transform in single precision: sums of products with charges up to 1 are far from 1e±38.
SINGLE_RANGE = 1e-20, 1e20


def tables(
    arguments: Sequence[tuple[Pair, float, int]], dtype: str
) -> list[NDArray[np.float32]] | list[NDArray[np.float64]]:
    """Return the transforms of a kernel for several sizes of boxes, all of one type: see `spectra.table`.

    Parameters
    ----------
    arguments : sequence of (Pair, half side, points per edge)
    dtype : {"float64", "float32"}
        Type of the transforms; float64 where the range of the other is too short for one of the sizes.
    """
    if dtype == "float32":
        singles = [_single(*size) for size in arguments]
        if all(a.size for a in singles):
            return singles
    return [_double(*size) for size in arguments]


@memory.kept()
def _double(pair: Pair, half: float, p: int) -> NDArray[np.float64]:
    """Return the transforms between boxes of half side `half`."""
    return _transformed(pair, half, p)


@memory.kept()
def _single(pair: Pair, half: float, p: int) -> NDArray[np.float32]:
    """Return the same in single precision; an empty array if its range may be too short."""
    transforms = _transformed(pair, half, p)
    low, high = SINGLE_RANGE
    is_in_range = low < np.abs(transforms).max() < high
    return transforms.astype(np.float32) if is_in_range else np.empty(0, np.float32)


def _transformed(pair: Pair, half: float, p: int) -> NDArray[np.float64]:
    return spectra.table(lambda r: representations.block(pair, half * r), p)
