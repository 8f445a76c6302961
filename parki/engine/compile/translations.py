"""Translations of kernels, kept in the cache: a process that finds them does not translate again.

Slots filled, the typed tree, and the text to compile take 50 ms for a kernel, and a sum launches some twenty.  A
translation depends on Python, on the engine's own files, and on what it was made from, its identity.  Files hold
pickled objects of the engine: like compiled objects they are only read where nobody else may write.
"""

import functools
import hashlib
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from parki.engine.compile import cache, jobs

T = TypeVar("T")


@functools.cache
def _translator() -> str:
    """Return a digest of the engine's files and of Python's version, "" if the files cannot be read."""
    hasher = hashlib.blake2b(sys.version.encode(), digest_size=20)
    try:
        for path in sorted(Path(__file__).parents[1].rglob("*.py")):
            hasher.update(path.read_bytes())
    except OSError:
        return ""
    return hasher.hexdigest()


def _place(identity: tuple[str, ...]) -> Path:
    return cache.shelf() / cache.FORMAT / cache.TRANSLATIONS / jobs.digest((_translator(), *identity))


def recall(*identity: str) -> Any:
    """Return the translation that `keep` stored under an identity, None if there is none."""
    content = cache.read_sealed(_place(identity)) if _translator() else None
    return None if content is None else pickle.loads(content)


def keep(translation: Any, *identity: str) -> None:
    """Store a translation under an identity; one that cannot be stored is made anew by the next process."""
    if not _translator():
        return
    try:
        cache.write_sealed(_place(identity), pickle.dumps(translation))
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:  # as for a file in an archive
        cache.log.debug("a translation is not kept: %s", error)


def kept(make: Callable[[], T], *identity: str) -> T:
    """Return the translation of an identity: the stored one, else that of `make`, which is then stored."""
    translation = recall(*identity)
    if translation is None:
        translation = make()
        keep(translation, *identity)
    return translation
