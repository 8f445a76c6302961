"""Forces f and doublets to velocities g (v - n (n.v)), v = f - k^2 doublets, and to their Laplacians, of f alone."""

from typing import List

import pykokkos as pk

from parki.kernels.multiplier.stokes import along

real = pk.double
NOUT = 6
NIN = 6


@pk.function
def multiply(
    kx: real, ky: real, kz: real, nx: real, ny: real, nz: real, g: real, v: List[real], w: List[real]
) -> None:  # fmt: skip
    """Set the first half of w to g (v - k^2 v' - n (n.(v - k^2 v'))) and the second to -k^2 g (v - n (n.v))."""
    k2: real = kx * kx + ky * ky + kz * kz
    slope: real = -g * k2
    re, im = along(nx, ny, nz, v)
    w[6] = v[0] - nx * re
    w[7] = v[1] - nx * im
    w[8] = v[2] - ny * re
    w[9] = v[3] - ny * im
    w[10] = v[4] - nz * re
    w[11] = v[5] - nz * im
    re = nx * v[6] + ny * v[8] + nz * v[10]
    im = nx * v[7] + ny * v[9] + nz * v[11]
    w[0] = g * w[6] + slope * (v[6] - nx * re)
    w[1] = g * w[7] + slope * (v[7] - nx * im)
    w[2] = g * w[8] + slope * (v[8] - ny * re)
    w[3] = g * w[9] + slope * (v[9] - ny * im)
    w[4] = g * w[10] + slope * (v[10] - nz * re)
    w[5] = g * w[11] + slope * (v[11] - nz * im)
    for k in range(6):
        w[6 + k] = slope * w[6 + k]
