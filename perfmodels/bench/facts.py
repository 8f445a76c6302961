"""Facts that records keep: the machine, the software, and the load of the machine."""

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

import parki
from parki import prediction
from parki.engine import Space, cpus, devices, target, toolchains
from parki.perfmodels.bench.measure import Row
from parki.perfmodels.machine import calibrated, ignored

LIBRARIES = ("numpy", "scipy", "finufft", "fmm3dpy", "openmm", "torch-pme", "torch", "vesin", "ducc0", "mkl-fft")
CODE = "parki", "kernels", "perfmodels", "pyproject.toml"


def machine(space: Space | None = None) -> Row:
    """Return a description of the machine on which the figures were measured."""
    build = target()
    result = {
        "processor": processor(),
        "cores": cpus(),
        "arch": build.resolved,
        "bytes": build.vector_bytes,
        "system": platform.platform(terse=True),
    }
    if space is not None and space.kind == "device" and (device := devices.current()):
        result |= {"device": device.name, "driver": device.driver}
    return result


def processor() -> str:
    """Return the processor's name as its maker has it, else the name of its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        if platform.system() != "Darwin":
            return platform.processor() or platform.machine()
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        lines = [f"model name: {subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()}"]
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(filter(None, names), platform.machine())


def versions() -> Row:
    """Return the versions of parki, Python, the compiler, and the installed libraries to compare with."""
    result = {"parki": parki.__version__, "python": platform.python_version(), "compiler": toolchains()[0][0].version}
    for name in LIBRARIES:
        try:
            result[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return result


def hardware(space: Space) -> Row:
    """Return the facts of `machine`, and the bytes of memory if the system tells them."""
    result = machine(space)
    if hasattr(os, "sysconf") and {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= os.sysconf_names.keys():
        result["memory"] = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return result


def software() -> Row:
    """Return versions, compiler flags, the commit of a checkout, and the source of the rates that plans choose by."""
    result = versions() | {"flags": " ".join(toolchains()[0][1].flags), "rates": _rates()}
    if revision := commit(Path(parki.__file__).parents[1]):
        result["commit"] = revision
    return result


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
    if not ignored() and calibrated(prediction.built()):
        return "measured by parki calibrate"
    return "those of a common core"
