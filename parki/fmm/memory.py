"""Arrays that begin with a cache line: what is read and written most often is one line of eight siblings at a time."""

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from parki.arrays import Array

LINE = 64  # bytes of a cache line


def aligned(xp: Any, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """An array of zeros of NumPy or CuPy whose first entry begins a cache line."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = xp.zeros(size + LINE, np.uint8)
    at = -(room.ctypes.data if xp is np else room.data.ptr) % LINE
    return room[at : at + size].view(dtype).reshape(shape)
