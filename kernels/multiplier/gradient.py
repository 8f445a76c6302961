"""The gradient of a scalar kernel: w = i k g v."""

from typing import List

import pykokkos as pk

real = pk.double
NIN = 1
NOUT = 3


@pk.function
def multiply(
    kx: real, ky: real, kz: real, nx: real, ny: real, nz: real, g: real, v: List[real], w: List[real]
) -> None:  # fmt: skip
    """One mode."""
    re: real = -(g * v[1])
    im: real = g * v[0]
    w[0] = kx * re
    w[1] = kx * im
    w[2] = ky * re
    w[3] = ky * im
    w[4] = kz * re
    w[5] = kz * im
