"""Particle-particle with a list for each target: the near field of a periodic Ewald sum, as by p2p_list.py.

A team lists in scratch the runs of sources within reach of its batch.  Lanes share a target: they test the sources of
these runs, list those within rc, and as soon as the list has one for each lane they add their fields.  So all lanes
have work, and few sources are tested in vain: LIST for machines with wide rows of lanes and little scratch.
"""

from typing import List

import pykokkos as pk

from parki.kernels.near import SUMS, add_fields, all_columns, constants, images_along_z, nth_run, separation

real = pk.double
TARGETS = 4  # targets of a batch, at most
LANES = 32  # lanes that share a target
RUNS = 128  # runs that fit in scratch


@pk.function
def add_found(
    x: real, y: real, z: real, src: pk.View2D[real], e: int, g: int, shift_x: pk.ScratchView1D[real],
    shift_y: pk.ScratchView1D[real], shift_z: pk.ScratchView1D[real], coef: pk.View1D[real], scale: real, tiny: real,
    acc: List[real],
) -> None:  # fmt: skip
    """Add to acc the fields of source e of run g, which is within rc."""
    dx, dy, dz, r2 = separation(x - shift_x[g], y - shift_y[g], z - shift_z[g], src, e)
    add_fields(dx, dy, dz, r2, src, e, coef, scale, tiny, acc)


@pk.workunit(
    scratch=[
        (pk.int32, lambda p: RUNS),
        (pk.int32, lambda p: RUNS),
        (real, lambda p: RUNS),
        (real, lambda p: RUNS),
        (real, lambda p: RUNS),
        (pk.int32, lambda p: 2 * TARGETS * LANES),
        (pk.int32, lambda p: 2 * TARGETS * LANES),
        (real, lambda p: TARGETS * SUMS * LANES),
    ]
)
def p2p_list_2d(
    team: pk.TeamMember, xt: pk.View2D[real], xs: pk.View2D[real], src: pk.View2D[real], u: pk.View2D[real],
    batch: pk.View2D[pk.int32], bound: pk.View2D[real], cell_begin: pk.View1D[pk.int32], coef: pk.View1D[real],
    cells: pk.View1D[pk.int32], lattice: pk.View1D[real], tiny: real,
):  # fmt: skip
    """Set u[:, i] to the field at target i of all sources e, at xs[:, e], that are within rc."""
    b: int = team.league_rank()
    t_begin: int = batch[b][0]
    nt: int = batch[b][1] - t_begin
    n2, rc2, scale = constants(cells, lattice)
    first_slab, across, columns = all_columns(bound, b, nt, lattice)
    begin: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), RUNS)
    end: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), RUNS)
    shift_x: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), RUNS)
    shift_y: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), RUNS)
    shift_z: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), RUNS)
    found: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), 2 * TARGETS * LANES)
    image: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), 2 * TARGETS * LANES)
    part: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), TARGETS * SUMS * LANES)
    p_begin, p_end = images_along_z(bound, b, n2, cells, lattice)
    images: int = p_end - p_begin

    def clear(place: int):
        part[place] = 0.0

    pk.parallel_for(pk.TeamThreadRange(team, nt * (SUMS * LANES)), clear)
    team.team_barrier()
    for first_run in range(0, columns * images, RUNS):
        some: int = columns * images - first_run
        if some > RUNS:
            some = RUNS

        def meet(j: int, acc: pk.Acc[int], final: bool):
            column: int = (first_run + j) // images
            p: int = p_begin + first_run + j - column * images
            e_begin, e_end, x_shift, y_shift, z_shift = nth_run(
                column, p, n2, first_slab, across, bound, b, cell_begin, cells, lattice
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

        def target(t: int):
            x: real = xt[0][t_begin + t]
            y: real = xt[1][t_begin + t]
            z: real = xt[2][t_begin + t]
            at: int = 2 * LANES * t
            n: int = 0  # sources in this target's list
            for g in range(runs):
                x_here: real = x - shift_x[g]
                y_here: real = y - shift_y[g]
                z_here: real = z - shift_z[g]
                e_begin: int = begin[g]
                e_end: int = end[g]
                for e in range(e_begin, e_end, LANES):
                    m: int = e_end - e
                    if m > LANES:
                        m = LANES

                    def keep(j: int, acc: pk.Acc[int], final: bool):
                        dx: real = x_here - xs[0][e + j]
                        dy: real = y_here - xs[1][e + j]
                        dz: real = z_here - xs[2][e + j]
                        in_reach: bool = dx * dx + dy * dy + dz * dz < rc2
                        if in_reach:
                            if final:
                                found[at + n + acc] = e + j
                                image[at + n + acc] = g
                            acc += 1

                    kept: int = pk.parallel_scan(pk.ThreadVectorRange(team, m), keep)
                    n += kept
                    is_full: bool = n >= LANES
                    if is_full:
                        n -= LANES

                        def add(lane: int):
                            e_found: int = found[at + n + lane]
                            g_found: int = image[at + n + lane]
                            acc: List[real] = [0.0] * SUMS
                            add_found(x, y, z, src, e_found, g_found, shift_x, shift_y, shift_z, coef, scale, tiny, acc)
                            for q in range(SUMS):
                                part[(t * SUMS + q) * LANES + lane] += acc[q]

                        pk.parallel_for(pk.ThreadVectorRange(team, LANES), add)

            def add_rest(rest: int):
                e_found: int = found[at + rest]
                g_found: int = image[at + rest]
                acc: List[real] = [0.0] * SUMS
                add_found(x, y, z, src, e_found, g_found, shift_x, shift_y, shift_z, coef, scale, tiny, acc)
                for q in range(SUMS):
                    part[(t * SUMS + q) * LANES + rest] += acc[q]

            pk.parallel_for(pk.ThreadVectorRange(team, n), add_rest)

        pk.parallel_for(pk.TeamThreadRange(team, nt), target)
        team.team_barrier()

    def total(t: int):
        for q in range(SUMS):

            def row_sum(lane: int, acc: pk.Acc[real]):
                acc += part[(t * SUMS + q) * LANES + lane]

            v: real = pk.parallel_reduce(pk.ThreadVectorRange(team, LANES), row_sum)

            def store():
                u[q][t_begin + t] = v

            pk.single(pk.PerThread(team), store)

    pk.parallel_for(pk.TeamThreadRange(team, nt), total)
