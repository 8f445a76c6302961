"""A cache for each tree: compiled objects are shared, tables and results of tuning are not.

The key of an object hashes its text, flags and compiler, so that trees with equal texts may share it.  Tables of
operators are kept by their question, and would hide a change of how they are made.
"""

import os
from collections.abc import Iterable
from pathlib import Path

FORMAT = "v1"
COMPILERS = "probes"  # folder of the answers of compilers


def shelves() -> Iterable[str]:
    """Return the names of the folders of objects: the first two hexadecimal digits of their keys."""
    return (f"{number:02x}" for number in range(256))


def prepare(folder: Path, objects: Path) -> dict[str, str]:
    """Make a cache in an empty folder that takes its objects from another cache; return the variables that name it."""
    inside = folder / FORMAT
    inside.mkdir(parents=True, mode=0o755)
    for name in (*shelves(), COMPILERS):
        shared = objects / FORMAT / name
        shared.mkdir(parents=True, exist_ok=True, mode=0o755)
        (inside / name).symlink_to(shared, target_is_directory=True)
    return {"PARKI_CACHE_DIR": str(folder)}


def usual() -> Path:
    """Return the folder of the usual cache of compiled objects."""
    asked = os.environ.get("PARKI_CACHE_DIR") or os.environ.get("PARKI_CACHE")
    if asked:
        return Path(asked).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("parki"))
