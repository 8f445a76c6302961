"""Direct sums: all pairs of a target and a source, no cutoff."""

from typing import List

import pykokkos as pk

from parki.kernels.pair.laplace import NU, pair  # noqa: F401  the slot `pair` says whose NU is meant
from parki.kernels.particles import add_sources

real = pk.double


@pk.workunit
def direct_sum(
    team: pk.TeamMember, xt: pk.View2D[real], src: pk.View2D[real], u: pk.View2D[real], nt: int, ns: int, chunk: int,
    tiny: real,
):  # fmt: skip
    """Set u[:, i] to the sum over all sources; a source is (x, y, z, strengths); one team per `chunk` targets.

    A pair coincides if its squared distance is at most `tiny` times the target's squared distance from the origin.
    """
    first: int = team.league_rank() * chunk
    m: int = nt - first
    if m > chunk:
        m = chunk

    def target(t: int):
        i: int = first + t
        x: real = xt[0][i]
        y: real = xt[1][i]
        z: real = xt[2][i]
        close: real = tiny * (x * x + y * y + z * z)
        acc: List[real] = [0.0] * NU
        add_sources(x, y, z, src, 0, ns, 0.0, 0.0, 0.0, close, acc)
        for k in range(NU):
            u[k][i] = acc[k]

    pk.parallel_for(pk.TeamThreadRange(team, m), target)
