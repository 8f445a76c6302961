"""A scalar kernel: w = g v."""

from typing import List

import pykokkos as pk

real = pk.double
NIN = 1
NOUT = 1


@pk.function
def multiply(
    kx: real, ky: real, kz: real, nx: real, ny: real, nz: real, g: real, v: List[real], w: List[real]
) -> None:  # fmt: skip
    """Set w to g v."""
    w[0] = g * v[0]
    w[1] = g * v[1]
