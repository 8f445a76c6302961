"""Sums between particles and the surfaces of boxes: check values of particles, fields of equivalents at particles.

The values of the box at place c of octet b are [b][component x points + point][c].  `surface` has the points for the
box of half side 1.
"""

from typing import List

import pykokkos as pk

from parki.kernels.pair.laplace import NF, NS, NU, pair
from parki.kernels.particles import add_sources

real = pk.double
NP = 0  # parameters of a source that are the same for all sources
TRUE_SIZE = False  # surfaces have the size of their boxes, else that of the unit box


@pk.workunit
def check_values(
    team: pk.TeamMember, item: pk.View2D[pk.int32], box: pk.View2D[pk.double], factor: pk.View2D[real],
    surface: pk.View2D[real], span: pk.View2D[pk.int32], src: pk.View2D[real], value: pk.View3D[real], points: int,
):  # fmt: skip
    """Add the sources of ranges span[item[b][3]] … span[item[b][4] - 1] to the check values of box item[b][0].

    In `value` the box has octet item[b][1] and place item[b][2].  A box is (centre, half side), a source
    (x, y, z, strengths); factor[box] multiplies the components.
    """
    b: int = team.league_rank()
    node: int = item[b][0]
    octet: int = item[b][1]
    place: int = item[b][2]
    j_begin: int = item[b][3]
    j_end: int = item[b][4]
    size: real = real(box[node][3])
    ox: real = real(box[node][0])
    oy: real = real(box[node][1])
    oz: real = real(box[node][2])

    def target(t: int):
        x: real = size * surface[0][t]
        y: real = size * surface[1][t]
        z: real = size * surface[2][t]
        acc: List[real] = [0.0] * NU
        for j in range(j_begin, j_end):
            e_begin: int = span[j][0]
            e_end: int = span[j][1]
            add_sources(x, y, z, src, e_begin, e_end, ox, oy, oz, 0.0, acc)
        for k in range(NU):
            value[octet][k * points + t][place] += factor[node][k] * acc[k]

    pk.parallel_for(pk.TeamThreadRange(team, points), target)


@pk.workunit
def fields(
    team: pk.TeamMember, item: pk.View2D[pk.int32], xt: pk.View2D[real], u: pk.View2D[real],
    other: pk.View1D[pk.int32], slot: pk.View1D[pk.int32], box: pk.View2D[pk.double], factor: pk.View2D[real],
    surface: pk.View2D[real], constant: pk.View2D[real], value: pk.View3D[real], points: int,
):  # fmt: skip
    """Add the fields of boxes other[item[b][2]] … other[item[b][3] - 1] to u, at item[b][1] targets from item[b][0] on.

    Box c is at place slot[c] % 8 of octet slot[c] // 8; constant[c] follows its equivalents, and factor[c] multiplies
    the components of its field.  A box is (centre, 1 / half side, half side).  Targets are apart from the surfaces.
    """
    b: int = team.league_rank()
    first: int = item[b][0]
    count: int = item[b][1]
    j_begin: int = item[b][2]
    j_end: int = item[b][3]

    def target(t: int):
        i: int = first + t
        x: real = xt[0][i]
        y: real = xt[1][i]
        z: real = xt[2][i]
        total: List[real] = [0.0] * NU
        far: List[real] = [0.0] * NF
        s: List[real] = [0.0] * NS
        for j in range(j_begin, j_end):
            c: int = other[j]
            octet: int = slot[c] // 8
            place: int = slot[c] % 8
            size: real = real(box[c][3])
            half: real = real(box[c][4])
            cx: real = size * (x - real(box[c][0]))
            cy: real = size * (y - real(box[c][1]))
            cz: real = size * (z - real(box[c][2]))
            for k in range(NP):
                s[NS - NP + k] = constant[c][k]
            acc: List[real] = [0.0] * NU
            for e in range(points):
                dx: real = cx - surface[0][e]
                dy: real = cy - surface[1][e]
                dz: real = cz - surface[2][e]
                if TRUE_SIZE:
                    dx *= half
                    dy *= half
                    dz *= half
                r2: real = dx * dx + dy * dy + dz * dz
                w: real = pk.rsqrt(r2)
                for k in range(NS - NP):
                    s[k] = value[octet][k * points + e][place]
                pair(dx, dy, dz, r2, w, far, s, acc)
            for k in range(NU):
                total[k] += factor[c][k] * acc[k]
        for k in range(NU):
            u[k][i] += total[k]

    pk.parallel_for(pk.TeamThreadRange(team, count), target)
