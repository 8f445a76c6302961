"""GPUs that kernels can run on, and the missing part where there are none.

CuPy answers all questions; the first question imports CuPy, if CuPy is installed.
"""

import contextlib
import functools
import importlib
import importlib.metadata
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from parki.engine import config

CUDA, HIP = "Cuda", "HIP"
PLATFORMS = {CUDA: "CUDA", HIP: "ROCm"}
_INSTALL = {
    CUDA: f'{config.INSTALL_CUDA_13} (NVIDIA driver 580 or newer) or "{config.NAME}[cuda12]" (525 or newer)',
    HIP: f"{config.INSTALL_ROCM} (with ROCm 7 on the system)",
}
_NO_DRIVER, _NO_DEVICE, _NOT_INITIALISED = 35, 100, 3  # of cudaError_t; HIP numbers these alike
STATIC = 1 << 10  # bytes of shared memory that sums over a team may take besides scratch
#: Bytes of scratch that a team may ask for where no device is at hand: of GH100, and of AMD devices, which have least.
SCRATCH = {CUDA: (227 << 10) - STATIC, HIP: (64 << 10) - STATIC}
_NVIDIA = Path("/proc/driver/nvidia/version")


@dataclass(frozen=True)
class Device:
    """A GPU that kernels can run on.

    `index` is CuPy's number of the device, `arch` the architecture to compile for (``sm_90``, ``gfx942``), `capability`
    the compute capability (``9.0``; empty for HIP), `driver` a text for people, `shared_bytes_optin` the most shared
    memory that a block may ask for, `warp` the number of threads that run in step.
    """

    index: int
    name: str
    arch: str
    memory_bytes: int
    driver: str
    shared_bytes_optin: int
    warp: int
    multiprocessors: int
    capability: str = ""

    @property
    def scratch(self) -> int:
        """Return the bytes of scratch that a team may ask for."""
        return self.shared_bytes_optin - STATIC


@dataclass(frozen=True)
class _Answer:
    """Answer of CuPy: the devices, or the reason why there are none."""

    devices: tuple[Device, ...] = ()
    reason: str = ""


def find(kind: str) -> tuple[Device, ...]:
    """Return the devices of this kind, ``"Cuda"`` or ``"HIP"``, that kernels can run on; without any, ``()``."""
    return _answer().devices if missing(kind) is None else ()


def missing(kind: str) -> str | None:
    """Return None where kernels run on devices of this kind, else one sentence on the missing part and its remedy."""
    return _uninstalled(kind) or _foreign(kind) or _answer().reason or None


def missing_compiler(kind: str) -> str | None:
    """Return None where GPU texts of this kind can be compiled, with or without a GPU, else one sentence as above."""
    return _uninstalled(kind) or _foreign(kind) or _compiler(cupy()) or None


def platform() -> str | None:
    """Return the kind of devices that CuPy is built for, ``"Cuda"`` or ``"HIP"``; None without a CuPy that works."""
    module = _import(os.getpid())[0] if installed() else None
    return _kind(module) if module else None


def cupy() -> ModuleType:
    """Return CuPy.

    Raises
    ------
    ImportError
        If it is not there or cannot be imported.
    """
    module, reason = _import(os.getpid()) if installed() else (None, "CuPy is not installed")
    if module is None:
        raise ImportError(reason, name="cupy")
    return module


def wait() -> None:
    """Wait for all launches on CuPy's current stream."""
    cupy().cuda.get_current_stream().synchronize()


class SideStream:
    """A second stream of the device in use, for work beside that of CuPy's current stream."""

    def __init__(self) -> None:
        self.stream = cupy().cuda.Stream(non_blocking=True)

    @contextlib.contextmanager
    def work(self) -> Iterator[None]:
        """Run the body's launches after all earlier work of the current stream, and beside later work."""
        self.stream.wait_event(cupy().cuda.get_current_stream().record())
        with self.stream:
            yield

    def join(self) -> None:
        """Make later launches on the current stream wait for the work of this one."""
        cupy().cuda.get_current_stream().wait_event(self.stream.record())


class OwnStream:
    """A stream of one device, for a thread that works there.

    Parameters
    ----------
    kind : str
        ``"Cuda"`` or ``"HIP"``.
    index : int
        Number of the device among those that kernels can run on.
    """

    def __init__(self, kind: str, index: int) -> None:
        self._device = cupy().cuda.Device(find(kind)[index].index)
        with self._device:
            self._stream = cupy().cuda.Stream(non_blocking=True)

    @contextlib.contextmanager
    def work(self) -> Iterator[None]:
        """Run launches and copies of the body on the stream."""
        with self._device, self._stream:
            yield


def installed() -> bool:
    """Tell whether there is a CuPy to be imported; this imports nothing."""
    if "cupy" in sys.modules:
        return sys.modules["cupy"] is not None
    return importlib.util.find_spec("cupy") is not None


def current() -> Device | None:
    """Return the device that CuPy works on in this thread, None where kernels cannot run on it."""
    devices = _answer().devices if installed() else ()
    index = cupy().cuda.runtime.getDevice() if devices else -1
    return next((device for device in devices if device.index == index), None)


def share(kind: str, place: int) -> None:
    """Select device number `place`, modulo the number of devices of this kind, for this thread.

    A current device other than number 0 is a caller's choice, and stays.
    """
    devices = find(kind)
    if len(devices) > 1 and cupy().cuda.runtime.getDevice() == 0:
        cupy().cuda.Device(devices[place % len(devices)].index).use()


def free_bytes(device: Device) -> int:
    """Return the free bytes of the device's memory; the first call starts work on the device if nothing has yet."""
    module = cupy()
    with module.cuda.Device(device.index):
        return int(module.cuda.runtime.memGetInfo()[0])


def distribution(kind: str) -> str:
    """Return the name and version of the installed CuPy for devices of this kind, for people."""
    names = ("cupy-cuda13x", "cupy-cuda12x") if kind == CUDA else ("cupy-rocm-7-0",)
    for name in (*names, "cupy"):
        try:
            return f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    module = sys.modules.get("cupy")
    return f"cupy {getattr(module, '__version__', '')}".rstrip()


def _uninstalled(kind: str) -> str:
    """Return the reason why there is no CuPy to ask, else ""."""
    if not installed():
        return f"CuPy is not installed: {_INSTALL[kind]}."
    module, reason = _import(os.getpid())
    return "" if module else f"{reason}: {_INSTALL[kind]}."


def _foreign(kind: str) -> str:
    """Return a sentence if CuPy is built for the other kind of devices, else ""."""
    installed_kind = platform()
    if installed_kind in (None, kind):
        return ""
    name = distribution(installed_kind)
    remedy = f"pip uninstall {name.partition(' ')[0]}, then {_INSTALL[kind]}"
    return f"{name} is built for {PLATFORMS[installed_kind]}: {remedy}."


def _answer() -> _Answer:
    return _ask(os.getpid())


@functools.lru_cache(maxsize=1)
def _import(process: int) -> tuple[ModuleType | None, str]:
    """Return CuPy, or None and the reason; `process` is a key of the cache, so that a fork asks again."""
    try:
        module = importlib.import_module("cupy")
        module.cuda.runtime.is_hip  # noqa: B018 — an unfinished import shows here
    except Exception as error:  # CuPy's own text is a page in a frame, with the cause at its end
        text = str(error).rpartition("Original error:")[2].strip(" \n=")
        return None, f"CuPy cannot be imported ({text.partition(chr(10))[0] or type(error).__name__})"
    return module, ""


@functools.lru_cache(maxsize=1)
def _ask(process: int) -> _Answer:
    module, reason = _import(process)
    if module is None:
        return _Answer((), reason)
    kind = _kind(module)
    try:
        count = module.cuda.runtime.getDeviceCount()
    except Exception as error:  # CUDARuntimeError, or any other error of a broken installation
        return _Answer((), _no_device(module, kind, error))
    reason = _compiler(module) if count else _no_device(module, kind)
    if reason:
        return _Answer((), reason)
    devices, reasons = [], []
    for index in range(count):
        try:
            device = _describe(module, kind, index)
        except Exception as error:
            device = f"device {index} does not answer ({error})"
        (reasons if isinstance(device, str) else devices).append(device)
    return _Answer(tuple(devices), "" if devices else f"{'; '.join(reasons)}.")


def _kind(module: ModuleType) -> str:
    return HIP if module.cuda.runtime.is_hip else CUDA


def _no_device(module: ModuleType, kind: str, error: Exception | None = None) -> str:
    """Return a sentence on why CuPy finds no device; `error` is raised by the first question to CuPy, if any."""
    status = getattr(error, "status", _NO_DEVICE if error is None else None)
    name = PLATFORMS[kind]
    if status == _NOT_INITIALISED:
        return f"The {name} driver does not start ({error}): a forked process cannot use the GPU of its parent."
    if status == _NO_DRIVER:
        served, required = _versions(module)
        if kind == CUDA and served:
            alternative = f", or {config.INSTALL_CUDA_12}" if served // 1000 == 12 else ""
            return (
                f"{distribution(kind)} needs a driver for CUDA {required // 1000}, the one here serves CUDA "
                f"{_cuda(served)}: update it (580 or newer for CUDA 13){alternative}."
            )
        driver = "an NVIDIA driver (580 or newer for CUDA 13)" if kind == CUDA else "AMD's driver (amdgpu)"
        return f"{distribution(kind)} finds no {name} driver: install {driver}."
    if status == _NO_DEVICE:
        names = ("CUDA_VISIBLE_DEVICES",) if kind == CUDA else ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
        reasons = [f"{variable}={os.environ[variable]!r} may hide it" for variable in names if variable in os.environ]
        remedy = "nvidia-smi shows what there is" if kind == CUDA else "rocminfo shows what there is"
        return f"{distribution(kind)} finds no {name} device: {reasons[0] if reasons else remedy}."
    return f"{distribution(kind)} cannot ask for {name} devices: {str(error).rstrip('.')}."


def _versions(module: ModuleType) -> tuple[int, int]:
    """Return the CUDA versions that the driver serves and CuPy needs, as 1000 × major + 10 × minor; 0 if unknown."""
    try:
        return module.cuda.runtime.driverGetVersion(), module.cuda.runtime.runtimeGetVersion()
    except Exception:
        return 0, 0


def _compiler(module: ModuleType) -> str:
    """Return the reason why the run-time compiler cannot be used, else ""."""
    name, remedy = ("NVRTC", _INSTALL[CUDA]) if _kind(module) == CUDA else ("hipRTC", "install ROCm 7 with hipRTC")
    try:
        module.cuda.nvrtc.getVersion()
    except Exception as error:
        first = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        return f"{name}, which compiles kernels, cannot be loaded ({first}): {remedy}."
    return ""


def _describe(module: ModuleType, kind: str, index: int) -> Device | str:
    """Return the device with this index, or the reason why kernels cannot run on it."""
    facts: dict[str, Any] = module.cuda.runtime.getDeviceProperties(index)
    name = _text(facts["name"]) or f"device {index}"
    if kind == HIP:
        arch, capability = _text(facts["gcnArchName"]).partition(":")[0], ""  # without the features, e.g. ":xnack-"
    else:
        capability = f"{facts['major']}.{facts['minor']}"
        arch = _compiled_for(module, int(facts["major"]), int(facts["minor"]))
        if not arch:
            version = ".".join(map(str, module.cuda.nvrtc.getVersion()))
            return f"NVRTC {version} does not compile for {name} (compute capability {capability}): {_INSTALL[CUDA]}"
    return Device(
        index,
        name,
        arch,
        int(facts["totalGlobalMem"]),
        _driver(module, kind),
        int(facts.get("sharedMemPerBlockOptin") or facts["sharedMemPerBlock"]),  # HIP has one limit for both
        int(facts["warpSize"]),
        int(facts["multiProcessorCount"]),
        capability,
    )


def _compiled_for(module: ModuleType, major: int, minor: int) -> str:
    """Return the newest architecture that NVRTC knows and this device runs: same major, no greater minor number."""
    try:
        archs = module.cuda.nvrtc.getSupportedArchs()
    except Exception:
        return f"sm_{major}{minor}"
    candidates = [arch for arch in archs if arch // 10 == major and arch % 10 <= minor]
    return f"sm_{max(candidates)}" if candidates else ""


def _driver(module: ModuleType, kind: str) -> str:
    version = module.cuda.runtime.driverGetVersion()
    if kind == HIP:
        return f"HIP {version // 10_000_000}.{version // 100_000 % 100}"
    try:
        match = re.search(r"\b\d{3,}\.\d+(?:\.\d+)?\b", _NVIDIA.read_text("utf-8"))
    except OSError:
        match = None
    return f"{match[0]}, CUDA {_cuda(version)}" if match else f"CUDA {_cuda(version)}"


def _cuda(version: int) -> str:
    return f"{version // 1000}.{version // 10 % 100}"


def _text(value: bytes | str) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
