"""Multiquadric: phi = sqrt(r^2 + width^2)."""

from typing import List

import pykokkos as pk

real = pk.double
NP = 1  # width


@pk.function
def radial(r2: real, w: real, p: List[real], out: List[real]) -> None:
    """Set out to phi, phi'/r; w = 1/r or 0 for a coincident pair."""
    s2: real = r2 + p[0] * p[0]
    v: real = pk.rsqrt(s2)
    out[0] = s2 * v
    out[1] = v
