"""Sums over lists of clusters: particle-particle, particle-cluster, cluster-particle and cluster-cluster.

Targets are particles of a leaf or the proxy points of a cluster; sources are ranges of particles (`ranges`) or the
tensor grids of proxy points of clusters (`grids`).  A tensor grid shares dx, dy and their squares among the points of a
row, and its squares of dz among all rows.

An item is (node, first target, count, m, begin, end).  Its targets are m proxy points per direction, or particles if
m = 0; begin … end - 1 are its places in the list of sources.  A box is (centre, half sides); its proxy points along
axis d are at centre d + half side d x place[m - 1][k].
"""

from typing import List, Tuple

import pykokkos as pk

from parki.kernels.pair.laplace import NF, NS, NU, pair
from parki.kernels.particles import add_sources

real = pk.double
NP = 0  # parameters of a source that are the same for all sources
N1 = 9  # proxy points of a source cluster per direction


@pk.function
def numbers(item: pk.View2D[pk.int32], b: int) -> Tuple[int, int, int, int, int, int]:
    """Return the numbers of item b."""
    return item[b][0], item[b][1], item[b][2], item[b][3], item[b][4], item[b][5]


@pk.function
def proxy(t: int, m: int, axis: int) -> int:
    """Return the index along one axis of point t of a tensor grid of m points per direction."""
    i: int = t % m
    if axis == 1:
        i = t // m % m
    if axis == 0:
        i = t // (m * m)
    return i


@pk.workunit
def ranges(
    team: pk.TeamMember, item: pk.View2D[pk.int32], xt: pk.View2D[real], u: pk.View2D[real], box: pk.View2D[pk.double],
    place: pk.View2D[real], span: pk.View2D[pk.int32], src: pk.View2D[real], tiny: real,
):  # fmt: skip
    """Add to u the sources span[j][0] … span[j][1] - 1 of the item's list; a source is (x, y, z, strengths).

    A pair coincides if its squared distance is at most `tiny` times the target's squared distance from the origin.
    """
    node, first, count, m, j_begin, j_end = numbers(item, team.league_rank())

    def target(t: int):
        i: int = first + t
        x: real = 0.0
        y: real = 0.0
        z: real = 0.0
        at_proxies: bool = m > 0
        if at_proxies:
            x = real(box[node][0]) + real(box[node][3]) * place[m - 1][proxy(t, m, 0)]
            y = real(box[node][1]) + real(box[node][4]) * place[m - 1][proxy(t, m, 1)]
            z = real(box[node][2]) + real(box[node][5]) * place[m - 1][proxy(t, m, 2)]
        else:
            x = xt[0][i]
            y = xt[1][i]
            z = xt[2][i]
        close: real = tiny * (x * x + y * y + z * z)
        acc: List[real] = [0.0] * NU
        for j in range(j_begin, j_end):
            e_begin: int = span[j][0]
            e_end: int = span[j][1]
            add_sources(x, y, z, src, e_begin, e_end, 0.0, 0.0, 0.0, close, acc)
        for k in range(NU):
            u[k][i] += acc[k]

    pk.parallel_for(pk.TeamThreadRange(team, count), target)


@pk.workunit
def grids(
    team: pk.TeamMember, item: pk.View2D[pk.int32], xt: pk.View2D[real], u: pk.View2D[real], box: pk.View2D[pk.double],
    place: pk.View2D[real], other: pk.View1D[pk.int32], source: pk.View2D[pk.double], charge: pk.View2D[real],
    constant: pk.View1D[real],
):  # fmt: skip
    """Add to u the source clusters other[j] of the item's list; particles xt are relative to the centre of their node.

    A source cluster c has box source[c] and proxy charges charge[c][(N1 (N1 k0 + k1) + k2) NC + n]; `constant` follows
    the charges of every point.  Only boxes are double, so that little accuracy is lost where `real` is float.  Clusters
    are apart from their targets, so no pair coincides.
    """
    node, first, count, m, j_begin, j_end = numbers(item, team.league_rank())

    def target(t: int):
        x: real = 0.0
        y: real = 0.0
        z: real = 0.0
        at_proxies: bool = m > 0
        if at_proxies:
            x = real(box[node][3]) * place[m - 1][proxy(t, m, 0)]
            y = real(box[node][4]) * place[m - 1][proxy(t, m, 1)]
            z = real(box[node][5]) * place[m - 1][proxy(t, m, 2)]
        else:
            x = xt[0][first + t]
            y = xt[1][first + t]
            z = xt[2][first + t]
        total: List[real] = [0.0] * NU
        far: List[real] = [0.0] * NF
        s: List[real] = [0.0] * NS
        for k in range(NP):
            s[NS - NP + k] = constant[k]
        for j in range(j_begin, j_end):
            c: int = other[j]
            cx: real = x + real(box[node][0] - source[c][0])
            cy: real = y + real(box[node][1] - source[c][1])
            cz: real = z + real(box[node][2] - source[c][2])
            hx: real = real(source[c][3])
            hy: real = real(source[c][4])
            hz: real = real(source[c][5])
            dz: List[real] = [0.0] * N1
            zz: List[real] = [0.0] * N1
            for k2 in range(N1):
                dz[k2] = cz - hz * place[N1 - 1][k2]
                zz[k2] = dz[k2] * dz[k2]
            acc: List[real] = [0.0] * NU
            for k0 in range(N1):
                dx: real = cx - hx * place[N1 - 1][k0]
                for k1 in range(N1):
                    dy: real = cy - hy * place[N1 - 1][k1]
                    row: int = (k0 * N1 + k1) * N1 * (NS - NP)
                    xy: real = dx * dx + dy * dy
                    for k2 in range(N1):
                        r2: real = xy + zz[k2]
                        for k in range(NS - NP):
                            s[k] = charge[c][row + k2 * (NS - NP) + k]
                        pair(dx, dy, dz[k2], r2, pk.rsqrt(r2), far, s, acc)
            for k in range(NU):
                total[k] += acc[k]
        for k in range(NU):
            u[k][first + t] += total[k]

    pk.parallel_for(pk.TeamThreadRange(team, count), target)
