"""Facts that a record keeps: the machine, the software, and the load of the machine."""

import os
import subprocess
from pathlib import Path

import parki
from parki import prediction
from parki.engine import Space, toolchains
from parki.perfmodels import machine
from parki.perfmodels.bench import command
from parki.perfmodels.bench.measure import Row

CODE = "parki", "kernels", "perfmodels", "pyproject.toml"


def hardware(space: Space) -> Row:
    """Return the facts of `perfmodels.bench.command.machine`, and the bytes of memory if the system tells them."""
    found = command.machine(space)
    if hasattr(os, "sysconf") and {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= os.sysconf_names.keys():
        found["memory"] = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return found


def software() -> Row:
    """Return versions, compiler flags, the commit of a checkout, and the source of the rates that plans choose by."""
    found = command.versions() | {"flags": " ".join(toolchains()[0][1].flags), "rates": _rates()}
    if known := commit(Path(parki.__file__).parents[1]):
        found["commit"] = known
    return found


def commit(root: Path) -> str | None:
    """Return the commit of a checkout, with ``-dirty`` if its code differs from it; None for anything else."""
    if not (root / ".git").exists():
        return None
    try:
        head = _git(root, "rev-parse", "HEAD")
        return head + "-dirty" * bool(_git(root, "status", "--porcelain", "--", *CODE))
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True).stdout.strip()


def load() -> list[float] | None:
    """Return the mean numbers of programs that ran or waited over 1, 5 and 15 minutes; None if unknown."""
    return [round(value, 2) for value in os.getloadavg()] if hasattr(os, "getloadavg") else None


def _rates() -> str:
    if not machine.ignored() and machine.calibrated(prediction.built()):
        return "measured by parki calibrate"
    return "those of a common core"
