"""Regularised (Plummer) Coulomb: phi = 1/sqrt(r^2 + epsilon^2)."""

from typing import List

import pykokkos as pk

real = pk.double
NP = 1  # epsilon


@pk.function
def radial(r2: real, w: real, p: List[real], out: List[real]) -> None:
    """Set out to phi, phi'/r; w = 1/r or 0 for a coincident pair."""
    phi: real = pk.rsqrt(r2 + p[0] * p[0])
    out[0] = phi
    out[1] = -(phi * phi * phi)
