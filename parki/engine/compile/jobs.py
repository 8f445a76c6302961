"""Compilation of texts to objects in the cache, by any compiler: several at a time, once per key, failures kept."""

import hashlib
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parki.engine import audience, config, counting
from parki.engine.compile import cache
from parki.engine.errors import BuildError

ENGINE = "1"  # part of every key: to be raised when objects are called in another way with the same source
MOST_COMPILERS = 8  # compilers at a time

log = logging.getLogger(config.LOGGER)


@dataclass(frozen=True)
class Outcome:
    """Result of a compilation: its log, its first error (empty if none), and `facts` to be stored with the object.

    `cause` is a sentence on a fault of this machine, where the error says nothing about the text.
    """

    log: str
    error: str = ""
    cause: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """Object to be found in the cache or made.

    `key` names its place, `label` and `space` its purpose; `files` are written into the working folder (name → text),
    `object` is the name of the file that `compile` then makes there, unless the event that it gets is set; `compiler`
    names the compiler, for people.
    """

    key: str
    name: str
    label: str
    space: str
    files: dict[str, str]
    object: str
    compiler: str
    compile: Callable[[Path, threading.Event], Outcome]


def digest(parts: Iterable[str]) -> str:
    """Return 40 hexadecimal digits over the texts; no two lists of texts give the same bytes to hash."""
    hasher = hashlib.blake2b(digest_size=20)
    for part in parts:
        data = part.encode()
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
    return hasher.hexdigest()


def header(name: str, folder: Path) -> str:
    """Return the text of one of parki's headers."""
    try:
        return (folder / name).read_text("utf-8")
    except OSError as error:
        raise BuildError(f"the header {name!r} is missing in {folder}: parki is not installed completely") from error


def run(jobs: Sequence[Job], workers: int) -> list[Path]:
    """Return the paths of the objects, in the order of jobs; those not cached are made by up to `workers` threads.

    Raises
    ------
    BuildError
        If a text is refused or an object cannot be stored: the first such error, when all other jobs are done.
    """
    paths = {job.key: cache.find(job.key, job.object) for job in jobs}
    misses = {job.key: job for job in jobs if paths[job.key] is None}
    if misses:
        paths |= _all(misses, workers)
    return [path for job in jobs if (path := paths[job.key]) is not None]


def _all(misses: dict[str, Job], workers: int) -> dict[str, Path]:
    report = _announce(list(misses.values()))
    outcome, stop = "interrupted", threading.Event()
    pool = ThreadPoolExecutor(min(MOST_COMPILERS, workers, len(misses)), thread_name_prefix=f"{config.NAME}-compile")
    try:
        futures = {key: pool.submit(_locked, job, stop) for key, job in misses.items()}
        errors = [error for future in futures.values() if (error := future.exception())]
        outcome = "failed" if errors else "cached"
    finally:
        stop.set()  # after Ctrl-C no job waits for other processes, and no further job begins
        pool.shutdown(wait=True, cancel_futures=True)
        report(outcome)
    if errors:
        if len(errors) > 1:
            errors[0].add_note(f"{len(errors) - 1} more of {len(misses)} kernels failed to compile.")
        raise errors[0]
    return {key: future.result() for key, future in futures.items()}


def _locked(job: Job, stop: threading.Event) -> Path:
    try:
        with cache.building(job.key, stop, job.object):
            path = cache.find(job.key, job.object)
            if path is None:
                cache.discard_damaged(job.key, job.object)
                path = _make(job, stop)
            return path
    except InterruptedError:
        raise
    except OSError as error:
        raise BuildError(
            f"{job.label} cannot be stored in the cache {cache.folder()}: {error}. "
            f"Free some space there, or set {config.CACHE_DIR} to another folder."
        ) from error


def _make(job: Job, stop: threading.Event) -> Path:
    with cache.workspace(job.key) as work:
        for name, text in job.files.items():
            (work / name).write_text(text, "utf-8")
        start = time.perf_counter()
        outcome = job.compile(work, stop)
        counting.add("builds")
        seconds = time.perf_counter() - start
        (work / "log.txt").write_text(outcome.log, "utf-8")
        if outcome.error:
            (work / job.object).unlink(missing_ok=True)
            folder = cache.keep_failure(job.key, work)
            if outcome.cause:
                raise BuildError(
                    f"{job.label} was not compiled: {outcome.error}\n{outcome.cause} All is told in {folder}."
                )
            raise BuildError(
                f"{job.compiler} refused the generated code of {job.label}: {outcome.error}\n"
                f"This is a fault of parki's engine or of the compiler; please report it with the files in {folder} "
                f"({', '.join((*job.files, 'log.txt'))})."
            )
        purpose = {"name": job.name, "label": job.label, "space": job.space}
        meta = purpose | outcome.facts | {"seconds": round(seconds, 3), "time": time.time()}
        path = cache.publish(job.key, work, meta, job.object)
    log.info("compiled %s for %s in %.1f s", job.label, job.space, seconds)
    return path


def bare(source: str) -> str:
    """Return a text without ``#line`` and comments, which say where a kernel was written and change no code."""
    return "".join(line for line in source.splitlines(keepends=True) if not line.lstrip().startswith(("#line ", "//")))


def first_error(text: str) -> str:
    """Return the most telling line of a compiler's messages: its first error, else its first line, else ""."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = (line for line in lines if re.search(r"\berror\b|undefined reference", line, re.IGNORECASE))
    return next(errors, lines[0] if lines else "")


def _announce(jobs: list[Job]) -> Callable[[str], None]:
    """Begin the one line for people at a terminal; the function returned ends the line with the outcome.

    Nothing is shown where stderr is neither a terminal nor that of a notebook's cell, with PARKI_QUIET set, or where
    the loggers ``parki`` or ``parki.engine`` were given a level or already show the lines of each compilation.
    """
    configured = any(logging.getLogger(name).level != logging.NOTSET for name in (config.NAME, config.LOGGER))
    shown = log.isEnabledFor(logging.INFO) and log.hasHandlers()
    quiet = os.environ.get(config.QUIET, "0") not in ("", "0")
    if configured or shown or quiet or not audience.watches(sys.stderr):
        return lambda outcome: None
    start = time.perf_counter()
    _say(f"{config.NAME}: compiling {_headline(jobs)} … ")
    return lambda outcome: _say(f"{time.perf_counter() - start:.1f} s, {outcome}\n")


def _headline(jobs: list[Job]) -> str:
    """Return for example ``p2p_cells (OpenMP, stokes_comb, double)`` or ``5 kernels (OpenMP, double)``."""
    spaces = sorted({job.space for job in jobs})
    if len(jobs) == 1:
        name, _, rest = jobs[0].label.partition(" (")
        details = [rest.removesuffix(")")] if rest else []
        return f"{name} ({', '.join(spaces + details)})"
    reals = sorted({real for job in jobs for real in re.findall(r"\b(?:double|float)\b", job.label)})
    return f"{len(jobs)} kernels ({', '.join(spaces + reals)})"


def _say(text: str) -> None:
    if sys.stderr is not None:
        coding = getattr(sys.stderr, "encoding", None) or "utf-8"
        sys.stderr.write(text.encode(coding, "replace").decode(coding))
        sys.stderr.flush()
