"""Yukawa: phi = exp(-kappa r)/r."""

from typing import List

import pykokkos as pk

real = pk.double
NP = 1  # kappa


@pk.function
def radial(r2: real, w: real, p: List[real], out: List[real]) -> None:
    """Set out to phi, phi'/r; w = 1/r or 0 for a coincident pair."""
    phi: real = pk.exp(-p[0] * (r2 * w)) * w  # w comes last, because its root takes longest
    out[0] = phi
    out[1] = -((w + p[0]) * w) * phi
