"""Arrays that begin with a cache line, and tables that are kept for the next plan as long as there is room for them."""

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from cachetools import LRUCache, cached
from numpy.typing import DTypeLike

from parki.arrays import Array
from parki.engine import forks

LINE = 64  # bytes of a cache line
ROOM = 1 << 29  # bytes of tables that one function keeps


def aligned(xp: Any, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """An array of zeros of NumPy or CuPy whose first entry begins a cache line.

    What is read and written most often is one line of eight siblings at a time.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = xp.zeros(size + LINE, np.uint8)
    at = -(room.ctypes.data if xp is np else room.data.ptr) % LINE
    return room[at : at + size].view(dtype).reshape(shape)


def kept(room: int = ROOM) -> Callable[[Callable], Callable]:
    """Decorate a function of hashable arguments: of its results those used last are kept, `room` bytes of arrays."""
    return cached(LRUCache(room, getsizeof=_bytes), lock=forks.lock())


def _bytes(made: Any) -> int:
    """Bytes of the arrays in a result, which may be a dataclass or a tuple; at least one."""
    if is_dataclass(made):
        made = tuple(getattr(made, f.name) for f in fields(made))
    if isinstance(made, tuple):
        return 1 + sum(map(_bytes, made))
    return 1 + int(getattr(made, "nbytes", 0))
