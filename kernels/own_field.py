"""Correction for a source's own field after interpolation with slopes: a wave of the grid along each axis.

A mode that spreads as itself and is gathered as its alias, or the reverse, has slopes that differ by the wave number of
the grid.
"""

import pykokkos as pk

real = pk.double
coord = real  # type of coordinates


@pk.workunit
def take_off(
    j: int, x: pk.View2D[coord], strength: pk.View2D[coord], order: pk.View1D[pk.int32], u: pk.View2D[real],
    size: pk.View1D[real], s0: coord, s1: coord, s2: coord,
):  # fmt: skip
    """Add size[d] q sin(2 pi x s) to u[d][j], for targets x[:, j] that are the sources order[j]; s = 1 / spacing."""
    q: real = real(strength[0][order[j]])
    tx: coord = x[0][j] * s0
    ty: coord = x[1][j] * s1
    tz: coord = x[2][j] * s2
    u[0][j] += size[0] * q * pk.sin(real(6.283185307179586 * (tx - pk.floor(tx))))
    u[1][j] += size[1] * q * pk.sin(real(6.283185307179586 * (ty - pk.floor(ty))))
    u[2][j] += size[2] * q * pk.sin(real(6.283185307179586 * (tz - pk.floor(tz))))
