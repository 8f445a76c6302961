"""Stokes single layer: w = g (v - n (n.v))."""

from typing import List, Tuple

import pykokkos as pk

real = pk.double
NIN = 3
NOUT = 3


@pk.function
def along(nx: real, ny: real, nz: real, v: List[real]) -> Tuple[real, real]:
    """Return n.v, real and imaginary part."""
    return nx * v[0] + ny * v[2] + nz * v[4], nx * v[1] + ny * v[3] + nz * v[5]


@pk.function
def multiply(
    kx: real, ky: real, kz: real, nx: real, ny: real, nz: real, g: real, v: List[real], w: List[real]
) -> None:  # fmt: skip
    """Set w to g (v - n (n.v))."""
    re, im = along(nx, ny, nz, v)
    w[0] = g * (v[0] - nx * re)
    w[1] = g * (v[1] - nx * im)
    w[2] = g * (v[2] - ny * re)
    w[3] = g * (v[3] - ny * im)
    w[4] = g * (v[4] - nz * re)
    w[5] = g * (v[5] - nz * im)
