"""Execution spaces by name, the spaces that can run kernels here, and the reasons why others cannot."""

import difflib
import os
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TypeVar

import numpy as np

from parki.engine import config
from parki.engine.compile.compiler import cpus, target, toolchains
from parki.engine.errors import BuildError, SpaceUnavailable
from parki.engine.run import devices, limits
from parki.engine.settled import once

HOST, DEVICE, SIM = ("Serial", "OpenMP"), ("Cuda", "HIP"), ("GpuSim", "GpuSim64")
NAMES = (*HOST, *DEVICE, *SIM)
_BEST_HOST, _BEST_DEVICE = ("cpu", "host"), ("gpu",)
SIM_SCRATCH = 64 << 10  # bytes of a team's scratch in the simulator, as much as AMD devices have
ENGINES = (config.NAME, "pykokkos")
T = TypeVar("T")
_forked = False


@dataclass(frozen=True)
class Space:
    """An execution space: its name, number of threads and engine.

    Parameters
    ----------
    name : str
        The canonical name: ``"Serial"``, ``"OpenMP"``, ``"Cuda"``, ``"HIP"``, ``"GpuSim"`` or ``"GpuSim64"``.
    threads : int, optional
        Limit of OpenMP's threads; by default ``OMP_NUM_THREADS``, else the CPUs that this process may use.
    engine : {"parki", "pykokkos"}, default "parki"
        Package that compiles and launches kernels there.

    See Also
    --------
    parki.utils.get_execution_space : Return a space that can run here.

    Examples
    --------
    >>> import parki
    >>> space = parki.utils.get_execution_space("Serial")
    >>> space.kind, space.own_memory, space.warp
    ('host', False, 1)
    """

    name: str
    threads: int | None = None
    engine: str = config.NAME

    def __post_init__(self) -> None:
        invalid = isinstance(self.threads, bool) or not isinstance(self.threads, int) or self.threads < 1
        if self.threads is not None and invalid:
            raise ValueError(f"threads={self.threads!r}: expected a whole number of at least 1, or None.")
        if self.threads is not None and self.threads > 1:
            _check_number("threads", self.threads)
        if self.engine not in ENGINES:
            raise ValueError(f"engine={self.engine!r}: expected one of {', '.join(map(repr, ENGINES))}.")
        if self.engine != config.NAME and self.name in SIM:
            raise ValueError(f"engine={self.engine!r}: {self.name} runs what parki's own engine generates.")

    @property
    def kind(self) -> str:
        """Return ``"host"`` (compiled C++), ``"device"`` (a GPU) or ``"sim"`` (a GPU text on the host)."""
        return "device" if self.name in DEVICE else "sim" if self.name in SIM else "host"

    @property
    def own_memory(self) -> bool:
        """Tell whether arrays of this space are in a device's memory."""
        return self.kind == "device"

    @property
    def native(self) -> bool:
        """Tell whether kernels are compiled C++ of this host, with lanes of vectors."""
        return self.kind == "host"

    @property
    def checks_accesses(self) -> bool:
        """Tell whether the simulator of a GPU checks every access of a kernel."""
        return self.kind == "sim"

    def pick(self, host: T, device: T) -> T:
        """Return the value for hosts, or the value for devices and the simulator, which runs their text.

        Parameters
        ----------
        host, device : object
            The two values.

        Returns
        -------
        object
            One of them.
        """
        return host if self.native else device

    @property
    def warp(self) -> int:
        """Return the number of threads that run in step: 1 on hosts, 32 or 64 on GPUs (HIP: of the device in use)."""
        match self.name:
            case "HIP":
                device = devices.current() or next(iter(devices.find("HIP")), None)
                return device.warp if device else 64
            case "GpuSim64":
                return 64
            case "Cuda" | "GpuSim":
                return 32
        return 1

    @property
    def scratch(self) -> int:
        """Return the bytes of scratch that a team may ask for: on GPUs of the device in use, else of a usual one.

        Hosts have the simulator's number, and no limit.
        """
        if not self.own_memory:
            return SIM_SCRATCH
        device = devices.current() or next(iter(devices.find(self.name)), None)
        return device.scratch if device else devices.SCRATCH[self.name]


def get(name: str | Space | None = None, engine: str | None = None) -> Space:
    """Return the execution space of this name, if kernels can run there.

    Parameters
    ----------
    name : str, Space or None
        One of `NAMES`, in any case.  None, ``"CPU"`` and ``"host"`` mean OpenMP, or Serial where the compiler has no
        OpenMP; ``"GPU"`` means Cuda or HIP, whichever is there.  ``"GpuSim"`` and ``"GpuSim64"`` run the GPU text on
        the host, slowly and with checks, in warps of 32 and 64 threads.
    engine : str, optional
        ``"parki"``, or ``"pykokkos"`` where that is installed; by default the engine of a `Space`, else
        ``PARKI_ENGINE``, else parki's.

    Raises
    ------
    SpaceUnavailable
        If there is no such space, or if it cannot run here; the message names the missing part.
    TypeError
        If `name` is something else.
    ValueError
        If there is no such engine.
    """
    if name is not None and not isinstance(name, str | Space):
        raise TypeError(f"execution space: expected a name, a Space or None, found {type(name).__name__}.")
    return _running(name, engine)


@once
def _running(name: str | Space | None, engine: str | None) -> Space:
    """Return the space of a name, see `get`."""
    threads, default_engine = (name.threads, name.engine) if isinstance(name, Space) else (None, "")
    request = "CPU" if name is None else name.name if isinstance(name, Space) else name
    reasons: dict[str, str] = {}  # sentence → first space with this reason
    for choice in (choices := _candidates(request)):
        reason = _missing(choice)
        if reason is None:
            return Space(
                choice, threads, (engine or default_engine or os.environ.get(config.ENGINE) or config.NAME).lower()
            )
        reasons.setdefault(reason, choice)
    sentences = list(reasons) if len(reasons) == 1 else [f"{choice}: {reason}" for reason, choice in reasons.items()]
    advice = " Or use 'OpenMP' or 'Serial', which need no GPU." if choices[0] in DEVICE else ""
    raise SpaceUnavailable(f"execution space {request!r}: {' '.join(sentences)}{advice}")


def array_module(space: Space) -> ModuleType:
    """Return the module of the arrays that kernels take in this space: NumPy, or CuPy for Cuda and HIP.

    Raises
    ------
    ImportError
        If the space is Cuda or HIP, and CuPy cannot be imported; never for a space that `get` returned.
    """
    return devices.cupy() if space.own_memory else np


def _candidates(request: str) -> tuple[str, ...]:
    """Return the spaces that `request` may stand for, the best first."""
    lower = request.strip().lower()
    if lower in _BEST_HOST:
        return HOST[::-1]
    if lower in _BEST_DEVICE:
        return (platform,) if (platform := devices.platform()) else DEVICE
    canonical = {name.lower(): name for name in NAMES}
    if lower in canonical:
        return (canonical[lower],)
    names = canonical | {"cpu": "CPU", "host": "host", "gpu": "GPU"}
    matches = difflib.get_close_matches(lower, names, n=1)
    hint = f" Did you mean {names[matches[0]]!r}?" if matches else ""
    raise SpaceUnavailable(f"unknown execution space {request!r}: expected one of {', '.join(NAMES)}, CPU, GPU.{hint}")


def available() -> dict[str, str | None]:
    """Return for each known space None if kernels can run there, else the sentence that says why not."""
    return {name: _missing(name) for name in NAMES}


def _missing(name: str) -> str | None:
    if name in DEVICE:
        return devices.missing(name)
    try:
        build = target()
    except BuildError as error:
        text = str(error)
        return f"{text[0].upper()}{text[1:]}"
    if name == "OpenMP" and not build.openmp:
        path = toolchains()[0][0].path
        return (
            f"OpenMP programs do not compile with {path}. Install its OpenMP runtime (apt install libomp-dev / "
            "brew install libomp / conda install llvm-openmp), or use 'Serial'."
        )
    if name in SIM and os.name == "nt":
        return "The simulator's threads need mmap, which Windows does not have. Use 'Serial'."
    return None


def threads() -> int:
    """Return the number of threads that OpenMP uses by default: the first of ``OMP_NUM_THREADS``, else the CPUs here.

    Raises
    ------
    ValueError
        If the variable asks for more than there may be.
    """
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if not (first.isdecimal() and int(first) > 0):
        return cpus()
    _check_number("OMP_NUM_THREADS", int(first))
    return int(first)


def _check_number(name: str, count: int) -> None:
    """Raise ValueError for more threads than there may be: OpenMP's runtimes end the process, or crash."""
    limit, source = limits.most_threads()
    if count > limit:
        raise ValueError(f"{name}={count}: expected at most {limit}, {source}.")


def waiter(space: Space) -> Callable[[], None] | None:
    """Return the function that waits for launches of this space, None where launches wait by themselves."""
    return devices.wait if space.own_memory else None


def workers(space: Space) -> int:
    """Return the number of threads that kernels of this space use on a host: OpenMP's, 1 in other spaces."""
    return (space.threads or threads()) if space.name == "OpenMP" else 1


def forked() -> bool:
    """Tell whether this process is a fork of another one that had loaded the engine.

    GNU OpenMP hangs in the first parallel region of a process whose parent has used it; kernels must run as Serial.
    """
    return _forked


def _mark_child() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mark_child)
