"""StarPU as an executor of graphs of tasks on a host, if it is installed: a shim, compiled on first use.

A process has one StarPU with one policy and one number of workers; to change them StarPU is restarted, which takes
hundredths of a second.
"""

import atexit
import ctypes
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np

from parki.engine import loading, objects, spaces, target
from parki.tasks import pool
from parki.tasks.graph import Floats, Graph, Ints

HEADER = "pk_starpu.h"
PACKAGES = ("starpu-1.4", "starpu-1.3")  # names for pkg-config, the best first
PREFIX = "starpu:"
#: Names of schedules; other policies that come with StarPU run as well.
SCHEDULES = ("starpu", *(PREFIX + name for name in (
    "dm", "dmda", "dmdap", "dmdar", "dmdas", "dmdasd", "eager", "heteroprio", "lws", "prio", "random", "ws",
)))  # fmt: skip
BUCKETS = "heteroprio"  # policy whose priorities are numbers of buckets
MOST_BUCKETS = 99
GUESS = 1e-3  # seconds of a task before the first run: steps are cut into tasks of about this size
PATIENCE = 1.0  # seconds that a process waits at its end for a run of another thread


@dataclass(frozen=True)
class Installed:
    """StarPU found by pkg-config: version and compiler options."""

    version: str
    flags: tuple[str, ...]


class _Job(ctypes.Structure):
    """``struct pk_starpu_job`` of the header."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("job", "before_begin", "before", "bucket", "seconds", "state")]


def policy(schedule: str) -> str:
    """Return StarPU's name of the policy of a schedule."""
    return schedule.removeprefix(PREFIX)


def check(schedule: str, threads: int) -> None:
    """Check that StarPU is installed and has a policy, because StarPU itself would end the process otherwise.

    Parameters
    ----------
    schedule : str
        Name of a schedule, such as "starpu:lws".
    threads : int
        Number of workers.

    Raises
    ------
    ValueError
        Without StarPU, for a policy that StarPU lacks, or for more workers than StarPU supports.
    BuildError
        If the shim does not compile.
    """
    installation = installed()
    if installation is None:
        text = f"StarPU is not installed (pkg-config finds neither {' nor '.join(PACKAGES)})"
        raise ValueError(
            f"schedule is {schedule!r}; {text}: apt-get install libstarpu-dev pkg-config, or schedule='drain'."
        )
    names = policies()
    if policy(schedule) not in names:
        raise ValueError(
            f"schedule is {schedule!r}; StarPU {installation.version} has no policy {policy(schedule)!r}, expected one "
            f"of {', '.join(names)}."
        )
    limit = _entries().pk_starpu_most_workers()
    if threads > limit:
        raise ValueError(
            f"schedule is {schedule!r} with {threads} threads; StarPU {installation.version} was built for at most "
            f"{limit}: expected threads={limit} or less, or schedule='drain'."
        )


def installed() -> Installed | None:
    """Return the newest StarPU that pkg-config finds, None without one."""
    if shutil.which("pkg-config") is None:
        return None
    for name in PACKAGES:
        answers = [_ask(name, option) for option in ("--modversion", "--cflags", "--libs")]
        if None not in answers:
            flags = " ".join(answers[1:]).split()
            places = [f"-Wl,-rpath,{flag[2:]}" for flag in flags if flag.startswith("-L")]
            return Installed(answers[0], (*flags, *places))
    return None


def _ask(name: str, option: str) -> str | None:
    """Return the answer of pkg-config, None if it fails."""
    command = ["pkg-config", option, name]
    process = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return None if process.returncode else process.stdout.strip()


def _entries() -> ctypes.CDLL:
    """Return the compiled shim."""
    global _loaded
    if _loaded is None:
        installation = installed()
        text = f'// StarPU {installation.version}\n#include "{HEADER}"\n'
        options = ("-pthread", "-Wl,--no-as-needed", *installation.flags)  # libraries precede the text that needs them
        unit = objects.Unit("starpu", "StarPU's shim", text, (HEADER, *pool.HEADERS), target(), options)
        library = loading.load(objects.build(unit))
        library.pk_starpu_policy.restype = ctypes.c_char_p
        library.pk_starpu_start.argtypes = [ctypes.c_char_p, ctypes.c_int32, ctypes.c_char_p, ctypes.c_int32]
        for name in ("pk_starpu_begin", "pk_starpu_end"):
            getattr(library, name).argtypes = [ctypes.c_void_p]
        library.pk_starpu_wait.argtypes = [ctypes.c_void_p, ctypes.c_int32]
        for name in ("pk_starpu_end", "pk_starpu_shut"):
            getattr(library, name).restype = None
        _loaded = library
    return _loaded


def policies() -> list[str]:
    """Return the names of the policies that come with StarPU."""
    entry = _entries().pk_starpu_policy
    names = takewhile(lambda name: name is not None, map(entry, range(1000)))
    return sorted(name.decode() for name in names)


# StarPU of this process -----------------------------------------------------------------------------------------------
_loaded: ctypes.CDLL | None = None
_turn = threading.Lock()  # held by a caller, because StarPU runs one graph at a time
_runs: tuple[str, int] | None = None  # policy and number of workers of the running StarPU


@contextmanager
def _started(name: str, threads: int) -> Iterator[ctypes.CDLL]:
    """Hold StarPU with a policy and a number of workers, restarting it if it runs with others."""
    global _runs
    with _turn:
        entries = _entries()
        if _runs != (name, threads):
            _runs = None
            buckets = MOST_BUCKETS if name == BUCKETS else 0
            with tempfile.TemporaryDirectory(prefix="parki-starpu-", ignore_cleanup_errors=True) as home:
                workers = entries.pk_starpu_start(name.encode(), threads, home.encode(), buckets)
            if workers < 0:
                reason = "another library runs it in this process" if workers == -1 else "it has found no core"
                raise RuntimeError(f"StarPU cannot be started: {reason}; expected none before, or schedule='drain'.")
            if workers != threads:
                raise RuntimeError(f"StarPU has started {workers} workers; expected {threads}.")
            _runs = name, threads
        yield entries


@atexit.register
def stop() -> None:
    """End StarPU and its threads.

    StarPU starts again when needed.  The child of a fork does not have the threads, and changes nothing.
    """
    global _runs
    if _loaded is None or spaces.forked() or not _turn.acquire(timeout=PATIENCE):
        return
    try:
        _runs = None
        _loaded.pk_starpu_shut()
    finally:
        _turn.release()


# Runs -----------------------------------------------------------------------------------------------------------------
class StarpuRun(pool.GraphRun):
    """Graph of tasks with their calls, which StarPU runs while the caller's thread waits.

    Parameters
    ----------
    graph : Graph
    *more
        Calls, workers and order, as for `parki.tasks.pool.GraphRun`: the task with the least turn has the highest
        priority.
    name : str
        StarPU's name of the policy.
    **named
        The rest of the options of `parki.tasks.pool.GraphRun`.
    """

    def __init__(self, graph: Graph, *arguments: Any, name: str = "prio", **keywords: Any) -> None:
        super().__init__(graph, *arguments, **keywords)
        self.name = name
        self._seconds, self._bucket = np.full(len(graph), GUESS), np.zeros(len(graph), np.int32)
        self._own = {"before_begin": graph.before.begin, "before": graph.before.values, "seconds": self._seconds}
        if name == BUCKETS:
            self._own["bucket"] = self._bucket
            self._fill()
        self._starpu = _Job(ctypes.addressof(self._job), **{name: a.ctypes.data for name, a in self._own.items()})

    @property
    def arrays(self) -> list[Any]:
        """Arrays that the job keeps."""
        return [*super().arrays, *self._own.values()]

    def _run(self) -> None:
        if spaces.forked():
            return super()._run()
        address = ctypes.addressof(self._starpu)
        with _started(self.name, self.threads) as entries:
            try:
                if entries.pk_starpu_begin(address):
                    raise RuntimeError(f"StarPU has refused a task under {self.name!r}; expected a worker for each.")
                while not entries.pk_starpu_wait(address, pool.SLICE):
                    pass
            finally:
                entries.pk_starpu_end(address)
        return None

    def reorder(self, turn: Ints) -> None:
        """Set the order of ready tasks for the next runs."""
        super().reorder(turn)
        self._fill()

    def expect(self, seconds: Floats) -> None:
        """Set the expected seconds of tasks, by which policies may map tasks to workers."""
        self._seconds[:] = seconds

    def _fill(self) -> None:
        """Put the tasks of each kind into one bucket; the order of buckets is that of the mean turn of their tasks."""
        kind = self.graph.kind
        number = np.maximum(np.bincount(kind, minlength=len(self.graph.kinds)), 1)
        mean = np.bincount(kind, self._arrays["turn"], len(self.graph.kinds)) / number
        place = np.empty(len(mean), np.int32)
        place[np.argsort(mean, kind="stable")] = np.arange(len(mean))
        self._bucket[:] = np.minimum(place, MOST_BUCKETS - 1)[kind]
