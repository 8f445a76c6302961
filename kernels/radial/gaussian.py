"""Gaussian: phi = exp(-(r/width)^2)."""

from typing import List

import pykokkos as pk

real = pk.double
NP = 1  # width


@pk.function
def radial(r2: real, w: real, p: List[real], out: List[real]) -> None:
    """Set out to phi, phi'/r; w = 1/r or 0 for a coincident pair."""
    a: real = 1.0 / (p[0] * p[0])
    phi: real = pk.exp(-a * r2)
    out[0] = phi
    out[1] = -2.0 * a * phi
