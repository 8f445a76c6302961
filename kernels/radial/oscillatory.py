"""Oscillatory: phi = sin(k r)/r, which is k at r = 0.

phi'/r = k^3 h(x), x = k r, with h = (x cos x - sin x)/x^3 = sum over n > 0 of (-1)^n 2n/(2n + 1)! x^(2n - 2).
"""

from typing import List

import pykokkos as pk

real = pk.double
NP = 1  # k
SERIES_BELOW = 0.25  # x^2 below which h is summed as a series, whose first omitted term is 1e-17 of the sum
SERIES = (
    -14.0 / 1307674368000.0,
    12.0 / 6227020800.0,
    -10.0 / 39916800.0,
    8.0 / 362880.0,
    -6.0 / 5040.0,
    1.0 / 30.0,
    -1.0 / 3.0,
)


@pk.function
def radial(r2: real, w: real, p: List[real], out: List[real]) -> None:
    """Set out to phi, phi'/r; w = 1/r or 0 for a coincident pair."""
    x: real = p[0] * (r2 * w)
    sine: real = pk.sin(x)
    phi: real = sine * w
    if w == 0.0:
        phi = p[0]
    out[0] = phi
    z: real = p[0] * p[0] * r2
    slope: real = (p[0] * pk.cos(x) - phi) * (w * w)
    if z < SERIES_BELOW:  # where the difference would cancel
        h: real = SERIES[0]
        for n in range(1, len(SERIES)):
            h = h * z + SERIES[n]
        slope = p[0] * p[0] * p[0] * h
    out[1] = slope
