"""Workunits compiled for a GPU that need not be here: their instructions, and the resources that they use."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from parki.engine import DEFAULT_TEAM, Wanted, Workunit, cpus, devices, gpu_unit, rtc
from parki.perfmodels.machinecode import amd, nvidia
from parki.perfmodels.machinecode.loops import Kernel

_DEVICE = devices.Device(0, "", "", 0, "", 0, 32, 1)


@dataclass(frozen=True)
class CompiledUnit:
    """A workunit, the instructions of its kernel, and the resources that the kernel uses."""

    unit: Workunit
    kernel: Kernel
    usage: rtc.Usage


def missing(arch: str) -> str | None:
    """Return None where kernels for an architecture can be compiled and read, else the reason."""
    if arch.startswith("gfx"):
        command = amd.command()
        return f"no clang compiles HIP here: {command}" if isinstance(command, str) else None
    reason = devices.missing_compiler("Cuda")
    return reason or (None if nvidia.disassembler() else f"pip install {nvidia.WHEEL}")


def compiled(requests: Iterable[Wanted], arch: str) -> list[CompiledUnit]:
    """Return workunits compiled for layouts of their views and threads of a block.

    Raises
    ------
    BuildError
        If there is no compiler, or if it refuses a kernel.
    FileNotFoundError
        If there is no disassembler, or no clang that compiles HIP.
    """
    requests, device = list(requests), replace(_DEVICE, arch=arch)
    sources = [gpu_unit(unit, views, device, n or DEFAULT_TEAM) for unit, views, n in requests]
    if arch.startswith("gfx"):
        with ThreadPoolExecutor(cpus()) as pool:
            texts = pool.map(amd.assembly, sources)
            read = [(amd.kernel(text), amd.usage(text)) for text in texts]
    else:
        read = [(nvidia.kernel(path), rtc.usage(path)) for path in rtc.build_many(sources)]
    return [CompiledUnit(unit, *parts) for (unit, *_), parts in zip(requests, read, strict=True)]
