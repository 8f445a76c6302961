"""Free-space sums against FMM3D at the same measured error, in one run on one core: `parki bench free`."""

import argparse
import importlib
import os
import time
from collections.abc import Callable
from types import ModuleType

import numpy as np

from parki.arrays import Array
from parki.direct import direct_sum
from parki.engine.spaces import Space
from parki.ewald import api

SAMPLE = 100  # targets at which errors are measured
PRECISIONS = {"laplace": (1e-2, 1e-8), "stokes_sl": (1e-3, 1e-6, 1e-9)}  # asked of FMM3D
LOOSE, STEP = 8.0, 0.7  # the first tolerance tried over FMM3D's error, and each next one over the last


def measure(asked: argparse.Namespace, space: Space) -> list[tuple[str, float, float, float, float]]:
    """Return kernel, seconds and error of FMM3D, seconds and error of parki, for each precision.

    Uniform random sources in a cube, which are the targets; whole calls, parki's with everything that a first call does
    but compiling.  The tolerance asked of parki is the largest tried at which its error is at most FMM3D's.

    Raises
    ------
    ValueError
        If fmm3dpy is not installed.
    """
    fmm, rng = _fmm(asked.threads or 1), np.random.default_rng(0)
    x, found = rng.random((3, asked.n)), []
    at = rng.choice(asked.n, min(SAMPLE, asked.n), replace=False)
    for kernel, precisions in PRECISIONS.items():
        dens = rng.standard_normal(asked.n) if kernel == "laplace" else rng.standard_normal((3, asked.n))
        exact = direct_sum(kernel, x[:, at], x, dens)
        for eps in precisions:
            seconds, error = _timed(lambda k=kernel, d=dens, e=eps: _other(fmm, k, x, d, e), 1, exact, at)
            tolerance = LOOSE * error
            while True:
                options = {"periodicity": 0, "box": (1, 1, 1), "tolerance": tolerance, "execution_space": space}
                call = getattr(api, kernel)
                call(x, x, dens, **options)  # compiles
                ours, reached = _timed(lambda c=call, d=dens, o=options: c(x, x, d, **o), asked.repeat, exact, at)
                if reached <= error:
                    break
                tolerance *= STEP
            found.append((kernel, seconds, error, ours, reached))
    return found


def _fmm(threads: int) -> ModuleType:
    os.environ["OMP_NUM_THREADS"] = str(threads)
    try:
        return importlib.import_module("fmm3dpy")
    except ImportError:
        raise ValueError("this benchmark compares with FMM3D: pip install fmm3dpy") from None


def _other(fmm: ModuleType, kernel: str, x: Array, dens: Array, eps: float) -> Array:
    """The same sum by FMM3D, in parki's normalisation."""
    if kernel == "laplace":
        return 4 * np.pi * fmm.lfmm3d(eps=eps, sources=x, charges=dens, pg=1).pot
    return 8 * np.pi * fmm.stfmm3d(eps=eps, sources=x, stoklet=dens, ifppreg=1).pot


def _timed(run: Callable[[], Array], repeat: int, exact: Array, at: Array) -> tuple[float, float]:
    """Seconds of the fastest run, and the relative RMS error at the sampled targets."""
    best = np.inf
    for _ in range(repeat):
        began = time.perf_counter()
        u = run()
        best = min(best, time.perf_counter() - began)
    return best, float(np.linalg.norm(u[..., at] - exact) / np.linalg.norm(exact))
