"""A kernel without reflection symmetry, of two components: charges that are stretched along a slanted direction."""

from typing import List  # noqa: UP035

import pykokkos as pk

real = pk.double
NS = 2
NU = 2
NF = 1


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:  # noqa: UP006
    """Add one source to u."""
    a: real = dx + 0.3 * dy
    b: real = dy - 0.2 * dz
    v: real = pk.rsqrt(a * a + b * b + dz * dz)
    u[0] += v * s[0]
    u[1] += w * s[1] + 0.1 * v * s[0]
