"""Pair files of one's own, each at one place for all tests, workers and runs, so that it is compiled once."""

import hashlib
import os
import tempfile
from pathlib import Path

TEXT = '''"""A pair of one's own."""

from typing import List

import pykokkos as pk

real = pk.double
NS = {sources}
NU = {results}
NF = 1
{slots}

@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add one source."""
{body}
'''


def text(*lines, sources=1, results=1, slots=""):
    """Return the text of a pair that has these lines, numbers of a source and of a target."""
    body = "\n".join(f"    {line}" for line in lines)
    return TEXT.format(sources=sources, results=results, slots=f"{slots}\n" if slots else "", body=body)


def file(*lines, **options):
    """Return the path of a file with this text; its folder is named after the text."""
    content = text(*lines, **options)
    name = hashlib.blake2b(content.encode(), digest_size=8).hexdigest()
    path = Path(tempfile.gettempdir()) / f"parki-tests-{os.getuid()}" / name / "own.py"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        work = path.with_name(f".{os.getpid()}")
        work.write_text(content, "utf-8")
        work.replace(path)
    return path
