"""Stokes single and double layer in four components: w = g (v - n (n.v) + i k v[3]), v[3] from q.n."""

from typing import List

import pykokkos as pk

from parki.kernels.multiplier.stokes import along

real = pk.double
NIN = 4
NOUT = 3


@pk.function
def multiply(
    kx: real, ky: real, kz: real, nx: real, ny: real, nz: real, g: real, v: List[real], w: List[real]
) -> None:  # fmt: skip
    """Set w to g (v - n (n.v) + i k v[3])."""
    re, im = along(nx, ny, nz, v)
    w[0] = g * (v[0] - nx * re - kx * v[7])
    w[1] = g * (v[1] - nx * im + kx * v[6])
    w[2] = g * (v[2] - ny * re - ky * v[7])
    w[3] = g * (v[3] - ny * im + ky * v[6])
    w[4] = g * (v[4] - nz * re - kz * v[7])
    w[5] = g * (v[5] - nz * im + kz * v[6])
