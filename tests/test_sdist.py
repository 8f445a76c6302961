"""Sdist: holds the files that git tracks, and its tests run where it is unpacked."""

import os
import subprocess
import sys

import pytest

from tests import builds

# Files that builds, tests and pages leave in a working tree.
LEFT = (
    "build/lib/parki/cli.py",
    "dist/parki.whl",
    "docs/gallery/index.rst",
    "docs/reference/generated/parki.rst",
    "docs/sg_execution_times.rst",
    "parki/__pycache__/cli.cpython-311.pyc",
    "parki/engine/kernel.so",
    "parki-demo.png",
    "tests/__pycache__/conftest.cpython-311.pyc",
    ".venv/pyvenv.cfg",
)


@pytest.fixture(scope="module")
def unpacked(root, tmp_path_factory):
    """Return the folder of an unpacked sdist that was built beside left-over files of builds and tests."""
    source, dist, place = (tmp_path_factory.mktemp(name) for name in ("source", "dist", "unpacked"))
    builds.copy(root, source)
    for name in LEFT:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("left")
    return builds.unpack(builds.build("sdist", source, dist), place)


def test_sdist_holds_what_git_does(root, unpacked):
    found = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    written = {name for name in found if name in ("PKG-INFO", "setup.cfg") or name.startswith("parki.egg-info/")}
    assert sorted(found - written) == builds.tracked(root)


def test_tests_run_where_the_sdist_is_unpacked(unpacked, tmp_path):
    site = builds.unpack(builds.build("wheel", unpacked, tmp_path), tmp_path / "site")
    environment = os.environ | {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    water = "tests/test_examples.py::test_water_runs_from_any_folder"
    chosen = ["tests/test_packaging.py", "tests/test_sdist.py", water]
    done = subprocess.run(
        [*command, *chosen], cwd=unpacked, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert "no git checkout" in done.stdout  # skips of this very file
