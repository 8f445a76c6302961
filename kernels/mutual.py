"""Particle-particle between leaves of a tree whose targets are its sources: each pair of different leaves once.

An item is (first, end, begin, end): a leaf's particles, and its places in the list of ranges of particles, which follow
the leaf in the order of the tree.  Both fields of a pair are added: at the leaf's particle, and the opposite one at the
other.  A team has the items of a meeting of two parts of all particles; meetings of a launch have no part in common, so
no two teams add to one sum, and the order of additions is fixed.

Lanes are particles of the ranges, and go over GROUP particles of the leaf, whose sums are those over lanes.
"""

from typing import List

import pykokkos as pk

from parki.kernels.pair.laplace import NF, NS, NU, pair
from parki.kernels.scalar import rinv_or_zero

real = pk.double
NP = 0  # parameters of a source that are the same for all sources
LANES = 8  # particles of ranges that are summed at once
GROUP = 6  # particles of a leaf that share them
CHARGES = NS - NP
WIDTH = 4 + CHARGES  # numbers of a particle of a leaf: x, y, z, largest squared distance of coincidence, charges
FIELDS = GROUP * NU


@pk.workunit(scratch=[(real, lambda p: WIDTH * GROUP), (real, lambda p: FIELDS * LANES)])
def mutual(
    team: pk.TeamMember, meeting: pk.View1D[pk.int32], item: pk.View2D[pk.int32], span: pk.View2D[pk.int32],
    xt: pk.View2D[real], charge: pk.View2D[real], src: pk.View2D[real], u: pk.View2D[real], tiny: real, first: int,
):  # fmt: skip
    """Add to u the fields of the items of meetings, meeting[b] … meeting[b + 1] - 1, from meeting `first` on.

    A pair coincides if its squared distance is at most `tiny` times the leaf's particle's from the origin.
    """
    b: int = first + team.league_rank()
    own: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), WIDTH * GROUP)
    part: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), FIELDS * LANES)
    item_begin: int = meeting[b]
    item_end: int = meeting[b + 1]
    for i in range(item_begin, item_end):
        t_first: int = item[i][0]
        t_end: int = item[i][1]
        j_begin: int = item[i][2]
        j_end: int = item[i][3]
        for t_begin in range(t_first, t_end, GROUP):

            def take(t: int):
                at: int = t_begin
                is_particle: bool = t_begin + t < t_end
                if is_particle:
                    at = t_begin + t
                x: real = xt[0][at]
                y: real = xt[1][at]
                z: real = xt[2][at]
                own[t] = x
                own[GROUP + t] = y
                own[2 * GROUP + t] = z
                own[3 * GROUP + t] = tiny * (x * x + y * y + z * z)
                for k in range(CHARGES):
                    q: real = charge[k][at]
                    if not is_particle:
                        q = 0.0
                    own[(4 + k) * GROUP + t] = q

            pk.parallel_for(pk.TeamThreadRange(team, GROUP), take)
            team.team_barrier()

            def stream(lane: int):
                acc: List[real] = [0.0] * FIELDS
                far: List[real] = [0.0] * NF
                s: List[real] = [0.0] * NS
                mine: List[real] = [0.0] * NS
                for k in range(CHARGES, NS):
                    s[k] = src[t_begin][3 + k]
                    mine[k] = s[k]
                for j in range(j_begin, j_end):
                    e_begin: int = span[j][0]
                    e_end: int = span[j][1]
                    turns: int = (e_end - e_begin + LANES - 1) // LANES
                    for turn in range(turns):
                        e: int = e_begin + turn * LANES + lane
                        is_whole: bool = e_begin + turn * LANES + LANES <= e_end
                        is_particle: bool = e < e_end
                        x: real = 0.0
                        y: real = 0.0
                        z: real = 0.0
                        for k in range(CHARGES):
                            s[k] = 0.0
                        if is_whole:
                            x = xt[0][e]
                            y = xt[1][e]
                            z = xt[2][e]
                            for k in range(CHARGES):
                                s[k] = charge[k][e]
                        else:
                            if is_particle:
                                x = xt[0][e]
                                y = xt[1][e]
                                z = xt[2][e]
                                for k in range(CHARGES):
                                    s[k] = charge[k][e]
                        other: List[real] = [0.0] * NU
                        for t in range(GROUP):
                            dx: real = own[t] - x
                            dy: real = own[GROUP + t] - y
                            dz: real = own[2 * GROUP + t] - z
                            r2: real = dx * dx + dy * dy + dz * dz
                            w: real = rinv_or_zero(r2, own[3 * GROUP + t])
                            sums: List[real] = [0.0] * NU
                            for k in range(NU):
                                sums[k] = acc[t * NU + k]
                            pair(dx, dy, dz, r2, w, far, s, sums)
                            for k in range(NU):
                                acc[t * NU + k] = sums[k]
                            for k in range(CHARGES):
                                mine[k] = own[(4 + k) * GROUP + t]
                            pair(-dx, -dy, -dz, r2, w, far, mine, other)
                        if is_whole:
                            for k in range(NU):
                                u[k][e] += other[k]
                        else:
                            if is_particle:
                                for k in range(NU):
                                    u[k][e] += other[k]
                for k in range(FIELDS):
                    part[k * LANES + lane] = acc[k]

            pk.parallel_for(pk.TeamThreadRange(team, LANES), stream)
            team.team_barrier()

            def total(t: int):
                for k in range(NU):

                    def over_lanes(lane: int, acc: pk.Acc[real]):
                        acc += part[(t * NU + k) * LANES + lane]

                    v: real = pk.parallel_reduce(pk.ThreadVectorRange(team, LANES), over_lanes)
                    is_particle: bool = t_begin + t < t_end

                    def store():
                        u[k][t_begin + t] += v

                    if is_particle:
                        pk.single(pk.PerThread(team), store)

            pk.parallel_for(pk.TeamThreadRange(team, GROUP), total)
