"""Arrays of a list of steps in a space."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from parki.engine.errors import LaunchError
from parki.engine.run import spaces
from parki.engine.run.spaces import Space
from parki.engine.steps.handles import BOUND, LINE, Handle


class Memory:
    """Arrays of handles in a space; each worker has scratch of its own, made on first use."""

    def __init__(self, space: Space, size: int) -> None:
        self.xp, self.size = spaces.array_module(space), size
        self._arrays: dict[tuple[int, int], Any] = {}
        self._scratch: list[tuple[Handle, int]] = []

    def of(self, handle: Handle, worker: int = 0) -> Any:
        """Return the array of a handle that is neither argument nor result."""
        return handle.of(self._whole(handle.whole, worker))

    def take(self, arrays: Mapping[Handle, Any]) -> None:
        """Use arrays for constants that have no values."""
        for handle, a in arrays.items():
            fits(handle, a)
            self._arrays[id(handle), 0] = a

    def allocate(self, handles: Iterable[Handle]) -> None:
        """Make the arrays of whole handles, except arguments, results and scratch.

        One block holds all arrays that need not be zero: the next list gets memory that is freed as a whole, while the
        system would take back many pieces and clear their pages anew.
        """
        scratch = []
        for handle in handles:
            if handle.role == "scratch":
                self._scratch += [(handle, worker) for worker in range(self.size)]
            elif handle.role == "state" and not handle.zero:
                scratch.append(handle)
            elif handle.role not in BOUND:
                self._whole(handle, 0)
        block, end = self._bytes(sum(_room(handle) for handle in scratch), False), 0
        for handle in scratch:
            self._arrays[id(handle), 0] = _seen(block[end:], handle)
            end += _room(handle)

    @property
    def unmade(self) -> int:
        """Bytes of scratch that are not made yet."""
        return sum(handle.nbytes for handle, worker in self._scratch if (id(handle), worker) not in self._arrays)

    def _whole(self, handle: Handle, worker: int) -> Any:
        key = (id(handle), worker if handle.role == "scratch" else 0)
        if key not in self._arrays:
            if handle.role == "constant" and handle.values is None:
                fits(handle, None)
            if handle.values is None:
                self._arrays[key] = _seen(self._bytes(handle.nbytes, handle.zero), handle)
            else:
                self._arrays[key] = self.xp.asarray(handle.values)
        return self._arrays[key]

    def _bytes(self, size: int, zero: bool) -> Any:
        """Return bytes whose first one begins a cache line."""
        block = (self.xp.zeros if zero else self.xp.empty)(size + LINE, np.uint8)
        offset = -(block.ctypes.data if self.xp is np else block.data.ptr) % LINE
        return block[offset : offset + size]

    @property
    def arrays(self) -> list[Any]:
        """Arrays made so far."""
        return list(self._arrays.values())


def _room(handle: Handle) -> int:
    """Return the bytes of the cache lines that an array takes."""
    return math.ceil(handle.nbytes / LINE) * LINE


def _seen(block: Any, handle: Handle) -> Any:
    """Return the first bytes of a block as the array of a handle."""
    return block[: handle.nbytes].view(handle.dtype).reshape(handle.shape)


def fits(handle: Handle, a: Any) -> None:
    """Raise LaunchError for a missing array, and for one of another shape or dtype than the handle's."""
    if a is None or tuple(a.shape) != handle.shape or a.dtype != handle.dtype:
        description = "nothing" if a is None else f"an array of {a.shape} and {a.dtype}"
        expected = f"one of {handle.shape} and {handle.dtype}"
        raise LaunchError(f"{handle.role} '{handle.name}' is bound to {description}, expected {expected}")
