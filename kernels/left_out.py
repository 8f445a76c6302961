"""Pairs that a sum leaves out or scales: a list of sources for each target, nearest images in a periodic cell."""

from typing import List

import pykokkos as pk

from parki.kernels.pair.laplace import NF, NS, NU, pair
from parki.kernels.scalar import rinv_or_zero

real = pk.double
PERIODIC = False


@pk.workunit
def left_out(
    i: int, xt: pk.View2D[real], src: pk.View2D[real], begin: pk.View1D[pk.int32], partner: pk.View1D[pk.int32],
    weight: pk.View1D[real], cell: pk.View2D[real], inverse: pk.View2D[real], u: pk.View2D[real], tiny: real,
):  # fmt: skip
    """Set u[:, i] to the sum of weight[e] times the field of listed source e; a source is (x, y, z, strengths).

    The rows of `cell` are lattice vectors; those of `inverse` are zero along free directions.  A pair coincides if its
    squared distance is at most `tiny` times the target's squared distance from the origin.
    """
    x: real = xt[0][i]
    y: real = xt[1][i]
    z: real = xt[2][i]
    close: real = tiny * (x * x + y * y + z * z)
    acc: List[real] = [0.0] * NU
    first: int = begin[i]
    end: int = begin[i + 1]
    for e in range(first, end):
        j: int = partner[e]
        dx: real = x - src[j][0]
        dy: real = y - src[j][1]
        dz: real = z - src[j][2]
        if PERIODIC:
            a: real = pk.floor(dx * inverse[0][0] + dy * inverse[1][0] + dz * inverse[2][0] + 0.5)
            b: real = pk.floor(dx * inverse[0][1] + dy * inverse[1][1] + dz * inverse[2][1] + 0.5)
            c: real = pk.floor(dx * inverse[0][2] + dy * inverse[1][2] + dz * inverse[2][2] + 0.5)
            # shift the target, not the distance: rounding then equals that of the near field, and cancels
            dx = (x - (a * cell[0][0] + (b * cell[1][0] + c * cell[2][0]))) - src[j][0]
            dy = (y - (b * cell[1][1] + (a * cell[0][1] + c * cell[2][1]))) - src[j][1]
            dz = (z - (c * cell[2][2] + (a * cell[0][2] + b * cell[1][2]))) - src[j][2]
        r2: real = dx * dx + dy * dy + dz * dz
        s: List[real] = [0.0] * NS
        for k in range(NS):
            s[k] = src[j][3 + k]
        far: List[real] = [0.0] * NF
        v: List[real] = [0.0] * NU
        pair(dx, dy, dz, r2, rinv_or_zero(r2, close), far, s, v)
        for k in range(NU):
            acc[k] += weight[e] * v[k]
    for k in range(NU):
        u[k][i] = acc[k]
