"""Thin plate spline: phi = r^2 log(r/unit), which is 0 at r = 0."""

from typing import List

import pykokkos as pk

real = pk.double
NP = 1  # unit


@pk.function
def radial(r2: real, w: real, p: List[real], out: List[real]) -> None:
    """Set out to phi, phi'/r; w = 1/r or 0 for a coincident pair."""
    apart: real = r2
    if w == 0.0:
        apart = 1.0
    logarithm: real = pk.log(apart) - 2.0 * pk.log(p[0])
    out[0] = 0.5 * (r2 * logarithm)
    slope: real = logarithm + 1.0
    if w == 0.0:
        slope = 0.0
    out[1] = slope
