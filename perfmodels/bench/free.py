"""Free-space sums against FMM3D at the same measured error: `parki bench free`, `treecode-free` and `fmm-free`.

Sources are uniform and random in a cube, and are the targets.  Whole calls are timed, parki's with all work of a first
call but compiling, with the same number of threads.  The tolerance asked of parki is the largest tried at which its
error is at most FMM3D's.
"""

import argparse
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np
from threadpoolctl import threadpool_limits

import parki
from parki import samples
from parki.arrays import Array
from parki.direct import direct_sum
from parki.engine import Space, workers
from parki.pairs import find
from parki.perfmodels.bench.measure import Row, absent, clock, require_host, row, turns

ABSENT = "against FMM3D", "pip install fmm3dpy"
SAMPLE, TREE_SAMPLE = 100, 500  # targets at which errors are measured, of Ewald sums and of sums over trees
PRECISIONS = {"laplace": (1e-2, 1e-8), "stokes_sl": (1e-3, 1e-6, 1e-9)}  # asked of FMM3D beside Ewald sums
ASKED = (1e-2, 1e-6, 1e-9)  # asked of FMM3D beside sums over trees; its errors are smaller: 3e-5, 3e-8, 2e-11
LOOSE, STEP = 8.0, 0.7  # first tolerance tried, over FMM3D's error; each next one over the last
LEAST_ERROR = 1e-11  # smallest error that is asked of parki: FMM3D sums few points directly
FINEST = 1e-13  # all tolerances that are tried are larger


@dataclass(frozen=True)
class Ours:
    """A sum that is compared with FMM3D's: name, kernel, and a function (points, strengths, tolerance, space).

    `kernel` is one that `theirs` takes; strengths are (n,), or (3, n) of forces.
    """

    name: str
    kernel: str
    sum: Callable[[np.ndarray, np.ndarray, float, Space], np.ndarray]


def free_space(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time whole calls of Ewald sums in free space against FMM3D."""
    if (fmm := library()) is None:
        return [absent(*ABSENT)]
    rng = np.random.default_rng(0)
    x = rng.random((3, args.n))
    sample = rng.choice(args.n, min(SAMPLE, args.n), replace=False)
    rows: list[Row] = []
    for kernel, precisions in PRECISIONS.items():
        dens = rng.standard_normal(args.n) if kernel == "laplace" else rng.standard_normal((3, args.n))
        rows += _compared(fmm, _ewald(kernel), (x, dens), sample, precisions, space, args.repeat)
    return rows


def _ewald(kernel: str) -> Ours:
    def summed(x: np.ndarray, dens: np.ndarray, tolerance: float, space: Space) -> np.ndarray:
        options = {"periodicity": 0, "box": (1, 1, 1), "tolerance": tolerance, "execution_space": space}
        return getattr(parki.ewald, kernel)(x, x, dens, **options)

    return Ours("parki", kernel, summed)


def over_trees(args: argparse.Namespace, space: Space, sums: Sequence[Ours]) -> list[Row]:
    """Time whole calls of sums over trees against FMM3D.

    Without fmm3dpy the only row says how to install it.

    Raises
    ------
    ValueError
        For a space that is not on the host.
    RuntimeError
        If FMM3D and the direct sum disagree, or if parki reaches FMM3D's error with no tolerance.
    """
    require_host(space)
    if (fmm := library()) is None:
        return [absent(*ABSENT)]
    sample = np.random.default_rng(0).permutation(args.n)[:TREE_SAMPLE]
    x, rows = samples.uniform(args.n, seed=1), []
    for own_sum in sums:
        components = find(own_sum.kernel).dens
        q = samples.charges(components * args.n, seed=2)
        cloud_ = x, q if components == 1 else q.reshape(components, -1)
        rows += _compared(fmm, own_sum, cloud_, sample, ASKED, space, args.repeat)
    return rows


def _compared(
    fmm: ModuleType, own_sum: Ours, cloud_: tuple[Array, Array], sample: Array, precisions: Sequence[float],
    space: Space, repeat: int,
) -> list[Row]:  # fmt: skip
    """Return two rows for each precision that is asked of FMM3D: its own, and parki's at the same error."""
    x, q = cloud_
    exact, rows = direct_sum(own_sum.kernel, x[:, sample], x, q, execution_space=space), []

    def error(u: Array) -> float:
        return float(np.linalg.norm(u[..., sample] - exact) / np.linalg.norm(exact))

    with threadpool_limits(workers(space), user_api="openmp"):
        for eps in precisions:
            target = error(theirs(fmm, own_sum.kernel, x, q, eps))
            if target > 10 * eps:
                raise RuntimeError(f"FMM3D and the direct sum of {own_sum.kernel} differ by {target:.1e}")
            tolerance, error_reached = reaching(lambda t: error(own_sum.sum(x, q, t, space)), max(target, LEAST_ERROR))
            measures = [clock(lambda e=eps: theirs(fmm, own_sum.kernel, x, q, e))]
            measures.append(clock(lambda t=tolerance: own_sum.sum(x, q, t, space)))
            times = turns(measures, repeat, warm=False)
            n = x.shape[1]
            details = {"n": n, "tolerance": eps, "threads": workers(space)}
            name = f"{own_sum.kernel}, N = {n:,}, eps {eps:g}"
            rows.append(row(f"{name}: FMM3D", times[0], n / 1e6, "M particles", error=target, **details))
            details |= {"error": error_reached, "asked": tolerance}
            rows.append(row(f"{name}: {own_sum.name}", times[1], n / 1e6, "M particles", rows[-1], **details))
    return rows


def reaching(error: Callable[[float], float], target: float) -> tuple[float, float]:
    """Return the largest tolerance tried at which the error is at most `target`, and that error.

    Raises
    ------
    RuntimeError
        If no tolerance reaches `target`.
    """
    tolerance = min(LOOSE * target, 0.5)
    while tolerance > FINEST:
        if (value := error(tolerance)) <= target:
            return tolerance, value
        tolerance *= STEP
    raise RuntimeError(f"no tolerance down to {FINEST:g} reaches the error {target:.1e}")


def library() -> ModuleType | None:
    """Return FMM3D's module, None where it is not installed."""
    try:
        return importlib.import_module("fmm3dpy")
    except ImportError:
        return None


def theirs(fmm: ModuleType, kernel: str, x: Array, dens: Array, eps: float) -> Array:
    """Return FMM3D's free-space sum of ``"laplace"`` (or ``"coulomb"``) or ``"stokes_sl"``, normalised as in parki."""
    if kernel in ("laplace", "coulomb"):
        return 4 * np.pi * fmm.lfmm3d(eps=eps, sources=x, charges=dens, pg=1).pot
    return 8 * np.pi * fmm.stfmm3d(eps=eps, sources=x, stoklet=dens, ifppreg=1).pot
