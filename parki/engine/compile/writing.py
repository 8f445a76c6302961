"""Whole files: written beside their place, flushed to the disk, and renamed."""

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: Path, start: bool = False) -> Iterator[Path]:
    """Yield the name of a file to write, which takes the place of `path` at the end of a body that raises nothing.

    Parameters
    ----------
    path : Path
        A link is followed, and access bits stay.  A pipe, as ``/dev/stdout`` may be one, is written to as it is.
    start : bool
        Whether the body finds a copy of the old file, where there is one.

    Raises
    ------
    OSError
        If the body or the system cannot write; the error names `path`, which is then unchanged.
    """
    with _named(path):
        place = Path(os.path.realpath(path))
        exists = place.exists()
        if exists and not place.is_file():
            yield place
            return
        # Libraries read the format off the suffix.
        work = place.with_name(f".{uuid.uuid4().hex}{place.suffix}")
        try:
            if exists and start:
                shutil.copyfile(place, work)
            yield work
            if exists:
                shutil.copymode(place, work)
            with work.open("rb+") as file:
                os.fsync(file.fileno())
            os.replace(work, place)
        finally:
            work.unlink(missing_ok=True)


def write(path: Path, content: str | bytes) -> None:
    """Write a whole file, text as UTF-8, or nothing if that fails; missing folders above are made.

    Raises
    ------
    OSError
        As `replacing`.
    """
    with _named(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as work:
        work.write_bytes(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Make errors of the system name `path`, not the file beside it."""
    try:
        yield
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror or error}"
        failure = OSError(message) if error.errno is None else OSError(error.errno, message)
        failure.__notes__ = getattr(error, "__notes__", [])
        raise failure from error
