"""Objects of the cache in this process: loaded from the descriptor that was checked."""

import contextlib
import ctypes
import itertools
import json
import os
import struct
from pathlib import Path
from typing import NoReturn

from parki.engine import config
from parki.engine.compile import cache, trust
from parki.engine.errors import BuildError

OPEN_FILES = "/proc/self/fd"
ELF, SHARED = b"\x7fELF\x02\x01", 3  # beginning of a 64-bit, little-endian object; type of a shared object
PHRASES = (
    "invalid ELF", "file too short", "undefined symbol", "wrong ELF class", "mach-o", "ELF load command",
    "WinError 193",  # no program of this system
)  # fmt: skip
_number = itertools.count()


def load(path: Path, keep: bool = False) -> ctypes.CDLL:
    """Load an object that `cache.find` or a build has returned.

    Parameters
    ----------
    path : Path
    keep : bool
        Whether the descriptor stays open as long as the process lives: sanitizers read names and lines there.

    Raises
    ------
    BuildError
        If the object is not the stored one, or the system does not run it; garbage is removed from the cache.
    """
    try:
        with cache.opened(path) as file:
            try:
                return ctypes.CDLL(_name(os.dup(file.fileno()) if keep else file.fileno(), path))
            except OSError as error:
                reason = str(error).replace(OPEN_FILES, "")
    except OSError as error:
        raise BuildError(f"{_label(path)} cannot be loaded: {error}") from error
    if _noexec(path):
        raise BuildError(
            f"{_label(path)} cannot be loaded: the cache folder {cache.shelf()} is on a file system from which no code "
            f"may be run (noexec). Set {config.CACHE_DIR} to a folder elsewhere."
        )
    if any(phrase in reason for phrase in PHRASES):
        unusable(path, reason)
    raise BuildError(f"{_label(path)} cannot be loaded from {path}: {reason}")


def unusable(path: Path, reason: str) -> NoReturn:
    """Remove an object that its compiler has left unusable, and raise BuildError."""
    label = _label(path)
    cache.discard(path)
    raise BuildError(
        f"the compiler has left no usable object of {label} ({reason}); it has been removed from the cache. Is the "
        "compiler what it says it is (parki doctor), and was there room on the disk?"
    )


def fault(path: Path) -> str | None:
    """Return why a file that a compiler has made cannot be a shared object, None if it may be one."""
    data = path.read_bytes() if path.is_file() else b""
    if not data:
        return "an empty file" if path.is_file() else "no file"
    if os.name == "nt" or not Path(OPEN_FILES).exists():  # other formats: only loading tells
        return None
    if len(data) < 64 or data[:6] != ELF or struct.unpack_from("<H", data, 16)[0] != SHARED:
        return "no shared object"
    (sections,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    return "a shared object that is cut off" if sections + size * count > len(data) else None


def _label(path: Path) -> str:
    """Return the label of an object, for people."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return str(json.loads(trust.read(path.with_name(cache.META)))["label"])
    return path.name


def _name(descriptor: int, path: Path) -> str:
    """Return a new name of an open file: loaders take a known name for the object that it named before."""
    if not Path(OPEN_FILES).exists():
        return str(path)  # its owner and access were checked
    digits = f"{next(_number):b}"
    return f"{OPEN_FILES}/{''.join('./' if digit == '1' else '/' for digit in digits)}{descriptor}"


def _noexec(path: Path) -> bool:
    """Tell whether the file system refuses to run code."""
    return hasattr(os, "ST_NOEXEC") and bool(os.statvfs(path).f_flag & os.ST_NOEXEC)
