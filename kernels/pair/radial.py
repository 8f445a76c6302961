"""Radial kernels: u = q phi(r), its gradient with respect to the target, q phi'(r) r/r, or both.

The function `radial` gives out[0] = phi and out[1] = phi'/r for NP parameters p; at r = 0 it gives the limit if there
is one, else 0.
"""

from typing import List

import pykokkos as pk

from parki.kernels.radial.coulomb import NP, radial

real = pk.double
VALUE = True
GRADIENT = False
NS = 1 + NP  # q, parameters
NU = 1 * VALUE + 3 * GRADIENT
NF = 1
SLOPE = 1 * VALUE  # where the gradient begins
ROOM = max(NP, 1)


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add one source to u; (dx, dy, dz) = target - source, w = 1/r or 0 for a coincident pair."""
    p: List[real] = [0.0] * ROOM
    for k in range(NP):
        p[k] = s[1 + k]
    phi: List[real] = [0.0] * 2
    radial(r2, w, p, phi)
    if VALUE:
        u[0] += s[0] * phi[0]
    if GRADIENT:
        g: real = s[0] * phi[1]
        u[SLOPE] += g * dx
        u[SLOPE + 1] += g * dy
        u[SLOPE + 2] += g * dz
