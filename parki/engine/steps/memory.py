"""Arrays of a list of steps in a space."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from parki.engine import forks
from parki.engine.errors import LaunchError
from parki.engine.run import spaces
from parki.engine.run.spaces import Space
from parki.engine.steps.handles import BOUND, LINE, Handle

ROOM = 1 << 27  # bytes that a process keeps for the next lists, at most
LARGE = 1 << 20  # bytes of a block that is kept, at least: the C library keeps smaller ones
#: Bytes of a block that is made and freed once: glibc then keeps freed arrays up to this size, 32 MiB at most, so that
#: the small arrays of plans do not return to the system one by one.
FREED = 31 << 20


class _Idle:
    """Blocks of memory that no list uses: the system would clear their pages anew, which takes as long as a sum."""

    def __init__(self) -> None:
        self._blocks: list[np.ndarray] = []
        self._lock = forks.lock()
        np.empty(FREED, np.uint8)

    def take(self, size: int) -> np.ndarray:
        """Return the smallest block of at least `size` bytes that is at most a quarter larger, or a new one."""
        with self._lock:
            fitting = [block for block in reversed(self._blocks) if size <= block.nbytes <= 1.25 * size]
            block = min(fitting, key=len, default=None)
            if block is not None:
                self._blocks = [a for a in self._blocks if a is not block]
        return np.empty(size, np.uint8) if block is None else block

    def keep(self, block: np.ndarray) -> None:
        """Keep a block for the next list, unless it is too large; the oldest ones are dropped for room."""
        if block.nbytes > ROOM:
            return
        with self._lock:
            blocks = [*self._blocks, block]
            while sum(a.nbytes for a in blocks) > ROOM:
                del blocks[0]
            self._blocks = blocks


class _Lent:
    """Owner of the bytes of arrays: the last array that is left gives the block back."""

    idle = _Idle()

    def __init__(self, block: np.ndarray, size: int) -> None:
        self._block, self.__array_interface__ = block, block.__array_interface__ | {"shape": (size,)}

    def __del__(self) -> None:
        self.idle.keep(self._block)


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

        One block holds all arrays that need not be zero; on hosts it goes to the next list of about this size.
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
        if zero or self.xp is not np or size < LARGE:
            block = (self.xp.zeros if zero else self.xp.empty)(size + LINE, np.uint8)
        else:
            block = np.asarray(_Lent(_Lent.idle.take(size + LINE), size + LINE))
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
