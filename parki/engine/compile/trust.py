"""Trust in files: objects get executed, so they must be this user's or the system's, and closed to others' writes.

A folder is checked where its links lead, before anything in it.  A file is checked by its open descriptor, so that
renaming a folder above it changes nothing.
"""

import os
import stat
from pathlib import Path

OTHERS = stat.S_IWGRP | stat.S_IWOTH  # bits by which a group and others may write


def fault(folder: Path) -> str | None:
    """Return the reason not to use a folder, None if the folder may be used or does not exist.

    The folder has to belong to this user or the system and be closed to the writes of others.  A folder above it that
    everyone may write to needs the sticky bit, as a folder for temporary files has, against renaming by others.
    """
    place = Path(os.path.realpath(folder))
    try:
        status = place.stat()
    except OSError:  # the folder's users will get this error
        return None
    if (reason := _shared(status)) is not None:
        return reason
    for parent in place.parents:
        mode = parent.stat().st_mode
        if os.name != "nt" and mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return f"everyone may rename what is in {parent}"
    return None


def opened(path: Path) -> int:
    """Open a file to read, and return its descriptor.

    Raises
    ------
    OSError
        If it cannot be read, is no plain file, or is somebody else's or open to the writes of others.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        status = os.fstat(descriptor)
        reason = _shared(status) if stat.S_ISREG(status.st_mode) else "no plain file lies there"
        if reason is not None:
            raise PermissionError(f"{path} is not used: {reason}")
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def read(path: Path) -> bytes:
    """Return the content of a file.

    Raises
    ------
    OSError
        As `opened`.
    """
    with open(opened(path), "rb") as file:
        return file.read()


def close(path: Path) -> None:
    """Take write access to a file from all but its owner."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & OTHERS:
        path.chmod(mode & ~OTHERS)


def _shared(status: os.stat_result) -> str | None:
    """Return the way in which others may write a file or folder, None if they cannot."""
    if os.name == "nt":  # Windows has access lists instead
        return None
    if status.st_uid not in (0, os.geteuid()):
        return f"it belongs to another user, number {status.st_uid}"
    if status.st_mode & OTHERS:
        return f"others may write there (mode {stat.S_IMODE(status.st_mode):o}; chmod go-w ends that)"
    return None
