"""Names of execution spaces → what runs kernels here; what is missing for the others."""

import difflib
import os
from dataclasses import dataclass

from parki.engine.errors import BuildError, SpaceUnavailable
from parki.engine.runtime.compiler import cpus, find_compiler, target

HOST, DEVICE = ("Serial", "OpenMP"), ("Cuda", "HIP")
NAMES = (*HOST, *DEVICE, "GpuSim")
_BEST_HOST, _BEST_DEVICE = ("cpu", "host"), ("gpu",)
_forked = False


@dataclass(frozen=True)
class Space:
    """An execution space by its canonical name; `threads` limits OpenMP, None means as many as `threads` says."""

    name: str
    threads: int | None = None

    def __post_init__(self) -> None:
        bad = isinstance(self.threads, bool) or not isinstance(self.threads, int) or self.threads < 1
        if self.threads is not None and bad:
            raise ValueError(f"threads={self.threads!r}: expected a whole number of at least 1, or None.")


def get(name: str | Space | None = None) -> Space:
    """Return the execution space of this name, if kernels can run there.

    Parameters
    ----------
    name : str, Space or None
        ``"Serial"``, ``"OpenMP"``, ``"Cuda"``, ``"HIP"`` or ``"GpuSim"``, in any case.  None, ``"CPU"`` and ``"host"``
        mean OpenMP, or Serial where the compiler has no OpenMP; ``"GPU"`` means Cuda or HIP, whichever is there.

    Raises
    ------
    SpaceUnavailable
        If there is no such space, or if it cannot run here; the message says what is missing.
    TypeError
        If `name` is something else.
    """
    if name is not None and not isinstance(name, str | Space):
        raise TypeError(f"execution space: expected a name, a Space or None, found {type(name).__name__}.")
    threads = name.threads if isinstance(name, Space) else None
    asked = "CPU" if name is None else name.name if isinstance(name, Space) else name
    reasons: list[str] = []
    for choice in _candidates(asked):
        reason = _missing(choice)
        if reason is None:
            return Space(choice, threads)
        if reason not in reasons:
            reasons.append(reason)
    raise SpaceUnavailable(f"execution space {asked!r}: {' '.join(reasons)}")


def _candidates(asked: str) -> tuple[str, ...]:
    """Return the spaces that `asked` may stand for, the best first."""
    lower = asked.strip().lower()
    if lower in _BEST_HOST:
        return HOST[::-1]
    if lower in _BEST_DEVICE:
        return DEVICE
    canonical = {name.lower(): name for name in NAMES}
    if lower in canonical:
        return (canonical[lower],)
    known = canonical | {"cpu": "CPU", "host": "host", "gpu": "GPU"}
    close = difflib.get_close_matches(lower, known, n=1)
    hint = f" Did you mean {known[close[0]]!r}?" if close else ""
    raise SpaceUnavailable(f"unknown execution space {asked!r}: expected one of {', '.join(NAMES)}, CPU, GPU.{hint}")


def available() -> dict[str, str | None]:
    """Every known space → None when kernels can run there, else the sentence that says why not."""
    return {name: _missing(name) for name in NAMES}


def _missing(name: str) -> str | None:
    if name not in HOST:
        return "Kernels are compiled for host spaces only in this version. Use 'OpenMP' or 'Serial'."
    try:
        compiled = target()
    except BuildError as error:
        text = str(error)
        return f"{text[0].upper()}{text[1:]}"
    if name == "OpenMP" and not compiled.openmp:
        where = find_compiler().path
        return (
            f"OpenMP programs do not compile with {where}. Install its OpenMP runtime (apt install libomp-dev / "
            "brew install libomp / conda install llvm-openmp), or use 'Serial'."
        )
    return None


def threads() -> int:
    """Threads that OpenMP uses by default: the first number of ``OMP_NUM_THREADS``, else the CPUs of this process."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) > 0 else cpus()


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
