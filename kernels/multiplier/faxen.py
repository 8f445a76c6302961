"""Forces f and doublets to velocities g (v - n (n.v)), v = f - k^2 doublets, and to their Laplacians, of f alone."""

from typing import List

import pykokkos as pk

from parki.kernels.multiplier.stokes import multiply as project

real = pk.double
NOUT = 6
NIN = 6


@pk.function
def multiply(
    kx: real, ky: real, kz: real, nx: real, ny: real, nz: real, g: real, v: List[real], w: List[real]
) -> None:  # fmt: skip
    """Set the first half of w to g (v' - n (n.v')), v' = v - k^2 doublets, and the second to -k^2 g (v - n (n.v))."""
    k2: real = kx * kx + ky * ky + kz * kz
    f: List[real] = [0.0] * 6
    for k in range(6):
        f[k] = v[k] - k2 * v[6 + k]
    project(kx, ky, kz, nx, ny, nz, g, f, w)
    project(kx, ky, kz, nx, ny, nz, -k2 * g, v, f)
    for k in range(6):
        w[6 + k] = f[k]
