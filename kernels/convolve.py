"""Fourier multipliers on planes of modes kx = const, in place: one team a row of modes along z.

Complex numbers are pairs of reals: spec[s][m][b][2 j], [2 j + 1] is mode (kx[first + m], ky[b], kz[j]) of component
s = r * STRIDE + c of right-hand side r.  green = the scalar multiplier with everything in it, by mode number |b|, |j|,
or in a skew cell by b and j.
"""

from typing import List

import pykokkos as pk

from parki.kernels.multiplier.scalar import NIN, NOUT, multiply

real = pk.double
STRIDE = 1  # components of a right-hand side, the larger of NIN and NOUT
RHS = 1  # right-hand sides
SKEW = False  # a triclinic cell: the wave vector is (kx + s01 ky + s02 kz, ky + s12 kz, kz)


@pk.workunit
def convolve(
    team: pk.TeamMember, spec: pk.View4D[real], green: pk.View3D[real], kx: pk.View1D[real], ky: pk.View1D[real],
    kz: pk.View1D[real], first: int, count: int, rows: int, length: int, s01: real, s02: real, s12: real,
):  # fmt: skip
    """Multiply in place."""
    t: int = team.league_rank()
    m: int = t // rows
    b: int = t % rows
    a: int = first + m
    if a < count:
        row: int = b
        if not SKEW:
            if b > rows // 2:
                row = rows - b
        x0: real = kx[a]
        y0: real = ky[b]

        def mode(j: int):
            column: int = j
            x: real = x0
            y: real = y0
            z: real = kz[j]
            if SKEW:
                x += s01 * y0 + s02 * z
                y += s12 * z
            else:
                if j > length // 2:
                    column = length - j
            k: real = pk.sqrt(x * x + y * y + z * z)
            nx: real = 0.0
            ny: real = 0.0
            nz: real = 1.0
            if k > 0.0:
                nx = x / k
                ny = y / k
                nz = z / k
            g: real = green[a][row][column]
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

        pk.parallel_for(pk.TeamThreadRange(team, length), mode)
