"""Limits of the system on the threads of this process."""

import contextlib
import functools
import os
from pathlib import Path

MOST = 4096  # threads; OpenMP's runtimes keep data of each on the stack of the thread that starts them


@functools.lru_cache(maxsize=1)
def most_threads() -> tuple[int, str]:
    """Return the most threads that a sum may use, and the source of this limit in words."""
    found = [(MOST, "which parki takes for the most that serve a sum")]
    if (most := _number(Path("/proc/sys/kernel/threads-max"))) is not None:
        found.append((most, "the kernel's limit (threads-max)"))
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_NPROC)[0]
        if most != resource.RLIM_INFINITY and os.geteuid():  # this limit does not bind root
            found.append((most, "this user's limit (ulimit -u)"))
    found += [(most, "the limit of this container or job (pids.max)") for most in _groups()]
    return max(min(found)[0], 1), min(found)[1]


def _groups() -> list[int]:
    """Return the limits of the control groups that this process is in."""
    try:
        lines = Path("/proc/self/cgroup").read_text("utf-8").splitlines()
    except OSError:
        return []
    found = []
    for _, kinds, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if kinds in ("", "pids"):
            top = Path("/sys/fs/cgroup") / kinds
            at = top / path.lstrip("/")
            found += [_number(folder / "pids.max") for folder in (at, *at.parents) if folder.is_relative_to(top)]
    return [most for most in found if most is not None]


def _number(path: Path) -> int | None:
    """Return the number in a file, None if it cannot be read or holds none."""
    try:
        return int(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
