"""Direct sums: every source for every target, no cutoff."""

from typing import List

import pykokkos as pk

from parki.kernels.pair.laplace import NF, NS, NU, pair
from parki.kernels.scalar import rinv_or_zero

real = pk.double


@pk.workunit
def direct_sum(
    team: pk.TeamMember, xt: pk.View2D[real], src: pk.View2D[real], u: pk.View2D[real], nt: int, ns: int, chunk: int,
    tiny: real,
):  # fmt: skip
    """u[:, i] = sum over all sources; a source is (x, y, z, strengths); one team per `chunk` targets."""
    first: int = team.league_rank() * chunk
    m: int = nt - first
    if m > chunk:
        m = chunk

    def target(t: int):
        i: int = first + t
        x: real = xt[0][i]
        y: real = xt[1][i]
        z: real = xt[2][i]
        acc: List[real] = [0.0] * NU
        far: List[real] = [0.0] * NF
        for e in range(ns):
            dx: real = x - src[e][0]
            dy: real = y - src[e][1]
            dz: real = z - src[e][2]
            r2: real = dx * dx + dy * dy + dz * dz
            w: real = rinv_or_zero(r2, tiny)
            s: List[real] = [0.0] * NS
            for k in range(NS):
                s[k] = src[e][3 + k]
            pair(dx, dy, dz, r2, w, far, s, acc)
        for k in range(NU):
            u[k][i] = acc[k]

    pk.parallel_for(pk.TeamThreadRange(team, m), target)
