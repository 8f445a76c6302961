"""Page "Install": lists all extras, and all environment variables that the code reads."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "install.md").read_text("utf-8")


def first_cells():
    return [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("|")]


def listed():
    return {name for cell in first_cells() for name in re.findall(r"`([\w-]+)`", cell)}


def test_every_extra_is_listed():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert extras.keys() <= listed()


def test_variables_of_the_environment():
    files = [path for folder in ("parki", "perfmodels", "kernels") for path in (ROOT / folder).rglob("*.py")]
    read = {name for path in files for name in re.findall(r"PARKI_[A-Z_]*[A-Z]\b", path.read_text("utf-8"))}
    shown = {name for name in listed() if name.startswith("PARKI_")}
    assert shown == read
    assert len(read) > 10
