"""Particle-particle with a list for each target: the near field of a periodic Ewald sum, as by p2p_list.py.

A team lists in scratch the sources within reach of its batch, one run after another without gaps: their positions from
the batch's lowest corner, in single precision.  Lanes share a target.  Each tests sources of this list, with room for
rounding; those that may be within rc go to a list of the target.  As soon as that is full, lanes add its fields, where
they are within rc.  So nearly all lanes have work: LIST for machines with wide rows of lanes and little scratch.
"""

from typing import List

import pykokkos as pk

from parki.kernels.near import SUMS, add_source, all_columns, constants, images_along_z, nth_run

real = pk.double
TARGETS = 8  # targets of a team, at most
LANES = 32  # lanes that share a target
PARTS = 1  # teams that share a batch whose targets do not all fit in the scratch of one
RUNS = 64  # runs that fit in scratch
TESTS = 128  # sources that a target tests at once, a multiple of LANES
FULL = 96  # sources of a target's list, a multiple of LANES, for which they are summed
CAP = 1536  # sources that fit in scratch, a multiple of TESTS
ROOM = 1.002  # squared reach of the test in single precision, in units of rc squared
OUTSIDE = 1e18  # coordinate of no source


@pk.workunit(
    scratch=[
        (pk.int32, lambda p: 3),
        (real, lambda p: RUNS),
        (real, lambda p: RUNS),
        (real, lambda p: RUNS),
        (pk.int32, lambda p: RUNS),
        (pk.int32, lambda p: RUNS),
        (pk.int32, lambda p: RUNS),
        (pk.float, lambda p: CAP),
        (pk.float, lambda p: CAP),
        (pk.float, lambda p: CAP),
        (pk.int32, lambda p: CAP),
        (pk.float, lambda p: 3 * TARGETS),
        (pk.int32, lambda p: TARGETS * (FULL + TESTS)),
        (real, lambda p: TARGETS * SUMS * LANES),
    ]
)
def p2p_list_2d(
    team: pk.TeamMember, xt: pk.View2D[real], xs: pk.View2D[real], src: pk.View2D[real], u: pk.View2D[real],
    batch: pk.View2D[pk.int32], bound: pk.View2D[real], cell_begin: pk.View1D[pk.int32], coef: pk.View1D[real],
    cells: pk.View1D[pk.int32], lattice: pk.View1D[real], tiny: real,
):  # fmt: skip
    """Set u[:, i] to the field at target i of all sources e, at xs[:, e], that are within rc."""
    b: int = team.league_rank() // PARTS
    t_begin: int = batch[b][0] + team.league_rank() % PARTS * TARGETS
    nt: int = batch[b][1] - t_begin
    if nt > TARGETS:
        nt = TARGETS
    if nt < 0:
        nt = 0
    n2, rc2, scale = constants(cells, lattice)
    reach2: pk.float = pk.float(rc2 * ROOM)
    count: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), 3)
    shift_x: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), RUNS)
    shift_y: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), RUNS)
    shift_z: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), RUNS)
    first: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), RUNS)
    end: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), RUNS)
    begin: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), RUNS)
    near_x: pk.ScratchView1D[pk.float] = pk.ScratchView1D(team.team_scratch(0), CAP)
    near_y: pk.ScratchView1D[pk.float] = pk.ScratchView1D(team.team_scratch(0), CAP)
    near_z: pk.ScratchView1D[pk.float] = pk.ScratchView1D(team.team_scratch(0), CAP)
    run_of: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), CAP)
    own: pk.ScratchView1D[pk.float] = pk.ScratchView1D(team.team_scratch(0), 3 * TARGETS)
    listed: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), TARGETS * (FULL + TESTS))
    part: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), TARGETS * SUMS * LANES)

    def clear(t: int):
        for q in range(SUMS):

            def clear_lane(lane: int):
                part[(t * SUMS + q) * LANES + lane] = 0.0

            pk.parallel_for(pk.ThreadVectorRange(team, LANES), clear_lane)

        def localise():
            own[3 * t] = pk.float(xt[0][t_begin + t] - bound[b][0])
            own[3 * t + 1] = pk.float(xt[1][t_begin + t] - bound[b][1])
            own[3 * t + 2] = pk.float(xt[2][t_begin + t] - bound[b][2])

        pk.single(pk.PerThread(team), localise)

    pk.parallel_for(pk.TeamThreadRange(team, nt), clear)
    team.team_barrier()
    n_runs: int = 1  # of the batch, as soon as they are counted
    first_run: int = 0
    while first_run < n_runs:

        def find_runs(thread: int):
            first_slab, across, columns = all_columns(bound, b, nt, lattice)
            p_begin, p_end = images_along_z(bound, b, n2, cells, lattice)
            images: int = p_end - p_begin
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
                        shift_x[acc] = x_shift
                        shift_y[acc] = y_shift
                        shift_z[acc] = z_shift
                        begin[acc] = e_begin
                        end[acc] = e_end
                    acc += 1

            with_sources: int = pk.parallel_scan(pk.ThreadVectorRange(team, some), meet)

            def join(g: int, acc: pk.Acc[int], final: bool):
                e_begin: int = begin[g]
                n_sources: int = end[g] - e_begin
                if final:
                    first[g] = acc
                    end[g] = acc + n_sources
                    begin[g] = e_begin - acc
                acc += n_sources

            total: int = pk.parallel_scan(pk.ThreadVectorRange(team, with_sources), join)

            def publish():
                count[0] = total
                count[1] = with_sources
                count[2] = columns * images

            pk.single(pk.PerThread(team), publish)

        pk.parallel_for(pk.TeamThreadRange(team, 1), find_runs)
        team.team_barrier()
        sources: int = count[0]
        runs: int = count[1]
        n_runs = count[2]
        for q_first in range(0, sources, CAP):
            m: int = sources - q_first
            if m > CAP:
                m = CAP
            n_tests: int = (m + TESTS - 1) // TESTS

            def list_run(g: int):
                q_begin: int = first[g]
                q_end: int = end[g]
                if q_begin < q_first:
                    q_begin = q_first
                if q_end > q_first + m:
                    q_end = q_first + m
                e_begin: int = begin[g] + q_begin
                x_corner: real = bound[b][0] - shift_x[g]
                y_corner: real = bound[b][1] - shift_y[g]
                z_corner: real = bound[b][2] - shift_z[g]
                n_sources: int = q_end - q_begin
                n_places: int = n_sources
                if n_sources > 0 and q_end == q_first + m:
                    n_places = q_first + n_tests * TESTS - q_begin  # the last tests are filled up
                place: int = q_begin - q_first

                def list_source(j: int):
                    x: pk.float = OUTSIDE
                    y: pk.float = OUTSIDE
                    z: pk.float = OUTSIDE
                    is_source: bool = j < n_sources
                    if is_source:
                        x = pk.float(xs[0][e_begin + j] - x_corner)
                        y = pk.float(xs[1][e_begin + j] - y_corner)
                        z = pk.float(xs[2][e_begin + j] - z_corner)
                    near_x[place + j] = x
                    near_y[place + j] = y
                    near_z[place + j] = z
                    run_of[place + j] = g

                pk.parallel_for(pk.ThreadVectorRange(team, n_places), list_source)

            pk.parallel_for(pk.TeamThreadRange(team, runs), list_run)
            team.team_barrier()

            def target(t: int):
                x: real = xt[0][t_begin + t]
                y: real = xt[1][t_begin + t]
                z: real = xt[2][t_begin + t]
                x_here: pk.float = own[3 * t]
                y_here: pk.float = own[3 * t + 1]
                z_here: pk.float = own[3 * t + 2]
                list_at: int = (FULL + TESTS) * t
                n: int = 0  # sources in this target's list
                for test in range(n_tests):
                    j_first: int = test * TESTS

                    def keep(j: int, acc: pk.Acc[int], final: bool):
                        dx: pk.float = x_here - near_x[j_first + j]
                        dy: pk.float = y_here - near_y[j_first + j]
                        dz: pk.float = z_here - near_z[j_first + j]
                        may_be_near: bool = dx * dx + dy * dy + dz * dz < reach2
                        if may_be_near:
                            if final:
                                listed[list_at + n + acc] = j_first + j
                            acc += 1

                    kept: int = pk.parallel_scan(pk.ThreadVectorRange(team, TESTS), keep)
                    n += kept
                    is_last: bool = test == n_tests - 1
                    is_full: bool = n >= FULL or is_last
                    if is_full:
                        some: int = n
                        if not is_last:
                            some = n // LANES * LANES
                        n -= some

                        def stream(lane: int):
                            acc: List[real] = [0.0] * SUMS
                            for q in range(lane, some, LANES):
                                j: int = listed[list_at + n + q]
                                g: int = run_of[j]
                                add_source(
                                    x - shift_x[g], y - shift_y[g], z - shift_z[g], src, begin[g] + q_first + j, coef,
                                    rc2, scale, tiny, acc,
                                )  # fmt: skip
                            for k in range(SUMS):
                                part[(t * SUMS + k) * LANES + lane] += acc[k]

                        pk.parallel_for(pk.ThreadVectorRange(team, LANES), stream)

            pk.parallel_for(pk.TeamThreadRange(team, nt), target)
            team.team_barrier()
        team.team_barrier()
        first_run += RUNS

    def total(t: int):
        for q in range(SUMS):

            def row_sum(lane: int, acc: pk.Acc[real]):
                acc += part[(t * SUMS + q) * LANES + lane]

            v: real = pk.parallel_reduce(pk.ThreadVectorRange(team, LANES), row_sum)

            def store():
                u[q][t_begin + t] = v

            pk.single(pk.PerThread(team), store)

    pk.parallel_for(pk.TeamThreadRange(team, nt), total)
