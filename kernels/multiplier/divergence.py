"""Dipoles of a scalar kernel, minus its gradient along them: w = -i g (k.v)."""

from typing import List

import pykokkos as pk

real = pk.double
NIN = 3
NOUT = 1


@pk.function
def multiply(
    kx: real, ky: real, kz: real, nx: real, ny: real, nz: real, g: real, v: List[real], w: List[real]
) -> None:  # fmt: skip
    """Set w to -i g (k.v)."""
    w[0] = g * (kx * v[1] + ky * v[3] + kz * v[5])
    w[1] = -(g * (kx * v[0] + ky * v[2] + kz * v[4]))
