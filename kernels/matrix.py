"""Entries of pair matrices: the fields of unit densities."""

from typing import List

import pykokkos as pk

from parki.kernels.pair.laplace import NF, NS, NU, pair
from parki.kernels.scalar import rinv_or_zero

real = pk.double
NP = 0  # parameters of a source that are the same for all sources, behind its density


@pk.workunit
def entries(i: int, r: pk.View2D[real], constant: pk.View1D[real], out: pk.View3D[real]):
    """Set out[t][s][i] to component t at a target from density s alone, for r[0 … 2][i] = target - source."""
    x: real = r[0][i]
    y: real = r[1][i]
    z: real = r[2][i]
    r2: real = x * x + y * y + z * z
    w: real = rinv_or_zero(r2, 0.0)
    far: List[real] = [0.0] * NF
    s: List[real] = [0.0] * NS
    acc: List[real] = [0.0] * NU
    for n in range(NP):
        s[NS - NP + n] = constant[n]
    for n in range(NS - NP):
        for k in range(NU):
            acc[k] = 0.0
        s[n] = 1.0
        pair(x, y, z, r2, w, far, s, acc)
        s[n] = 0.0
        for k in range(NU):
            out[k][n][i] = acc[k]
