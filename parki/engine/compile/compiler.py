"""C++ compiler of this machine, and the instruction set that it compiles for.

A probe of a compiler costs tens of milliseconds, so answers are kept in the process and in the cache.
"""

import contextlib
import functools
import hashlib
import importlib.util
import itertools
import logging
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from parki.engine import config
from parki.engine.compile import answers, processes
from parki.engine.compile.answers import RUNTIMES, WIDTHS, Answer, Compiler
from parki.engine.errors import BuildError
from parki.engine.settled import once

REMEDY = (
    f"apt install g++ / brew install llvm / conda install cxx-compiler / {config.INSTALL_COMPILER}, "
    f"or set {config.CXX} to one"
)
WINDOWS = os.name == "nt"
# Zig is many programs in one; its clang++ traps undefined behaviour by default.  Generated code needs no libraries, and
# without them Zig does not first compile its own (a minute for libc++).  On Windows objects start in the C library.
ZIG = ("c++", "-nostdlib++" if WINDOWS else "-nostdlib", "-fno-sanitize=undefined")
ANYWHERE = () if WINDOWS else ("-fPIC",)  # clang++ refuses the option on Windows, where all code is of that kind
_PROBES = "2"  # part of the name of stored answers; to be raised when the questions change
_MACROS = ("-dM", "-E", "-x", "c++", os.devnull)
_LAUNCHERS = {"ccache", "sccache", "distcc"}
_OPENMP = """
extern "C" int pk_probe() {
  int n = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : n)
  for (int i = 0; i < 9; i++) n += i;
  return n;
}
"""

log = logging.getLogger(config.LOGGER)


@dataclass(frozen=True)
class Target:
    """Processor to compile for.

    `arch` is the architecture asked for (``native``), `flags` the compiler options that ask for it, `vector_bytes` the
    width of generated vectors (16, 32 or 64), `resolved` the compiler's own answer for `arch` on this machine, and
    `openmp` tells whether an OpenMP program compiles and links.
    """

    arch: str
    flags: tuple[str, ...]
    vector_bytes: int
    resolved: str
    openmp: bool


def cpus() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def find_compiler() -> Compiler:
    """Return the compiler: ``PARKI_CXX``, else ``CXX``, else ``g++`` or ``clang++`` on the path, else ``ziglang``.

    ``ziglang`` is the Python package of that name; ``PARKI_CXX=ziglang`` asks for it, ``PARKI_CXX=zig`` for the ``zig``
    on the path, else for the package.

    Raises
    ------
    BuildError
        If there is none, or if ``PARKI_CXX`` names something that is not g++, clang++ or Zig.
    """
    return _find(os.environ.get(config.CXX, ""), os.environ.get("CXX", ""), os.environ.get("PATH", ""))


@functools.lru_cache(maxsize=16)
def _find(request: str, cxx: str, path: str) -> Compiler:
    if request:
        names = ("zig", "ziglang") if request in ("zig", "zig c++") else (request,)
        compiler = next(filter(None, (_look(name, path) for name in names)), None)
        if compiler is None:
            raise BuildError(f"{config.CXX}={request!r} is not a g++ or clang++ that runs. {REMEDY}.")
        return compiler
    # CXX is often set for other programs ("ccache g++ -m64", "icpx"): take the part that serves, else look further.
    words = [word for word in cxx.split() if not word.startswith("-") and Path(word).name not in _LAUNCHERS]
    for name in [cxx, *words[:1], "g++", "clang++", "ziglang"]:
        if name and (compiler := _look(name, path)):
            return compiler
    raise BuildError(f"no C++ compiler found (looked for {'CXX, ' if cxx else ''}g++, clang++). {REMEDY}.")


def _look(name: str, path: str) -> Compiler | None:
    executable = _packaged_zig() if name == "ziglang" else shutil.which(os.path.expanduser(name), path=path)
    if executable is None:
        return None
    executable = os.path.abspath(executable)
    words = ZIG if Path(executable).stem == "zig" else ()
    try:
        text = _ask([executable, *words, "--version"]).stdout
        first = text.partition("\n")[0].strip()
        if words and first:  # the same clang comes with several versions of Zig
            first = f"Zig {_ask([executable, 'version']).stdout.strip()}, {first.partition(' (')[0]}"
    except OSError:
        return None
    reason = ""
    if "clang" in first.lower():  # Apple's g++ is clang too
        if "-windows-msvc" not in text:
            return Compiler(executable, first, "clang++", words)
        reason = ", and for MSVC, whose objects export nothing by themselves"
    elif "Free Software Foundation" in text:
        if not WINDOWS:
            return Compiler(executable, first, "g++")
        reason = ", which on Windows aligns no stack for vectors of AVX (its bug 54412)"
    log.info("%s is neither g++ nor clang++ of a kind that serves (%s%s): not used", executable, first, reason)
    return None


def _packaged_zig() -> str | None:
    """Return the path of the program in the Python package ``ziglang``, None where that is not installed."""
    spec = importlib.util.find_spec("ziglang")
    folders = spec.submodule_search_locations if spec else None
    return shutil.which("zig", path=os.pathsep.join(folders or ()))


@contextlib.contextmanager
def settings(command: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the environment that a compiler's command runs in: messages in English, for Zig also a temporary folder.

    Zig would keep a second copy of all objects in the home folder, and fails where there is none.
    """
    english = os.environ | {"LC_ALL": "C"}
    if "asan" in english.get("LD_PRELOAD", ""):  # meant for kernels; it would check the compiler too
        del english["LD_PRELOAD"]
    if tuple(command[1 : 1 + len(ZIG)]) != ZIG:
        yield english
        return
    with tempfile.TemporaryDirectory(prefix=f"{config.NAME}-zig-", ignore_cleanup_errors=True) as folder:
        yield english | {"ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder}


def _ask(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a compiler, and return its answer."""
    with settings(command) as env:
        return processes.run(command, env)


@once
def target(arch: str | None = None, vector_bytes: int | None = None) -> Target:
    """Return the target to compile for.

    Parameters
    ----------
    arch : str, optional
        An argument of the compiler's ``-march``; default ``PARKI_ARCH``, else ``native``.
    vector_bytes : int, optional
        16, 32 or 64; default ``PARKI_VECTOR_BYTES``, else 64 for AVX-512 (F, DQ, VL), 32 for AVX2 with FMA, else 16.

    Without a compiler, the target is that of the prepared cache, if its objects fit this processor; any architecture
    will do where none is asked for.

    Raises
    ------
    BuildError
        If there is neither a compiler nor a cache that was prepared so, or if the compiler does not know `arch`.
    ValueError
        If `vector_bytes` is not 16, 32 or 64.
    """
    sources = ("arch" if arch else config.ARCH, config.VECTOR_BYTES if vector_bytes is None else "vector_bytes")
    width = os.environ.get(config.VECTOR_BYTES) or None if vector_bytes is None else vector_bytes
    arch = arch or os.environ.get(config.ARCH)
    try:
        compiler = find_compiler()
    except BuildError:
        if records := answers.prepared(arch):
            return _made(records[0].answer, records[0].arch, width, sources[1])
        raise
    return _target(compiler, arch or "native", width, sources)


def toolchains() -> list[tuple[Compiler, Target]]:
    """Return the compiler and its target or, without one, those of cached objects that fit, the last used first.

    Raises
    ------
    BuildError
        If there is no compiler, and the cache has nothing that fits this processor.
    """
    try:
        return [(find_compiler(), target())]
    except BuildError:
        arch, width = os.environ.get(config.ARCH), os.environ.get(config.VECTOR_BYTES) or None
        if records := answers.prepared(arch or None):
            return [
                (record.compiler, _made(record.answer, record.arch, width, config.VECTOR_BYTES)) for record in records
            ]
        raise


@functools.lru_cache(maxsize=64)
def _target(compiler: Compiler, arch: str, width: int | str | None, sources: tuple[str, str]) -> Target:
    return _made(_probe(compiler, arch, sources[0]), arch, width, sources[1])


def _made(answer: Answer, arch: str, request: int | str | None, source: str) -> Target:
    if request is not None and str(request) not in map(str, WIDTHS):
        raise ValueError(f"{source}={request!r}: expected 16, 32 or 64.")
    width = answer.widest if request is None else int(request)
    # g++ and clang++ prefer 256-bit code on many AVX-512 CPUs even for 64-byte vector types.
    wide = ("-mprefer-vector-width=512",) if width == 64 and answer.x86 else ()
    options = (word for word in (answer.flag, answer.runtime) if word)
    flags = (*options, *wide, f"-DPK_BYTES={width}")
    return Target(arch, flags, width, answer.resolved, answer.openmp)


@functools.lru_cache(maxsize=64)
def _probe(compiler: Compiler, arch: str, source: str) -> Answer:
    # The modification time catches a compiler replaced under the same version line.
    mtime = os.stat(compiler.path).st_mtime_ns
    identity = (_PROBES, *compiler.command, str(mtime), compiler.version, answers.processor(), arch)
    name = hashlib.blake2b("\0".join(identity).encode(), digest_size=16).hexdigest()
    facts = answers.recall(name, compiler, arch)
    # "no OpenMP" is asked again by each process: the runtime may have been installed meanwhile.
    if facts is not None and facts.openmp:
        return facts
    answer = _question(compiler, arch, source)
    answers.remember(name, compiler, arch, answer)
    return answer


def _question(compiler: Compiler, arch: str, source: str) -> Answer:
    for flag in answers.flags(compiler, arch):
        options = [flag] if flag else []
        macros = _ask([*compiler.command, *options, *_MACROS])
        if macros.returncode == 0:
            break
    else:
        reason = next((line for line in macros.stderr.splitlines() if "error" in line), macros.stderr.strip())
        raise BuildError(f"{source}={arch!r}: {compiler.path} cannot compile for it: {reason}")
    names = _macros(macros.stdout)
    widest = 16
    if {"__AVX512F__", "__AVX512DQ__", "__AVX512VL__"} <= names:
        widest = 64
    elif {"__AVX2__", "__FMA__"} <= names:
        widest = 32
    cpu, details = _resolve(compiler, options)
    digest = hashlib.blake2b((macros.stdout + details).encode(), digest_size=8).hexdigest()
    openmp, runtime = _openmp(compiler)
    x86, needs = "__x86_64__" in names, ()
    if x86:
        (baseline,) = answers.flags(compiler, "x86-64")
        needs = answers.needs(names, _macros(_ask([*compiler.command, baseline, *_MACROS]).stdout))
    return Answer(flag, f"{cpu or arch}-{digest}", widest, x86, openmp, runtime, needs)


def _macros(text: str) -> set[str]:
    return set(re.findall(r"^#define (\w+)", text, re.MULTILINE))


def _resolve(compiler: Compiler, options: list[str]) -> tuple[str, str]:
    """Return the CPU name and the features that the compiler derives from `options`."""
    if compiler.kind == "g++":
        text = _ask([*compiler.command, *options, "-Q", "--help=target"]).stdout
        cpu = re.search(r"^\s*-march=\s+(\S+)", text, re.MULTILINE)
        return cpu[1] if cpu else "", text
    text = _ask([*compiler.command, *options, "-###", "-E", "-x", "c++", os.devnull]).stderr
    words = next((shlex.split(line) for line in text.splitlines() if '"-cc1"' in line), [])
    words = [re.sub(r"(?<=-linux)[\d.]+", "", word) for word in words]  # Zig's -triple follows the kernel's updates
    keys = {"-triple", "-target-cpu", "-target-feature", "-tune-cpu", "-target-abi"}  # not: paths of this call
    pairs = [(key, value) for key, value in itertools.pairwise(words) if key in keys]
    return dict(pairs).get("-target-cpu", ""), repr(pairs)


def _openmp(compiler: Compiler) -> tuple[bool, str]:
    """Tell whether OpenMP programs compile and link, and which option they need besides ``-fopenmp``.

    clang++ often comes without its runtime library, Zig always.  Zig links objects with undefined functions, and a
    library for an older clang lacks some: with Zig, every function has to be found.
    """
    options = ("-fopenmp", *ANYWHERE, "-shared")
    with tempfile.TemporaryDirectory(prefix=f"{config.NAME}-") as work:
        unit = Path(work) / "probe.cpp"
        unit.write_text(_OPENMP, "utf-8")
        for runtime in RUNTIMES if compiler.words else ("",):
            link_options = (runtime, "-Wl,-z,defs") if runtime else ()
            process = _ask([*compiler.command, *options, *link_options, str(unit), "-o", f"{work}/probe.so"])
            if process.returncode == 0:
                return True, runtime
    log.info("%s builds no OpenMP programs: kernels run on one thread (%s)", compiler.path, process.stderr.strip())
    return False, ""
