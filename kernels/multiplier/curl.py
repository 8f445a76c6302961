"""Curl of a vector field: w = i g (k x v)."""

from typing import List

import pykokkos as pk

real = pk.double
NIN = 3
NOUT = 3


@pk.function
def multiply(
    kx: real, ky: real, kz: real, nx: real, ny: real, nz: real, g: real, v: List[real], w: List[real]
) -> None:  # fmt: skip
    """Set w to i g (k x v)."""
    w[0] = -(g * (ky * v[5] - kz * v[3]))
    w[1] = g * (ky * v[4] - kz * v[2])
    w[2] = -(g * (kz * v[1] - kx * v[5]))
    w[3] = g * (kz * v[0] - kx * v[4])
    w[4] = -(g * (kx * v[3] - ky * v[1]))
    w[5] = g * (kx * v[2] - ky * v[0])
