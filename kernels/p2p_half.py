"""Particle-particle by half lists: the near field of a periodic Ewald sum of points at themselves, each pair once.

Points are numbered in the order of their cells.  A team meets the pairs whose lower number is in its block of cells: it
adds one field to the sum of the lower number and the opposite one to that of the higher number, which is at most rc
from the block.  Blocks of one launch are 2 rc apart, so no two teams add to one sum, and additions have one order.

A team goes over its columns in batches of SIZE targets.  It lists in scratch the sources with numbers from the batch on
that are within rc of the batch's bounding box, and of these the sources behind a group of GROUP targets that are within
rc of the group.  Lanes are sources of the last list, so both sums of a pair are sums over lanes or of a lane.  Pairs
within a group are met twice, and only the sums of its targets are taken.

A source is nearer than rc in one image at most, and a point has no image that near: all sides of the box are 4 rc.
When scratch is full, the list is summed and a new one begun.
"""

from typing import List

import pykokkos as pk

from parki.kernels.near import (
    LINEAR,
    NF,
    NS,
    SUMS,
    add_pair,
    all_columns,
    constants,
    images_along_z,
    nth_run,
    root_and_far_parts,
)

real = pk.double
LANES = 8  # sources that are summed at once
GROUP = 4  # targets of a group
SIZE = 24  # targets of a batch
RUNS = 256  # runs that fit in scratch
CAP = 1024  # sources that fit in scratch
PIECE = 256  # sources of a run that are tested at once
SPARE = GROUP + LANES  # places of a group's list for its own targets, and to fill the last lanes
NEAR = CAP + SPARE  # places of a group's list
GIVEN = LINEAR  # numbers that sources differ in: strengths and normals
BY_ROOT = False  # a pair has no field where 1/r and the far parts are 0
WIDTH = 3 + GIVEN  # numbers of a listed source: x, y, z, strengths and normals


@pk.workunit(
    scratch=[
        (pk.int32, lambda p: RUNS),
        (pk.int32, lambda p: RUNS),
        (real, lambda p: 3 * RUNS),
        (pk.int32, lambda p: CAP),
        (real, lambda p: WIDTH * CAP),
        (pk.int32, lambda p: NEAR),
        (real, lambda p: WIDTH * NEAR),
        (real, lambda p: SUMS * NEAR),
        (real, lambda p: WIDTH * SPARE),
        (real, lambda p: GROUP * SUMS * LANES),
    ]
)
def p2p_half(
    team: pk.TeamMember, xs: pk.View2D[real], strength: pk.View2D[real], u: pk.View2D[real],
    block: pk.View2D[pk.int32], bound: pk.View2D[real], cell_begin: pk.View1D[pk.int32], coef: pk.View1D[real],
    cells: pk.View1D[pk.int32], lattice: pk.View1D[real], tiny: real, first: int,
):  # fmt: skip
    """Add to u[:, i] the near field of the pairs of point i that the blocks from `first` on meet.

    block[b] = first cell and end along x, y, z; bound[b] is memory of its team; xs[:, e] is point e, strength[:, e] its
    strengths.
    """
    b: int = first + team.league_rank()
    n2, rc2, scale = constants(cells, lattice)
    outside: real = 8.0 * lattice[9]  # from any target, more than rc
    begin: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), RUNS)
    end: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), RUNS)
    shift: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), 3 * RUNS)
    number: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), CAP)
    listed: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), WIDTH * CAP)
    near_number: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), NEAR)
    near: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), WIDTH * NEAR)
    back: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), SUMS * NEAR)
    own: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), WIDTH * SPARE)
    part: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), GROUP * SUMS * LANES)
    x_begin: int = block[b][0]
    y_begin: int = block[b][2]
    y_count: int = block[b][3] - y_begin
    z_begin: int = block[b][4]
    z_end: int = block[b][5]
    column_end: int = (block[b][1] - x_begin) * y_count
    for column in range(column_end):
        along_x: int = column // y_count
        row: int = ((x_begin + along_x) * cells[1] + y_begin + column - along_x * y_count) * n2
        i_begin: int = cell_begin[row + z_begin]
        i_end: int = cell_begin[row + z_end]
        batches: int = (i_end - i_begin + SIZE - 1) // SIZE
        size: int = SIZE
        if batches > 0:  # whole groups, and batches of about the same size
            size = ((i_end - i_begin + batches * GROUP - 1) // (batches * GROUP)) * GROUP
            batches = (i_end - i_begin + size - 1) // size
        for batch in range(batches):
            t_begin: int = i_begin + batch * size
            t_end: int = t_begin + size
            if t_end > i_end:
                t_end = i_end

            def extent():
                for k in range(3):
                    low: real = xs[k][t_begin]
                    high: real = low
                    for i in range(t_begin + 1, t_end):
                        low = pk.fmin(low, xs[k][i])
                        high = pk.fmax(high, xs[k][i])
                    bound[b][k] = low
                    bound[b][3 + k] = high

            pk.single(pk.PerTeam(team), extent)
            team.team_barrier()
            first_slab, across, columns = all_columns(bound, b, t_end - t_begin, lattice)
            p_begin, p_end = images_along_z(bound, b, n2, cells, lattice)
            x_mid: real = 0.5 * (bound[b][0] + bound[b][3])
            y_mid: real = 0.5 * (bound[b][1] + bound[b][4])
            z_mid: real = 0.5 * (bound[b][2] + bound[b][5])
            x_half: real = 0.5 * (bound[b][3] - bound[b][0])
            y_half: real = 0.5 * (bound[b][4] - bound[b][1])
            z_half: real = 0.5 * (bound[b][5] - bound[b][2])
            lists: int = 0  # of this batch that are summed already: the first one has the pairs within groups
            for p in range(p_begin, p_end):
                for first_column in range(0, columns, RUNS):
                    some: int = columns - first_column
                    if some > RUNS:
                        some = RUNS

                    def meet(j: int, acc: pk.Acc[int], final: bool):
                        e_begin, e_end, x_shift, y_shift, z_shift = nth_run(
                            first_column + j, p, n2, first_slab, across, bound, b, cell_begin, cells, lattice
                        )
                        if e_begin < t_begin:
                            e_begin = t_begin
                        has_sources: bool = e_begin < e_end
                        if has_sources:
                            if final:
                                begin[acc] = e_begin
                                end[acc] = e_end
                                shift[acc] = x_shift
                                shift[RUNS + acc] = y_shift
                                shift[2 * RUNS + acc] = z_shift
                            acc += 1

                    runs: int = pk.parallel_scan(pk.TeamThreadRange(team, some), meet)
                    team.team_barrier()
                    g: int = 0
                    seen: int = 0  # sources of run g that are tested already
                    while g < runs:
                        n: int = 0
                        while g < runs and n + PIECE <= CAP:
                            e_first: int = begin[g] + seen
                            m: int = end[g] - e_first
                            if m > PIECE:
                                m = PIECE
                            x_shift: real = shift[g]
                            y_shift: real = shift[RUNS + g]
                            z_shift: real = shift[2 * RUNS + g]

                            def keep(j: int, acc: pk.Acc[int], final: bool):
                                e: int = e_first + j
                                x: real = xs[0][e] + x_shift
                                y: real = xs[1][e] + y_shift
                                z: real = xs[2][e] + z_shift
                                s: List[real] = [0.0] * GIVEN
                                for k in range(GIVEN):
                                    s[k] = strength[k][e]
                                dx: real = pk.fmax(pk.fabs(x - x_mid) - x_half, 0.0)
                                dy: real = pk.fmax(pk.fabs(y - y_mid) - y_half, 0.0)
                                dz: real = pk.fmax(pk.fabs(z - z_mid) - z_half, 0.0)
                                is_near: bool = dx * dx + dy * dy + dz * dz < rc2
                                if is_near:
                                    if final:
                                        number[n + acc] = e
                                        listed[n + acc] = x
                                        listed[CAP + n + acc] = y
                                        listed[2 * CAP + n + acc] = z
                                        for k in range(GIVEN):
                                            listed[(3 + k) * CAP + n + acc] = s[k]
                                    acc += 1

                            kept: int = pk.parallel_scan(pk.TeamThreadRange(team, m), keep)
                            n += kept
                            seen += m
                            if e_first + m == end[g]:
                                g += 1
                                seen = 0
                            team.team_barrier()
                        for g_begin in range(t_begin, t_end, GROUP):
                            g_end: int = g_begin + GROUP
                            if g_end > t_end:
                                g_end = t_end
                            x_low: real = xs[0][g_begin]
                            y_low: real = xs[1][g_begin]
                            z_low: real = xs[2][g_begin]
                            x_high: real = x_low
                            y_high: real = y_low
                            z_high: real = z_low
                            for i in range(g_begin + 1, g_end):
                                x_low = pk.fmin(x_low, xs[0][i])
                                y_low = pk.fmin(y_low, xs[1][i])
                                z_low = pk.fmin(z_low, xs[2][i])
                                x_high = pk.fmax(x_high, xs[0][i])
                                y_high = pk.fmax(y_high, xs[1][i])
                                z_high = pk.fmax(z_high, xs[2][i])
                            x_centre: real = 0.5 * (x_low + x_high)
                            y_centre: real = 0.5 * (y_low + y_high)
                            z_centre: real = 0.5 * (z_low + z_high)
                            x_reach: real = 0.5 * (x_high - x_low)
                            y_reach: real = 0.5 * (y_high - y_low)
                            z_reach: real = 0.5 * (z_high - z_low)

                            def keep_near(j: int, acc: pk.Acc[int], final: bool):
                                e: int = number[j]
                                x: real = listed[j]
                                y: real = listed[CAP + j]
                                z: real = listed[2 * CAP + j]
                                s: List[real] = [0.0] * GIVEN
                                for k in range(GIVEN):
                                    s[k] = listed[(3 + k) * CAP + j]
                                dx: real = pk.fmax(pk.fabs(x - x_centre) - x_reach, 0.0)
                                dy: real = pk.fmax(pk.fabs(y - y_centre) - y_reach, 0.0)
                                dz: real = pk.fmax(pk.fabs(z - z_centre) - z_reach, 0.0)
                                is_near: bool = dx * dx + dy * dy + dz * dz < rc2 and e >= g_end
                                if is_near:
                                    if final:
                                        near_number[acc] = e
                                        near[acc] = x
                                        near[NEAR + acc] = y
                                        near[2 * NEAR + acc] = z
                                        for k in range(GIVEN):
                                            near[(3 + k) * NEAR + acc] = s[k]
                                    acc += 1

                            others: int = pk.parallel_scan(pk.TeamThreadRange(team, n), keep_near)
                            turns: int = (others + GROUP + LANES - 1) // LANES
                            team.team_barrier()

                            def fill(t: int):
                                i: int = g_begin + t
                                x: real = x_centre - outside
                                y: real = y_centre
                                z: real = z_centre
                                s: List[real] = [0.0] * GIVEN
                                is_target: bool = t < GROUP and i < g_end
                                if is_target:
                                    x = xs[0][i]
                                    y = xs[1][i]
                                    z = xs[2][i]
                                    for k in range(GIVEN):
                                        s[k] = strength[k][i]
                                own[t] = x
                                own[SPARE + t] = y
                                own[2 * SPARE + t] = z
                                if lists > 0:
                                    x = x_centre + outside
                                near[others + t] = x
                                near[NEAR + others + t] = y
                                near[2 * NEAR + others + t] = z
                                for k in range(GIVEN):
                                    own[(3 + k) * SPARE + t] = s[k]
                                    near[(3 + k) * NEAR + others + t] = s[k]

                            pk.parallel_for(pk.TeamThreadRange(team, SPARE), fill)
                            team.team_barrier()

                            def stream(lane: int):
                                acc: List[real] = [0.0] * (GROUP * SUMS)
                                s: List[real] = [0.0] * NS
                                mine: List[real] = [0.0] * NS
                                for k in range(GIVEN, NS):  # the kernel's numbers are behind those of sources
                                    s[k] = strength[k][0]
                                    mine[k] = strength[k][0]
                                for turn in range(turns):
                                    j: int = turn * LANES + lane
                                    x: real = near[j]
                                    y: real = near[NEAR + j]
                                    z: real = near[2 * NEAR + j]
                                    other: List[real] = [0.0] * SUMS
                                    for t in range(GROUP):
                                        dx: real = own[t] - x
                                        dy: real = own[SPARE + t] - y
                                        dz: real = own[2 * SPARE + t] - z
                                        r2: real = dx * dx + dy * dy + dz * dz
                                        is_far: bool = r2 >= rc2
                                        if is_far:
                                            r2 = rc2  # polynomials of far parts may overflow beyond it
                                        far: List[real] = [0.0] * NF
                                        w: real = root_and_far_parts(r2, coef, scale, tiny, far)
                                        for k in range(GIVEN):
                                            s[k] = near[(3 + k) * NEAR + j]
                                            mine[k] = own[(3 + k) * SPARE + t]
                                        if BY_ROOT:
                                            if is_far:
                                                w = 0.0
                                                for f in range(NF):
                                                    far[f] = 0.0
                                        else:
                                            for k in range(LINEAR):
                                                if is_far:
                                                    s[k] = 0.0
                                                    mine[k] = 0.0
                                        sums: List[real] = [0.0] * SUMS
                                        for k in range(SUMS):
                                            sums[k] = acc[t * SUMS + k]
                                        add_pair(0, dx, dy, dz, r2, w, far, s, sums)
                                        for k in range(SUMS):
                                            acc[t * SUMS + k] = sums[k]
                                        add_pair(0, -dx, -dy, -dz, r2, w, far, mine, other)
                                    for k in range(SUMS):
                                        back[k * NEAR + j] = other[k]
                                for k in range(GROUP * SUMS):
                                    part[k * LANES + lane] = acc[k]

                            pk.parallel_for(pk.TeamThreadRange(team, LANES), stream)
                            team.team_barrier()

                            def total(t: int):
                                for k in range(SUMS):

                                    def over_lanes(lane: int, acc: pk.Acc[real]):
                                        acc += part[(t * SUMS + k) * LANES + lane]

                                    v: real = pk.parallel_reduce(pk.ThreadVectorRange(team, LANES), over_lanes)

                                    def store():
                                        u[k][g_begin + t] += v

                                    pk.single(pk.PerThread(team), store)

                            pk.parallel_for(pk.TeamThreadRange(team, g_end - g_begin), total)
                            team.team_barrier()

                            def react():
                                for j in range(others):
                                    for k in range(SUMS):
                                        u[k][near_number[j]] += back[k * NEAR + j]

                            pk.single(pk.PerTeam(team), react)
                            team.team_barrier()
                        lists += 1
            team.team_barrier()
