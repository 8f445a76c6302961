"""Compilation of generated C++ to shared objects: key, flags, several at a time."""

import shlex
import subprocess
import tempfile
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import parki.engine.include
from parki.engine import config
from parki.engine.compile import cache, jobs, loading, processes
from parki.engine.compile.compiler import ANYWHERE, Compiler, Target, cpus, find_compiler, settings, toolchains
from parki.engine.errors import BuildError

INCLUDE = Path(parki.engine.include.__file__).parent
BASE_FLAGS = (
    "-O3",
    "-std=gnu++17",
    *ANYWHERE,
    "-shared",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-psabi",
)
FULL = ("No space left on device", "Disk quota exceeded", "File too large")  # messages of a compiler about the system
# A compiler that fails by its own fault compiles again without the passes in which current compilers tend to fail.
CRASHED = "internal compiler error"
CAREFUL = ("-fno-tree-slp-vectorize", "-fno-tree-vectorize", "-fno-schedule-insns")


@dataclass(frozen=True)
class Unit:
    """A C++ text to be compiled to one shared object.

    `name` is for file names, `label` for people; `headers` name the files of `parki.engine.include` that `source`
    depends on; `flags` come last on the command line; `l0` is the kernel the source was made from, stored beside it.
    """

    name: str
    label: str
    source: str
    headers: tuple[str, ...]
    target: Target
    flags: tuple[str, ...] = ()
    l0: str = ""

    @property
    def space(self) -> str:
        """Execution space that the object serves best; the object also runs as Serial."""
        return "OpenMP" if self.target.openmp else "Serial"


def flags(unit: Unit) -> tuple[str, ...]:
    """Return all compiler options of this unit, except the include folder and the file names."""
    openmp = ("-fopenmp",) if unit.target.openmp else ()
    return BASE_FLAGS + openmp + unit.target.flags + unit.flags


def key(unit: Unit, compiler: Compiler | None = None) -> str:
    """Return the name of the unit's object in the cache: 40 hexadecimal digits over everything that it depends on.

    Headers enter by their text, ``-march=native`` by the compiler's own answer on this machine.  The places of a
    kernel's lines enter only where the object holds them.
    """
    compiler = compiler or toolchains()[0][0]
    texts = [part for name in unit.headers for part in (name, jobs.header(name, INCLUDE))]
    source = unit.source if "-g" in unit.flags else jobs.bare(unit.source)
    identity = (source, *compiler.command, compiler.version, unit.target.resolved, *flags(unit))
    return jobs.digest((jobs.ENGINE, *identity, "", *texts))


def build(unit: Unit) -> Path:
    """Return the path of the unit's shared object, from the cache or compiled now.

    Raises
    ------
    BuildError
        If there is no compiler, if it refuses the source, or if the object cannot be stored.
    """
    return build_many([unit])[0]


def build_many(units: Iterable[Unit]) -> list[Path]:
    """Return the paths of the units' shared objects, in their order; those not cached are compiled in parallel.

    All compilations are waited for before the first error (in the order of units) is raised.
    """
    units = list(units)
    if not units:
        return []
    try:
        compiler = find_compiler()
    except BuildError as error:
        return [_prepared(unit, error) for unit in units]
    return jobs.run([_job(unit, compiler) for unit in units], cpus())


def _prepared(unit: Unit, error: BuildError) -> Path:
    """Return a unit's object from a cache that was prepared with a compiler."""
    for compiler, target in toolchains():
        if path := cache.find(key(replace(unit, target=target), compiler)):
            return path
    reason = f"the cache {cache.shelf()} has no object of {unit.label} that fits this processor"
    raise BuildError(f"{error} Without one, prepared objects run, but {reason}.")


def _job(unit: Unit, compiler: Compiler) -> jobs.Job:
    files = {"kernel.cpp": unit.source, "l0.py": unit.l0}
    make = partial(_compile, unit, compiler)
    return jobs.Job(key(unit, compiler), unit.name, unit.label, unit.space, files, cache.OBJECT, compiler.kind, make)


def _compile(unit: Unit, compiler: Compiler, work: Path, stop: threading.Event) -> jobs.Outcome:
    # Names are relative to the working folder: its temporary name does not get into the object or the log.
    for options in (flags(unit), (*flags(unit), *CAREFUL)):
        command = [*compiler.command, *options, f"-I{INCLUDE}", "kernel.cpp", "-o", cache.OBJECT]
        process = _run(command, work, stop)
        if CRASHED not in process.stdout:
            break
    log = f"{shlex.join(command)}\n{compiler.version}\n\n{process.stdout}"
    if process.returncode:
        return jobs.Outcome(log, _reason(process), _cause(process))
    if fault := loading.fault(work / cache.OBJECT):
        message = jobs.first_error(process.stdout)
        error = f"{compiler.path} ended without an error and left {fault}" + (f" ({message})" if message else "")
        return jobs.Outcome(log, error, "That is no working compiler (parki doctor), or there was no room on the disk.")
    facts = {"compiler": compiler.path, "version": compiler.version, "resolved": unit.target.resolved}
    return jobs.Outcome(log, facts=facts | {"flags": list(options)})


def _run(command: list[str], work: Path, stop: threading.Event) -> subprocess.CompletedProcess[str]:
    try:
        with settings(command) as env:
            return processes.run(command, env, work, stop)
    except InterruptedError:
        raise
    except OSError as error:
        raise BuildError(f"the compiler {command[0]} cannot be run: {error}") from error


def _cause(process: subprocess.CompletedProcess[str]) -> str:
    """Return the fault of this machine that made a compiler fail, else ""."""
    if process.returncode < 0:
        return "Something has ended the compiler: mostly the system does, for want of memory."
    if any(words in process.stdout for words in FULL):
        places = f"{cache.folder()} and {tempfile.gettempdir()}"
        return f"Free some space in {places}, or set {config.CACHE_DIR} and TMPDIR to other folders."
    return ""


def _reason(process: subprocess.CompletedProcess[str]) -> str:
    if process.returncode < 0:
        return f"the compiler was ended by signal {-process.returncode} (is there enough memory?)"
    return jobs.first_error(process.stdout) or f"exit status {process.returncode}, without a message"
