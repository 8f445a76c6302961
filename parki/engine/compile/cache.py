"""Folder of compiled objects: find, publish, repair, list, prune, clear.

An entry is a folder ``<cache>/v1/<first two hex digits>/<key>/`` with ``kernel.cpp``, ``kernel.so``, ``l0.py``,
``log.txt`` and ``meta.json``; for GPUs ``kernel.cu`` and ``kernel.cubin``, or ``kernel.hip`` and ``kernel.hsaco``.  An
entry appears by one rename of a finished folder, so it is whole or absent, even if processes race or die.  Sealed
files, of operators and translations, begin with a digest of their content.  A folder that others may write to is not
used (`parki.engine.compile.trust`): objects get executed.
"""

import contextlib
import hashlib
import json
import logging
import os
import shutil
import stat
import tempfile
import threading
import time
import uuid
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import platformdirs

from parki.engine import config
from parki.engine.compile import locks, trust, writing

FORMAT = "v1"
OBJECT, META = "kernel.so", "meta.json"
# folders: answers of compilers, operators of fast multipole methods, translated kernels
PROBES, TABLES, TRANSLATIONS = "probes", "tables", "translations"
DIGEST = 64  # bytes of the digest at the start of a sealed file
STALE_WORK = 60 * 60.0  # seconds after which a working folder counts as abandoned

log = logging.getLogger(config.LOGGER)
_usable: dict[Path, Path] = {}  # folder asked for → folder written to
_trusted: dict[Path, bool] = {}  # folder asked for → whether it may be read
_checked: dict[Path, tuple[int, int, int]] = {}  # object → its size, mtime, inode when it was checked in this process


@dataclass(frozen=True)
class Entry:
    """A compiled kernel in the cache: `size` in bytes (all its files), `time` of last use in seconds since 1970."""

    key: str
    label: str
    size: int
    time: float
    path: Path


def configured() -> Path:
    """Return the folder asked for: ``PARKI_CACHE_DIR``, else ``PARKI_CACHE``, else the system's for a user's caches."""
    path = os.environ.get(config.CACHE_DIR) or os.environ.get(config.CACHE)
    return Path(path).expanduser().absolute() if path else Path(platformdirs.user_cache_dir(config.NAME))


def folder() -> Path:
    """Return the folder to write objects to: the configured one or, with one warning, a temporary one."""
    path = configured()
    if path not in _usable:
        fault = trust.fault(path)
        reason = f"is not used: {fault}"
        if fault is None:
            try:
                _try_writing(path)
                _usable[path] = path
                return path
            except OSError as error:
                reason = f"cannot be written ({error.strerror or error})"
        _usable[path] = fallback = _temporary()
        text = (
            f"The cache folder {path} {reason}; compiled kernels go to {fallback}. "
            f"Set {config.CACHE_DIR} to a folder of yours that only you may write to."
        )
        log.warning(text)
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    return _usable[path]


def shelf() -> Path:
    """Return the folder to search first: the configured one, even if read-only, unless others may write to it."""
    path = configured()
    if path not in _trusted and os.path.exists(path):
        _trusted[path] = trust.fault(path) is None
    return path if _trusted.get(path, True) else folder()


def _try_writing(path: Path) -> None:
    """Raise OSError unless a file can be made below `path`; access bits say nothing for root or on network disks."""
    _make_folder(path / FORMAT)
    with tempfile.TemporaryFile(dir=path / FORMAT):
        pass


def _make_folder(path: Path) -> None:
    """Make a folder and its parents; none is open to the writes of others, whatever the process's mask says."""
    for ancestor in reversed([p for p in (path, *path.parents) if not p.exists()]):
        ancestor.mkdir(mode=0o755, exist_ok=True)


def write(path: Path, content: str | bytes) -> None:
    """Write a whole file of the cache, text as UTF-8; if that fails with OSError, write nothing."""
    _make_folder(path.parent)
    with writing.replacing(path) as work:
        work.write_bytes(content.encode() if isinstance(content, str) else content)
        trust.close(work)


def write_sealed(path: Path, content: bytes) -> None:
    """Write a file of the cache with a digest of its content; where nothing can be written, log that."""
    try:
        write(path, hashlib.blake2b(content).digest() + content)
    except OSError as error:
        log.info("%s was not kept: %s", path, error)


def read_sealed(path: Path) -> bytes | None:
    """Return the content of a file that `write_sealed` wrote, None if it is missing, damaged or not to be trusted."""
    try:
        content = trust.read(path)
    except OSError:
        return None
    return content[DIGEST:] if hashlib.blake2b(content[DIGEST:]).digest() == content[:DIGEST] else None


def _temporary() -> Path:
    """Return a folder in the system's temporary one, with a fixed name so that later processes find the objects.

    Objects get executed, so the folder must be this user's alone; if somebody else made it first, a fresh one is made.
    """
    path = Path(tempfile.gettempdir()) / f"{config.NAME}-{os.getuid() if hasattr(os, 'getuid') else 'cache'}"
    with contextlib.suppress(OSError):
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.lstat()
        private = os.name == "nt" or (status.st_uid == os.getuid() and not status.st_mode & 0o077)
        if stat.S_ISDIR(status.st_mode) and private and trust.fault(path) is None:
            _try_writing(path)
            return path
    return Path(tempfile.mkdtemp(prefix=f"{config.NAME}-"))


def _roots() -> list[Path]:
    """Return the folders that may hold objects; a read-only configured folder still serves its objects."""
    first = shelf()
    return list(dict.fromkeys([first, _usable.get(configured(), first)]))


def _home(root: Path, key: str) -> Path:
    return root / FORMAT / key[:2] / key


def find(key: str, name: str = OBJECT) -> Path | None:
    """Return the path of the sound object with this key, else None; size and hash are checked once per process.

    Here and below `name` is the name of the object's file.
    """
    home = _home(shelf(), key)
    if not _sound(home / name):
        # The folder is asked for only now, so that a read-only cache that has the object is used without a warning.
        home = _home(folder(), key)
        if not _sound(home / name):
            return None
    return home / name


def _sound(path: Path) -> bool:
    try:
        status = path.stat()
        stamp = (status.st_size, status.st_mtime_ns, status.st_ino)
        if _checked.get(path) == stamp:
            return True
        with opened(path):
            _checked[path] = stamp
    except OSError:
        return False
    with contextlib.suppress(OSError):
        os.utime(path.with_name(META))  # the time of last use, by which `prune` goes
    return True


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open an object of the cache, at its beginning, after checks of its owner, size and hash.

    Raises
    ------
    OSError
        If the object is somebody else's, damaged, or another entry's.
    """
    with open(trust.opened(path), "rb") as file:
        try:
            meta = json.loads(trust.read(path.with_name(META)))
            record = meta["key"], meta["size"], meta["sha256"]
        except (ValueError, KeyError, TypeError) as error:
            raise OSError(f"{path.with_name(META)} is damaged ({error!r})") from error
        data = file.read()
        if record != (path.parent.name, len(data), hashlib.sha256(data).hexdigest()):
            raise OSError(f"{path} does not match its {META}: it is damaged, or the folder of another entry")
        file.seek(0)
        yield file


def discard_damaged(key: str, name: str = OBJECT) -> None:
    """Remove the entry with this key if it is damaged, and log the removal; to be called inside `building`."""
    for root in _roots():
        home = _home(root, key)
        if home.exists() and not _sound(home / name):
            log.warning("%s is not what its meta.json says (damaged): it is removed and built again", home / name)
            _remove(home)


def _remove(path: Path) -> None:
    """Remove a file or a folder; the rename comes first, so that no process sees half a folder."""
    trash = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with contextlib.suppress(OSError):
        if not path.is_dir():
            path.unlink()
            return
        os.rename(path, trash)
        shutil.rmtree(trash, ignore_errors=True)


def discard(path: Path) -> None:
    """Remove the entry of this object."""
    _remove(path.parent)


@contextlib.contextmanager
def building(key: str, stop: threading.Event, name: str = OBJECT) -> Iterator[None]:
    """Hold the right to build `key`, so that racing processes compile once: `locks.held`.

    The body must look again with `find`: waiting ends early when another process has published the object.
    """
    marker = _home(folder(), key).with_name(f"{key}.lock")
    _make_folder(marker.parent)
    with locks.held(marker, stop, lambda: find(key, name)):
        yield


@contextlib.contextmanager
def workspace(key: str) -> Iterator[Path]:
    """Yield an empty folder beside the entry's place, on the same file system; its remains are removed at the end."""
    shard = _home(folder(), key).parent
    _make_folder(shard)
    _sweep(shard)
    work = shard / f".{key}.{uuid.uuid4().hex}"
    work.mkdir()
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _sweep(shard: Path) -> None:
    """Remove working folders that a killed process left behind."""
    for path in shard.glob(".*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > STALE_WORK:
                shutil.rmtree(path, ignore_errors=True)


def publish(key: str, work: Path, meta: dict[str, Any], name: str = OBJECT) -> Path:
    """Move the finished folder `work` to its place and return the object's path; a faster process's object wins."""
    data = (work / name).read_bytes()
    meta = meta | {"key": key, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (work / META).write_text(json.dumps(meta, indent=1), "utf-8")
    for path in (work, *work.iterdir()):
        trust.close(path)
    home = _home(folder(), key)
    for last in (False, True):
        try:
            os.rename(work, home)
            break
        except OSError:
            if _sound(home / name):
                break
            if last or not home.exists():
                raise
            _remove(home)
    return home / name


def keep_failure(key: str, work: Path) -> Path:
    """Move the folder of a failed build out of the way of `find`, for people to read, and return its path."""
    place = folder() / FORMAT / "failed" / key
    _make_folder(place.parent)
    _remove(place)
    with contextlib.suppress(OSError):  # another process failed alike in this instant: its folder holds the same
        os.rename(work, place)
    return place


def entries() -> list[Entry]:
    """Return the compiled kernels in the cache, the least recently used first."""
    result = []
    for home in (path for root in _roots() for path in root.glob(f"{FORMAT}/[0-9a-f][0-9a-f]/[0-9a-f]*/")):
        label, meta = home.name, home / META
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            label = str(json.loads(meta.read_text("utf-8"))["label"])
        with contextlib.suppress(OSError):  # a damaged entry is listed too: it takes room; one just removed is not
            time_of_use = (meta if meta.exists() else home).stat().st_mtime
            result.append(Entry(home.name, label, _bytes(home), time_of_use, home))
    return sorted(result, key=lambda entry: (entry.time, entry.key))


def _bytes(path: Path) -> int:
    total = 0
    for base, _, files in os.walk(path):
        for file in files:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(base, file)).st_size
    return total


def size() -> int:
    """Return the bytes of everything in the cache: objects, sources, logs of failed builds."""
    return sum(_bytes(root / FORMAT) for root in _roots())


def prune(max_age_days: float | None = None, max_bytes: int | None = None) -> list[Entry]:
    """Remove kernels not used for `max_age_days`, then the least recently used until at most `max_bytes` are left.

    Logs of failed builds, translations and abandoned working folders go by age too.  Returns the entries removed.
    """
    time_now, remaining, removed = time.time(), entries(), []
    if max_age_days is not None:
        removed = [entry for entry in remaining if time_now - entry.time > max_age_days * 86400.0]
        names = ("failed", TRANSLATIONS)
        for path in (path for root in _roots() for name in names for path in root.glob(f"{FORMAT}/{name}/*")):
            with contextlib.suppress(OSError):
                if time_now - path.stat().st_mtime > max_age_days * 86400.0:
                    _remove(path)
    remaining = [entry for entry in remaining if entry not in removed]
    if max_bytes is not None:
        total = sum(entry.size for entry in remaining)
        while remaining and total > max_bytes:
            removed.append(remaining.pop(0))
            total -= removed[-1].size
    for entry in removed:
        _remove(entry.path)
    for shard in (path for root in _roots() for path in root.glob(f"{FORMAT}/*/")):
        _sweep(shard)
    return removed


def clear() -> list[Entry]:
    """Remove kernels, translations, tables, logs of failed builds and answers of compilers; no build in progress."""
    removed = prune(max_age_days=-1.0)
    for root in _roots():
        for name in (PROBES, TABLES, TRANSLATIONS):
            shutil.rmtree(root / FORMAT / name, ignore_errors=True)
    return removed
