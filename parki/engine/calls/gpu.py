"""Calls of GPU code, on a device or simulated: block shapes, the argument structure, reductions over the league."""

import copy
import ctypes
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

from parki.engine.calls.arguments import set_shape
from parki.engine.calls.scratch import requested
from parki.engine.errors import LaunchError
from parki.engine.lower import gpu, gpu_spellings
from parki.engine.lower.common import DTYPE, VALUE, field
from parki.engine.run.policy import MAX_TEAM, RangePolicy, TeamPolicy
from parki.engine.tree import ir
from parki.engine.tree.walk import has_vector_range
from parki.engine.workunit import Workunit

RANGE_BLOCK = 128  # iterations of a range policy that share a block
TEAM, LANES = 128, 8  # threads of a block by default, and lanes of a row where there are vector ranges
NARROW = 2**31  # elements; views that span fewer have 32-bit offsets


def block_shape(policy: RangePolicy | TeamPolicy, kernel: ir.KernelTree) -> tuple[int, int]:
    """Return the lanes of a row and the rows of a block."""
    if policy.kind == "range":
        return 1, policy.threads or RANGE_BLOCK
    lanes = policy.vector_length or (LANES if has_vector_range(kernel.body) else 1)
    threads = policy.team_size or max(1, TEAM // lanes)
    return lanes, min(threads, MAX_TEAM // lanes)


def span(a: Any) -> int:
    """Return the number of elements from the first to the last of an array, both counted; 0 for an empty one."""
    if a.size == 0:
        return 0
    return 1 + sum((n - 1) * (s // a.itemsize) for n, s in zip(a.shape, a.strides, strict=True))


class GpuCall(ABC):
    """A launch of the GPU text, bound to its arrays.

    Devices and the simulator differ in `xp`, the module of the arrays; `address` of an array; the `limit` of team
    scratch in bytes; `compiled`, which makes the object; `launch`, which runs the object.
    """

    xp: Any
    limit: int

    def __init__(
        self, policy: RangePolicy | TeamPolicy, workunit: Workunit, layouts: dict[str, str], arrays: dict[str, Any]
    ) -> None:
        self.policy, self.kernel = policy, workunit.ir
        self.block = block_shape(policy, self.kernel)
        if (workunit.lanes or self.block[0]) != self.block[0]:
            raise LaunchError(f"{self.kernel.name}: found {self.block[0]} lanes; compiled for {workunit.lanes}")
        self.threads = self.block[0] * self.block[1]
        self.wide = any(span(a) >= NARROW for a in arrays.values())
        self.lowered = workunit.gpu(layouts)
        fields = [(name, field(kind)) for kind, name in self.lowered.fields]
        self.by_value = {name for name, layout in layouts.items() if layout == VALUE}
        self.struct = type("Arguments", (ctypes.Structure,), {"_fields_": fields})()
        self.object = self.compiled(workunit, layouts)
        self.grid = self._blocks(policy.league)
        self.shared = 0
        self.struct.pk_league = policy.league
        self._sums = None
        if self.kernel.acc:
            self.partial = self.xp.zeros(max(1, self.grid), DTYPE[self.kernel.acc_type])
            self.struct.pk_partial = self.address(self.partial)

    @abstractmethod
    def compiled(self, workunit: Workunit, layouts: dict[str, str]) -> Any:
        """Return the object that `launch` runs."""

    @abstractmethod
    def address(self, a: Any) -> int:
        """Return the address of the first element of an array."""

    @abstractmethod
    def launch(self) -> None:
        """Run all blocks."""

    def bind(self, name: str, a: Any) -> None:
        """Point an argument at an array, or copy the array into it."""
        if name in self.by_value:
            self._copy(name, a)
            return
        if span(a) >= NARROW and not self.wide:
            raise LaunchError(f"{self.kernel.name}: '{name}' spans 2**31 elements or more, prepared for fewer")
        s = self.struct
        setattr(s, name, self.address(a))
        setattr(s, gpu.span(name), span(a))
        set_shape(s, name, a)

    def _copy(self, name: str, a: Any) -> None:
        """Copy the first elements of an array into the arguments."""
        target = getattr(self.struct, name)
        values = a if isinstance(a, np.ndarray) else a.get()
        np.frombuffer(target, values.dtype)[:] = values[: len(target)]

    def numbers(self, scalars: dict[str, float | int]) -> None:
        """Set the numbers, and the scratch that they ask for.

        Raises
        ------
        LaunchError
            The scratch is more than the device has.
        """
        size = requested(self.kernel, scalars)
        if size > self.limit:
            limit = f"{self.policy.space.name} has at most {self.limit} for a team"
            raise LaunchError(f"{self.kernel.name} asks for {size} bytes of scratch, {limit}")
        self.shared = size
        for name, value in scalars.items():
            setattr(self.struct, name, value)

    def _blocks(self, count: int) -> int:
        """Return the number of blocks for a number of teams or iterations."""
        return count if self.policy.kind == "team" else -(-count // self.threads)

    def part(self, first: int, count: int, shared: bool) -> Self:
        """Return a launch of some teams, or iterations; additions are atomic on devices, `shared` or not."""
        call = copy.copy(self)
        call.struct = type(self.struct).from_buffer_copy(self.struct)
        call.struct.pk_first, call.struct.pk_league = first, first + count
        call.grid = self._blocks(count)
        return call

    def run(self) -> None:
        """Launch, on a device without waiting."""
        if not self.kernel.last:
            self.launch()
            return
        self.struct.pk_phase = gpu_spellings.COUNT
        self.launch()
        self._sums = self.xp.cumsum(self.partial, dtype=self.partial.dtype)
        self.partial[...] = self._sums - self.partial
        self.struct.pk_phase = gpu_spellings.FINISH
        self.launch()

    def total(self) -> float | int:
        """Return the sum of a reduction or scan that has run; waits for the result."""
        total = self._sums[-1] if self.kernel.last else self.partial.sum(dtype=self.partial.dtype)
        return total.item()


class _Place:
    """Place of a device array in memory, for NumPy to compare; nothing reads the memory."""

    def __init__(self, a: Any) -> None:
        self.__array_interface__ = {
            "data": (int(a.data.ptr), True),
            "shape": a.shape,
            "strides": a.strides,
            "typestr": a.dtype.str,
            "version": 3,
        }


def shared_memory(a: Any, b: Any) -> bool:
    """Tell whether two arrays have an element in common; True if the test would take too long."""
    if a.size == 0 or b.size == 0:
        return False
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        a, b = (x if isinstance(x, np.ndarray) else np.asarray(_Place(x)) for x in (a, b))
    try:
        return np.may_share_memory(a, b) and np.shares_memory(a, b, max_work=10_000)
    except np.exceptions.TooHardError:
        return True
