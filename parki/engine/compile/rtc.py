"""Compilation of generated GPU texts to device objects by NVRTC or hipRTC: key, options, several at a time.

No GPU is needed for this, only CuPy and NVRTC (or ROCm's CuPy and hipRTC).
"""

import json
import threading
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from parki.engine.compile import cache, jobs, nvrtc, objects, processes, trust
from parki.engine.compile.compiler import cpus
from parki.engine.compile.usage import Usage, from_code_object, from_log
from parki.engine.errors import BuildError
from parki.engine.run import devices

KINDS = {"cuda": devices.CUDA, "hip": devices.HIP}
# NVRTC trades registers for resident threads by a rule of its own.  A kernel that spills is compiled again for at least
# this many threads per multiprocessor (which means up to 128, then 255 registers each), and no more; one that would
# have fewer threads there without spilling, too.
_FEWER_THREADS = ((), ("-DPK_RESIDENT=512",), ("-DPK_RESIDENT=256",))
_MOST_REGISTERS = 128  # of each of 512 threads
_SUFFIXES = {"cuda": ("kernel.cu", "kernel.cubin"), "hip": ("kernel.hip", "kernel.hsaco")}  # source, object


@dataclass(frozen=True)
class GpuUnit:
    """A text to be compiled to one device object.

    `name` is for file names, `label` for people; `headers` name the files of `parki.engine.include` that `source`
    includes, directly or through each other; `backend` is ``"cuda"`` or ``"hip"``, `arch` for example ``"sm_90"`` or
    ``"gfx942"``, `block` the number of threads per block that the object is made for, `wide` whether indices have
    64 bits; `l0` is the kernel that the source was made from, stored beside it; `macros` are further definitions.
    """

    name: str
    label: str
    source: str
    headers: tuple[str, ...]
    backend: str
    arch: str
    block: int
    wide: bool
    l0: str = ""
    macros: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.backend not in KINDS:
            raise ValueError(f"backend is {self.backend!r}; expected 'cuda' or 'hip'.")

    @property
    def space(self) -> str:
        """Execution space that the object is for."""
        return KINDS[self.backend]


def options(unit: GpuUnit) -> tuple[str, ...]:
    """Return all compiler options of this unit; products and sums are fused, nothing else is traded for speed."""
    macros = (f"-DPK_BLOCK={unit.block}", f"-DPK_WIDE={int(unit.wide)}", *unit.macros)
    if unit.backend == "hip":
        return (f"--offload-arch={unit.arch}", "-O3", "-std=c++17", "-ffp-contract=fast", "-DPK_HIP", *macros)
    verbose = ("--ptxas-options=-v", "-default-device", "-lineinfo")  # for `usage`; for functions; for profilers
    return (f"-arch={unit.arch}", "--std=c++17", "--fmad=true", *verbose, *macros)


def version(backend: str) -> str:
    """Return the compiler's name and version, for example ``NVRTC 13.0``.

    Raises
    ------
    BuildError
        If there is no compiler; the message names the missing part.
    """
    kind = KINDS[backend]
    reason = devices.missing_compiler(kind)
    if reason:
        raise BuildError(f"no compiler for {kind} kernels: {reason}")
    module = devices.cupy()
    numbers = ".".join(map(str, module.cuda.nvrtc.getVersion()))
    # hipRTC says 9.0 in many versions of ROCm, so HIP's own number is added.
    if backend == "cuda":
        return f"NVRTC {numbers}"
    return f"hipRTC {numbers}, HIP {module.cuda.runtime.runtimeGetVersion()}"


def key(unit: GpuUnit) -> str:
    """Return the name of the unit's object in the cache: 40 hexadecimal digits over everything that it depends on."""
    texts = [part for pair in _headers(unit).items() for part in pair]
    identity = (unit.backend, version(unit.backend), jobs.bare(unit.source), *options(unit))
    return jobs.digest((jobs.ENGINE, *identity, "", *texts))


def _headers(unit: GpuUnit) -> dict[str, str]:
    return {name: jobs.header(name, objects.INCLUDE) for name in unit.headers}


def build_many(units: Iterable[GpuUnit]) -> list[Path]:
    """Return the paths of the units' objects, in their order; those not cached are compiled at the same time.

    Raises
    ------
    BuildError
        If there is no compiler, if it refuses a source, or if an object cannot be stored; when all others are done.
    """
    return jobs.run([_job(unit) for unit in units], cpus())


def _job(unit: GpuUnit) -> jobs.Job:
    source, target = _SUFFIXES[unit.backend]
    files, make = {source: unit.source, "l0.py": unit.l0}, partial(_compile, unit)
    return jobs.Job(key(unit), unit.name, unit.label, unit.space, files, target, version(unit.backend), make)


def _compile(unit: GpuUnit, work: Path, stop: threading.Event) -> jobs.Outcome:
    source, target = _SUFFIXES[unit.backend]
    hip, log = unit.backend == "hip", f"{version(unit.backend)}\n"
    for additions in ((),) if hip else _FEWER_THREADS:
        arguments = (*(f for f in options(unit) if not (additions and f.startswith("-DPK_RESIDENT"))), *additions)
        result = nvrtc.compile_text(
            nvrtc.DeviceSource(source, unit.source, _headers(unit), arguments, hip, processes.limit())
        )
        log += f"\n{' '.join(arguments)}\n{result.log}"
        if not result.code:
            return jobs.Outcome(log, jobs.first_error(result.log) or "no message")
        registers = from_code_object(result.code) if hip else from_log(result.log)
        if hip or not (registers and registers.spill_stores):
            break
    (work / target).write_bytes(result.code)
    facts = {"version": version(unit.backend), "arch": unit.arch, "flags": list(arguments)}
    return jobs.Outcome(log, facts=facts | ({"usage": asdict(registers)} if registers else {}))


def usage(path: Path) -> Usage:
    """Return the resources that the kernel in this cached object uses, as reported by its compiler.

    Raises
    ------
    BuildError
        If the entry holds no such report.
    """
    try:
        return Usage(**json.loads(trust.read(path.with_name(cache.META)))["usage"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BuildError(f"{path.with_name(cache.META)} does not say what the kernel uses ({error!r})") from error
