"""Particle-particle: the near field of a periodic Ewald sum, |r| < rc, in three loops over the same arguments.

Sources are sorted by cell, the last axis fastest, so the cells of one (x, y) column that lie within reach of a batch of
targets are one run of sources.  A batch is a few neighbouring targets, one vector's worth on a host; its bounding box
culls columns and trims the runs.  1D: one thread per target.  2D: LANES threads share a target's sources.
GM: sources are read from global memory.  SM: they are staged through team scratch.

Arguments: batch[b] = first target and end; bound[b] = lowest x, y, z, highest x, y, z; src[e] = (x, y, z, strengths);
coef = the polynomials of the far parts one after another, highest degree first; `cells` and `lattice` as in near.py.
u[r NU + k] belongs to right-hand side r.
"""

from typing import List

import pykokkos as pk

from parki.kernels.near import SUMS, WIDTH, add_source, add_staged, all_columns, constants, nth_column, run

real = pk.double
TARGETS = 32  # targets that fit in scratch; a larger batch is taken in parts
LANES = 4  # lanes that share a target, a power of two
TILE = 64  # sources in scratch


@pk.workunit
def p2p_gm_1d(
    team: pk.TeamMember, xt: pk.View2D[real], src: pk.View2D[real], u: pk.View2D[real], batch: pk.View2D[pk.int32],
    bound: pk.View2D[real], cell_begin: pk.View1D[pk.int32], coef: pk.View1D[real], cells: pk.View1D[pk.int32],
    lattice: pk.View1D[real], tiny: real,
):  # fmt: skip
    """Set u[:, i] to the near field at target i."""
    b: int = team.league_rank()
    t_begin: int = batch[b][0]
    nt: int = batch[b][1] - t_begin
    n2, rc2, scale = constants(cells, lattice)
    first_slab, across, columns = all_columns(bound, b, nt, lattice)

    def target(t: int):
        x: real = xt[0][t_begin + t]
        y: real = xt[1][t_begin + t]
        z: real = xt[2][t_begin + t]
        acc: List[real] = [0.0] * SUMS
        for column in range(columns):
            column_in_reach, row, lowest, highest, x_shift, y_shift, z_move = nth_column(
                column, first_slab, across, bound, b, cells, lattice
            )
            if column_in_reach:
                p_begin: int = lowest // n2
                p_end: int = highest // n2 + 1
                for p in range(p_begin, p_end):
                    e_begin, e_end, z_shift = run(cell_begin, row, lowest, highest, p, z_move, cells, lattice)
                    for e in range(e_begin, e_end):
                        add_source(x - x_shift, y - y_shift, z - z_shift, src, e, coef, rc2, scale, tiny, acc)
        for k in range(SUMS):
            u[k][t_begin + t] = acc[k]

    pk.parallel_for(pk.TeamThreadRange(team, nt), target)


@pk.workunit(scratch=[(real, lambda p: TARGETS * SUMS * LANES)])
def p2p_gm_2d(
    team: pk.TeamMember, xt: pk.View2D[real], src: pk.View2D[real], u: pk.View2D[real], batch: pk.View2D[pk.int32],
    bound: pk.View2D[real], cell_begin: pk.View1D[pk.int32], coef: pk.View1D[real], cells: pk.View1D[pk.int32],
    lattice: pk.View1D[real], tiny: real,
):  # fmt: skip
    """Compute p2p_gm_1d with lanes: each takes every LANES-th source of a run; they are summed at the end."""
    b: int = team.league_rank()
    t_begin: int = batch[b][0]
    t_end: int = batch[b][1]
    n2, rc2, scale = constants(cells, lattice)
    first_slab, across, columns = all_columns(bound, b, t_end - t_begin, lattice)
    part: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), TARGETS * SUMS * LANES)
    for first in range(t_begin, t_end, TARGETS):
        nt: int = t_end - first
        if nt > TARGETS:
            nt = TARGETS

        def target(t: int):
            x: real = xt[0][first + t]
            y: real = xt[1][first + t]
            z: real = xt[2][first + t]

            def stream(lane: int):
                acc: List[real] = [0.0] * SUMS
                for column in range(columns):
                    column_in_reach, row, lowest, highest, x_shift, y_shift, z_move = nth_column(
                        column, first_slab, across, bound, b, cells, lattice
                    )
                    if column_in_reach:
                        p_begin: int = lowest // n2
                        p_end: int = highest // n2 + 1
                        for p in range(p_begin, p_end):
                            e_begin, e_end, z_shift = run(cell_begin, row, lowest, highest, p, z_move, cells, lattice)
                            for e in range(e_begin + lane, e_end, LANES):
                                add_source(x - x_shift, y - y_shift, z - z_shift, src, e, coef, rc2, scale, tiny, acc)
                for k in range(SUMS):
                    part[(t * SUMS + k) * LANES + lane] = acc[k]

            pk.parallel_for(pk.ThreadVectorRange(team, LANES), stream)
            for k in range(SUMS):

                def row_sum(lane: int, total: pk.Acc[real]):
                    total += part[(t * SUMS + k) * LANES + lane]

                v: real = pk.parallel_reduce(pk.ThreadVectorRange(team, LANES), row_sum)

                def store():
                    u[k][first + t] = v

                pk.single(pk.PerThread(team), store)

        pk.parallel_for(pk.TeamThreadRange(team, nt), target)
        team.team_barrier()


@pk.workunit(scratch=[(real, lambda p: TILE * WIDTH)])
def p2p_sm_1d(
    team: pk.TeamMember, xt: pk.View2D[real], src: pk.View2D[real], u: pk.View2D[real], batch: pk.View2D[pk.int32],
    bound: pk.View2D[real], cell_begin: pk.View1D[pk.int32], coef: pk.View1D[real], cells: pk.View1D[pk.int32],
    lattice: pk.View1D[real], tiny: real,
):  # fmt: skip
    """Compute p2p_gm_1d by tiles: all targets of a batch go over a tile of sources, and add its field to u."""
    b: int = team.league_rank()
    t_begin: int = batch[b][0]
    nt: int = batch[b][1] - t_begin
    n2, rc2, scale = constants(cells, lattice)
    first_slab, across, columns = all_columns(bound, b, nt, lattice)
    tile: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), TILE * WIDTH)

    def clear(t: int):
        for k in range(SUMS):
            u[k][t_begin + t] = 0.0

    pk.parallel_for(pk.TeamThreadRange(team, nt), clear)
    for column in range(columns):
        column_in_reach, row, lowest, highest, x_shift, y_shift, z_move = nth_column(
            column, first_slab, across, bound, b, cells, lattice
        )
        if column_in_reach:
            p_begin: int = lowest // n2
            p_end: int = highest // n2 + 1
            for p in range(p_begin, p_end):
                e_begin, e_end, z_shift = run(cell_begin, row, lowest, highest, p, z_move, cells, lattice)
                for e in range(e_begin, e_end, TILE):
                    m: int = e_end - e
                    if m > TILE:
                        m = TILE

                    def stage(q: int):
                        tile[q] = src[e + q // WIDTH][q % WIDTH]

                    pk.parallel_for(pk.TeamThreadRange(team, m * WIDTH), stage)
                    team.team_barrier()

                    def target(t: int):
                        i: int = t_begin + t
                        x: real = xt[0][i] - x_shift
                        y: real = xt[1][i] - y_shift
                        z: real = xt[2][i] - z_shift
                        acc: List[real] = [0.0] * SUMS
                        for j in range(m):
                            add_staged(x, y, z, tile, j, coef, rc2, scale, tiny, acc)
                        for k in range(SUMS):
                            u[k][i] += acc[k]

                    pk.parallel_for(pk.TeamThreadRange(team, nt), target)
                    team.team_barrier()
