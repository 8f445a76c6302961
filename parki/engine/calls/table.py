"""Calls of compiled host code from outside Python: argument structures of many parts of a launch."""

import ctypes
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from parki.engine.calls.host import HostCall
from parki.engine.run.launch import Prepared


class CallTable:
    """Argument structures of launches of ranges of one league, each on one thread, for compiled callers.

    Launches that run at the same time must not add to the same place: additions are not atomic.

    Parameters
    ----------
    launch : Prepared
        A launch on a host, with its current arguments.
    first, count : arrays (launches,) of int32
        Ranges of the league.

    Attributes
    ----------
    call : HostCall
        The whole launch.
    rows : array (launches, bytes of a structure) of uint8
    """

    def __init__(self, launch: Prepared, first: NDArray[np.int32], count: NDArray[np.int32]) -> None:
        launch._refuse_released()
        self.call: HostCall = launch._call
        self.rows = np.tile(np.frombuffer(self.call._struct, np.uint8), (len(first), 1))
        for field, values in {"first": first, "league": first + count, "threads": 1, "shared": 0}.items():
            self.column(f"pk_{field}", np.int32)[:] = values

    def column(self, field: str, dtype: DTypeLike) -> NDArray[Any]:
        """Return a field of all structures, which may be set."""
        offset, item = self.offset(field), np.dtype(dtype).itemsize
        return self.rows[:, offset : offset + item].view(dtype)[:, 0]

    def offset(self, field: str) -> int:
        """Return the offset of a field in bytes."""
        return int(getattr(type(self.call._struct), field).offset)

    @property
    def entry(self) -> int:
        """Return the address of the function to call."""
        return ctypes.cast(self.call._run, ctypes.c_void_p).value or 0

    @property
    def addresses(self) -> NDArray[np.uint64]:
        """Return the addresses of the structures."""
        return self.rows.ctypes.data + np.arange(len(self.rows), dtype=np.uint64) * self.rows.strides[0]

    @property
    def may_fault(self) -> bool:
        """Tell whether a launch may leave a record of a fault."""
        return self.call._may_fault
