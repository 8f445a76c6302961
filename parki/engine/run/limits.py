"""Limits of the system on the threads of this process."""

import contextlib
import functools
import os
from pathlib import Path

MOST = 4096  # threads; OpenMP's runtimes keep data of each on the stack of the thread that starts them


@functools.lru_cache(maxsize=1)
def most_threads() -> tuple[int, str]:
    """Return the most threads that a sum may use, and the source of this limit in words."""
    limits = [(MOST, "which parki takes for the most that serve a sum")]
    if (limit := _number(Path("/proc/sys/kernel/threads-max"))) is not None:
        limits.append((limit, "the kernel's limit (threads-max)"))
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
        if limit != resource.RLIM_INFINITY and os.geteuid():  # this limit does not bind root
            limits.append((limit, "this user's limit (ulimit -u)"))
    limits += [(limit, "the limit of this container or job (pids.max)") for limit in _groups()]
    return max(min(limits)[0], 1), min(limits)[1]


def _groups() -> list[int]:
    """Return the limits of the control groups that this process is in."""
    try:
        lines = Path("/proc/self/cgroup").read_text("utf-8").splitlines()
    except OSError:
        return []
    limits = []
    for _, kinds, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if kinds in ("", "pids"):
            top = Path("/sys/fs/cgroup") / kinds
            folder = top / path.lstrip("/")
            groups = [group for group in (folder, *folder.parents) if group.is_relative_to(top)]
            limits += [_number(group / "pids.max") for group in groups]
    return [limit for limit in limits if limit is not None]


def _number(path: Path) -> int | None:
    """Return the number in a file, None if it cannot be read or holds none."""
    try:
        return int(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
