"""Particle-particle with lists: the near field of a periodic Ewald sum, |r| < rc, in the arguments of p2p.py.

A team lists in scratch the runs of sources within reach of its batch, and of these the sources that are within rc of
the batch's bounding box; then every target goes over that list.  Lanes of hosts are columns of cells, then sources,
then targets, of which nearly all are within rc of each source of the list.

When scratch is full, the list is summed and a new one begun.
"""

from typing import List

import pykokkos as pk

from parki.kernels.near import SUMS, add_listed, all_columns, constants, images_along_z, nth_run

real = pk.double
RUNS = 256  # runs that fit in scratch
CAP = 2048  # sources that fit in scratch
PIECE = 256  # sources of a run that are tested at once


@pk.workunit(
    scratch=[
        (pk.int32, lambda p: CAP),
        (pk.int32, lambda p: RUNS),
        (pk.int32, lambda p: RUNS),
        (pk.int32, lambda p: RUNS),
        (pk.int32, lambda p: RUNS),
        (real, lambda p: RUNS),
        (real, lambda p: RUNS),
        (real, lambda p: RUNS),
    ]
)
def p2p_list(
    team: pk.TeamMember, xt: pk.View2D[real], xs: pk.View2D[real], src: pk.View2D[real], u: pk.View2D[real],
    batch: pk.View2D[pk.int32], bound: pk.View2D[real], cell_begin: pk.View1D[pk.int32], coef: pk.View1D[real],
    cells: pk.View1D[pk.int32], lattice: pk.View1D[real], tiny: real,
):  # fmt: skip
    """Set u[:, i] to the near field at target i; xs[:, e] is the position of source e."""
    b: int = team.league_rank()
    t_begin: int = batch[b][0]
    nt: int = batch[b][1] - t_begin
    n2, rc2, scale = constants(cells, lattice)
    first_slab, across, columns = all_columns(bound, b, nt, lattice)
    found: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), CAP)
    begin: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), RUNS)
    end: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), RUNS)
    image: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), RUNS)
    stop: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), RUNS)
    shift_x: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), RUNS)
    shift_y: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), RUNS)
    shift_z: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), RUNS)
    p_begin, p_end = images_along_z(bound, b, n2, cells, lattice)

    def clear(t: int):
        for k in range(SUMS):
            u[k][t_begin + t] = 0.0

    pk.parallel_for(pk.TeamThreadRange(team, nt), clear)
    for p in range(p_begin, p_end):
        for column in range(0, columns, RUNS):
            some: int = columns - column
            if some > RUNS:
                some = RUNS

            def meet(j: int, acc: pk.Acc[int], final: bool):
                e_begin, e_end, x_shift, y_shift, z_shift = nth_run(
                    column + j, p, n2, first_slab, across, bound, b, cell_begin, cells, lattice
                )
                has_sources: bool = e_begin < e_end
                if has_sources:
                    if final:
                        begin[acc] = e_begin
                        end[acc] = e_end
                        shift_x[acc] = x_shift
                        shift_y[acc] = y_shift
                        shift_z[acc] = z_shift
                    acc += 1

            runs: int = pk.parallel_scan(pk.TeamThreadRange(team, some), meet)
            team.team_barrier()
            first_run: int = 0
            seen: int = 0  # sources of that run that are tested already
            while first_run < runs:
                n: int = 0
                g: int = first_run
                of: int = first_run  # first of the consecutive runs in one image
                segments: int = 0
                while g < runs and n + PIECE <= CAP:
                    e_first: int = begin[g] + seen
                    m: int = end[g] - e_first
                    if m > PIECE:
                        m = PIECE
                    cx: real = 0.5 * (bound[b][0] + bound[b][3]) - shift_x[g]
                    cy: real = 0.5 * (bound[b][1] + bound[b][4]) - shift_y[g]
                    cz: real = 0.5 * (bound[b][2] + bound[b][5]) - shift_z[g]
                    hx: real = 0.5 * (bound[b][3] - bound[b][0])
                    hy: real = 0.5 * (bound[b][4] - bound[b][1])
                    hz: real = 0.5 * (bound[b][5] - bound[b][2])

                    def keep(j: int, acc: pk.Acc[int], final: bool):
                        e: int = e_first + j
                        dx: real = pk.fabs(xs[0][e] - cx) - hx
                        dy: real = pk.fabs(xs[1][e] - cy) - hy
                        dz: real = pk.fabs(xs[2][e] - cz) - hz
                        if dx < 0.0:
                            dx = 0.0
                        if dy < 0.0:
                            dy = 0.0
                        if dz < 0.0:
                            dz = 0.0
                        near_box: bool = dx * dx + dy * dy + dz * dz < rc2
                        if near_box:
                            if final:
                                found[n + acc] = e
                            acc += 1

                    kept: int = pk.parallel_scan(pk.TeamThreadRange(team, m), keep)
                    n += kept
                    if shift_x[g] != shift_x[of] or shift_y[g] != shift_y[of] or shift_z[g] != shift_z[of]:
                        of = g
                        segments += 1
                    same: int = of
                    until: int = n
                    here: int = segments

                    def close():
                        image[here] = same
                        stop[here] = until

                    pk.single(pk.PerTeam(team), close)
                    team.team_barrier()
                    seen += m
                    if e_first + m == end[g]:
                        g += 1
                        seen = 0

                def target(t: int):
                    i: int = t_begin + t
                    x: real = xt[0][i]
                    y: real = xt[1][i]
                    z: real = xt[2][i]
                    acc: List[real] = [0.0] * SUMS
                    q_begin: int = 0
                    for k in range(0, segments + 1):
                        x_here: real = x - shift_x[image[k]]
                        y_here: real = y - shift_y[image[k]]
                        z_here: real = z - shift_z[image[k]]
                        q_end: int = stop[k]
                        for q in range(q_begin, q_end):
                            add_listed(x_here, y_here, z_here, src, found[q], coef, rc2, scale, tiny, acc)
                        q_begin = q_end
                    for k in range(SUMS):
                        u[k][i] += acc[k]

                pk.parallel_for(pk.TeamThreadRange(team, nt), target)
                team.team_barrier()
                first_run = g
