"""Free memory of the host, and a refusal before more than that is asked for.

Systems hand out memory that they do not have, and end the process when it is used.
"""

from collections.abc import Iterator
from pathlib import Path

UNLIMITED = 1 << 60  # bytes: without a limit, version 1 reports one as large as a page number can be
SMALL = 1 << 25  # bytes; smaller requests are not checked
V1 = "memory.limit_in_bytes", "memory.usage_in_bytes", ("total_inactive_file", "total_active_file")
V2 = "memory.max", "memory.current", ("inactive_file", "active_file")


def free(root: Path = Path("/")) -> int | None:
    """Return the bytes that a process may still take, None if the system does not tell.

    The number is the available memory by the kernel, or less if a control group of the process is limited; caches of
    files count as free.  `root` is the folder of ``proc`` and ``sys``.
    """
    limits = [value for value in (_available(root), *_groups(root)) if value is not None]
    return max(min(limits), 0) if limits else None


def require(nbytes: float, purpose: str, advice: str) -> None:
    """Raise if a task needs more memory than is free.

    Parameters
    ----------
    nbytes : float
        Bytes that are about to be taken.
    purpose : str
        The task, as the subject of a sentence.
    advice : str
        A sentence that names the option by which less is needed.

    Raises
    ------
    MemoryError
        Naming the bytes needed and free, and the advice.
    """
    available = free() if nbytes > SMALL else None
    if available is not None and nbytes > available:
        raise MemoryError(f"{purpose} needs about {size(nbytes)}, and {size(available)} are free. {advice}")


def size(count: float) -> str:
    """Return a number of bytes as text, for messages."""
    return f"{count / 1e9:.3g} GB" if count >= 1e9 else f"{count / 1e6:.3g} MB"


def _available(root: Path) -> int | None:
    for line in _lines(f"{root}/proc/meminfo"):
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return 1024 * int(value.split()[0])
    return None


def _groups(root: Path) -> Iterator[int]:
    """Yield the bytes left by the limits of the control groups of the process, and of the groups above them."""
    top = f"{root}/sys/fs/cgroup"
    for line in _lines(f"{root}/proc/self/cgroup"):
        number, controllers, path = line.split(":", 2)
        if number == "0" and not controllers:
            folder, names = top, V2
        elif "memory" in controllers.split(","):
            folder, names = f"{top}/memory", V1
        else:
            continue
        names_above = [name for name in path.split("/") if name]
        for depth in range(len(names_above), -1, -1):  # in a container the outer groups may not be there
            remainder = _left("/".join([folder, *names_above[:depth]]), *names)
            if remainder is not None:
                yield remainder


def _left(folder: str, limit_name: str, usage_name: str, caches: tuple[str, ...]) -> int | None:
    maximum = _number(f"{folder}/{limit_name}")
    usage = None if maximum is None or maximum >= UNLIMITED else _number(f"{folder}/{usage_name}")
    if usage is None:
        return None
    statistics = dict(line.split(None, 1) for line in _lines(f"{folder}/memory.stat"))
    return maximum - usage + sum(int(statistics.get(name, 0)) for name in caches)


def _number(path: str) -> int | None:
    text = "".join(_lines(path))
    return int(text) if text.isdigit() else None


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:  # a path as an object takes as long as the file
            return file.read().splitlines()
    except (OSError, UnicodeDecodeError):
        return []
