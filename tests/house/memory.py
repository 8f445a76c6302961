"""Peak memory of `move` in both trees.

Each of the two figures misses something: the resident set counts all memory, that of compiled code and of libraries
included, but not memory that the process had freed and kept; NumPy's allocations, by tracemalloc, repeat exactly, but
leave out the rest.
"""

import contextlib
import ctypes
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.house.cases import Case
from tests.house.inputs import Inputs

PROCESS = Path("/proc/self")
PEAK_RESET = "5"  # value for clear_refs that resets the high-water mark to the resident memory


@dataclass(frozen=True)
class Peaks:
    """Bytes above those before `move`: resident ones, and NumPy's; None if the system does not tell."""

    resident: int | None
    numpy: int


def cases() -> list[Case]:
    """Return one case for each method."""
    box = {"box": (1.0, 1.0, 1.0)}
    n = 100_000
    ewald = [Case("ewald", kernel, n=n, options=box | {"tolerance": 1e-7}) for kernel in ("laplace", "stokes_comb")]
    trees = [Case(method, "coulomb", n=n, options={"tolerance": 1e-5}) for method in ("bldtt", "pc", "cp", "kifmm")]
    return [*ewald, *trees, Case("chebyshev", "coulomb", n=n, options={"tolerance": 1e-4})]


def peaks(case: Case) -> Peaks:
    """Return the peaks of a move of a plan that has been called and moved before."""
    from tests.house import calls

    given = Inputs(case)
    places, density, normals = [given.points() for _ in range(3)], given.density(), given.normals()
    plan = calls.plan(case, given, places[0])
    plan(density, *normals)
    resident = _resident(lambda: calls.move(plan, *places[1]))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        calls.move(plan, *places[2])
        return Peaks(resident, tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()


def _resident(action: Callable[[], None]) -> int | None:
    try:
        _give_back()
        (PROCESS / "clear_refs").write_text(PEAK_RESET)
        before = _status("VmRSS")
    except OSError:
        action()
        return None
    action()
    return max(0, _status("VmHWM") - before)


def _give_back() -> None:
    """Return freed memory to the system if the C library can, so that taking it again counts."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _status(name: str) -> int:
    lines = (PROCESS / "status").read_text("utf-8").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))
