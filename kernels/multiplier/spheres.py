"""Forces f, torques t to velocities, angular velocities: u = g (v - n (n.v)), v = f + i k x t/2, and i k x u/2."""

from typing import List

import pykokkos as pk

from parki.kernels.multiplier.stokes import along

real = pk.double
NIN = 6
NOUT = 6


@pk.function
def multiply(
    kx: real, ky: real, kz: real, nx: real, ny: real, nz: real, g: real, v: List[real], w: List[real]
) -> None:  # fmt: skip
    """Set the first half of w to g (v - n (n.v) + i k x v'/2) and the second to i k x w/2, v' the second half of v."""
    re, im = along(nx, ny, nz, v)
    hx: real = 0.5 * kx
    hy: real = 0.5 * ky
    hz: real = 0.5 * kz
    w[0] = g * (v[0] - nx * re - (hy * v[11] - hz * v[9]))
    w[1] = g * (v[1] - nx * im + (hy * v[10] - hz * v[8]))
    w[2] = g * (v[2] - ny * re - (hz * v[7] - hx * v[11]))
    w[3] = g * (v[3] - ny * im + (hz * v[6] - hx * v[10]))
    w[4] = g * (v[4] - nz * re - (hx * v[9] - hy * v[7]))
    w[5] = g * (v[5] - nz * im + (hx * v[8] - hy * v[6]))
    w[6] = -(hy * w[5] - hz * w[3])
    w[7] = hy * w[4] - hz * w[2]
    w[8] = -(hz * w[1] - hx * w[5])
    w[9] = hz * w[0] - hx * w[4]
    w[10] = -(hx * w[3] - hy * w[1])
    w[11] = hx * w[2] - hy * w[0]
