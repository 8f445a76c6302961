"""The real FFT in use: `scipy.fft`, over the last three axes."""

import numpy as np
import scipy.fft

from parki.arrays import Array


def forward(grid: Array, threads: int) -> Array:
    """Half spectra ``(C, M0, M1, M2 // 2 + 1)`` of real grids ``(C, M0, M1, M2)``; strided input is accepted."""
    return scipy.fft.rfftn(grid, axes=(-3, -2, -1), workers=threads)


def inverse(spectrum: Array, shape: tuple[int, int, int], threads: int) -> Array:
    """The real grid ``shape`` of one half spectrum, which is overwritten; divided by the number of points."""
    return scipy.fft.irfftn(spectrum, s=shape, axes=(-3, -2, -1), workers=threads, overwrite_x=True)


def pairs(spectrum: Array) -> Array:
    """A complex array seen as reals, the last axis twice as long."""
    return spectrum.view(np.float32 if spectrum.dtype == np.complex64 else np.float64)
