"""Particle-particle, SM-2D: tiles of sources in team scratch, and lanes that share the targets; see p2p.py."""

from typing import List

import pykokkos as pk

from parki.kernels.near import SUMS, WIDTH, add_staged, all_columns, constants, nth_column, run

real = pk.double
TARGETS = 32  # targets that fit in scratch; a larger batch is taken in parts
LANES = 4  # lanes that share a target, a power of two
TILE = 64  # sources in scratch


@pk.workunit(scratch=[(real, lambda p: TILE * WIDTH), (real, lambda p: TARGETS * SUMS * LANES)])
def p2p_sm_2d(
    team: pk.TeamMember, xt: pk.View2D[real], src: pk.View2D[real], u: pk.View2D[real], batch: pk.View2D[pk.int32],
    bound: pk.View2D[real], cell_begin: pk.View1D[pk.int32], coef: pk.View1D[real], cells: pk.View1D[pk.int32],
    lattice: pk.View1D[real], tiny: real,
):  # fmt: skip
    """Compute p2p_sm_1d with lanes: each takes every LANES-th source of a tile; they are summed at the end."""
    b: int = team.league_rank()
    t_begin: int = batch[b][0]
    t_end: int = batch[b][1]
    n2, rc2, scale = constants(cells, lattice)
    first_slab, across, columns = all_columns(bound, b, t_end - t_begin, lattice)
    tile: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), TILE * WIDTH)
    part: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), TARGETS * SUMS * LANES)
    for first in range(t_begin, t_end, TARGETS):
        nt: int = t_end - first
        if nt > TARGETS:
            nt = TARGETS

        def clear(q: int):
            part[q] = 0.0

        pk.parallel_for(pk.TeamThreadRange(team, nt * (SUMS * LANES)), clear)
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
                            x: real = xt[0][first + t] - x_shift
                            y: real = xt[1][first + t] - y_shift
                            z: real = xt[2][first + t] - z_shift

                            def stream(lane: int):
                                acc: List[real] = [0.0] * SUMS
                                for j in range(lane, m, LANES):
                                    add_staged(x, y, z, tile, j, coef, rc2, scale, tiny, acc)
                                for k in range(SUMS):
                                    part[(t * SUMS + k) * LANES + lane] += acc[k]

                            pk.parallel_for(pk.ThreadVectorRange(team, LANES), stream)

                        pk.parallel_for(pk.TeamThreadRange(team, nt), target)
                        team.team_barrier()
        team.team_barrier()

        def total(t: int):
            for k in range(SUMS):

                def row_sum(lane: int, acc: pk.Acc[real]):
                    acc += part[(t * SUMS + k) * LANES + lane]

                v: real = pk.parallel_reduce(pk.ThreadVectorRange(team, LANES), row_sum)

                def store():
                    u[k][first + t] = v

                pk.single(pk.PerThread(team), store)

        pk.parallel_for(pk.TeamThreadRange(team, nt), total)
        team.team_barrier()
