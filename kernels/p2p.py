"""Particle-particle: the near field of a periodic Ewald sum, |r| < rc, in four loops over the same arguments.

Sources are sorted by cell, the last axis fastest, so the cells of one (x, y) column that lie within reach of a batch of
targets are one run of sources.  A batch is a few neighbouring targets, one vector's worth on a host; its bounding box
culls columns and trims the runs.  1D: one thread per target.  2D: LANES threads share a target's sources.
GM: sources are read from global memory.  SM: they are staged through team scratch.

Arguments: batch[b] = first target and end; bound[b] = lowest x, y, z, highest x, y, z; src[e] = (x, y, z, strengths);
coef = the polynomials of the far parts one after another, highest degree first; n cells of width h in a box of sides l,
which repeats by (l0, t01, t02), (0, l1, t12), (0, 0, l2) if near.SKEW, else t is not read; `images` is above the number
of box sides by which rc and the tilts t reach beyond the box.  u[r NU + k] belongs to right-hand side r.
"""

from typing import List

import pykokkos as pk

from parki.kernels.near import SUMS, WIDTH, add_source, add_staged, beyond, in_box, layer, reach, run, slabs

real = pk.double
TARGETS = 32  # targets that fit in scratch; a larger batch is taken in parts
LANES = 4  # lanes that share a target, a power of two
TILE = 64  # sources in scratch


@pk.workunit
def p2p_gm_1d(
    team: pk.TeamMember, xt: pk.View2D[real], src: pk.View2D[real], u: pk.View2D[real], batch: pk.View2D[pk.int32],
    bound: pk.View2D[real], cell_begin: pk.View1D[pk.int32], coef: pk.View1D[real], n0: int, n1: int,
    n2: int, images: int, l0: real, l1: real, l2: real, t01: real, t02: real, t12: real, h0: real, h1: real, h2: real,
    rc: real, tiny: real,
):  # fmt: skip
    """Set u[:, i] to the near field at target i."""
    b: int = team.league_rank()
    t_begin: int = batch[b][0]
    nt: int = batch[b][1] - t_begin
    rc2: real = rc * rc
    scale: real = 2.0 / rc2
    x_lo, x_hi, a_begin, a_end = slabs(bound, b, 0, 0.0, rc, h0)
    z_lo: real = bound[b][2]
    z_hi: real = bound[b][5]

    def target(t: int):
        i: int = t_begin + t
        x: real = xt[0][i]
        y: real = xt[1][i]
        z: real = xt[2][i]
        acc: List[real] = [0.0] * SUMS
        for a in range(a_begin, a_end):
            a_box, i_box = in_box(a, n0)
            a_shift: real = i_box * l0
            a_left: real = beyond(rc2, a, h0, x_lo, x_hi)
            y_move: real = layer(i_box, 0.0, t01, 0.0)
            y_lo, y_hi, c_begin, c_end = slabs(bound, b, 1, y_move, rc, h1)
            for c in range(c_begin, c_end):
                left: real = beyond(a_left, c, h1, y_lo, y_hi)
                column_in_reach: bool = left > 0.0
                if column_in_reach:
                    c_box, j_box = in_box(c, n1)
                    c_shift: real = j_box * l1 + y_move
                    z_move: real = layer(i_box, j_box, t02, t12)
                    row: int = (a_box * n1 + c_box) * n2
                    d_first, d_last = reach(left, z_lo - z_move, z_hi - z_move, h2, n2, images)
                    p_begin: int = d_first // n2
                    p_end: int = d_last // n2 + 1
                    for p in range(p_begin, p_end):
                        e_begin, e_end = run(cell_begin, row, d_first - p * n2, d_last - p * n2, n2)
                        p_shift: real = real(p - images) * l2 + z_move
                        for e in range(e_begin, e_end):
                            add_source(x - a_shift, y - c_shift, z - p_shift, src, e, coef, rc2, scale, tiny, acc)
        for k in range(SUMS):
            u[k][i] = acc[k]

    pk.parallel_for(pk.TeamThreadRange(team, nt), target)


@pk.workunit(scratch=[(real, lambda p: TARGETS * SUMS * LANES)])
def p2p_gm_2d(
    team: pk.TeamMember, xt: pk.View2D[real], src: pk.View2D[real], u: pk.View2D[real], batch: pk.View2D[pk.int32],
    bound: pk.View2D[real], cell_begin: pk.View1D[pk.int32], coef: pk.View1D[real], n0: int, n1: int,
    n2: int, images: int, l0: real, l1: real, l2: real, t01: real, t02: real, t12: real, h0: real, h1: real, h2: real,
    rc: real, tiny: real,
):  # fmt: skip
    """Compute p2p_gm_1d with lanes: each takes every LANES-th source of a run; they are summed at the end."""
    b: int = team.league_rank()
    t_begin: int = batch[b][0]
    t_end: int = batch[b][1]
    rc2: real = rc * rc
    scale: real = 2.0 / rc2
    x_lo, x_hi, a_begin, a_end = slabs(bound, b, 0, 0.0, rc, h0)
    z_lo: real = bound[b][2]
    z_hi: real = bound[b][5]
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
                for a in range(a_begin, a_end):
                    a_box, i_box = in_box(a, n0)
                    a_shift: real = i_box * l0
                    a_left: real = beyond(rc2, a, h0, x_lo, x_hi)
                    y_move: real = layer(i_box, 0.0, t01, 0.0)
                    y_lo, y_hi, c_begin, c_end = slabs(bound, b, 1, y_move, rc, h1)
                    for c in range(c_begin, c_end):
                        left: real = beyond(a_left, c, h1, y_lo, y_hi)
                        column_in_reach: bool = left > 0.0
                        if column_in_reach:
                            c_box, j_box = in_box(c, n1)
                            c_shift: real = j_box * l1 + y_move
                            z_move: real = layer(i_box, j_box, t02, t12)
                            row: int = (a_box * n1 + c_box) * n2
                            d_first, d_last = reach(left, z_lo - z_move, z_hi - z_move, h2, n2, images)
                            p_begin: int = d_first // n2
                            p_end: int = d_last // n2 + 1
                            for p in range(p_begin, p_end):
                                e_begin, e_end = run(cell_begin, row, d_first - p * n2, d_last - p * n2, n2)
                                p_shift: real = real(p - images) * l2 + z_move
                                for e in range(e_begin + lane, e_end, LANES):
                                    add_source(
                                        x - a_shift, y - c_shift, z - p_shift, src, e, coef, rc2, scale, tiny, acc
                                    )
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
    bound: pk.View2D[real], cell_begin: pk.View1D[pk.int32], coef: pk.View1D[real], n0: int, n1: int,
    n2: int, images: int, l0: real, l1: real, l2: real, t01: real, t02: real, t12: real, h0: real, h1: real, h2: real,
    rc: real, tiny: real,
):  # fmt: skip
    """Compute p2p_gm_1d by tiles: all targets of a batch go over a tile of sources, and add its field to u."""
    b: int = team.league_rank()
    t_begin: int = batch[b][0]
    nt: int = batch[b][1] - t_begin
    rc2: real = rc * rc
    scale: real = 2.0 / rc2
    x_lo, x_hi, a_begin, a_end = slabs(bound, b, 0, 0.0, rc, h0)
    z_lo: real = bound[b][2]
    z_hi: real = bound[b][5]
    tile: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), TILE * WIDTH)

    def clear(t: int):
        for k in range(SUMS):
            u[k][t_begin + t] = 0.0

    pk.parallel_for(pk.TeamThreadRange(team, nt), clear)
    for a in range(a_begin, a_end):
        a_box, i_box = in_box(a, n0)
        a_shift: real = i_box * l0
        a_left: real = beyond(rc2, a, h0, x_lo, x_hi)
        y_move: real = layer(i_box, 0.0, t01, 0.0)
        y_lo, y_hi, c_begin, c_end = slabs(bound, b, 1, y_move, rc, h1)
        for c in range(c_begin, c_end):
            left: real = beyond(a_left, c, h1, y_lo, y_hi)
            column_in_reach: bool = left > 0.0
            if column_in_reach:
                c_box, j_box = in_box(c, n1)
                c_shift: real = j_box * l1 + y_move
                z_move: real = layer(i_box, j_box, t02, t12)
                row: int = (a_box * n1 + c_box) * n2
                d_first, d_last = reach(left, z_lo - z_move, z_hi - z_move, h2, n2, images)
                p_begin: int = d_first // n2
                p_end: int = d_last // n2 + 1
                for p in range(p_begin, p_end):
                    e_begin, e_end = run(cell_begin, row, d_first - p * n2, d_last - p * n2, n2)
                    p_shift: real = real(p - images) * l2 + z_move
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
                            x: real = xt[0][i] - a_shift
                            y: real = xt[1][i] - c_shift
                            z: real = xt[2][i] - p_shift
                            acc: List[real] = [0.0] * SUMS
                            for j in range(m):
                                add_staged(x, y, z, tile, j, coef, rc2, scale, tiny, acc)
                            for k in range(SUMS):
                                u[k][i] += acc[k]

                        pk.parallel_for(pk.TeamThreadRange(team, nt), target)
                        team.team_barrier()


@pk.workunit(scratch=[(real, lambda p: TILE * WIDTH), (real, lambda p: TARGETS * SUMS * LANES)])
def p2p_sm_2d(
    team: pk.TeamMember, xt: pk.View2D[real], src: pk.View2D[real], u: pk.View2D[real], batch: pk.View2D[pk.int32],
    bound: pk.View2D[real], cell_begin: pk.View1D[pk.int32], coef: pk.View1D[real], n0: int, n1: int,
    n2: int, images: int, l0: real, l1: real, l2: real, t01: real, t02: real, t12: real, h0: real, h1: real, h2: real,
    rc: real, tiny: real,
):  # fmt: skip
    """Compute p2p_sm_1d with lanes: each takes every LANES-th source of a tile; they are summed at the end."""
    b: int = team.league_rank()
    t_begin: int = batch[b][0]
    t_end: int = batch[b][1]
    rc2: real = rc * rc
    scale: real = 2.0 / rc2
    x_lo, x_hi, a_begin, a_end = slabs(bound, b, 0, 0.0, rc, h0)
    z_lo: real = bound[b][2]
    z_hi: real = bound[b][5]
    tile: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), TILE * WIDTH)
    part: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), TARGETS * SUMS * LANES)
    for first in range(t_begin, t_end, TARGETS):
        nt: int = t_end - first
        if nt > TARGETS:
            nt = TARGETS

        def clear(q: int):
            part[q] = 0.0

        pk.parallel_for(pk.TeamThreadRange(team, nt * (SUMS * LANES)), clear)
        for a in range(a_begin, a_end):
            a_box, i_box = in_box(a, n0)
            a_shift: real = i_box * l0
            a_left: real = beyond(rc2, a, h0, x_lo, x_hi)
            y_move: real = layer(i_box, 0.0, t01, 0.0)
            y_lo, y_hi, c_begin, c_end = slabs(bound, b, 1, y_move, rc, h1)
            for c in range(c_begin, c_end):
                left: real = beyond(a_left, c, h1, y_lo, y_hi)
                column_in_reach: bool = left > 0.0
                if column_in_reach:
                    c_box, j_box = in_box(c, n1)
                    c_shift: real = j_box * l1 + y_move
                    z_move: real = layer(i_box, j_box, t02, t12)
                    row: int = (a_box * n1 + c_box) * n2
                    d_first, d_last = reach(left, z_lo - z_move, z_hi - z_move, h2, n2, images)
                    p_begin: int = d_first // n2
                    p_end: int = d_last // n2 + 1
                    for p in range(p_begin, p_end):
                        e_begin, e_end = run(cell_begin, row, d_first - p * n2, d_last - p * n2, n2)
                        p_shift: real = real(p - images) * l2 + z_move
                        for e in range(e_begin, e_end, TILE):
                            m: int = e_end - e
                            if m > TILE:
                                m = TILE

                            def stage(q: int):
                                tile[q] = src[e + q // WIDTH][q % WIDTH]

                            pk.parallel_for(pk.TeamThreadRange(team, m * WIDTH), stage)
                            team.team_barrier()

                            def target(t: int):
                                x: real = xt[0][first + t] - a_shift
                                y: real = xt[1][first + t] - c_shift
                                z: real = xt[2][first + t] - p_shift

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
