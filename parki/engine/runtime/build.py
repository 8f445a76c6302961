"""From generated C++ to a shared object: key, flags, compilation, several at a time."""

import hashlib
import logging
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import parki.engine.include
from parki.engine.errors import BuildError
from parki.engine.runtime import cache
from parki.engine.runtime.compiler import Compiler, Target, cpus, find_compiler

ENGINE = "1"  # part of every key: to be raised when objects are called in another way with the same source
INCLUDE = Path(parki.engine.include.__file__).parent
MOST_COMPILERS = 8  # at a time
BASE_FLAGS = (
    "-O3",
    "-std=gnu++17",
    "-fPIC",
    "-shared",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-psabi",
)

log = logging.getLogger("parki.engine")


@dataclass(frozen=True)
class Unit:
    """One C++ text to be compiled to one shared object.

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
        """Execution space the object serves best; it also runs as Serial."""
        return "OpenMP" if self.target.openmp else "Serial"


def flags(unit: Unit) -> tuple[str, ...]:
    """All compiler options of this unit, but for the include folder and the file names."""
    openmp = ("-fopenmp",) if unit.target.openmp else ()
    return BASE_FLAGS + openmp + unit.target.flags + unit.flags


def key(unit: Unit, compiler: Compiler | None = None) -> str:
    """Name of the unit's object in the cache: 40 hexadecimal digits over everything that goes into the object.

    Headers enter by their text, ``-march=native`` by what the compiler makes of it on this machine.
    """
    compiler = compiler or find_compiler()
    digest = hashlib.blake2b(digest_size=20)
    texts = [part for name in unit.headers for part in (name, _header(name))]
    for part in (ENGINE, unit.source, compiler.path, compiler.version, unit.target.resolved, *flags(unit), "", *texts):
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little"))  # the length, so that no two lists of parts read alike
        digest.update(data)
    return digest.hexdigest()


def _header(name: str) -> str:
    try:
        return (INCLUDE / name).read_text("utf-8")
    except OSError as error:
        raise BuildError(f"the header {name!r} is missing in {INCLUDE}: parki is not installed completely") from error


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
    compiler = find_compiler()
    keys = [key(unit, compiler) for unit in units]
    paths = {name: cache.find(name) for name in dict.fromkeys(keys)}
    cold = {name: unit for name, unit in zip(keys, units, strict=True) if paths[name] is None}
    if cold:
        paths |= _compile_all(cold, compiler)
    return [path for name in keys if (path := paths[name]) is not None]


def _compile_all(cold: dict[str, Unit], compiler: Compiler) -> dict[str, Path]:
    report = _announce(list(cold.values()))
    outcome, stop = "interrupted", threading.Event()
    pool = ThreadPoolExecutor(min(MOST_COMPILERS, cpus(), len(cold)), thread_name_prefix="parki-compile")
    try:
        jobs = {name: pool.submit(_build_cold, name, unit, compiler, stop) for name, unit in cold.items()}
        errors = [error for job in jobs.values() if (error := job.exception())]
        outcome = "failed" if errors else "cached"
    finally:
        stop.set()  # after Ctrl-C nobody waits for other processes, and what has not begun is not begun
        pool.shutdown(wait=True, cancel_futures=True)
        report(outcome)
    if errors:
        if len(errors) > 1:
            errors[0].add_note(f"{len(errors) - 1} more of {len(cold)} kernels failed to compile.")
        raise errors[0]
    return {name: job.result() for name, job in jobs.items()}


def _build_cold(name: str, unit: Unit, compiler: Compiler, stop: threading.Event) -> Path:
    try:
        with cache.building(name, stop):
            found = cache.find(name)
            if found is None:
                cache.discard_damaged(name)
                found = _compile(name, unit, compiler)
            return found
    except OSError as error:
        raise BuildError(
            f"{unit.label} cannot be stored in the cache {cache.folder()}: {error}. "
            "Free some space there, or set PARKI_CACHE_DIR to another folder."
        ) from error


def _compile(name: str, unit: Unit, compiler: Compiler) -> Path:
    with cache.workspace(name) as work:
        (work / "kernel.cpp").write_text(unit.source, "utf-8")
        (work / "l0.py").write_text(unit.l0, "utf-8")
        # Names relative to the working folder: nothing of its passing name gets into the object or the log.
        options = flags(unit)
        command = [compiler.path, *options, f"-I{INCLUDE}", "kernel.cpp", "-o", cache.OBJECT]
        began = time.perf_counter()
        done = _run(command, work)
        seconds = time.perf_counter() - began
        (work / "log.txt").write_text(f"{shlex.join(command)}\n{compiler.version}\n\n{done.stdout}", "utf-8")
        if done.returncode or not (work / cache.OBJECT).exists():
            kept = cache.keep_failure(name, work)
            raise BuildError(
                f"{compiler.kind} refused the generated code of {unit.label}: {_first_error(done)}\n"
                f"This is a fault of parki's engine or of the compiler; please report it with the files in {kept} "
                "(kernel.cpp, l0.py, log.txt)."
            )
        meta = {
            "name": unit.name,
            "label": unit.label,
            "space": unit.space,
            "compiler": compiler.path,
            "version": compiler.version,
            "resolved": unit.target.resolved,
            "flags": list(options),
            "seconds": round(seconds, 3),
            "time": time.time(),
        }
        path = cache.publish(name, work, meta)
    log.info("compiled %s for %s in %.1f s", unit.label, unit.space, seconds)
    return path


def _run(command: list[str], work: Path) -> subprocess.CompletedProcess[str]:
    english = os.environ | {"LC_ALL": "C"}  # for `_first_error`
    try:
        return subprocess.run(
            command,
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=english,
            check=False,
        )
    except OSError as error:
        raise BuildError(f"the compiler {command[0]} cannot be run: {error}") from error


def _first_error(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode < 0:
        return f"the compiler was ended by signal {-done.returncode} (is there enough memory?)"
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    errors = (line for line in lines if re.search(r"\berror\b|undefined reference", line, re.IGNORECASE))
    return next(errors, lines[0] if lines else f"exit status {done.returncode}, without a message")


def _announce(units: list[Unit]) -> Callable[[str], None]:
    """Begin the one line for people at a terminal; the function returned ends it with the outcome.

    Nothing is shown where stderr is no terminal, with PARKI_QUIET set, or where the loggers ``parki`` or
    ``parki.engine`` were given a level or already show the lines of each compilation.
    """
    chosen = any(logging.getLogger(name).level != logging.NOTSET for name in ("parki", "parki.engine"))
    shown = log.isEnabledFor(logging.INFO) and log.hasHandlers()
    quiet = os.environ.get("PARKI_QUIET", "0") not in ("", "0")
    if chosen or shown or quiet or sys.stderr is None or not sys.stderr.isatty():
        return lambda outcome: None
    began = time.perf_counter()
    _say(f"parki: compiling {_headline(units)} … ")
    return lambda outcome: _say(f"{time.perf_counter() - began:.1f} s, {outcome}\n")


def _headline(units: list[Unit]) -> str:
    """Return for example ``p2p_cells (OpenMP, stokes_comb, double)`` or ``5 kernels (OpenMP, double)``."""
    spaces = sorted({unit.space for unit in units})
    if len(units) == 1:
        name, _, rest = units[0].label.partition(" (")
        details = [rest.removesuffix(")")] if rest else []
        return f"{name} ({', '.join(spaces + details)})"
    reals = sorted({real for unit in units for real in re.findall(r"\b(?:double|float)\b", unit.label)})
    return f"{len(units)} kernels ({', '.join(spaces + reals)})"


def _say(text: str) -> None:
    if sys.stderr is not None:
        coding = getattr(sys.stderr, "encoding", None) or "utf-8"
        sys.stderr.write(text.encode(coding, "replace").decode(coding))
        sys.stderr.flush()
