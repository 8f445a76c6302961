"""Gradient of the Stokes single layer: w[3 i + j] = i k_j g (v_i - n_i (n.v))."""

from typing import List

import pykokkos as pk

from parki.kernels.multiplier.stokes import along

real = pk.double
NIN = 3
NOUT = 9


@pk.function
def multiply(
    kx: real, ky: real, kz: real, nx: real, ny: real, nz: real, g: real, v: List[real], w: List[real]
) -> None:  # fmt: skip
    """One mode."""
    k: List[real] = [kx, ky, kz]
    n: List[real] = [nx, ny, nz]
    along_re, along_im = along(nx, ny, nz, v)
    for i in range(3):
        re: real = -(g * (v[2 * i + 1] - n[i] * along_im))
        im: real = g * (v[2 * i] - n[i] * along_re)
        for j in range(3):
            w[2 * (3 * i + j)] = k[j] * re
            w[2 * (3 * i + j) + 1] = k[j] * im
