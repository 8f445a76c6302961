"""Spheres closer to each other than the sum of two largest radii: what their mobility is beyond that of `faxen`."""

import pykokkos as pk

real = pk.double


@pk.workunit
def close_pairs(
    i: int, begin: pk.View1D[pk.int32], partner: pk.View1D[pk.int32], mobility: pk.View2D[real], f: pk.View2D[real],
    u: pk.View2D[real],
):  # fmt: skip
    """Add A f + B n (n.f) over the listed partners of sphere i to u[:, i]; mobility[:, e] is A, B, n."""
    x: real = 0.0
    y: real = 0.0
    z: real = 0.0
    first: int = begin[i]
    last: int = begin[i + 1]
    for e in range(first, last):
        j: int = partner[e]
        a: real = mobility[0][e]
        b: real = mobility[1][e] * (mobility[2][e] * f[0][j] + mobility[3][e] * f[1][j] + mobility[4][e] * f[2][j])
        x += a * f[0][j] + b * mobility[2][e]
        y += a * f[1][j] + b * mobility[3][e]
        z += a * f[2][j] + b * mobility[4][e]
    u[0][i] += x
    u[1][i] += y
    u[2][i] += z
