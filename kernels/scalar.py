"""Scalar helpers shared by the pair kernels."""

import pykokkos as pk

real = pk.double


@pk.function
def rinv_or_zero(r2: real, tiny: real) -> real:
    """Return 1/sqrt(r2), or 0 for a coincident pair, r2 <= tiny."""
    w: real = pk.rsqrt(r2)  # undefined at 0, where it is replaced
    if r2 <= tiny:
        w = 0.0
    return w
