"""Coulomb softened by a cubic spline: 1/r of a charge that is spread over a ball of radius h = 2.8 epsilon.

With u = r/h and t = max(1 - u, 0), phi = (14/5 - 16/3 u^2 + 48/5 u^4 - 32/5 u^5)/h for u < 1/2, 1/epsilon at r = 0, and
(1 - 16/15 t^5 (1 + 2 u))/r beyond, 1/r from h on.

Source: L. Hernquist, N. Katz, Astrophys. J. Suppl. 70 (1989) 419-446, appendix A; V. Springel, N. Yoshida, S. D. M.
White, New Astron. 6 (2001) 79-117, eq. 71.
"""

from typing import List

import pykokkos as pk

real = pk.double
NP = 1  # epsilon = h / 2.8


@pk.function
def radial(r2: real, w: real, p: List[real], out: List[real]) -> None:
    """Set out to phi, phi'/r; w = 1/r or 0 for a coincident pair."""
    scale: real = 1.0 / (2.8 * p[0])
    u: real = scale * (r2 * w)
    t: real = pk.fmax(1.0 - u, 0.0)
    t4: real = (t * t) * (t * t)
    v: real = pk.fmin(w, 2.0 * scale)  # keeps the outer formula finite where its result is not used
    phi: real = v * (1.0 - (16.0 / 15.0) * (t4 * t) * (1.0 + 2.0 * u))
    slope: real = -(v * v * v) * (1.0 - (16.0 / 15.0) * t4 * (1.0 + u * (4.0 + 10.0 * u)))
    inside: bool = u < 0.5
    if inside:
        u2: real = u * u
        phi = scale * (2.8 + u2 * (-16.0 / 3.0 + u2 * (9.6 - 6.4 * u)))
        slope = scale * scale * scale * (-32.0 / 3.0 + u2 * (38.4 - 32.0 * u))
    out[0] = phi
    out[1] = slope
