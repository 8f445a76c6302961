"""`parki bench`: kernels and whole sums, measured in one run with the codes that they are compared with."""

import argparse
import datetime
import importlib.metadata
import platform
import statistics
import subprocess
from pathlib import Path

import parki
from parki.engine import Space, cpus, devices, target, toolchains, workers
from parki.perfmodels.bench import (
    clusters,
    compare,
    fmm,
    handwritten,
    kernels,
    methods,
    models,
    peers,
    plans,
    plot,
    sums,
    treecode,
)
from parki.perfmodels.bench.measure import Row, asked_space, table

LIBRARIES = ("numpy", "scipy", "finufft", "fmm3dpy", "openmm", "torch-pme", "torch", "vesin", "ducc0", "mkl-fft")

BENCHMARKS = {
    "p2p": kernels.p2p,
    "p2g": kernels.p2g,
    "g2p": kernels.g2p,
    "fft": kernels.transforms,
    "variants": kernels.compare_variants,
    "ewald": sums.ewald,
    "scaling": sums.scaling,
    "tolerance": sums.tolerances,
    "split": sums.splits,
    "precision": sums.precisions,
    "crowds": sums.crowds,
    "free": sums.free_space,
    "peers": peers.peers,
    "model": models.predictions,
    "selection": models.selections,
    "roofline": lambda asked, space: models.rooflines(asked, space) + clusters.rooflines(asked, space),
    "treecode": treecode.treecode,
    "treecode-scaling": treecode.scaling,
    "treecode-leaves": treecode.leaves,
    "treecode-free": treecode.against_fmm,
    "treecode-model": clusters.predictions,
    "fmm": fmm.sums,
    "fmm-leaves": fmm.leaves,
    "fmm-free": fmm.against_fmm,
    "fmm-model": fmm.predictions,
    "plans": plans.plans,
    "accuracy": methods.accuracy,
    "growth": methods.growth,
    "phases": methods.phases,
    "threads": methods.threads,
}
#: Tables of the benchmarks whose rows are not printed one a line.
TABLES = {
    "model": models.predictions_table,
    "selection": models.selections_table,
    "roofline": models.rooflines_table,
    "treecode": treecode.table,
    "treecode-scaling": treecode.scaling_table,
    "treecode-leaves": treecode.leaves_table,
    "treecode-model": clusters.predictions_table,
    "fmm": fmm.table,
    "fmm-leaves": fmm.leaves_table,
    "fmm-model": fmm.predictions_table,
    "plans": plans.table,
}
METHODS = ("accuracy", "growth", "phases", "threads")  # benchmarks that take --only
REPORT = {"--set": "named_set", "--resume": "resume", "--from": "source", "-o": "output"}  # options of `report` alone
N, FEWER = 100_000, {"model": 30_000, "selection": 30_000}  # particles where no --n is given


def main(asked: argparse.Namespace) -> int:
    """Run one benchmark and print its table; append it to a file, compare it with one, draw it, if asked.

    Returns
    -------
    int
        1 if `asked.compare` is a file and a row is slower than there, beyond noise, else 0.

    Raises
    ------
    ValueError
        For options of other benchmarks, and for files that cannot be used as asked, before anything is measured.
    """
    _refuse(asked)
    asked.n = asked.n or FEWER.get(asked.name, N)
    space = asked_space(asked)
    given = question(asked, space)
    if asked.plot:
        plot.check(asked.plot)
    if asked.json and asked.json.exists():
        compare.read(asked.json)
    old = compare.newest(compare.read(asked.compare), asked.name, given) if asked.compare else None
    record = {
        "benchmark": asked.name,
        "command": command(asked),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "asked": given,
        "machine": machine(space),
        "versions": versions(),
    }
    yard = [statistics.median(handwritten.yardstick())]
    rows = [r if "absent" in r else given_row(r, given) for r in BENCHMARKS[asked.name](asked, space)]
    record |= {"yardstick": [*yard, statistics.median(handwritten.yardstick())], "rows": rows}
    print(TABLES.get(asked.name, table)(rows))  # noqa: T201
    if asked.json:
        compare.append(asked.json, record)
    if asked.plot:
        plot.draw(record, asked.plot)
    if old is None:
        return 0
    found = compare.compare(old, record)
    print(f"\n{found}")  # noqa: T201
    return 1 if found.slower else 0


def _refuse(asked: argparse.Namespace) -> None:
    """Raise ValueError for options of other benchmarks, which would have no effect."""
    for flag, name in REPORT.items():
        if getattr(asked, name, None) is not None:
            raise ValueError(f"{flag} was given with {asked.name}; expected parki bench report {flag}.")
    if getattr(asked, "only", None) and asked.name not in METHODS:
        raise ValueError(f"--only was given with {asked.name}; expected one of report, {', '.join(METHODS)}.")


def question(asked: argparse.Namespace, space: Space) -> Row:
    """Return the settings asked for, with the threads and the space that None stands for."""
    threads = workers(space)
    chosen = {"n": asked.n, "tolerance": asked.tolerance, "threads": threads, "space": space.name}
    return chosen | {"repeat": asked.repeat}


def given_row(r: Row, given: Row) -> Row:
    """Return a row with the n, tolerance and threads that were asked for, unless the row has its own."""
    return {name: given[name] for name in ("n", "tolerance", "threads")} | r


def command(asked: argparse.Namespace) -> str:
    """Return the command that measures this again."""
    words = [
        "parki bench",
        asked.name,
        f"--n {asked.n}",
        f"--repeat {asked.repeat}",
        f"--tolerance {asked.tolerance:g}",
    ]
    words += [f"--{name} {getattr(asked, name)}" for name in ("space", "threads") if getattr(asked, name)]
    words += [f"--only {' '.join(asked.only)}"] if getattr(asked, "only", None) else []
    return " ".join(words)


def machine(space: Space | None = None) -> Row:
    """Return a description of the machine on which the figures were measured."""
    made = target()
    found = {
        "processor": processor(),
        "cores": cpus(),
        "arch": made.resolved,
        "bytes": made.vector_bytes,
        "system": platform.platform(terse=True),
    }
    if space is not None and space.kind == "device" and (device := devices.current()):
        found |= {"device": device.name, "driver": device.driver}
    return found


def processor() -> str:
    """Return the processor's name as its maker has it, else the name of its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        if platform.system() != "Darwin":
            return platform.processor() or platform.machine()
        asked = ["sysctl", "-n", "machdep.cpu.brand_string"]
        lines = [f"model name: {subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()}"]
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(filter(None, names), platform.machine())


def versions() -> Row:
    """Return the versions of parki, Python, the compiler, and the installed libraries to compare with."""
    found = {"parki": parki.__version__, "python": platform.python_version(), "compiler": toolchains()[0][0].version}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
