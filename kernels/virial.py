"""Virial of modes: sums over lines of modes before the multiplication; see `convolve.py` for the planes.

With the transform v of the spread sources, a mode contributes |v|^2 times seven numbers: green, and slope times the
products xx xy xz yy yz zz of its wave vector.
"""

from typing import List

import pykokkos as pk

from parki.kernels.convolve import SKEW, along

real = pk.double
SUMS = 7


@pk.workunit
def line_virials(
    team: pk.TeamMember, spec: pk.View4D[real], green: pk.View3D[real], slope: pk.View3D[real], kx: pk.View1D[real],
    ky: pk.View1D[real], kz: pk.View1D[real], weight: pk.View1D[real], out: pk.View2D[real], first: int, count: int,
    rows: int, length: int, s01: real, s02: real, s12: real,
):  # fmt: skip
    """Set out[a rows + b] to the sums over line b of plane a, times weight[a]; spec has the planes from first on."""
    m: int = team.league_rank() // rows
    b: int = team.league_rank() - m * rows
    a: int = first + m
    row: int = b
    if not SKEW:
        if b > rows // 2:
            row = rows - b
    if a < count:
        y0: real = ky[b]
        x0: real = kx[a]
        totals: List[real] = [0.0] * SUMS
        for q in range(SUMS):

            def mode(j: int, acc: pk.Acc[real]):
                at: int = j
                if not SKEW:
                    if j > length // 2:
                        at = length - j
                z: real = kz[j]
                x, y = along(x0, y0, z, s01, s02, s12)
                re: real = spec[0][m][b][2 * j]
                im: real = spec[0][m][b][2 * j + 1]
                g: real = slope[a][row][at]
                parts: List[real] = [0.0] * SUMS
                parts[0] = green[a][row][at]
                parts[1] = g * x * x
                parts[2] = g * x * y
                parts[3] = g * x * z
                parts[4] = g * y * y
                parts[5] = g * y * z
                parts[6] = g * z * z
                acc += parts[q] * (re * re + im * im)

            total: real = pk.parallel_reduce(pk.TeamThreadRange(team, length), mode)
            totals[q] = weight[a] * total

        def store():
            for q in range(SUMS):
                out[a * rows + b][q] = totals[q]

        pk.single(pk.PerTeam(team), store)
