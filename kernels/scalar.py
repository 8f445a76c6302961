"""Scalar helpers shared by the pair kernels."""

import pykokkos as pk

real = pk.double


@pk.function
def rinv_or_zero(r2: real, tiny: real) -> real:
    """1/sqrt(r2), and 0 for a coincident pair, r2 <= tiny."""
    w: real = pk.rsqrt(r2)  # of 0: anything, replaced here
    if r2 <= tiny:
        w = 0.0
    return w
