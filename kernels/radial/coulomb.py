"""Coulomb: phi = 1/r."""

from typing import List

import pykokkos as pk

real = pk.double
NP = 0


@pk.function
def radial(r2: real, w: real, p: List[real], out: List[real]) -> None:
    """Set out to phi, phi'/r; w = 1/r or 0 for a coincident pair."""
    out[0] = w
    out[1] = -(w * w * w)
