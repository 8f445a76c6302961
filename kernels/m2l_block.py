"""Products of spectra of octets, as by `m2l.py`, with the sources of a block of target octets in scratch.

A team computes one frequency of one block.  It takes the transform of the kernel and the spectra of all sources of the
block to scratch, so that memory is read once, without gaps.  A row of lanes then adds up ROWS target octets, whose sums
stay in registers over all directions; a lane has every LANES-th sibling of each: for machines with wide rows of lanes.
"""

from typing import List

import pykokkos as pk

from parki.kernels.m2l import DIRECTIONS, take_translation

real = pk.double
NS = 1  # components of equivalent sources
NT = 1  # components of check values
RUN = 64  # target octets of a block, at most
ROWS = 2  # target octets of a row of lanes, at a time
LANES = 4  # lanes of a row
CAP = 216  # source octets in scratch
STRIDE = 17  # numbers from one octet to the next in scratch: neighbours are in different banks
SIBLINGS = 8 // LANES  # of a lane
TEAM_ROWS = RUN // ROWS  # rows of lanes


@pk.workunit(
    scratch=[
        (real, lambda p: 128 * DIRECTIONS),
        (real, lambda p: (CAP + 1) * STRIDE),
        (pk.int32, lambda p: RUN * DIRECTIONS),
    ]
)
def block_products(
    team: pk.TeamMember, rows: pk.View1D[pk.int32], source_begin: pk.View1D[pk.int32], source: pk.View1D[pk.int32],
    near: pk.View2D[pk.int32], place: pk.View1D[pk.int32], table: pk.View3D[real], given: pk.View3D[real],
    made: pk.View3D[real], blocks: int, columns: int,
):  # fmt: skip
    """Compute the spectra of check values: for each pair of octets, 8 x 8 translations between their boxes.

    Target rows rows[n] ... rows[n + 1] - 1 belong to block n, whose source rows are source[source_begin[n]] ...
    source[source_begin[n + 1] - 1]; near[row][d] is the place among these in direction d, or -1.  The transform of the
    kernel from sibling s to sibling t is at table[frequency][component t NS + component s][place[64 d + 8 s + t]], and
    its imaginary part `columns` behind.
    """
    f: int = team.league_rank() // blocks
    n: int = team.league_rank() % blocks
    first_row: int = rows[n]
    n_rows: int = rows[n + 1] - first_row
    first_source: int = source_begin[n]
    n_sources: int = source_begin[n + 1] - first_source
    kernel: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), 128 * DIRECTIONS)
    spectrum: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), (CAP + 1) * STRIDE)
    meets: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), RUN * DIRECTIONS)

    def list_row(row: int):
        def list_direction(d: int):
            place_of: int = -1
            if row < n_rows:
                place_of = near[first_row + row][d]
            meets[d * RUN + row] = place_of

        pk.parallel_for(pk.ThreadVectorRange(team, DIRECTIONS), list_direction)

    pk.parallel_for(pk.TeamThreadRange(team, RUN), list_row)
    for c in range(NT * NS):
        t: int = c // NS * 16
        s: int = c % NS * 16

        def copy(q: int):
            def value(i: int):
                take_translation(kernel, place, table, f, c, columns, q, i)

            pk.parallel_for(pk.ThreadVectorRange(team, 8), value)

        pk.parallel_for(pk.TeamThreadRange(team, 8 * DIRECTIONS), copy)
        for first in range(0, n_sources, CAP):
            m: int = n_sources - first
            if m > CAP:
                m = CAP

            def take(q: int):
                def number(e: int):
                    v: real = 0.0
                    if q < m:
                        v = given[f][source[first_source + first + q]][s + e]
                    to: int = q
                    if q == m:
                        to = CAP
                    spectrum[to * STRIDE + e] = v

                pk.parallel_for(pk.ThreadVectorRange(team, 16), number)

            pk.parallel_for(pk.TeamThreadRange(team, m + 1), take)
            team.team_barrier()

            def row_sums(g: int):
                def lane(i: int):
                    re: List[real] = [0.0] * (ROWS * SIBLINGS)
                    im: List[real] = [0.0] * (ROWS * SIBLINGS)
                    for d in range(DIRECTIONS):
                        at: List[int] = [CAP] * ROWS
                        n_near: int = 0
                        for u in range(ROWS):
                            j: int = meets[d * RUN + u * TEAM_ROWS + g] - first
                            is_here: bool = j >= 0 and j < m
                            if is_here:
                                at[u] = j
                                n_near += 1
                        if n_near > 0:
                            for e in range(8):
                                kr: List[real] = [0.0] * SIBLINGS
                                ki: List[real] = [0.0] * SIBLINGS
                                for v in range(SIBLINGS):
                                    kr[v] = kernel[128 * d + 16 * e + v * LANES + i]
                                    ki[v] = kernel[128 * d + 16 * e + 8 + v * LANES + i]
                                for u in range(ROWS):
                                    x: real = spectrum[at[u] * STRIDE + e]
                                    y: real = spectrum[at[u] * STRIDE + 8 + e]
                                    for v in range(SIBLINGS):
                                        re[u * SIBLINGS + v] += kr[v] * x
                                        im[u * SIBLINGS + v] += kr[v] * y
                                        re[u * SIBLINGS + v] -= ki[v] * y
                                        im[u * SIBLINGS + v] += ki[v] * x
                    for u in range(ROWS):
                        row: int = u * TEAM_ROWS + g
                        if row < n_rows:
                            for v in range(SIBLINGS):
                                to_re: int = t + v * LANES + i
                                if s + first > 0:
                                    made[f][first_row + row][to_re] += re[u * SIBLINGS + v]
                                    made[f][first_row + row][to_re + 8] += im[u * SIBLINGS + v]
                                else:
                                    made[f][first_row + row][to_re] = re[u * SIBLINGS + v]
                                    made[f][first_row + row][to_re + 8] = im[u * SIBLINGS + v]

                pk.parallel_for(pk.ThreadVectorRange(team, LANES), lane)

            pk.parallel_for(pk.TeamThreadRange(team, TEAM_ROWS), row_sums)
            team.team_barrier()
        team.team_barrier()
