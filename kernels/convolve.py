"""Fourier multipliers on planes of modes kx = const, or on single lines, in place: one team per line along z.

Complex numbers are pairs of reals: spec[s][m][b][2 j], [2 j + 1] is mode (kx[first + m], ky[b], kz[j]) of component
s = r * STRIDE + c of right-hand side r.  green = the scalar multiplier with all factors, by mode number |b|, |j|, or in
a skew cell by b and j.
"""

from typing import List, Tuple

import pykokkos as pk

from parki.kernels.multiplier.scalar import NIN, NOUT, multiply
from parki.kernels.scalar import rinv_or_zero

real = pk.double
STRIDE = 1  # components of a right-hand side, the larger of NIN and NOUT
RHS = 1  # right-hand sides
SINGLE = False  # planes are single lines: ky[first + m]
SKEW = False  # a triclinic cell: the wave vector is (kx + s01 ky + s02 kz, ky + s12 kz, kz)


@pk.function
def along(x0: real, y0: real, z: real, s01: real, s02: real, s12: real) -> Tuple[real, real]:
    """Return the x and y components of the wave vector."""
    x: real = x0
    y: real = y0
    if SKEW:
        x += s01 * y0 + s02 * z
        y += s12 * z
    return x, y


@pk.function
def one_mode(spec: pk.View4D[real], m: int, b: int, j: int, x: real, y: real, z: real, g: real) -> None:
    """Apply the kernel's multiplier, with scalar part g, to mode (x, y, z) of all components and right-hand sides."""
    k: real = rinv_or_zero(x * x + y * y + z * z, 0.0)
    nx: real = x * k
    ny: real = y * k
    nz: real = z * k
    is_constant: bool = k == 0.0
    if is_constant:
        nz = 1.0
    v: List[real] = [0.0] * (2 * NIN)
    w: List[real] = [0.0] * (2 * NOUT)
    for r in range(RHS):
        for c in range(NIN):
            v[2 * c] = spec[r * STRIDE + c][m][b][2 * j]
            v[2 * c + 1] = spec[r * STRIDE + c][m][b][2 * j + 1]
        multiply(x, y, z, nx, ny, nz, g, v, w)
        for c in range(NOUT):
            spec[r * STRIDE + c][m][b][2 * j] = w[2 * c]
            spec[r * STRIDE + c][m][b][2 * j + 1] = w[2 * c + 1]


@pk.workunit
def convolve(
    team: pk.TeamMember, spec: pk.View4D[real], green: pk.View3D[real], kx: pk.View1D[real], ky: pk.View1D[real],
    kz: pk.View1D[real], first: int, count: int, rows: int, length: int, s01: real, s02: real, s12: real,
):  # fmt: skip
    """Multiply the modes of the planes first … count - 1 of `green` in place."""
    t: int = team.league_rank()
    m: int = t // rows
    b: int = t % rows
    a: int = first + m
    has_plane: bool = a < count
    if has_plane:
        row: int = b
        if not SKEW:
            if b > rows // 2:
                row = rows - b
        x0: real = kx[a]
        y0: real = ky[b]
        if SINGLE:
            y0 = ky[a]

        low: int = length  # modes whose multiplier has their own index
        if not SKEW:
            low = length // 2 + 1

        def mode(j: int):
            z: real = kz[j]
            x, y = along(x0, y0, z, s01, s02, s12)
            one_mode(spec, m, b, j, x, y, z, green[a][row][j])

        pk.parallel_for(pk.TeamThreadRange(team, low), mode)
        if not SKEW:
            team.team_barrier()

            def negative(i: int):
                one_mode(spec, m, b, low + i, x0, y0, kz[low + i], green[a][row][length - low - i])

            pk.parallel_for(pk.TeamThreadRange(team, length - low), negative)
