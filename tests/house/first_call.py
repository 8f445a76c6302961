"""First calls on an empty cache: wall time against the time that compilers need on all cores.

A first call can take no less than the CPU time of its compilations over the number of cores, or than the longest of
them; the sum of both bounds the time of compiling in any order.
"""

import json
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.house.cases import Case
from tests.house.inputs import Inputs
from tests.house.process import ROOT, Tree

try:
    import resource
except ImportError:  # not on Windows
    resource = None


@dataclass(frozen=True)
class FirstCall:
    """Seconds of a first call.

    Attributes
    ----------
    wall
        Wall time of making a plan and calling it, or of a one-shot call, without the import of parki.
    compilers
        CPU time of all processes that the call started.
    longest
        Wall time of the longest compilation.
    objects
        Number of compilations.
    """

    wall: float
    compilers: float
    longest: float
    objects: int

    @property
    def ratio(self) -> float:
        """Wall time over the time of compilers: CPU time per core, plus the longest."""
        return self.wall / (self.compilers / cores() + self.longest)


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cases() -> list[Case]:
    """Return a case of each method."""
    box = {"box": (1.0, 1.0, 1.0), "tolerance": 1e-6}
    ewald = [Case("ewald", kernel, n=2000, options=box) for kernel in ("laplace", "stokes_comb")]
    methods = ("bldtt", "pc", "cp", "kifmm", "chebyshev")
    trees = [Case(method, "coulomb", n=2000, options={"tolerance": 1e-5, "leaf_size": 60}) for method in methods]
    return [*ewald, *trees, Case("direct", "laplace", "once", n=2000)]


def seconds(case: Case) -> tuple[float, float]:
    """Return the wall time of a first call in this process, and the CPU time of the processes that it started."""
    from tests.house import calls

    given = Inputs(case)
    points, density, normals = given.points(), given.density(), given.normals()
    began, before = time.perf_counter(), _children()
    if case.way == "once":
        for _, step in calls.once(case):
            step()
    else:
        calls.plan(case, given, points)(density, *normals)
    return time.perf_counter() - began, _children() - before


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure() -> Iterator[tuple[Case, FirstCall]]:
    """Yield each case and its first call, in a fresh process with an empty cache."""
    for case in cases():
        with tempfile.TemporaryDirectory(prefix="parki-house-") as folder, Tree("new", ROOT, Path(folder)) as tree:
            wall, compilers = tree.ask("first", case)
            metas = [json.loads(path.read_text("utf-8")) for path in Path(folder).rglob("meta.json")]
            longest = max((meta["seconds"] for meta in metas), default=0.0)
            yield case, FirstCall(wall, compilers, longest, len(metas))
