"""Force dipoles of the Stokes single layer: w = g (v - n (n.v)) with v = -i D k, D by rows."""

from typing import List

import pykokkos as pk

from parki.kernels.multiplier.stokes import multiply as project

real = pk.double
NIN = 9
NOUT = 3


@pk.function
def multiply(
    kx: real, ky: real, kz: real, nx: real, ny: real, nz: real, g: real, v: List[real], w: List[real]
) -> None:  # fmt: skip
    """Set w to g (v' - n (n.v')), v' = -i v k."""
    f: List[real] = [0.0] * 6
    for i in range(3):
        f[2 * i] = kx * v[6 * i + 1] + ky * v[6 * i + 3] + kz * v[6 * i + 5]
        f[2 * i + 1] = -(kx * v[6 * i] + ky * v[6 * i + 2] + kz * v[6 * i + 4])
    project(kx, ky, kz, nx, ny, nz, g, f, w)
