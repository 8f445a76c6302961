"""Radial kernels: u = q phi(r), its gradient with respect to the target, q phi'(r) r/r, or both; and its virial.

The function `radial` gives out[0] = phi and out[1] = phi'/r for NP parameters p; at r = 0 it gives the limit if there
is one, else 0.  Screened, far has the far part F(r^2) and its derivative by r^2, as far as they are used:
u = q (phi - F), q (phi'/r - 2 F') r.  The virial, xx xy xz yy yz zz of r times the gradient, needs the gradient; that
of the far part has two more terms: a on the diagonal, and b times r r.
"""

from typing import List

import pykokkos as pk

from parki.kernels.radial.coulomb import NP, radial

real = pk.double
VALUE = True
GRADIENT = False
NS = 1 + NP  # q, parameters
VIRIAL = False
NU = 1 * VALUE + 3 * GRADIENT + 6 * VIRIAL
SCREENED = False
NF = 1 * VALUE + 1 * GRADIENT + 2 * VIRIAL
SLOPE = 1 * VALUE  # index of the gradient's first component
ROOM = max(NP, 1)


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add the chosen ones of phi, its gradient and its virial to u."""
    p: List[real] = [0.0] * ROOM
    for k in range(NP):
        p[k] = s[1 + k]
    phi: List[real] = [0.0] * 2
    radial(r2, w, p, phi)
    if SCREENED:
        if VALUE:
            phi[0] -= far[0]
        if GRADIENT:
            phi[1] -= 2.0 * far[SLOPE]
    if VALUE:
        u[0] += s[0] * phi[0]
    if GRADIENT:
        g: real = s[0] * phi[1]
        u[SLOPE] += g * dx
        u[SLOPE + 1] += g * dy
        u[SLOPE + 2] += g * dz
        if VIRIAL:
            if SCREENED:
                g -= s[0] * far[SLOPE + 2]
                u[SLOPE + 3] -= s[0] * far[SLOPE + 1]
                u[SLOPE + 6] -= s[0] * far[SLOPE + 1]
                u[SLOPE + 8] -= s[0] * far[SLOPE + 1]
            gx: real = g * dx
            gy: real = g * dy
            u[SLOPE + 3] += gx * dx
            u[SLOPE + 4] += gx * dy
            u[SLOPE + 5] += gx * dz
            u[SLOPE + 6] += gy * dy
            u[SLOPE + 7] += gy * dz
            u[SLOPE + 8] += g * dz * dz
