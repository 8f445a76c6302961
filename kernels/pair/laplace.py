"""Laplace: u = q / r, r = |target - source|.

Screened, far[0] is F of the split: u = (1/r - F) q.
"""

from typing import List

import pykokkos as pk

real = pk.double
NS = 1  # numbers per source: q
NU = 1  # numbers per target
NF = 1  # far parts
SCREENED = False


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add the potential of a charge to u."""
    a: real = w
    if SCREENED:
        a -= far[0]
    u[0] += s[0] * a
