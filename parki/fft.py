"""The real FFT in use, over the last three axes: `scipy.fft` of NumPy arrays, `cupyx.scipy.fft` of CuPy arrays."""

import importlib
from types import ModuleType
from typing import Any

import numpy as np
import scipy.fft

from parki.arrays import Array

AXES = (-3, -2, -1)


def forward(grid: Array, threads: int) -> Array:
    """Half spectra ``(C, M0, M1, M2 // 2 + 1)`` of real grids ``(C, M0, M1, M2)``; strided input is accepted."""
    library, own = _library(grid, threads)
    return library.rfftn(grid, axes=AXES, **own)


def inverse(spectrum: Array, shape: tuple[int, int, int], threads: int) -> Array:
    """The real grid ``shape`` of one half spectrum, which is overwritten; divided by the number of points."""
    library, own = _library(spectrum, threads)
    return library.irfftn(spectrum, s=shape, axes=AXES, overwrite_x=True, **own)


def pairs(spectrum: Array) -> Array:
    """A complex array seen as reals, the last axis twice as long."""
    return spectrum.view(np.float32 if spectrum.dtype == np.complex64 else np.float64)


def _library(x: Array, threads: int) -> tuple[ModuleType, dict[str, Any]]:
    """The library for an array, and what only this one is told."""
    if isinstance(x, np.ndarray):
        return scipy.fft, {"workers": threads}
    return importlib.import_module("cupyx.scipy.fft"), {}
