"""Answers of compilers, kept in the cache.

Where there is no compiler, as on many compute nodes, the answers tell the compiler and architecture that the cache was
prepared with, and whether such objects fit this processor.
"""

import contextlib
import functools
import hashlib
import json
import logging
import os
import platform
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from parki.engine import config
from parki.engine.compile import cache, trust

WIDTHS = (16, 32, 64)  # bytes of a vector that generated code can be built for
RUNTIMES = ("-lomp", "-l:libomp.so.5")  # options to link an OpenMP runtime with, or without, the files for developers
# x86-64: CPU_FLAGS are macros of compilers whose names differ from the flags in /proc/cpuinfo; NOT_USED are macros
# that stand for no instructions, or for instructions that a compiler uses only if a text names them.
CPU_FLAGS = {
    "sse3": "pni", "bmi": "bmi1", "lzcnt": "abm", "prfchw": "3dnowprefetch", "lahf_sahf": "lahf_lm",
    "gcc_have_sync_compare_and_swap_16": "cx16", "avxvnni": "avx_vnni", "apx_f": "apx",
    **{f"avx512{name}": f"avx512_{name}" for name in "vnni vbmi2 bitalg vpopcntdq bf16 fp16 vp2intersect".split()},
}  # fmt: skip
NOT_USED = re.compile(
    r"fp_fast_\w+|evex\d+|\w+_math|shstk|crc32|v?aes|v?pclmul(qdq)?|sha|rdrnd|rdseed|rdpid|sgx|pku|clwb|cl\w*flush\w*"
    r"|clzero|cldemote|wbnoinvd|xsave\w?|xsaveopt|fxsr|fsgsbase|mwait\w?|ptwrite|pconfig|serialize|waitpkg|hle|rtm|invpcid"
)

log = logging.getLogger(config.LOGGER)


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler: absolute path, first line of its ``--version``, and kind, ``"g++"`` or ``"clang++"``.

    `words` follow the path on every command line: none except for Zig, which is a clang++.
    """

    path: str
    version: str
    kind: str
    words: tuple[str, ...] = ()

    @property
    def command(self) -> tuple[str, ...]:
        """First words of every command line."""
        return (self.path, *self.words)


@dataclass(frozen=True)
class Answer:
    """Answer of one compiler about one architecture.

    `needs` are the flags of /proc/cpuinfo that its code needs on x86-64.
    """

    flag: str
    resolved: str
    widest: int
    x86: bool
    openmp: bool
    runtime: str = ""  # option that links the OpenMP runtime, where -fopenmp does not
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kept:
    """An answer, the compiler and the architecture asked for, and a digest of the processor on which it was asked."""

    compiler: Compiler
    arch: str
    processor: str
    answer: Answer

    @property
    def fits(self) -> bool:
        """Tell whether this machine runs objects of this compiler for this architecture."""
        is_x86 = self.answer.x86 and platform.machine() in ("x86_64", "AMD64")
        return self.processor == digest() or (is_x86 and set(self.answer.needs) <= _cpu_flags())


@functools.cache
def processor() -> str:
    """Return the facts that ``-march=native`` depends on, as text: different machines may share a home directory."""
    fields = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU ", "isa", "cpu\t")
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return " ".join((platform.node(), platform.machine(), platform.processor()))
    return "\n".join(sorted({line for line in lines if line.startswith(fields)}))


def digest() -> str:
    """Return a digest of the processor, 16 hexadecimal digits."""
    return hashlib.blake2b(processor().encode(), digest_size=8).hexdigest()


def _cpu_flags() -> set[str]:
    match = re.search(r"^flags\s*:(.*)$", processor(), re.MULTILINE)
    return set(match[1].split()) if match else set()


def needs(macros: set[str], common: set[str]) -> tuple[str, ...]:
    """Return the flags of /proc/cpuinfo that stand for a compiler's macros, except the always defined `common` ones."""
    names = (name.strip("_").lower() for name in macros - common if name.upper() == name)
    return tuple(sorted({CPU_FLAGS.get(name, name) for name in names if not NOT_USED.fullmatch(name)}))


def recall(name: str, compiler: Compiler, arch: str) -> Answer | None:
    """Return the kept answer of this compiler on this processor, None if there is no sound one."""
    path = _folder() / f"{name}.json"
    record = _read(path)
    if record is None or (record.compiler, record.arch, record.processor) != (compiler, arch, digest()):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # the last one used is the first that `prepared` returns
    return record.answer


def remember(name: str, compiler: Compiler, arch: str, answer: Answer) -> None:
    """Keep an answer; where nothing can be written, the next process asks again."""
    try:
        cache.write(_folder() / f"{name}.json", json.dumps(asdict(Kept(compiler, arch, digest(), answer)), indent=1))
    except OSError as error:
        log.debug("the compiler's answers are not stored: %s", error)


def prepared(arch: str | None = None) -> list[Kept]:
    """Return the kept answers that fit this processor, the last used first.

    Parameters
    ----------
    arch : str, optional
        Only answers for this architecture.
    """
    records: list[tuple[float, Kept]] = []
    for path in _folder().glob("*.json"):
        with contextlib.suppress(OSError):
            record = _read(path)
            if record and record.fits and arch in (None, record.arch):
                records.append((path.stat().st_mtime, record))
    return [record for _, record in sorted(records, key=lambda item: item[0], reverse=True)]


def _folder() -> Path:
    return cache.shelf() / cache.FORMAT / cache.PROBES


def _read(path: Path) -> Kept | None:
    """Return the answer kept in a file, None if no compiler can have given it."""
    try:
        content = json.loads(trust.read(path))
        compiler, answer = content["compiler"], content["answer"]
        compiler["words"], answer["needs"] = tuple(compiler["words"]), tuple(answer["needs"])
        record = Kept(Compiler(**compiler), content["arch"], content["processor"], Answer(**answer))
        texts = (
            *compiler.values(),
            *compiler["words"],
            record.arch,
            record.processor,
            record.answer.resolved,
            *answer["needs"],
        )
        valid = all(isinstance(text, str) for text in texts if text is not compiler["words"])
        valid &= record.answer.flag in flags(record.compiler, record.arch) and record.answer.widest in WIDTHS
        valid &= isinstance(record.answer.x86, bool) and isinstance(record.answer.openmp, bool)
        return record if valid and record.answer.runtime in ("", *RUNTIMES) else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def flags(compiler: Compiler, arch: str) -> tuple[str, ...]:
    """Return the options to try for an architecture, in this order: a compiler may refuse ``-march=native``.

    clang on ARM wants -mcpu, some compilers know neither; Zig writes x86-64-v3 as x86_64_v3.
    """
    if arch == "native":
        return ("-march=native", "-mcpu=native", "")
    return (f"-march={arch.replace('-', '_') if compiler.words else arch}",)
