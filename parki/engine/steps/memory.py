"""The arrays of a list of steps in a space."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from parki.engine import spaces
from parki.engine.errors import LaunchError
from parki.engine.spaces import Space
from parki.engine.steps.handles import Handle

LINE = 64  # bytes of a cache line, which every array begins
BOUND = ("argument", "result")  # roles whose arrays a run is given


class Memory:
    """The arrays of handles in a space; of scratch one for each worker, made when it is first asked for."""

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
        """Make the arrays of whole handles that are neither arguments nor results, but for scratch."""
        for handle in handles:
            if handle.role == "scratch":
                self._scratch += [(handle, worker) for worker in range(self.size)]
            elif handle.role not in BOUND:
                self._whole(handle, 0)

    @property
    def unmade(self) -> int:
        """Bytes of scratch that nobody has asked for yet."""
        return sum(handle.nbytes for handle, worker in self._scratch if (id(handle), worker) not in self._arrays)

    def _whole(self, handle: Handle, worker: int) -> Any:
        key = (id(handle), worker if handle.role == "scratch" else 0)
        if key not in self._arrays:
            if handle.role == "constant" and handle.values is None:
                fits(handle, None)
            made = self._empty(handle) if handle.values is None else self.xp.asarray(handle.values)
            self._arrays[key] = made
        return self._arrays[key]

    def _empty(self, handle: Handle) -> Any:
        """Return an array whose first entry begins a cache line."""
        size = math.prod(handle.shape) * handle.dtype.itemsize
        room = (self.xp.zeros if handle.zero else self.xp.empty)(size + LINE, np.uint8)
        at = -(room.ctypes.data if self.xp is np else room.data.ptr) % LINE
        return room[at : at + size].view(handle.dtype).reshape(handle.shape)

    @property
    def arrays(self) -> list[Any]:
        """Every array."""
        return list(self._arrays.values())


def fits(handle: Handle, a: Any) -> None:
    """Raise LaunchError for an array of another shape or dtype than a handle's, and for none."""
    if a is None or tuple(a.shape) != handle.shape or a.dtype != handle.dtype:
        found = "nothing" if a is None else f"an array of {a.shape} and {a.dtype}"
        expected = f"one of {handle.shape} and {handle.dtype}"
        raise LaunchError(f"{handle.role} '{handle.name}' is bound to {found}, expected {expected}")
