"""Free-space sums against FMM3D at the same measured error, in one run: `parki bench free`."""

import argparse
import importlib
from collections.abc import Callable, Iterator
from types import ModuleType

import numpy as np
from threadpoolctl import threadpool_limits

import parki
from parki.arrays import Array
from parki.direct import direct_sum
from parki.engine import Space, workers
from parki.perfmodels.bench.measure import clock, turns

ABSENT = "against FMM3D", "pip install fmm3dpy"
SAMPLE = 100  # targets at which errors are measured
PRECISIONS = {"laplace": (1e-2, 1e-8), "stokes_sl": (1e-3, 1e-6, 1e-9)}  # asked of FMM3D
LOOSE, STEP = 8.0, 0.7  # first tolerance tried, over FMM3D's error; each next one over the last
DIRECT = 1e-11  # smallest error that is asked of parki: FMM3D sums few points directly
FINEST = 1e-13  # all tolerances that are tried are larger

Found = tuple[str, float, list[float], float, list[float], float]


def measure(fmm: ModuleType, asked: argparse.Namespace, space: Space) -> Iterator[Found]:
    """Yield the kernel, the eps asked of FMM3D, FMM3D's times and error, and parki's times and error.

    Sources are uniform and random in a cube, and are the targets.  Whole calls are timed, parki's with all work of a
    first call but compiling, with the same number of threads.  The tolerance asked of parki is the largest tried at
    which its error is at most FMM3D's.

    Raises
    ------
    RuntimeError
        If FMM3D's error is far above eps, or if parki reaches FMM3D's error with no tolerance.
    """
    rng = np.random.default_rng(0)
    x = rng.random((3, asked.n))
    at = rng.choice(asked.n, min(SAMPLE, asked.n), replace=False)
    for kernel, precisions in PRECISIONS.items():
        dens = rng.standard_normal(asked.n) if kernel == "laplace" else rng.standard_normal((3, asked.n))
        exact = direct_sum(kernel, x[:, at], x, dens)

        def error(u: Array, at: Array = at, exact: Array = exact) -> float:
            return float(np.linalg.norm(u[..., at] - exact) / np.linalg.norm(exact))

        def ours(tolerance: float, kernel: str = kernel, dens: Array = dens) -> Array:
            options = {"periodicity": 0, "box": (1, 1, 1), "tolerance": tolerance, "execution_space": space}
            return getattr(parki.ewald, kernel)(x, x, dens, **options)

        for eps in precisions:
            with threadpool_limits(workers(space), user_api="openmp"):

                def other(kernel: str = kernel, dens: Array = dens, eps: float = eps) -> Array:
                    return theirs(fmm, kernel, x, dens, eps)

                theirs_error = error(other())
                if theirs_error > 10 * eps:
                    raise RuntimeError(f"FMM3D and the direct sum of {kernel} differ by {theirs_error:.1e}")
                tolerance, our_error = reaching(lambda t: error(ours(t)), max(theirs_error, DIRECT))
                times = turns([clock(other), clock(lambda t=tolerance: ours(t))], asked.repeat, warm=False)
            yield kernel, eps, times[0], theirs_error, times[1], our_error


def reaching(error: Callable[[float], float], wanted: float) -> tuple[float, float]:
    """Return the largest tolerance tried at which the error is at most `wanted`, and that error.

    Raises
    ------
    RuntimeError
        If no tolerance reaches `wanted`.
    """
    tolerance = min(LOOSE * wanted, 0.5)
    while tolerance > FINEST:
        if (reached := error(tolerance)) <= wanted:
            return tolerance, reached
        tolerance *= STEP
    raise RuntimeError(f"no tolerance down to {FINEST:g} reaches the error {wanted:.1e}")


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
