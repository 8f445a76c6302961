"""Calls of compiled host code: the argument structure, threads, scratch and faults of one prepared launch."""

import copy
import ctypes
import warnings
from typing import NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from parki.engine.calls.arguments import set_shape
from parki.engine.calls.scratch import requested
from parki.engine.errors import CheckedFault, LaunchError
from parki.engine.lower.common import DTYPE
from parki.engine.lower.host import CHUNK
from parki.engine.run import spaces
from parki.engine.run.policy import RangePolicy, TeamPolicy
from parki.engine.run.spaces import Space
from parki.engine.tree import ir
from parki.engine.workunit import Workunit, checking

ALIGN = 64  # bytes of a cache line
PAGE = 4096  # bytes
SOFT = 1  # omp_pause_soft: settings stay
_warned_fork = False


class HostCall:
    """A launch on the host, bound to its arrays."""

    def __init__(self, policy: RangePolicy | TeamPolicy, workunit: Workunit, layouts: dict[str, str]) -> None:
        self.kernel: ir.KernelTree = workunit.ir
        self.policy = policy
        checked = checking()
        self._object = workunit.compiled(layouts, checked)
        self._struct = s = self._object.struct()
        self._address, self._run = ctypes.addressof(s), self._object.run
        self._fault, self.scratch_bytes = np.zeros(4, np.int64), 0
        self._partial = self._arena = None
        self._shapes: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self._may_fault = checked or bool(self.kernel.scratch_size)
        self.threads = _threads(policy.space)
        s.pk_fault_at = self._fault.ctypes.data
        if self.kernel.acc:
            self._partial = np.zeros(max(1, -(-policy.league // CHUNK)), DTYPE[self.kernel.acc_type])
            s.pk_partial = self._partial.ctypes.data
        s.pk_league = policy.league
        self._share(self.threads)

    def bind(self, name: str, a: np.ndarray) -> None:
        """Point an argument at an array."""
        setattr(self._struct, name, a.ctypes.data)
        shape = a.shape, a.strides
        if self._shapes.get(name) != shape:
            self._shapes.pop(name, None)  # absent until the whole shape is set
            set_shape(self._struct, name, a)
            self._shapes[name] = shape

    def numbers(self, scalars: dict[str, float | int]) -> None:
        """Set the numbers, and reserve the scratch that they ask for, for every thread."""
        size = requested(self.kernel, scalars)
        if size:
            self.scratch_bytes = (size + 2 * ALIGN * len(self.kernel.scratch_size) + PAGE - 1) // PAGE * PAGE
            size_of_all = self.scratch_bytes * self.threads + ALIGN
            if self._arena is None or len(self._arena) < size_of_all:
                self.take_scratch(np.empty(size_of_all, np.uint8))
            self._struct.pk_scratch_bytes = self.scratch_bytes
        self._struct.pk_scratch_asked = size
        for name, value in scalars.items():
            setattr(self._struct, name, value)

    def take_scratch(self, arena: np.ndarray) -> None:
        """Use these bytes as scratch: `scratch_bytes` for each thread, and `ALIGN` more."""
        self._arena, start = arena, arena.ctypes.data
        self._struct.pk_scratch = start + -start % ALIGN

    def part(self, first: int, count: int, shared: bool) -> Self:
        """Return a launch of some teams, or iterations, on one thread."""
        call = self.range(first, count)
        call.threads = call._struct.pk_threads = 1
        call._struct.pk_shared = shared
        return call

    def range(self, first: int, count: int) -> Self:
        """Return a launch of some teams, or iterations, with a fault record of its own."""
        call = copy.copy(self)
        call._shapes = dict(self._shapes)
        call._struct = s = type(self._struct).from_buffer_copy(self._struct)
        call._address, call._fault = ctypes.addressof(s), np.zeros(4, np.int64)
        s.pk_fault_at, s.pk_first, s.pk_league = call._fault.ctypes.data, first, first + count
        return call

    def run(self) -> None:
        """Launch, and wait."""
        if self.threads > 1 and spaces.forked():
            self._share(_threads(self.policy.space))
        self._run(self._address)
        if self._may_fault and self._fault[0]:
            self._raise()

    def rest(self) -> None:
        """End OpenMP's idle threads, which would keep cores busy for milliseconds; the next launch starts new ones."""
        if self.threads > 1 and self._object.pause is not None and not spaces.forked():
            self._object.pause(SOFT)

    def total(self) -> float | int:
        """Return the sum of a reduction or scan that has run."""
        total = self._partial[0] if self.kernel.last else self._partial.sum(dtype=self._partial.dtype)
        return total.item()

    def _share(self, threads: int) -> None:
        """Set the number of threads that share the launch; several threads add atomically."""
        self._struct.pk_threads, self._struct.pk_shared = threads, threads > 1

    def _raise(self) -> None:
        fault = self._fault.copy()
        self._fault[:] = 0
        self.refuse(fault)

    def refuse(self, fault: NDArray[np.int64]) -> NoReturn:
        """Raise the error that a record of a fault describes."""
        site, dim, index, extent = fault.tolist()
        name = self.kernel.name
        if site < 0:
            limit = self._struct.pk_scratch_asked
            raise LaunchError(f"{name} declares {index} bytes of scratch, its decorator asks for {limit}")
        view, loc = self._object.lowered.sites[site - 1]
        raise CheckedFault(f"{loc}: index {dim} of '{view}' is {index}, outside 0 … {extent - 1} (in {name})")


def _threads(space: Space) -> int:
    global _warned_fork
    if space.name == "OpenMP" and spaces.forked():
        if not _warned_fork:
            _warned_fork = True
            warnings.warn("OpenMP does not survive a fork: kernels run on one thread here. Use 'spawn'.", stacklevel=3)
        return 1
    return spaces.workers(space)
