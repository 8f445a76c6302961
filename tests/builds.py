"""Sdist and wheel, built without a network from a copy of the files that git tracks."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest


def tracked(root):
    """Return the existing files that git tracks, as paths below `root`; skip outside a checkout."""
    if not (root / ".git").exists() or shutil.which("git") is None:
        pytest.skip("no git checkout")
    done = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)
    return sorted(name for name in done.stdout.split("\0") if name and (root / name).is_file())


def copy(root, place):
    """Copy the files that git tracks."""
    for name in tracked(root):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, place / name)


def build(kind, source, place):
    """Build a folder with setuptools and return the file: `kind` is ``"sdist"`` or ``"wheel"``."""
    code = f"import sys; from setuptools import build_meta; print(build_meta.build_{kind}(sys.argv[1]))"
    command = [sys.executable, "-P", "-W", "error::DeprecationWarning", "-c", code, str(place)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return place / done.stdout.splitlines()[-1]


def unpack(archive, place):
    """Unpack an sdist or a wheel, and return its folder."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as file:
            file.extractall(place)
        return Path(place)
    with tarfile.open(archive) as file:
        file.extractall(place, filter="data")
    (folder,) = place.iterdir()
    return folder
