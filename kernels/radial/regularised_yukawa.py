"""Regularised Yukawa: phi = exp(-kappa s)/s, s = sqrt(r^2 + epsilon^2)."""

from typing import List

import pykokkos as pk

real = pk.double
NP = 2  # kappa, epsilon


@pk.function
def radial(r2: real, w: real, p: List[real], out: List[real]) -> None:
    """Set out to phi, phi'/r; w = 1/r or 0 for a coincident pair."""
    s2: real = r2 + p[1] * p[1]
    v: real = pk.rsqrt(s2)
    phi: real = pk.exp(-p[0] * (s2 * v)) * v  # v comes last, because its root takes longest
    out[0] = phi
    out[1] = -((v + p[0]) * v) * phi
