"""Proxy charges and potentials of clusters: tensor products of Lagrange polynomials at Chebyshev points.

A cluster's box is (centre x, y, z, half sides x, y, z); its proxy points are centre + half side x node.
The value at point (k0, k1, k2) of N per direction has the index N (N k0 + k1) + k2.  On a side of length 0 all points
coincide.  Polynomials are products of differences, so they are exactly 0 or 1 at the points themselves.
"""

from typing import List

import pykokkos as pk

real = pk.double
N1 = 9  # points per direction
NC = 1  # charges of a source
NP = 0  # parameters of a source that are the same for all sources, behind its charges
NU = 1  # potentials of a target
BLOCK = 128  # particles whose polynomials are in scratch
ANTERPOLATE = True  # `transfer` takes charges to charges, else potentials to potentials


@pk.function
def lagrange(x: real, nodes: pk.View2D[pk.double], weights: pk.View2D[pk.double], value: List[real]) -> None:
    """Evaluate all N1 polynomials at x in [-1, 1]; weights[N1 - 1][k] = 1 / product over j != k of node k - node j."""
    before: real = 1.0
    for k in range(N1):
        value[k] = before * real(weights[N1 - 1][k])
        before *= x - real(nodes[N1 - 1][k])
    after: real = 1.0
    for k in range(N1):
        value[N1 - 1 - k] *= after
        after *= x - real(nodes[N1 - 1][N1 - 1 - k])


@pk.function
def unit(x: pk.double, centre: pk.double, half: pk.double) -> real:
    """Map a coordinate in a cluster's box to [-1, 1]."""
    v: real = 0.0
    has_extent: bool = half > 0.0
    if has_extent:
        v = real((x - centre) / half)
    return v


@pk.workunit(scratch=[(real, lambda p: 3 * N1 * BLOCK), (real, lambda p: N1 * BLOCK)])
def charges(
    team: pk.TeamMember, leaf: pk.View2D[pk.int32], src: pk.View2D[real], box: pk.View2D[pk.double],
    nodes: pk.View2D[pk.double], weights: pk.View2D[pk.double], charge: pk.View2D[real],
):  # fmt: skip
    """Set charge[node][k NC + n] from sources (x, y, z, charges) first … end - 1 of leaf (node, first, end)."""
    b: int = team.league_rank()
    node: int = leaf[b][0]
    first: int = leaf[b][1]
    end: int = leaf[b][2]
    values: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), 3 * N1 * BLOCK)
    plane: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), N1 * BLOCK)

    def clear(k: int):
        charge[node][k] = 0.0

    pk.parallel_for(pk.TeamThreadRange(team, N1 * N1 * N1 * NC), clear)
    for begin in range(first, end, BLOCK):
        m: int = end - begin
        if m > BLOCK:
            m = BLOCK

        def polynomials(e: int):
            for d in range(3):
                value: List[real] = [0.0] * N1
                lagrange(unit(pk.double(src[begin + e][d]), box[node][d], box[node][3 + d]), nodes, weights, value)
                for k in range(N1):
                    values[(d * N1 + k) * BLOCK + e] = value[k]

        pk.parallel_for(pk.TeamThreadRange(team, m), polynomials)
        team.team_barrier()
        for n in range(NC):
            for k0 in range(N1):

                def row(k1: int):
                    def product(e: int):
                        strength: real = src[begin + e][3 + n]
                        plane[k1 * BLOCK + e] = values[k0 * BLOCK + e] * values[(N1 + k1) * BLOCK + e] * strength

                    pk.parallel_for(pk.ThreadVectorRange(team, m), product)
                    for k2 in range(N1):

                        def line(e: int, acc: pk.Acc[real]):
                            acc += plane[k1 * BLOCK + e] * values[(2 * N1 + k2) * BLOCK + e]

                        v: real = pk.parallel_reduce(pk.ThreadVectorRange(team, m), line)

                        def store():
                            charge[node][((k0 * N1 + k1) * N1 + k2) * NC + n] += v

                        pk.single(pk.PerThread(team), store)

                pk.parallel_for(pk.TeamThreadRange(team, N1), row)
                team.team_barrier()


@pk.workunit(scratch=[(real, lambda p: 2 * N1 * BLOCK)])
def potentials(
    team: pk.TeamMember, leaf: pk.View2D[pk.int32], xt: pk.View2D[real], box: pk.View2D[pk.double],
    nodes: pk.View2D[pk.double], weights: pk.View2D[pk.double], phi: pk.View2D[real], u: pk.View2D[real],
):  # fmt: skip
    """Add the potentials of the leaf's cluster, phi[n][node N1³ + k], at its targets i to u[n][i]."""
    b: int = team.league_rank()
    node: int = leaf[b][0]
    first: int = leaf[b][1]
    end: int = leaf[b][2]
    base: int = node * (N1 * N1 * N1)
    values: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), 2 * N1 * BLOCK)
    for begin in range(first, end, BLOCK):
        m: int = end - begin
        if m > BLOCK:
            m = BLOCK

        def target(t: int):
            i: int = begin + t
            value: List[real] = [0.0] * N1
            for d in range(2):
                lagrange(unit(pk.double(xt[d][i]), box[node][d], box[node][3 + d]), nodes, weights, value)
                for k in range(N1):
                    values[(d * N1 + k) * BLOCK + t] = value[k]
            lagrange(unit(pk.double(xt[2][i]), box[node][2], box[node][5]), nodes, weights, value)
            for n in range(NU):
                total: real = 0.0
                for k0 in range(N1):
                    plane: real = 0.0
                    for k1 in range(N1):
                        at: int = base + (k0 * N1 + k1) * N1
                        row: real = 0.0
                        for k2 in range(N1):
                            row += value[k2] * phi[n][at + k2]
                        plane += values[(N1 + k1) * BLOCK + t] * row
                    total += values[k0 * BLOCK + t] * plane
                u[n][i] += total

        pk.parallel_for(pk.TeamThreadRange(team, m), target)
        team.team_barrier()


@pk.workunit(scratch=[(real, lambda p: 3 * p.m * p.n), (real, lambda p: p.m * p.m), (real, lambda p: p.n * p.m)])
def transfer(
    team: pk.TeamMember, item: pk.View2D[pk.int32], box: pk.View2D[pk.double], to_box: pk.View2D[pk.double],
    nodes: pk.View2D[pk.double], weights: pk.View2D[pk.double], given: pk.View2D[real], made: pk.View2D[real], m: int,
    n: int,
):  # fmt: skip
    """Add values of clusters item[b][1] … item[b][2] - 1 to those of cluster item[b][0], n points per direction.

    ANTERPOLATE: charges (cluster, point x NC) at m points per direction become charges at n points, by the polynomials
    of the receiving cluster (upward; fewer points of the same box).  Else potentials (NU, cluster x point) at m points
    are interpolated at the points of the receiving cluster (downward; more points of the same box).  The axes follow
    one after another, for one plane of points at a time.
    """
    b: int = team.league_rank()
    to: int = item[b][0]
    begin: int = item[b][1]
    end: int = item[b][2]
    values: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), 3 * m * n)
    once: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), m * m)
    twice: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), n * m)
    for c in range(begin, end):

        def polynomials(e: int):
            """Set values[(d n + j) m + i], the factor of value i in value j along axis d."""
            d: int = e // (m * n)
            j: int = e // m % n
            i: int = e % m
            v: real = 1.0
            if ANTERPOLATE:
                x: real = unit(box[c][d] + box[c][3 + d] * nodes[m - 1][i], to_box[to][d], to_box[to][3 + d])
                for k in range(n):
                    other_made: bool = k != j
                    if other_made:
                        v *= x - real(nodes[n - 1][k])
                v *= real(weights[n - 1][j])
            else:
                y: real = unit(to_box[to][d] + to_box[to][3 + d] * nodes[n - 1][j], box[c][d], box[c][3 + d])
                for k in range(m):
                    other_given: bool = k != i
                    if other_given:
                        v *= y - real(nodes[m - 1][k])
                v *= real(weights[m - 1][i])
            values[e] = v

        pk.parallel_for(pk.TeamThreadRange(team, 3 * m * n), polynomials)
        team.team_barrier()
        for comp in range(NC):
            for j0 in range(n):

                def first(e: int):
                    v: real = 0.0
                    for i in range(m):
                        if ANTERPOLATE:
                            v += values[j0 * m + i] * given[c][(i * (m * m) + e) * NC + comp]
                        else:
                            v += values[j0 * m + i] * given[comp][c * (m * m * m) + i * (m * m) + e]
                    once[e] = v

                pk.parallel_for(pk.TeamThreadRange(team, m * m), first)
                team.team_barrier()

                def second(e: int):
                    j1: int = e // m
                    i2: int = e % m
                    v: real = 0.0
                    for i in range(m):
                        v += values[(n + j1) * m + i] * once[i * m + i2]
                    twice[e] = v

                pk.parallel_for(pk.TeamThreadRange(team, n * m), second)
                team.team_barrier()

                def third(e: int):
                    j1: int = e // n
                    j2: int = e % n
                    v: real = 0.0
                    for i in range(m):
                        v += values[(2 * n + j2) * m + i] * twice[j1 * m + i]
                    if ANTERPOLATE:
                        made[to][(j0 * (n * n) + e) * NC + comp] += v
                    else:
                        made[comp][to * (n * n * n) + j0 * (n * n) + e] += v

                pk.parallel_for(pk.TeamThreadRange(team, n * n), third)
                team.team_barrier()
