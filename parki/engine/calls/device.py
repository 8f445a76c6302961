"""Calls of GPU code on a device, through CuPy: modules are loaded once, launches go on CuPy's current stream."""

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from parki.engine.calls.gpu import RANGE_BLOCK, TEAM, GpuCall
from parki.engine.compile import cache, rtc
from parki.engine.errors import LaunchError
from parki.engine.lower import gpu
from parki.engine.run import devices
from parki.engine.run.devices import Device
from parki.engine.workunit import Workunit

FREE = 48 << 10  # bytes of scratch that a block has without a request to the driver
WARP = 32  # threads; block sizes in a module's name are whole warps, so that few modules are compiled


@dataclass(frozen=True)
class Loaded:
    """A kernel on a device: its handle, and the module that must live as long."""

    function: int
    module: Any


def unit(workunit: Workunit, layouts: dict[str, str], device: Device, block: int, wide: bool = False) -> rtc.GpuUnit:
    """Return the unit to compile for a device, for blocks of up to `block` threads."""
    return rtc.GpuUnit(
        name=f"{workunit.l0.name}_{workunit.l0.hash}",
        label=workunit.label,
        source=workunit.gpu(layouts).source,
        headers=gpu.HEADERS,
        backend="hip" if device.arch.startswith("gfx") else "cuda",
        arch=device.arch,
        block=_warps(block),
        wide=wide,
        macros=workunit.gpu_macros,
        l0=workunit.l0.text,
    )


def _warps(block: int) -> int:
    """Return the threads of a block, rounded up to whole warps."""
    return -(-block // WARP) * WARP


def _key(layouts: dict[str, str], device: Device, block: int, wide: bool) -> tuple[Any, ...]:
    """Return the key of a loaded object of a workunit."""
    return device.index, tuple(layouts.values()), _warps(block), wide


def load(workunit: Workunit, layouts: dict[str, str], device: Device, block: int, wide: bool = False) -> Loaded:
    """Return a workunit on a device, compiled and loaded on first use."""
    key = _key(layouts, device, block, wide)
    if key not in workunit.objects:
        source = unit(workunit, layouts, device, block, wide)
        module = devices.cupy().cuda.Module()
        with cache.opened(rtc.build_many([source])[0]) as file:
            module.load(file.read())
        workunit.objects[key] = Loaded(module.get_function(gpu.entry(workunit.ir)).ptr, module)
    return workunit.objects[key]


def load_all(requests: Iterable[tuple[Workunit, dict[str, str], int | None]]) -> None:
    """Compile workunits for layouts and threads of a block (None: the default) in parallel, for the current device."""
    device, blocks = devices.current(), {"range": RANGE_BLOCK, "team": TEAM}
    launches = [(w, layouts, threads or blocks[w.ir.policy]) for w, layouts, threads in requests]
    rtc.build_many(
        [unit(w, layouts, device, n) for w, layouts, n in launches if _key(layouts, device, n, False) not in w.objects]
    )


class DeviceCall(GpuCall):
    """A launch bound to CuPy arrays, on the device that is current when the launch is prepared."""

    def __init__(self, policy: Any, workunit: Workunit, layouts: dict[str, str], arrays: dict[str, Any]) -> None:
        self.xp, self.device = devices.cupy(), devices.current()
        self.driver = self.xp.cuda.driver
        self.limit = self.device.scratch
        super().__init__(policy, workunit, layouts, arrays)
        self._point()

    def _point(self) -> None:
        """Set the list of parameter addresses for the driver: the structure is the only parameter."""
        self._parameters = (ctypes.c_void_p * 1)(ctypes.addressof(self.struct))

    def part(self, first: int, count: int, shared: bool) -> Self:
        """Return a launch of some blocks; additions are atomic, `shared` or not."""
        call = super().part(first, count, shared)
        call._point()
        return call

    def compiled(self, workunit: Workunit, layouts: dict[str, str]) -> Loaded:
        """Return the kernel on this device."""
        return load(workunit, layouts, self.device, self.threads, self.wide)

    def address(self, a: Any) -> int:
        """Return the address of the first element in the device's memory."""
        if a.device.id != self.device.index:
            raise LaunchError(
                f"{self.kernel.name}: an array is on device {a.device.id}, the launch on device {self.device.index}"
            )
        return a.data.ptr

    def numbers(self, scalars: dict[str, float | int]) -> None:
        """Set the numbers, and ask CUDA for scratch above `FREE` bytes."""
        super().numbers(scalars)
        if self.shared > FREE and self.policy.space.name == "Cuda":
            attribute = self.driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self.driver.funcSetAttribute(self.object.function, attribute, self.limit)

    def launch(self) -> None:
        """Enqueue all blocks on CuPy's current stream."""
        lanes, threads = self.block
        self.driver.launchKernel(
            self.object.function, self.grid, 1, 1, lanes, threads, 1, self.shared,
            self.xp.cuda.get_current_stream().ptr, ctypes.addressof(self._parameters), 0,
        )  # fmt: skip
